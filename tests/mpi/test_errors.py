"""Errors of calls that a schedule performs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import bench_of

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = 2


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    laid = [schedule("recursive_doubling", collective=name, ranks=RANKS)
            for name in ("all_reduce", "all_gather")]  # fmt: skip
    rules = [Rule(one.collective, RANKS, one) for one in laid]
    return CollectivePlan(rules).write(tmp_path / "plan")


def test_the_true_error_is_raised_and_explained(bench: Bench, plan: Path) -> None:
    argv = [bench.program("errors"), "truncated"]
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code == 0, done.stderr
    output = "tutti: all_reduce of 2 ranks by recursive_doubling: rank 0: "
    assert done.stderr.count(output) == 1, done.stderr
    assert "trunc" in done.stderr


@pytest.mark.parametrize("case", ["aliased", "counts", "handlers"])
def test_only_the_handler_of_the_communicator_is_called(
    bench: Bench, case: str, plan: Path
) -> None:
    """MPICH raises errors of requests on MPI_COMM_SELF; it accepts aliased buffers."""
    done = bench.run(RANKS, [bench.program("errors"), case], env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code == 0, done.stderr


@pytest.mark.parametrize("case", ["abandoned", "abandoned-far"])
def test_no_receive_waits_after_an_error(bench: Bench, case: str, tmp_path: Path) -> None:
    direct = CollectivePlan([Rule("all_reduce", 3, schedule("direct", ranks=3))]).write(
        tmp_path / "direct"
    )
    done = bench.run(3, [bench.program("errors"), case, direct])
    assert done.code == 0, done.stderr


def test_a_count_beyond_64_bits_is_passed_on(bench: Bench) -> None:
    done = bench.run(1, [bench.program("demands")], library=False)
    assert done.code == 0, done.stdout + done.stderr


@pytest.fixture
def broadcast(tmp_path: Path) -> Path:
    direct = schedule("direct", ranks=3, collective="broadcast")
    return CollectivePlan([Rule("broadcast", 3, direct)]).write(tmp_path / "broadcast")


def test_a_program_stays_usable_where_memory_for_another_call_is_short(broadcast: Path) -> None:
    """Every allocation fails once. The MPI library does not matter, so one is enough."""
    bench = bench_of("openmpi")
    done = bench.run(3, [bench.program("allocation_failures"), broadcast], library=False)
    assert done.code == 0, done.stderr


def test_a_program_keeps_its_distance(bench: Bench, broadcast: Path) -> None:
    done = bench.run(3, [bench.program("distances"), broadcast])
    assert done.code == 0, done.stderr
