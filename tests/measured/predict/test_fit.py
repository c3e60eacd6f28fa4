"""Calibration recovers the parameters of generated machines, whatever the order of the rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from synthetic_machines import cases, timed
from tutti.formats.measurements import read_measurements
from tutti.measured.predict.curve import _STEP, _TIME, SPREAD, fit_curve
from tutti.measured.predict.features import features
from tutti.measured.predict.hardware import Hardware
from tutti.measured.predict.model import calibrate

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

START = Hardware().prior()
NOISE = 0.15
"""The standard deviation that the fit assumes of logarithms of times."""
DRAWS = 12


def draws(count: int) -> list[NDArray[np.float64]]:
    """Parameters from the prior: independent, but for message times of neighbouring sizes."""
    steps = np.diff(np.eye(_TIME.stop - _TIME.start), axis=0) / _STEP
    precision = np.diag(SPREAD**-2.0)
    precision[_TIME, _TIME] += steps.T @ steps
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    normal = np.random.default_rng(1).normal(size=(count, len(START)))
    return [START + factor @ one for one in normal]


def test_intervals_contain_the_parameters_at_the_nominal_rate() -> None:
    frame = cases("synthetic", nodes=(4, 16, 64))
    rows = features(frame)
    inside = []
    for seed, theta in enumerate(draws(DRAWS)):
        measured = timed(frame, theta, noise=NOISE, seed=seed)
        found = fit_curve(rows, measured["time_us"].to_numpy(), START)
        inside += list(np.abs(found.theta - theta) < 1.645 * found.deviation)
    # 336 parameters: three standard deviations of a rate of 90 % are 5 %.
    assert 0.84 <= np.mean(inside) <= 0.96


def test_determined_parameters_are_close() -> None:
    frame = cases("synthetic", nodes=(4, 8, 16, 32, 64))
    theta = START + 0.5 * SPREAD
    measured = timed(frame, theta, noise=0.02, seed=0)
    found = fit_curve(features(frame), measured["time_us"].to_numpy(), START)
    assert found.determined.sum() > len(theta) // 2
    assert np.abs(found.theta - theta)[found.determined].max() < 0.5


def test_row_order_does_not_matter() -> None:
    frame = pl.concat(
        timed(cases(name, sizes=(8, 65536, 8 << 20)), START + shift, noise=0.1, seed=seed)
        for seed, (name, shift) in enumerate((("one", 0.0), ("two", 0.3)))
    )
    targets = cases("one", nodes=(64,))
    expected = calibrate(frame).predict(targets)
    for seed in range(2):
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed)
        assert calibrate(shuffled).predict(targets).equals(expected)


def test_row_order_of_a_file_does_not_matter(tmp_path: Path) -> None:
    heading = "system,collective,algorithm,nodes,vector_bytes,library,ranks_per_node,median_us\n"
    frame = timed(cases("one", sizes=(8, 65536)), START, noise=0.1, seed=0)
    lines = [
        f"one,{row['collective']},{row['library_algorithm']},{row['nodes']},{row['size_bytes']},"
        f"OMPI,1,{row['time_us']}\n"
        for row in frame.to_dicts()
    ]
    targets = cases("one", nodes=(64,), sizes=(1024,))
    found = []
    for name, order in (("a.csv", lines), ("b.csv", lines[::-1])):
        (tmp_path / name).write_text(heading + "".join(order))
        found.append(calibrate(read_measurements(tmp_path / name).rows).predict(targets))
    assert found[0].equals(found[1])


@pytest.mark.parametrize("bad", [0.0, -3.0, float("nan"), float("inf"), None])
def test_unusable_times_are_left_out(bad: float | None) -> None:
    frame = timed(cases("one", sizes=(8, 65536)), START, noise=0.1, seed=0)
    spoilt = frame.head(5).with_columns(pl.lit(bad, pl.Float64).alias("time_us"))
    targets = cases("one", nodes=(64,), sizes=(1024,))
    clean, mixed = calibrate(frame), calibrate(pl.concat([spoilt, frame]))
    assert mixed.used == clean.used == frame.height
    assert mixed.predict(targets).equals(clean.predict(targets))


@pytest.mark.parametrize("bad", ["0", "-3", "nan", ""])
def test_unusable_times_of_a_file_are_reported(tmp_path: Path, bad: str) -> None:
    heading = "collective,algorithm,nodes,vector_bytes,median_us\n"
    (tmp_path / "t.csv").write_text(f"{heading}all_reduce,ring,4,8,{bad}\nall_reduce,ring,4,8,5\n")
    found = read_measurements(tmp_path / "t.csv", ranks=4)
    assert found.rows["time_us"].to_list() == [5.0]
    assert found.omitted["reason"].to_list() == ["the time is not a number above 0"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fit_of_a_thousand_rows_finishes(capsys: pytest.CaptureFixture[str]) -> None:
    systems = [f"machine{number}" for number in range(4)]
    every = [
        timed(cases(name, nodes=(4, 8, 16, 32, 64)), START, noise=0.1, seed=seed)
        for seed, name in enumerate(systems)
    ]
    frame = pl.concat(every).head(1000)
    start = time.perf_counter()
    found = calibrate(frame)
    with capsys.disabled():
        print(f"\nfit of {found.used:,} rows: {time.perf_counter() - start:.1f} s")
    assert found.used == 1000
