"""`tutti plot`: plots stored results."""

from __future__ import annotations

import enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import check_frame, read_frame
from tutti.collectives.columns import READ, READ_IF_THERE
from tutti.collectives.frames import MEASUREMENTS
from tutti.collectives.view.comparison_plot import plot_comparison
from tutti.study.console import record
from tutti.study.study import Study
from tutti.sweeps.view import plot_swept
from tutti.sweeps.view import where as rows_where
from tutti.view.errors import ReportError

if TYPE_CHECKING:
    import polars as pl


_EXPECTED = "a results.parquet or results.csv that `tutti compare` or `tutti sweep` wrote"


class PlotKind(enum.StrEnum):
    """The kind of plot."""

    TIME = "time"
    BUSBW = "busbw"
    RANKS = "ranks"
    MAP = "map"
    SWEEP = "sweep"


def plot(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="results.parquet or .csv of `tutti compare` or `sweep`."
        ),
    ],
    kind: Annotated[
        PlotKind,
        typer.Option(
            "--kind",
            help="Kind of plot: time or busbw over size, time over ranks, the map of winners, or "
            "time over a swept key.",
        ),
    ] = PlotKind.TIME,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-r", help="Rank count. Default: the largest."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="For --kind sweep: the key, if several are swept.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=VALUE",
            help="Only points of a sweep with this value of a key; may be repeated.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file: .svg, .png or .pdf."),
    ] = None,
) -> None:
    """Plot results over size, ranks or a swept key, or as a map of winners.

    \b
    Examples:
      tutti plot out/demo/results.parquet
      tutti plot out/demo/results.parquet --kind busbw --ranks 32 -o busbw.pdf
      tutti plot out/demo/results.csv --kind map
    """
    frame = _read(results)
    target = to or results.with_name(f"{kind.value}.svg")
    try:
        frame = rows_where(frame, where or [])
        if kind == PlotKind.SWEEP:
            draw = partial(plot_swept, frame=frame, key=key, ranks=ranks)
        else:
            draw = partial(plot_comparison, frame=frame, kind=kind.value, ranks=ranks)
        Study().write(target, draw)
    except ReportError as error:
        if error.kind != "frame":
            raise
        source, hint = str(results), error.hint
        if hint == ReportError.kinds["frame"].hint:
            raise mistake(error.problem, source=source, expected=_EXPECTED) from None
        raise mistake(error.problem, source=source, hint=hint) from None
    record(kind=kind.value, rows=frame.height)


def _read(path: Path) -> pl.DataFrame:
    frame = read_frame(path, _EXPECTED, MEASUREMENTS)
    there = {name: kind for name, kind in READ_IF_THERE.items() if name in frame.columns}
    return check_frame(frame, READ | there, source=str(path), expected=_EXPECTED)
