"""Communicators of other jobs, communicators that die, and intercommunicators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

    from tutti.mpi.launch import Finished


def run(bench: Bench, case: str, ranks: int, folder: Path) -> tuple[Finished, dict[str, Any]]:
    """Runs the program with a plan for 2 and 4 ranks; returns the library's report."""
    rules = [
        Rule(name, n, schedule("recursive_doubling", collective=name, ranks=n))
        for n in (2, 4)
        for name in ("all_reduce", "all_gather")
    ]
    env = {"TUTTI_MPI_PLAN": str(CollectivePlan(rules).write(folder / "plan")),
           "TUTTI_MPI_REPORT": str(folder / "report")}  # fmt: skip
    done = bench.run(ranks, [bench.program("communicators"), case], env=env)
    assert done.code == 0, done.stderr
    assert "WRONG" not in done.stderr, done.stderr
    return done, json.loads((folder / "report.json").read_text())


def passed(report: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Calls passed to the underlying MPI library, by function and reason."""
    return {(row["call"], row["reason"]): row["calls"] for row in report["passed"]}


@pytest.mark.parametrize("case", ["spawned", "spawned-inherited"])
def test_communicators_with_other_jobs_use_the_mpi(bench: Bench, case: str, tmp_path: Path) -> None:
    """Spawned processes may have another plan or no library: no rank waits for them."""
    _, report = run(bench, case, 2, tmp_path)
    reason = "processes that have not agreed on the plan, because they were spawned or connected"
    assert passed(report)["MPI_Allreduce", reason] == 2
    assert [row["calls"] for row in report["covered"]] == [1]


def test_collectives_on_a_communicator_that_is_freed(bench: Bench, tmp_path: Path) -> None:
    _, report = run(bench, "freed", 4, tmp_path)
    reason = "a communicator that is being freed"
    assert passed(report) == {("MPI_Allreduce", reason): 6, ("MPI_Ibarrier", reason): 6}
    assert [row["calls"] for row in report["covered"]] == [6]


def test_a_call_on_an_intercommunicator_is_counted_once(bench: Bench, tmp_path: Path) -> None:
    _, report = run(bench, "inter", 4, tmp_path)
    reason = "an intercommunicator"
    functions = ["MPI_Allreduce", "MPI_Allgatherv", "MPI_Barrier"]
    assert passed(report) == {(name, reason): 1 for name in functions}
