"""Ranks with and without the library in one job give an error, never a wrong result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = 3
DROPS = 'case "${PMIX_RANK:-$PMI_RANK}" in $1) ;; *) unset LD_PRELOAD;; esac; shift; exec "$@"'


@pytest.mark.parametrize("first", ["reduce", "receive"])
@pytest.mark.parametrize("having", ["0", "1", "[02]"])
def test_ranks_without_the_library_end_the_job(
    bench: Bench, having: str, first: str, tmp_path: Path
) -> None:
    rule = Rule("all_reduce", RANKS, schedule("ring", ranks=RANKS))
    env = {"TUTTI_MPI_PLAN": str(CollectivePlan([rule]).write(tmp_path / "plan"))}
    argv = ["/bin/sh", "-c", DROPS, "sh", having, bench.program("lacking"), first]
    done = bench.run(RANKS, argv, env=env)
    assert done.code != 0, done.stdout
    assert "WRONG" not in done.stdout
    assert "runs MPI without libtutti_mpi" in done.stderr
