"""The MPI underneath: found, told apart from others, and refused where it is in parts."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest

from tutti.errors import MpiError
from tutti.mpi.host import find_host


@pytest.mark.parametrize(
    ("kind", "version", "standard"), [("openmpi", "5.0.11", "3.1"), ("mpich", "5.0.2", "5.0")]
)
def test_an_mpi_is_known_by_its_header(
    mpi: Any, kind: str, version: str, standard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mpi(kind)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for host in (find_host(), find_host(folder / "mpicc"), find_host(None, folder / "mpiexec")):
        assert (host.kind, host.version, host.standard) == (kind, version, standard)
        assert (host.mpicc, host.mpiexec) == (folder / "mpicc", folder / "mpiexec")
        assert host.prefix == folder.parent


def test_the_one_beside_this_python_is_found_without_a_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    host = find_host()
    assert host.mpicc.parent == Path(sys.prefix) / "bin"
    assert host.kind == "openmpi"


def test_parts_of_two_are_refused(mpi: Any) -> None:
    ours, theirs = mpi("openmpi", "ours"), mpi("mpich", "theirs")
    with pytest.raises(MpiError, match=r"Open MPI 5\.0\.11, and .* to MPICH 5\.0\.2") as caught:
        find_host(ours / "mpicc", theirs / "mpiexec")
    assert caught.value.kind == "mixture"


def test_two_versions_of_open_mpi_are_two(mpi: Any, script: Any) -> None:
    folder = mpi("openmpi")
    other = script("other/bin/mpiexec", "echo 'mpiexec (Open MPI) 4.1.6'")
    with pytest.raises(MpiError) as caught:
        find_host(folder / "mpicc", other)
    assert caught.value.kind == "mixture"


def test_the_launcher_of_a_batch_system_suits_any(mpi: Any, script: Any) -> None:
    srun = script("bin/srun", "echo slurm 24.05")
    assert find_host(mpi("mpich") / "mpicc", srun).mpiexec == srun


def test_a_wrapper_of_the_standard_abi_suits_any(mpi: Any, script: Any) -> None:
    wrapper = script("mpi/bin/mpicc_abi", "echo '#define MPI_VERSION 5'")
    host = find_host(wrapper, mpi("mpich") / "mpiexec")
    assert host.kind == "other"


def test_no_mpi_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "version", _none)
    with pytest.raises(MpiError, match="there is no mpicc on PATH") as caught:
        find_host()
    assert caught.value.kind == "no_mpi"
    assert "pip install" in caught.value.hint


def _none(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


def test_a_placeholder_wheel_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What pip installs where there is no wheel for a system: a name and a version, nothing else.
    wheel = tmp_path / "mpich-0.0.0.dist-info"
    wheel.mkdir()
    (wheel / "METADATA").write_text("Metadata-Version: 2.1\nName: mpich\nVersion: 0.0.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MpiError, match=r"the wheel `mpich` 0\.0\.0") as caught:
        find_host()
    assert caught.value.kind == "placeholder"


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("echo 'cc: not found' >&2; exit 127", "no_compiler", "no C compiler: cc: not found"),
        ("echo 'fatal error: mpi.h: No such file or directory' >&2; exit 1", "no_version", "mpi.h"),
        ("echo '#define __linux__ 1'", "no_version", "finds no mpi.h of an MPI"),
    ],
)
def test_wrappers_that_do_not_work(mpi: Any, script: Any, body: str, kind: str, said: str) -> None:
    launcher = mpi("openmpi") / "mpiexec"
    with pytest.raises(MpiError, match=said) as caught:
        find_host(script("bad/mpicc", body), launcher)
    assert caught.value.kind == kind


def test_a_name_that_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(MpiError, match="is no program") as caught:
        find_host(tmp_path / "mpicc")
    assert caught.value.kind == "no_mpi"
