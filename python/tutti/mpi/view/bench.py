"""What measurements over MPI show: tables like those of nccl-tests, and box plots.

Notched box plots are as Figs 8, 9 and 13 of Ruefenacht et al. 2017. Boxes span the quartiles,
notches are the 95 % CI of the median, whiskers reach the last value within 1.5 interquartile
ranges, and dots are outliers. Dashed lines are predictions of the model. The title states whether
distance was emulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl
from rich.text import Text

from tutti.view.plot import plot_boxes
from tutti.view.quantity import format_size, format_time, time_unit
from tutti.view.tables import Column
from tutti.view.view import Data, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console, ConsoleOptions

    from tutti.mpi.bench_job import Settings

    Row = Mapping[str, Any]

_MOST_BOXES = 12
"""Boxes per position of the axis; of more schedules, the fastest are drawn."""
_EMULATED = "distance is emulated"


_LEFT_OUT = ("count", "type", "redop", "root", "algbw", "quartiles")
"""Omitted on narrow terminals: equal in all rows, or in summary.csv."""
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_FOLDING = {"all_reduce", "reduce", "reduce_scatter"}


def _us(ps: float) -> str:
    return f"{ps / 1e6:.2f}"


def _gigabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.2f}"


def _ratio(row: Row) -> float | None:
    return int(row["median_ps"]) / int(row["model_ps"]) if row["model_ps"] else None


def _schedule(row: Row) -> str:
    prefix = {"own": "own", "call": "call:"}.get(row["implementation"], "")
    return prefix if prefix == "own" else f"{prefix}{row['schedule']}"


def _interval(row: Row, name: str) -> str:
    value, low, high = (row[f"{name}{end}_ps"] / 1e6 for end in ("", "_low", "_high"))
    return f"{value:.4g} ({low:.4g} to {high:.4g})"


BLOCKS: tuple[Column[Row], ...] = (
    Column("#size", itemgetter("size_bytes"), unit="#(B)"),
    Column("count", itemgetter("count"), unit="(elements)"),
    Column("type", itemgetter("datatype")),
    Column("redop", lambda row: row["operation"] if row["collective"] in _FOLDING else "none"),
    Column("root", lambda row: row["root"] if row["collective"] in _ROOTED else -1),
    Column("time", itemgetter("median_ps"), _us, "(us)"),
    Column("algbw", itemgetter("algbw_bytes_per_s"), _gigabytes, "(GB/s)"),
    Column("busbw", itemgetter("busbw_bytes_per_s"), _gigabytes, "(GB/s)"),
    Column("#wrong", itemgetter("wrong")),
    Column("min", itemgetter("least_ps"), _us, "(us)"),
    Column("quartiles", unit="(us)",
           get=lambda row: f"{_us(row['lower_quartile_ps'])} {_us(row['upper_quartile_ps'])}"),
    Column("model", itemgetter("model_ps"), _us, "(us)"),
    Column("ratio", _ratio, "{:.3f}".format),
    Column("schedule", _schedule),
)  # fmt: skip
"""The columns of the statistics of blocks: those of nccl-tests first."""

FITTED: tuple[Column[Row], ...] = (
    Column("#sends", lambda row: "blocking" if row["blocking"] else "non-blocking"),
    Column("statistic", itemgetter("statistic")),
    Column("alpha_p (us)", lambda row: _interval(row, "alpha_p")),
    Column("alpha_r (us)", lambda row: _interval(row, "alpha_r")),
    Column("residual (us)", lambda row: f"{row['residual_ps'] / 1e6:.3g}"),
)
"""The columns of a model fitted to multicasts."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of the blocks of one rank count, as lines that other programs read."""

    no_wrap: ClassVar[bool] = True

    summary: pl.DataFrame
    settings: Settings

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yields lines of full length; a narrow terminal gets fewer columns."""
        rows = self.summary.to_dicts()
        cases = self.summary.height // self.summary["size_bytes"].n_unique()
        turns = f"; {cases} cases alternate" if cases > 1 else ""
        yield Text(
            f"# {rows[0]['ranks']} ranks; medians of {self.settings.blocks} blocks of "
            f"{self.settings.each} calls, until the last rank finished{turns}"
        )
        if self.settings.distance is not None:
            yield Text(f"# {self.settings.distance.note}")
        columns = [
            column for column in BLOCKS if any(column.value(row) is not None for row in rows)
        ]
        table = _lines(columns, rows)
        if console.is_terminal and len(max(table, key=len)) > console.width:
            first = {column.name: column.text(rows[0]) for column in BLOCKS}
            shared = [f"{first['type']} elements"]
            shared += [] if first["redop"] == "none" else [first["redop"]]
            shared += [] if first["root"] == "-1" else [f"root {first['root']}"]
            yield Text(f"# {', '.join(shared)}; quartiles are in summary.csv")
            table = _lines([column for column in columns if column.name not in _LEFT_OUT], rows)
        yield from map(Text, table)
        wrong = int(self.summary["wrong"].sum())
        verdict = "not checked" if not self.settings.check else "WRONG" if wrong else "OK"
        yield Text(f"# Out of bounds values : {wrong} {verdict}")


def _lines(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    """Formats a table like nccl-tests, at full width, with headings after a `#`."""
    units = [column.unit for column in columns]
    cells = [[column.name for column in columns], *([units] if any(units) else [])]
    cells += [[column.text(row) for column in columns] for row in rows]
    widths = [*(max(map(len, column)) for column in zip(*cells, strict=True))]
    widths[-1] = 0  # not padded
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]


def statistics_view(blocks: pl.DataFrame, summary: pl.DataFrame, settings: Settings) -> View:
    """Returns what the blocks of one rank count, with their summary, show."""
    return View(below=[Statistics(summary, settings)], log=_caveats(blocks, settings))


def blocks_view(blocks: pl.DataFrame, summary: pl.DataFrame) -> View:
    """Returns the files of the blocks of all rank counts, and the remark on wrong results."""
    wrong = int(summary["wrong"].sum())
    remark = f"{wrong} wrong elements in {summary['collective'][0]}: see the column `wrong`"
    return View(
        data=[
            Data("", lambda: blocks, ["results.parquet"]),
            Data("results", lambda: summary, ["summary.csv"]),
        ],
        drawings={"times.svg": lambda path: plot_blocks(path, blocks)},
        log=[remark] if wrong else [],
    )


def multicasts_view(
    multicasts: pl.DataFrame, fitted: pl.DataFrame | None, settings: Settings
) -> View:
    """Returns what multicasts show, with the model fitted to several numbers of peers."""
    data, lines = [Data("multicasts", lambda: multicasts, ["multicasts.parquet"])], list[str]()
    if fitted is not None:
        data.append(Data("fit", lambda: fitted, ["fit.csv"]))
        lines = _lines(FITTED, fitted.to_dicts())
        if settings.distance is not None:
            lines.insert(0, f"# {settings.distance.note}")
    return View(
        below=[Text(line, no_wrap=True) for line in lines],
        data=data,
        drawings={"multicasts.svg": lambda path: plot_multicasts(path, multicasts)},
        log=_caveats(multicasts, settings),
    )


def _caveats(frame: pl.DataFrame, settings: Settings) -> list[str]:
    """Returns what limits the significance of the times."""
    remarks = []
    if settings.distance is None and frame["crowded"].any():
        remarks.append("more ranks than cores: times depend on the operating system's scheduler")
    error = max(frame["clock_error_ps"].to_list())
    if error:
        remarks.append(f"clock error between the hosts: up to {format_time(error)}")
    return remarks


def plot_blocks(path: str | Path, blocks: pl.DataFrame) -> Path:
    """Draws measured blocks (`tutti.mpi.bench.BLOCKS`): over sizes, or over ranks at one size.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        blocks: Blocks of one collective.

    Returns:
        The path written.
    """
    over = "size_bytes" if blocks["size_bytes"].n_unique() > 1 else "ranks"
    if over == "size_bytes":
        blocks = blocks.filter(pl.col("ranks") == pl.col("ranks").max())
    named = blocks.with_columns(name=_name())
    places = named[over].unique(maintain_order=True).to_list()
    names = _fewest(named)
    factor, unit = time_unit(float(named["time_ps"].median()))  # type: ignore[arg-type]
    series: dict[str, list[list[float]]] = {}
    lines: dict[str, list[float | None]] = {}
    for name in names:
        parts = [
            named.filter((pl.col("name") == name) & (pl.col(over) == place)) for place in places
        ]
        series[name] = [(part["time_ps"] / factor).to_list() for part in parts]
        predicted = [part["model_ps"][0] if part.height else None for part in parts]
        lines[name] = [None if value is None else value / factor for value in predicted]
    shown = [format_size(place) for place in places] if over == "size_bytes" else map(str, places)
    return plot_boxes(
        path,
        list(shown),
        series,
        x="size" if over == "size_bytes" else "ranks",
        y=f"time ({unit})",
        lines=lines,
        title=_title(blocks, str(blocks["collective"][0])),
        logarithmic=over == "size_bytes",
    )


def _name() -> pl.Expr:
    """Returns short names of the schedules; `own` is the collective of the MPI library itself."""
    method, full = pl.col("implementation"), pl.col("schedule")
    short = full.str.replace(r"^recursive_multiplying:", "")
    return (
        pl.when(method == "own").then(pl.lit("own"))
        .when(method == "call").then(pl.lit("call:") + short)
        .otherwise(short)
    )  # fmt: skip


def _fewest(named: pl.DataFrame) -> list[str]:
    """Returns the names to draw: all, or the `_MOST_BOXES` fastest."""
    names = named["name"].unique(maintain_order=True).to_list()
    if len(names) <= _MOST_BOXES:
        return names
    order = named.group_by("name", maintain_order=True).agg(pl.col("time_ps").median())
    fastest = set(order.sort("time_ps", maintain_order=True)["name"][:_MOST_BOXES])
    return [name for name in names if name in fastest]


def plot_multicasts(path: str | Path, multicasts: pl.DataFrame) -> Path:
    """Draws measured multicasts (`tutti.mpi.bench_multicast.MULTICASTS`): Fig. 8.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        multicasts: Multicasts with blocking and with non-blocking sends.

    Returns:
        The path written.
    """
    peers = multicasts["peers"].unique().sort().to_list()
    factor, unit = time_unit(float(multicasts["received_ps"].median()))  # type: ignore[arg-type]
    series = {
        name: [
            (part["received_ps"] / factor).to_list()
            for count in peers
            for part in [
                multicasts.filter((pl.col("peers") == count) & (pl.col("blocking") == is_blocking))
            ]
        ]
        for name, is_blocking in (("non-blocking sends", False), ("blocking sends", True))
    }
    return plot_boxes(
        path, [str(count) for count in peers], series,
        x="peers", y=f"time to last receive ({unit})",
        title=_title(multicasts, "multicast of 8 bytes"),
    )  # fmt: skip


def _title(frame: pl.DataFrame, what: str) -> str:
    if not frame["emulated"].any():
        return what
    return f"{what}\n{_EMULATED}: {frame['model'][0]}"
