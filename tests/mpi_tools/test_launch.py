"""Starting ranks, with a fake launcher."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.mpi.launch import run_ranks
from tutti.mpi.underneath import Mpi

if TYPE_CHECKING:
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


def test_files_of_open_mpis_launcher_have_a_folder_of_their_own(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A killed launcher leaves its files in the usual folder, which is named after its process ID.
    variable = "PRTE_MCA_prte_tmpdir_base"
    monkeypatch.delenv(variable, raising=False)
    mpiexec = script("bin/mpiexec", f"echo ${variable}")
    mpi = Mpi("openmpi", "5.0.11", tmp_path / "mpicc", mpiexec, tmp_path, starts="openmpi")
    first, second = (Path(run_ranks(mpi, 1, ["app"]).stdout.strip()) for _ in range(2))
    assert first != second
    assert first.parent == Path(tempfile.gettempdir())
    assert not first.exists()
    monkeypatch.setenv(variable, "chosen")
    assert run_ranks(mpi, 1, ["app"]).stdout.strip() == "chosen"
