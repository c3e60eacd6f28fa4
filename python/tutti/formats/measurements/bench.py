"""Results of `tutti mpi bench`: a row per block of calls becomes a row per configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.files.reader import check_frame, read_frame
from tutti.formats.measurements.schema import Measurements, finished, partition

if TYPE_CHECKING:
    from pathlib import Path

_EXPECTED: Final = "results.parquet of `tutti mpi bench`"
_COLUMNS: Final = {
    **dict.fromkeys(("collective", "implementation"), "text"),
    "schedule": "text?",
    **dict.fromkeys(("ranks", "time_ps"), "positive"),
    "size_bytes": "count",
}
_OPTIONAL: Final = {
    "wrong": "count?",
    "emulated": "flag?",
    "each": "positive?",
    **dict.fromkeys(("model", "mpi", "host", "started", "datatype"), "text?"),
}
_NATIVE: Final = "own"


_TYPES: Final = {"flag?": pl.Boolean, "text?": pl.String}


def checked_blocks(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Returns blocks of `tutti mpi bench` with all columns; absent ones are null.

    Args:
        frame: results.parquet; a row is a block of `each` calls.
        source: The name of the file in errors.

    Raises:
        ConfigError: A column is missing or invalid.
    """
    there = {name: kind for name, kind in _OPTIONAL.items() if name in frame.columns}
    checked = check_frame(frame, _COLUMNS | there, source=source, expected=_EXPECTED)
    absent = [name for name in _OPTIONAL if name not in there]
    return checked.with_columns(
        pl.lit(None, _TYPES.get(_OPTIONAL[name], pl.Int64)).alias(name) for name in absent
    )


def read_bench(path: Path) -> Measurements:
    """Reads results of `tutti mpi bench`.

    `library_algorithm` is the schedule; null for the native collectives of the MPI library. Blocks
    with wrong results are left out.

    Args:
        path: Its results.parquet.

    Raises:
        ConfigError: The file cannot be read, or has other columns.
    """
    source = str(path)
    blocks = checked_blocks(read_frame(path, _EXPECTED), source)
    frame = blocks.with_row_index("line", offset=1)
    frame = frame.with_columns(
        pl.lit(source).alias("file"),
        pl.col("line").cast(pl.Int64),
        pl.format("{} of {} B", "collective", "size_bytes").alias("text"),
        pl.col("emulated").cast(pl.Boolean).fill_null(value=False),
    )
    wrong = pl.col("wrong").cast(pl.Int64).fill_null(0) > 0
    valid, omitted = partition(frame, [(wrong, "wrong results")])
    found = finished(_summarised(valid))
    return Measurements(found.rows, pl.concat([omitted, found.omitted]))


def _summarised(blocks: pl.DataFrame) -> pl.DataFrame:
    scheduled = pl.col("implementation") != _NATIVE
    model = pl.when("emulated").then(pl.format("emulated by {}", pl.col("model").fill_null("?")))
    called = pl.when(pl.col("implementation") == "call").then(pl.lit("called by an application"))
    case = blocks.with_columns(
        pl.lit("tutti").alias("tool"),
        pl.lit("median").alias("statistic"),
        pl.col("host").alias("system"),
        pl.col("started").alias("job"),
        pl.when(scheduled).then(pl.lit("libtutti_mpi")).otherwise("mpi").alias("library"),
        pl.when(scheduled).then("schedule").alias("library_algorithm"),
        pl.concat_str(model, called, separator="; ", ignore_nulls=True).alias("notes"),
        (pl.col("time_ps") / 1e6).alias("time_us"),
    )
    keys = ["file", "tool", "statistic", "system", "job", "library", "library_algorithm"]
    keys += ["collective", "ranks", "size_bytes", "datatype", "emulated", "notes"]
    time = pl.col("time_us")
    return (
        case.group_by(keys, maintain_order=True)
        .agg(
            pl.col("line", "text").first(),
            time.quantile(0.1, "linear").alias("low_us"),
            time.quantile(0.9, "linear").alias("high_us"),
            time.min().alias("min_us"),
            pl.len().cast(pl.Int64).alias("repetitions"),
            time.median().alias("_median"),
        )
        .rename({"_median": "time_us"})
    )
