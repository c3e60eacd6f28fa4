"""All ranks get the same bits of an all_reduce: an iterative solver ends with the same step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from runs import bench_of

from tutti.measured.tune import Question, by_model, write_all
from tutti.measured.tune.files import Writer
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.platforms import platform
from tutti.schedules.bits import bits_differ
from tutti.schedules.ir import algorithms, schedule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

SOLVES = 5
SECONDS = 60
"""Seconds before a deadlocked solver is killed."""
BY = {"openmpi": [3, 4, 5, 8], "mpich": [3, 5]}
"""MPICH's own code takes long where ranks outnumber cores."""


def solved(bench: Bench, ranks: int, plan: Path, folder: Path) -> dict[str, Any]:
    """Runs the solver, checks that all ranks agree in iterations and bits; returns the report."""
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(folder / "report")}
    done = bench.run(ranks, [bench.program("solver"), SOLVES, SECONDS], env=env)
    assert done.code == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["least"] == output["most"] > SOLVES
    assert (output["sums"], output["products"], output["maxima"], output["users"]) == (0, 0, 0, 0)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


@pytest.mark.parametrize(("kind", "ranks"), [(kind, n) for kind, some in BY.items() for n in some])
def test_solver_terminates_with_any_plan(kind: str, ranks: int, tmp_path: Path) -> None:
    bench = bench_of(kind)
    one = schedule("dissemination", ranks=ranks)
    assert bits_differ(one)
    plan = CollectivePlan([Rule("all_reduce", ranks, one)]).write(tmp_path / "plan.tutti")
    report = solved(bench, ranks, plan, tmp_path)
    assert report["covered"] == []
    (passed,) = report["passed"]
    assert passed["call"] == "MPI_Allreduce"
    assert passed["reason"].startswith("ranks would get different bits")


def test_second_rule_replaces_a_non_reproducible_schedule(bench: Bench, tmp_path: Path) -> None:
    names = ("dissemination", "recursive_doubling")
    rules = [Rule("all_reduce", 3, schedule(name, ranks=3)) for name in names]
    report = solved(bench, 3, CollectivePlan(rules).write(tmp_path / "plan.tutti"), tmp_path)
    assert [row["schedule"] for row in report["covered"]] == ["recursive_doubling"]
    assert report["passed"] == []


@pytest.mark.parametrize("ranks", [3, 4, 5, 8])
def test_solver_terminates_with_the_tuned_plan(ranks: int, tmp_path: Path) -> None:
    question = Question("all_reduce", ranks, [4, 64, 1024, 4096, 8192])
    times = by_model(question, platform("cray_xc30"))
    # Plans every call that the library can perform, as for an MPI library with slow algorithms.
    times = times.filter(times["schedule"] != "own")
    (written,), _ = write_all(times, ["plan"], Writer(tmp_path, {}))
    assert written.path is not None
    assert not any(one.bits_differ for one in CollectivePlan.read(written.path).schedules)
    report = solved(bench_of("openmpi"), ranks, written.path, tmp_path)
    assert sum(row["calls"] for row in report["covered"]) > SOLVES
    assert report["passed"] == []


@pytest.mark.parametrize("ranks", [3])
def test_every_algorithm_is_as_reproducible_as_its_flag_states(ranks: int, tmp_path: Path) -> None:
    """Schedules with the flag are used, and all ranks get the same bits."""
    bench = bench_of("openmpi")
    schedules = [
        schedule(a.name, ranks=ranks) for a in algorithms() if a.claims("all_reduce", ranks)
    ]
    # A run takes seconds, and algorithms that agree do so for one reason: every third is run.
    differing = [laid_out for laid_out in schedules if bits_differ(laid_out)]
    for laid_out in [*differing, *(s for s in schedules if s not in differing)][::3]:
        plan = CollectivePlan([Rule("all_reduce", ranks, laid_out)]).write(tmp_path / "plan.tutti")
        report = solved(bench, ranks, plan, tmp_path)
        covered = sum(row["calls"] for row in report["covered"])
        assert (covered > 0) != bits_differ(laid_out), laid_out.name


@pytest.mark.parametrize("turns", [1, 6])
def test_repeated_calls_passed_to_the_mpi_are_counted(
    bench: Bench, turns: int, tmp_path: Path
) -> None:
    rule = Rule("all_reduce", 2, schedule("recursive_doubling", ranks=2), (1024, None))
    plan = CollectivePlan([rule]).write(tmp_path / "plan.tutti")
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(tmp_path / "report")}
    done = bench.run(2, [bench.program("passed_again"), turns], env=env)
    assert done.code == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    of_pairs = 2 * (turns // 2)  # in every other turn they are large enough
    assert sum(row["calls"] for row in report["covered"]) == 3 * turns + of_pairs
    passed = {(row["call"], row["reason"]): row["calls"] for row in report["passed"]}
    assert passed == {
        ("MPI_Allreduce", "no rule for this size"): 9 * turns + 2 * turns - of_pairs,
        ("MPI_Bcast", "no rule for this collective"): 2 * turns,
    }
