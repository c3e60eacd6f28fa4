"""As many communicators as the MPI library provides: schedules run on each without failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = 2


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    rule = Rule("all_reduce", RANKS, schedule("recursive_doubling", ranks=RANKS))
    return {"TUTTI_MPI_PLAN": str(CollectivePlan([rule]).write(tmp_path / "plan")),
            "TUTTI_MPI_REPORT": str(tmp_path / "report")}  # fmt: skip


def run(bench: Bench, env: dict[str, str], *arguments: object, library: bool = True) -> Any:
    argv = [bench.program("many"), *arguments]
    done = bench.run(RANKS, argv, env=env, library=library)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def calls(tmp_path: Path) -> tuple[int, dict[str, int]]:
    """Returns the calls performed by schedules, and those passed to the MPI library by reason."""
    report = json.loads((tmp_path / "report.json").read_text())
    passed = {row["reason"]: row["calls"] for row in report["passed"]}
    return sum(row["calls"] for row in report["covered"]), passed


def test_schedules_run_on_many_communicators(
    bench: Bench, env: dict[str, str], tmp_path: Path
) -> None:
    run(bench, env, "collectives", 1500)
    assert calls(tmp_path) == (3000, {})


def test_library_uses_one_communicator_of_the_mpi(bench: Bench, env: dict[str, str]) -> None:
    """MPICH has 2,046 per process, Open MPI more than the program creates."""
    without = run(bench, {}, "dups", library=False)["dups"]
    found = run(bench, env, "dups")["dups"]
    assert found >= without - 1


@pytest.mark.parametrize("rank", [0, 1])
def test_communicators_without_a_tag_use_the_mpi_on_all_ranks(
    bench: Bench, env: dict[str, str], rank: int, tmp_path: Path
) -> None:
    """One rank has tags for 10 communicators, the other for all of them."""
    run(bench, env, "tags", 15, rank)
    covered, passed = calls(tmp_path)
    assert covered == 20 + 5
    (reason,) = passed
    assert "no tags or memory left" in reason
    assert passed[reason] == 10
