"""The table of `tutti mpi bench`: the columns of nccl-tests, and further statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.console import out

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.mpi.bench import Settings

__all__ = ["lines", "print_line", "show_blocks"]

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
"""The columns in order: those of nccl-tests first."""
_LEFT_OUT = ("count", "type", "redop", "root", "algbw", "quartiles")
"""Omitted on narrow terminals: equal in all rows, or in summary.csv."""
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_FOLDING = {"all_reduce", "reduce", "reduce_scatter"}


def show_blocks(summary: pl.DataFrame, settings: Settings) -> None:
    """Prints the statistics of the blocks of one number of ranks."""
    rows = [_cells(row) for row in summary.iter_rows(named=True)]
    first = summary.row(0, named=True)
    cases = summary.height // summary["size_bytes"].n_unique()
    turns = f"; {cases} cases alternate" if cases > 1 else ""
    print_line(f"# {first['ranks']} ranks; medians of {settings.blocks} blocks of {settings.each} "
               f"calls, until the last rank finished{turns}")  # fmt: skip
    if settings.distance is not None:
        print_line(f"# {settings.distance.note}")
    names = [name for name in _UNITS if any(row[name] for row in rows)]
    table = _table(names, rows)
    if out().is_terminal and len(max(table, key=len)) > out().width:
        shared = [f"{rows[0]['type']} elements"]
        shared += [] if rows[0]["redop"] == "none" else [rows[0]["redop"]]
        shared += [] if rows[0]["root"] == "-1" else [f"root {rows[0]['root']}"]
        print_line(f"# {', '.join(shared)}; quartiles are in summary.csv")
        table = _table([name for name in names if name not in _LEFT_OUT], rows)
    for line in table:
        print_line(line)
    wrong = int(summary["wrong"].sum())
    verdict = "not checked" if not settings.check else "OK" if not wrong else "WRONG"
    print_line(f"# Out of bounds values : {wrong} {verdict}")


def _table(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[str]:
    return lines(
        tuple(names),
        tuple(_UNITS[name] for name in names),
        *(tuple(row[name] for name in names) for row in rows),
    )


def lines(*rows: tuple[str, ...]) -> list[str]:
    """Formats a table like nccl-tests, at full width, with headings after a `#`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell if column == len(widths) - 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def print_line(line: str) -> None:
    """Prints a line at full width, for other programs."""
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
        "schedule": _shown(str(row["implementation"]), str(row["schedule"])),
    }


def _shown(implementation: str, schedule: str) -> str:
    if implementation == "own":
        return "own"
    return f"call:{schedule}" if implementation == "call" else schedule
