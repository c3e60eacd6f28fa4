"""What a tuning prints: the libraries whose default stays, and what several releases lack."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tutti.measured.errors import TuningError
from tutti.measured.tune import TuningDecision, Written
from tutti.measured.tune.files import Writer
from tutti.measured.tune.times import OWN, TIMES
from tutti.measured.tune.view import tuning_view

NO_TIMES = pl.DataFrame(schema=TIMES)
HERE = "Open MPI 5.0.11, a machine"


def written(target: str, *decisions: TuningDecision) -> Written:
    return Written(target, decisions, None, {}, Path())


def decision(schedule: str, method: str = "model", **more: str | float) -> TuningDecision:
    return TuningDecision("all_reduce", 4, 8, 8, schedule, 1, method, **more)  # type: ignore[arg-type]


def schedules(*files: Written) -> list[tuple[str, list[str]]]:
    """The heading and the schedules of each table."""
    tables = tuning_view(files, NO_TIMES).tables
    return [
        (table.heading, [column.text(row) for row in table.rows for column in table.columns
                         if column.name == "schedule"])
        for table in tables
    ]  # fmt: skip


def test_without_a_plan_each_library_has_a_table_under_its_name() -> None:
    default, ring = decision(OWN, best=OWN), decision("ring", best="ring")
    assert schedules(written("openmpi6", default)) == [
        ("openmpi6, for Open MPI 6.0:", ["default of Open MPI 6.0"])
    ]
    files = [written("openmpi", ring), written("openmpi6", ring), written("mpich", default)]
    assert schedules(*files) == [
        ("openmpi, for Open MPI 5.0 and openmpi6, for Open MPI 6.0:", ["ring"]),
        ("mpich, for MPICH 5.0:", ["default of MPICH 5.0"]),
    ]


def test_the_plan_is_shown_alone_and_names_the_default_that_is_best() -> None:
    plan = written("plan", decision(OWN, "measurement", conditions=HERE, best=OWN),
                   decision(OWN, "estimate", best=OWN))  # fmt: skip
    ring = written("mpich", decision("ring", best="ring"))
    assert schedules(plan, ring) == [("", ["default of Open MPI 5.0.11", "MPICH default"])]


def test_an_empty_plan_names_the_default_that_is_best(tmp_path: Path) -> None:
    best = [decision(OWN, "measurement", conditions=HERE)]
    with pytest.raises(TuningError, match=r"the default of Open MPI 5\.0\.11 is the fastest"):
        Writer(tmp_path, {}).write("plan", best)


def test_what_several_releases_of_a_library_lack_is_stated_once() -> None:
    slow = decision("ring", loss=0.5, best="sparbit")
    files = [written(target, slow) for target in ("openmpi", "openmpi4", "openmpi6", "mpich")]
    lines = list(tuning_view(files, NO_TIMES).log)
    assert [line.split(":")[0] for line in lines] == ["openmpi", "mpich"]
