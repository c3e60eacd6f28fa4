"""A call with the arguments of the last one reuses its bindings: it must be the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import mixture

from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench


@pytest.mark.parametrize("ranks", [2, 4])
def test_repeated_calls_see_new_data_and_new_handles(
    bench: Bench, ranks: int, tmp_path: Path
) -> None:
    rules = [Rule(s.collective, s.ranks, s) for s in mixture(ranks)]
    plan = CollectivePlan(rules).write(tmp_path / "plan.tutti")
    done = bench.run(ranks, [bench.program("repeated")], env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code == 0, done.stderr


def test_repeated_calls_of_the_mpi_itself(bench: Bench) -> None:
    """Checks the expectations of the program against the MPI."""
    assert bench.run(3, [bench.program("repeated")], library=False).code == 0
