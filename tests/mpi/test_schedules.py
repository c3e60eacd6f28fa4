"""Real ranks execute every algorithm on both MPI libraries; all bits and messages are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracle
import pytest
from runs import bench_of, check, mixture, notations, rows

import tutti
from tutti.schedules.ir import algorithms

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = tuple(range(2, 9))
"""All of these in one run of 8: the checker uses all partitions of the world in two."""
ROWS = 23
ON_BOTH = 3
"""The first rows have schedules of every collective; others alternate between the MPI libraries.
`make test-mpi` runs every row on both, on more ranks."""
BY = [(kind, number) for number in range(ROWS) for parity, kind in enumerate(("openmpi", "mpich"))
      if number < ON_BOTH or number % 2 == parity]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "number"), BY)
def test_every_algorithm_of_the_registry(kind: str, number: int, tmp_path: Path) -> None:
    bench = bench_of(kind)
    checked = check(bench, rows(RANKS)[number], tmp_path, ranks=8, cases=4, seed=number + 1,
                    timeout=280)  # fmt: skip
    assert checked.covered >= len(rows(RANKS)[number])


def test_the_rows_hold_every_algorithm_for_every_collective_and_rank_count() -> None:
    assert len(rows(RANKS)) == ROWS
    held = {(s.collective, s.ranks, s.name) for row in rows(RANKS) for s in row}
    assert len(held) == sum(len(row) for row in rows(RANKS))
    for collective in oracle.COLLECTIVES:
        for ranks in RANKS:
            of_these = [h for h in held if h[:2] == (collective, ranks)]
            claimed = sum(a.claims(collective, ranks) for a in algorithms())
            assert len(of_these) == claimed == len(notations(collective, ranks, arguments=False))


@pytest.mark.timeout(300)
def test_every_type_with_every_operation(bench: Bench, tmp_path: Path) -> None:
    """In place and not, contiguous and with gaps, on 4 ranks and on 3 and 2 of them."""
    checked = check(bench, mixture(2, 3, 4), tmp_path, ranks=4, cases="all", seed=5, timeout=280)
    assert checked.covered > 3000
    assert not any("library" in p["reason"] for p in checked.report["passed"])


@pytest.mark.timeout(300)
def test_sizes_up_to_16_mib(bench: Bench, tmp_path: Path) -> None:
    options = ["world", "8", "65536", str(2**20 + 4), str(2**24)]
    check(bench, mixture(3), tmp_path, ranks=3, cases=0, seed=2, options=options, timeout=280)


def test_checker_detects_a_different_schedule(bench: Bench, tmp_path: Path) -> None:
    """The checker must be able to fail: with the oracle of another schedule, it does."""
    from tutti.mpi.plan import CollectivePlan, Rule

    ring, doubling = (tutti.schedule(name, ranks=4) for name in ("ring", "recursive_doubling"))
    plan = CollectivePlan([Rule("all_reduce", 4, ring)], {}).write(tmp_path / "plan.tutti")
    reported = oracle.write([doubling], tmp_path / "oracle.txt")
    argv = [bench.program("check"), reported, "4", "1", "world"]
    done = bench.run(4, argv, env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code != 0
    assert "all_reduce by recursive_doubling" in done.stderr
    assert "the schedule sends" in done.stderr
