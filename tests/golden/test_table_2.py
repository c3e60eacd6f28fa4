"""Golden predictions of Table 2, derived in `table_2/WHY.md`."""

from __future__ import annotations

import csv
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import tutti
from tutti_papers.recursive_multiplying import archer, fitting
from tutti_papers.recursive_multiplying.published import (
    DATATYPE,
    SIZE,
    TABLE_2,
    Table2Row,
    doubling,
)

FOLDER = Path(__file__).parent / "table_2"
RECORDED = {
    (int(row["ranks"]), row["schedule"]): row
    for row in csv.DictReader((FOLDER / "predictions.csv").read_text("utf-8").splitlines())
}


def both(row: Table2Row) -> list[dict[str, str]]:
    return [RECORDED[row.ranks, name] for name in (doubling(row.ranks), row.schedule)]


@pytest.mark.parametrize("row", TABLE_2, ids=lambda row: str(row.ranks))
def test_predictions_without_noise_match_their_derivations(row: Table2Row) -> None:
    quiet = tutti.Conditions(wait_for_sends=True)
    why = (FOLDER / "WHY.md").read_text("utf-8")
    for recorded in both(row):
        name = f"recursive_multiplying:{recorded['schedule']}"
        run = tutti.simulate(
            tutti.schedule(name, ranks=row.ranks),
            fitting.FITTED.platform(),
            size=SIZE,
            datatype=DATATYPE,
            conditions=quiet,
        )
        assert run.completion_ps == int(recorded["quiet_ps"])
        assert f"| {run.completion_ps / 1000:.10g} |" in why


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", TABLE_2, ids=lambda row: str(row.ranks))
def test_predictions_match_the_recorded_rows(row: Table2Row) -> None:
    ours = archer.predicted(fitting.FITTED, row)
    for which, recorded in zip(("rd", "rm"), both(row), strict=True):
        minimum, median = float(recorded["minimum_us"]), float(recorded["median_us"])
        assert ours[f"{which}_minimum"] == pytest.approx(minimum, abs=1e-6)
        assert ours[f"{which}_median"] == pytest.approx(median, abs=1e-6)
        quiet = int(recorded["quiet_ps"]) / 1e6
        assert minimum > quiet - 1e-6
        if row.ranks != 8:
            assert (minimum == pytest.approx(quiet)) is (row.ranks < 8)


@pytest.mark.timeout(600)
def test_fitted_parameters_are_a_local_optimum() -> None:
    """The calibration itself takes minutes: each parameter is changed by 5 %, up and down."""
    least = fitting.misfit(fitting.FITTED)
    fitted = {name: value for name, value in asdict(fitting.FITTED).items() if value is not None}
    for name, value in fitted.items():
        for factor in (1.05, 1 / 1.05):
            tried = replace(fitting.FITTED, **{name: value * factor})
            assert fitting.misfit(tried) > least, (name, factor)
