"""The table of `tutti mpi bench`: the columns of nccl-tests, and what else was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.cli.console import out

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.mpi.bench import Settings

__all__ = ["lines", "say", "show_blocks"]

_UNITS = {
    "#size": "#(B)",
    "count": "(elements)",
    "type": "",
    "redop": "",
    "root": "",
    "time": "(us)",
    "algbw": "(GB/s)",
    "busbw": "(GB/s)",
    "#wrong": "",
    "min": "(us)",
    "quartiles": "(us)",
    "model": "(us)",
    "ratio": "",
    "schedule": "",
}
"""The columns in their order: those of nccl-tests first."""
_LEFT_OUT = ("count", "type", "redop", "root", "algbw", "quartiles")
"""On a terminal that is too narrow for all: what all rows have in common, or summary.csv has."""
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_FOLDING = {"all_reduce", "reduce", "reduce_scatter"}


def show_blocks(summary: pl.DataFrame, settings: Settings) -> None:
    """Prints what blocks of one number of ranks came to."""
    rows = [_cells(row) for row in summary.iter_rows(named=True)]
    first = summary.row(0, named=True)
    cases = summary.height // summary["size_bytes"].n_unique()
    way = f"{cases} in turn, " if cases > 1 else ""
    say(f"# {first['ranks']} ranks; medians of {settings.blocks} blocks of {settings.each}, {way}"
        f"until the last rank was done")  # fmt: skip
    if settings.distance is not None:
        say(f"# {settings.distance.note}")
    names = [name for name in _UNITS if any(row[name] for row in rows)]
    table = _table(names, rows)
    if out().is_terminal and len(max(table, key=len)) > out().width:
        said = [f"{rows[0]['type']} elements"]
        said += [] if rows[0]["redop"] == "none" else [rows[0]["redop"]]
        said += [] if rows[0]["root"] == "-1" else [f"root {rows[0]['root']}"]
        say(f"# {', '.join(said)}; quartiles stand in summary.csv")
        table = _table([name for name in names if name not in _LEFT_OUT], rows)
    for line in table:
        say(line)
    wrong = int(summary["wrong"].sum())
    verdict = "not checked" if not settings.check else "OK" if not wrong else "WRONG"
    say(f"# Out of bounds values : {wrong} {verdict}")


def _table(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[str]:
    return lines(
        tuple(names),
        tuple(_UNITS[name] for name in names),
        *(tuple(row[name] for name in names) for row in rows),
    )


def lines(*rows: tuple[str, ...]) -> list[str]:
    """A table in the manner of nccl-tests: as wide as it is, with headings behind a `#`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell if column == len(widths) - 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def say(line: str) -> None:
    """Prints a line as wide as it is, for other programs."""
    out().print(line, markup=False, soft_wrap=True)


def _cells(row: dict[str, object]) -> dict[str, str]:
    def us(name: str) -> str:
        value = row[name]
        return "" if value is None else f"{float(value) / 1e6:.2f}"  # type: ignore[arg-type]

    collective = str(row["collective"])
    model, median = row["model_ps"], row["median_ps"]
    ratio = f"{int(median) / int(model):.3f}" if model else ""  # type: ignore[call-overload]
    return {
        "#size": str(row["size_bytes"]),
        "count": str(row["count"]),
        "type": str(row["datatype"]),
        "redop": str(row["operation"]) if collective in _FOLDING else "none",
        "root": str(row["root"]) if collective in _ROOTED else "-1",
        "time": us("median_ps"),
        "algbw": f"{float(row['algbw_bytes_per_s']) / 1e9:.2f}",  # type: ignore[arg-type]
        "busbw": f"{float(row['busbw_bytes_per_s']) / 1e9:.2f}",  # type: ignore[arg-type]
        "#wrong": str(row["wrong"]),
        "min": us("least_ps"),
        "quartiles": f"{us('lower_quartile_ps')} {us('upper_quartile_ps')}",
        "model": us("model_ps"),
        "ratio": ratio,
        "schedule": _shown(str(row["way"]), str(row["schedule"])),
    }


def _shown(way: str, schedule: str) -> str:
    return "own" if way == "own" else f"call:{schedule}" if way == "call" else schedule
