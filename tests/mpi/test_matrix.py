"""The long runs of `make test-mpi`: hours on two cores, so they run only on request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from runs import check, mixture, rows, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

pytestmark = [
    pytest.mark.skipif(
        "TUTTI_MPI_LONG" not in os.environ, reason="hours; `make test-mpi` runs them"
    ),
    pytest.mark.timeout(6 * 3600),
]
SOAKED = 105_000
"""Includes random calls that no schedule covers: 100,000 collectives remain."""


@pytest.mark.parametrize("ranks", [17, 23, 32, 64])
def test_every_schedule(bench: Bench, ranks: int, tmp_path: Path) -> None:
    """Each algorithm with each of its arguments; a world of 17 is split into 2 to 17."""
    counts = tuple(range(2, 18)) if ranks == 17 else (ranks,)
    options = [] if ranks == 17 else ["world"]
    done = cases = 0
    for number, row in enumerate(rows(counts, arguments=True)):
        checked = check(bench, row, tmp_path, ranks=ranks, cases=3, seed=number + 1,
                        options=options, timeout=1200)  # fmt: skip
        done += checked.covered
        cases += checked.output["cases"]
        print(f"{bench.mpi}, {ranks} ranks, row {number}: {len(row)} schedules, {cases} cases, "
              f"{done} by schedules", flush=True)  # fmt: skip
    schedules = sum(len(row) for row in rows(counts, arguments=True))
    assert done >= 2 * schedules


@pytest.mark.parametrize("ranks", [5, 8])
def test_every_type_with_every_operation(bench: Bench, ranks: int, tmp_path: Path) -> None:
    schedules = mixture(*range(2, ranks + 1))
    checked = check(bench, schedules, tmp_path, ranks=ranks, cases="all", seed=7, timeout=3000)
    print(checked.output["cases"], "cases", checked.covered, "by schedules")


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_sizes_up_to_16_mib(bench: Bench, ranks: int, tmp_path: Path) -> None:
    sizes = ["world", *(str(2**power + more) for power in range(6, 25, 3) for more in (-4, 0, 12))]
    check(bench, mixture(ranks), tmp_path, ranks=ranks, cases=0, options=sizes, timeout=3000)


def test_a_long_soak(bench: Bench, tmp_path: Path) -> None:
    schedules = mixture(2, 4)
    done = run_program(bench, "soak", schedules, tmp_path, SOAKED, 9, ranks=4, timeout=10_000)
    print(done)
    assert done["growth_kib"] < 4096
