"""Plots of sweeps: one line per schedule against a swept key, and no points mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
from tutti.collectives.view.comparison_plot import plot_comparison
from tutti.sweeps.view import plot_swept, swept_keys, where
from tutti.view.errors import ReportError

if TYPE_CHECKING:
    from pathlib import Path


KEY = "platform.models.minimum.alpha_p"


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    experiment = {
        "platform": "cray_xc30",
        "collective": "all_reduce",
        "algorithms": ["ring", "recursive_doubling"],
        "ranks": [4, 8],
        "sizes": "8 B",
        "repetitions": 2,
    }
    grid = {KEY: ["1 us", "2 us", "20 us"], "datatype": ["float32", "float64"], "seed": [1, 2]}
    return tutti.sweep({"experiment": experiment, "sweep": {"grid": grid}}, workers=1)


def test_swept_keys_are_those_of_several_values(frame: pl.DataFrame) -> None:
    assert swept_keys(frame) == [KEY, "datatype", "seed"]
    assert swept_keys(where(frame, ["datatype=float32"])) == [KEY, "seed"]


def test_rows_are_chosen_by_swept_keys_and_by_columns(frame: pl.DataFrame) -> None:
    assert where(frame, ["size_bytes=8 B"]).equals(where(frame, ["size_bytes=8"]))
    rows = where(frame, [f"{KEY}=20 us", "seed=2", "schedule=ring", "datatype=float32"])
    assert rows.height == 2 * 2  # rank counts and repetitions
    for conditions, message in (
        (["speed=1"], "swept keys: platform.models.minimum.alpha_p, datatype, seed"),
        (["seed"], "expected KEY=VALUE"),
        ([f"{KEY}=3 us"], "expected one of 1 us, 2 us, 20 us"),
    ):
        with pytest.raises(ReportError, match=message):
            where(frame, conditions)


def test_a_plot_has_a_line_per_schedule_and_the_values_below(
    frame: pl.DataFrame, tmp_path: Path
) -> None:
    rows = where(frame, ["datatype=float32"])
    path = plot_swept(tmp_path / "a.svg", rows, KEY, ranks=4)
    drawn = path.read_text("utf-8")
    for text in ("ring", "recursive_doubling", ">20 us<", KEY, "4 ranks, 8 B"):
        assert text in drawn
    assert plot_swept(tmp_path / "b.svg", rows, KEY, ranks=4).read_bytes() == path.read_bytes()
    words = plot_swept(tmp_path / "c.svg", where(frame, [f"{KEY}=1 us"]), "datatype")
    assert ">float64<" in words.read_text("utf-8")


def test_points_are_not_mixed(frame: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    with pytest.raises(ReportError, match="several values of datatype would share a line"):
        plot_swept(path, frame, KEY)
    with pytest.raises(ReportError, match="does not have exactly one key"):
        plot_swept(path, frame)
    with pytest.raises(ReportError, match="'gamma' is not swept"):
        plot_swept(path, frame, "gamma")
    with pytest.raises(ReportError, match="has no rows at 5 ranks"):
        plot_swept(path, frame, "seed", ranks=5)
    with pytest.raises(ReportError, match="mix several points of a sweep") as caught:
        plot_comparison(path, where(frame, ["datatype=float32"]))
    assert f"--where '{KEY}=VALUE'" in caught.value.hint
    # Seeds are repetitions.
    plot_comparison(path, where(frame, ["datatype=float32", f"{KEY}=1 us"]))


def test_rows_without_a_time_are_not_drawn(frame: pl.DataFrame, tmp_path: Path) -> None:
    rows = where(frame, ["datatype=float32"])
    some = rows.with_columns(time_ps=pl.when(pl.col("schedule") == "ring").then("time_ps"))
    drawn = plot_swept(tmp_path / "a.svg", some, KEY, ranks=4).read_text("utf-8")
    assert "recursive_doubling" not in drawn
    none = rows.with_columns(time_ps=pl.lit(None, dtype=pl.Int64))
    with pytest.raises(ReportError, match="no rows with a time"):
        plot_swept(tmp_path / "b.svg", none, KEY, ranks=4)
