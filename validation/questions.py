"""Tables of series without times, which are to be predicted."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.formats.measurements import pico
from tutti.formats.measurements.schema import MEASUREMENTS, Measurements, finished, number
from tutti.formats.measurements.tables import read_table

_EXPECTED = "a column `question` of distinct integers"


def read_questions(path: str | Path) -> Measurements:
    """Reads a table of series without times.

    Args:
        path: The CSV file, with the columns of a table of series and `question`, the number of
            each row. Times, if any, are not read.

    Returns:
        The rows, with the columns of :data:`MEASUREMENTS`, null times, and `question`; and those
        that were left out, with their reasons.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or two rows have the same number.
    """
    raw, damaged = read_table(Path(path))
    if "question" not in raw.columns:
        raise mistake("lacks the column question", source=str(path), expected=_EXPECTED)
    series = pico.series_without_times(raw, source=str(path))
    numbers = raw.select(pl.col("_line").alias("line"), number("question").cast(pl.Int64))
    if numbers["question"].is_null().any() or numbers["question"].is_duplicated().any():
        raise mistake(
            "the questions have no distinct numbers", source=str(path), expected=_EXPECTED
        )
    # Rows of the same configuration are separate questions: a file of its own keeps them apart.
    apart = pl.concat_str("file", "line", separator=":").alias("file")
    found = finished(series.rows.with_columns(apart, pl.lit(1.0).alias("time_us")))
    rows = found.rows.with_columns(
        pl.lit(str(path)).alias("file"), pl.lit(None, pl.Float64).alias("time_us")
    )
    omitted = pl.concat([damaged, series.omitted, found.omitted]).with_columns(
        pl.lit(str(path)).alias("file")
    )
    rows = rows.select(list(MEASUREMENTS)).join(numbers, on="line", how="left")
    return Measurements(rows.sort("line"), omitted.sort("line"))
