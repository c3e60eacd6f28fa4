"""Figures of predictions: by hand, and those that the data's scoring program prints."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from synthetic_machines import cases
from tutti.formats.measurements import read_measurements
from tutti.measured.predict.score import SCORES, score

SAMPLE = Path(__file__).parents[3] / "validation" / "machines" / "sample.csv"
FACTORS = (0.7, 1.1, 1.6, 0.95, 1.3, 0.4, 1.02)
HALF = 1.35


def guesses(rows: pl.DataFrame) -> pl.DataFrame:
    """Predictions that are off by a fixed sequence of factors; every tenth is absent."""
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    factor = (row % len(FACTORS)).replace_strict(dict(enumerate(FACTORS)), return_dtype=pl.Float64)
    predicted = pl.col("time_us") * factor
    return rows.select(
        row.alias("index"),
        predicted.alias("predicted_us"),
        (predicted / HALF).alias("low_us"),
        (predicted * HALF).alias("high_us"),
    ).filter(pl.col("index") % 10 != 9)


# Printed, below a heading, by the scoring program that comes with the measurements (score.py), run
# once on 2026-11-24: `score.py sample.csv sample.csv guesses.csv`, where guesses.csv is
# `guesses(rows)` with `index` renamed to `question`.
PRINTED = """
fugaku             93      89%    1.30    2.50      16     50%    6.2%   75.6%    11.4%     57%
leonardo           93      89%    1.30    2.50      19     68%    0.2%   31.0%    28.0%     55%
lumi               45      89%    1.30    2.50      10     60%    5.3%   38.2%    -0.1%     57%
all               231      89%    1.30    2.50      45     60%    1.1%   66.1%     4.0%     56%
"""


def formatted(row: dict[str, float]) -> str:
    """A row as the scoring program prints it."""

    def text(name: str, form: str) -> str:
        return "-" if row[name] is None else format(row[name], form)

    return (
        f"{row['system']:14} {row['rows']:6d} {row['covered']:8.0%} {row['factor']:7.2f} "
        f"{row['factor_p90']:7.2f} {row['groups']:7d} {text('winner', '7.0%'):>7} "
        f"{text('regret', '7.1%'):>7} {text('regret_p90', '7.1%'):>7} "
        f"{text('default_regret', '7.1%'):>8} {text('inside', '7.0%'):>7}"
    )


def test_figures_are_those_of_the_scoring_program() -> None:
    rows = read_measurements(SAMPLE).rows
    found = score(rows, guesses(rows))
    assert [formatted(row) for row in found.to_dicts()] == PRINTED.strip("\n").split("\n")


def two_groups() -> pl.DataFrame:
    """Two groups of three algorithms; in the second, the library's choice was measured too."""
    rows = cases("one", nodes=(4,), sizes=(8, 1024), collectives=("all_reduce",)).sort("size_bytes")
    own = rows.tail(1).with_columns(pl.lit("default_ompi").alias("library_algorithm"))
    times = pl.Series("time_us", [10.0, 20.0, 40.0, 10.0, 10.5, 40.0, 15.0])
    return pl.concat([rows, own]).with_columns(times, (times * 1.1).alias("high_us"))


def test_figures_by_hand() -> None:
    predictions = pl.DataFrame(
        {
            "index": [0, 1, 2, 3, 4],
            "predicted_us": [20.0, 10.0, 40.0, 12.0, 7.0],
            "low_us": [9.0, 5.0, 41.0, 12.0, 7.0],
            "high_us": [21.0, 15.0, 42.0, 13.0, 10.5],
        },
        schema_overrides={"index": pl.UInt32},
    )
    every = score(two_groups(), predictions).row(-1, named=True)
    assert every["system"] == "all"
    assert (every["rows"], every["groups"]) == (6, 2)
    assert every["covered"] == pytest.approx(5 / 6)
    assert every["factor"] == pytest.approx(1.5)  # 2, 2, 1, 1.2, 1.5
    # The second group's choice is within the spread of its fastest.
    assert every["winner"] == 0.5
    assert every["regret"] == pytest.approx((1.0 + 0.05) / 2)
    assert every["default_regret"] == pytest.approx(0.5)
    assert every["inside"] == pytest.approx(2 / 5)


def test_columns_and_labels() -> None:
    predictions = pl.DataFrame(
        {"index": [0, 1], "predicted_us": [1.0, 2.0]}, schema_overrides={"index": pl.UInt32}
    )
    found = score(two_groups(), predictions, by=("system", "collective"))
    assert tuple(found.columns) == ("system", "collective", *SCORES)
    assert found.select("system", "collective").rows() == [("one", "all_reduce"), ("all", "all")]
    assert found["inside"].null_count() == 2


def test_no_prediction_gives_no_figure() -> None:
    none = pl.DataFrame(schema={"index": pl.UInt32, "predicted_us": pl.Float64})
    every = score(two_groups(), none).row(-1, named=True)
    assert (every["rows"], every["covered"], every["groups"]) == (6, 0.0, 0)
    assert every["factor"] is every["winner"] is every["regret"] is None
