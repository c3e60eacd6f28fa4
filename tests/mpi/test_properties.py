"""Results equal the sequential ones for any schedule, type, operation and size."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_schedules import COLLECTIVES, random_schedule
from runs import check

from tutti import schedule

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from runs import Bench

EXAMPLES = int(os.environ.get("TUTTI_MPI_EXAMPLES", "4"))
"""The number of examples; each is one run of ranks with some hundred cases."""
CASES = 12
RANDOM = st.randoms(use_true_random=False)

# The examples are the same in every run. The environment sets their number.
reproducibly = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.timeout(3600 if EXAMPLES > 4 else 300)
@given(
    random=st.randoms(use_true_random=False), ranks=st.integers(2, 6), seed=st.integers(1, 10**9)
)
@reproducibly
def test_random_trees(bench: Bench, tmp_path: Path, random: Random, ranks: int, seed: int) -> None:
    schedules = [random_schedule(c, n, random) for n in range(2, ranks + 1) for c in COLLECTIVES]
    checked = check(bench, schedules, tmp_path, ranks=ranks, cases=CASES, seed=seed, timeout=250)
    assert checked.covered > CASES


def stages(ranks: int) -> st.SearchStrategy[str]:
    """Recursive multiplying by factors of the rank count, in any order."""
    found = [[f] for f in range(2, ranks + 1) if ranks % f == 0]
    complete = []
    while found:
        factors = found.pop()
        left = ranks
        for factor in factors:
            left //= factor
        if left == 1:
            complete.append("recursive_multiplying:" + ",".join(f"a{factor}" for factor in factors))
        found += [[*factors, f] for f in range(2, left + 1) if left % f == 0]
    return st.sampled_from(sorted(complete))


@pytest.mark.timeout(3600 if EXAMPLES > 4 else 300)
@given(data=st.data(), seed=st.integers(1, 10**9))
@reproducibly
def test_random_factors(bench: Bench, tmp_path: Path, data: st.DataObject, seed: int) -> None:
    counts = (2, 4, 6, 8)
    schedules = [schedule(data.draw(stages(ranks)), ranks=ranks) for ranks in counts]
    checked = check(bench, schedules, tmp_path, ranks=8, cases=CASES, seed=seed, timeout=250)
    assert checked.covered > CASES
