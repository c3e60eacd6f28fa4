"""Compares an MPI library's collectives with the fastest schedules of a fitted platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti import _core
from tutti.base.files.mistakes import mistake
from tutti.collectives.simulation import compare
from tutti.formats.measurements import read_reported
from tutti.measured.tune.measure import differ
from tutti.schedules.bits import is_exact
from tutti.study.console import remark

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.platforms.machine import Platform

_PS = 1e6
"""Picoseconds of a microsecond."""


def compare_library(
    file: Path, machine: Platform, *, ranks: int | None, collective: str | None
) -> pl.DataFrame:
    """Compares measured times of a library with the fastest schedule of a model.

    Args:
        file: Output of OSU, IMB or nccl-tests with collectives.
        machine: The fitted platform.
        ranks: The number of ranks, if the file does not state it.
        collective: The collective, if the file does not state it.

    Returns:
        A row per collective (`operation`), `ranks` and `size_bytes`: `library_us`, the fastest
        `schedule` and its `predicted_us`.

    Raises:
        ConfigError: The file cannot be read, or has no collective.
    """
    read = read_reported([file], remark, ranks=ranks, collective=collective)
    measured = _collectives(read.rows)
    if measured.is_empty():
        raise mistake("has no times of collectives with correct results", source=str(file),
                      expected="output of a collective, such as osu_allreduce")  # fmt: skip
    if measured["ranks"].has_nulls():
        raise mistake("does not state the number of ranks", source=str(file),
                      expected="--ranks N")  # fmt: skip
    return pl.concat(
        rows.join(
            _fastest(machine, str(operation), int(str(count)), rows["size_bytes"].to_list()),
            on="size_bytes",
        )
        for (operation, count), rows in measured.group_by("operation", "ranks", maintain_order=True)
    )


def _collectives(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the median times of collectives, by collective, ranks and size."""
    known = [name for name in _core.collectives() if name != "barrier"]
    case = ["operation", "ranks", "size_bytes"]
    used = pl.col("operation").is_in(known) & (pl.col("time_us") > 0) & (pl.col("size_bytes") > 0)
    return (
        frame.rename({"collective": "operation"})
        .filter(used & (pl.col("ranks").fill_null(2) > 1))
        .group_by(case, maintain_order=True)
        .agg(pl.col("time_us").median().alias("library_us"))
        .sort(case)
    )


def _fastest(machine: Platform, collective: str, ranks: int, sizes: list[int]) -> pl.DataFrame:
    """Returns the fastest schedule of each size that gives all ranks the same bits."""
    datatype = "float32" if all(size % 4 == 0 for size in sizes) else "uint8"
    times = compare(
        machine,
        collective=collective,
        ranks=[ranks],
        sizes=[f"{size} B" for size in sizes],
        datatype=datatype,
        remark=lambda _: None,  # schedules that a size does not fit
    )
    rows = times.sort("time_ps", "schedule").select(
        "size_bytes", "schedule", (pl.col("time_ps") / _PS).alias("predicted_us")
    )
    chosen = [
        next(row for row in some.iter_rows()
             if is_exact(datatype) or not differ(row[1], collective, ranks))
        for _, some in rows.group_by("size_bytes", maintain_order=True)
    ]  # fmt: skip
    return pl.DataFrame(chosen, schema=rows.schema, orient="row")
