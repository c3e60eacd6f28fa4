"""Starting ranks, with a fake launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.mpi.launch import run_ranks
from tutti.mpi.underneath import Mpi

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

THROTTLE = "MPIR_CVAR_CH4_PROGRESS_THROTTLE"


def throttle(script: Any, ranks: int, folder: Path) -> str:
    """The variables that ranks of MPICH get."""
    mpiexec = script("bin/mpiexec", f"echo ${THROTTLE}")
    mpi = Mpi("mpich", "5.0.2", folder / "mpicc", mpiexec, folder, starts="mpich")
    return run_ranks(mpi, ranks, ["app"]).stdout.strip()


def test_oversubscribed_ranks_of_mpich_yield_their_cores(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(THROTTLE, raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert throttle(script, 2, tmp_path) == ""
    assert throttle(script, 3, tmp_path) == "1"
    monkeypatch.setenv(THROTTLE, "0")
    assert throttle(script, 3, tmp_path) == "0"
