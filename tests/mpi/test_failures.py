"""A killed rank ends the job, and no rank gets a wrong result before.

The program writes its verdict to a file: launchers may drop output written just before an abort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import rows

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench


@pytest.mark.parametrize("elements", [1, 100_000])
@pytest.mark.parametrize("victim", [0, 3])
def test_a_killed_rank_ends_the_job(
    bench: Bench, victim: int, elements: int, tmp_path: Path
) -> None:
    rule = Rule("all_reduce", 4, schedule("recursive_doubling", ranks=4))
    env = {"TUTTI_MPI_PLAN": str(CollectivePlan([rule]).write(tmp_path / "plan.tutti"))}
    verdict = tmp_path / "verdict"
    argv = [bench.program("killed"), victim, 20, elements, verdict]
    done = bench.run(4, argv, env=env)
    assert done.code != 0, done.stdout
    assert not verdict.exists(), verdict.read_text()


def test_program_detects_an_impossible_result(bench: Bench, tmp_path: Path) -> None:
    """No rank is killed, so that all ranks report a result that they should not have."""
    plan = CollectivePlan([Rule(s.collective, s.ranks, s) for s in rows((2,))[0]])
    env = {"TUTTI_MPI_PLAN": str(plan.write(tmp_path / "plan.tutti"))}
    verdict = tmp_path / "verdict"
    done = bench.run(2, [bench.program("killed"), 9, 5, 3, verdict], env=env)
    assert done.code != 0
    assert "call 5: a result without the dead rank" in verdict.read_text()
