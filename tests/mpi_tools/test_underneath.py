"""The MPI implementation: found, identified, and rejected if its parts do not match."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest

from tutti.mpi.errors import MpiError
from tutti.mpi.underneath import find_mpi, launchers_on_path


@pytest.mark.parametrize(
    ("kind", "version", "standard"), [("openmpi", "5.0.11", "3.1"), ("mpich", "5.0.2", "5.0")]
)
def test_mpi_is_identified_by_its_header(
    fake: Any, kind: str, version: str, standard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake(kind)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for mpi in (find_mpi(), find_mpi(folder / "mpicc"), find_mpi(None, folder / "mpiexec")):
        assert (mpi.kind, mpi.version, mpi.standard) == (kind, version, standard)
        assert (mpi.mpicc, mpi.mpiexec) == (folder / "mpicc", folder / "mpiexec")
        assert mpi.prefix == folder.parent


def test_mpi_next_to_this_python_is_found_without_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    mpi = find_mpi()
    assert mpi.mpicc.parent == Path(sys.prefix) / "bin"
    assert mpi.kind == "openmpi"


def test_parts_of_two_mpis_are_refused(fake: Any) -> None:
    ours, theirs = fake("openmpi", "ours"), fake("mpich", "theirs")
    with pytest.raises(MpiError, match=r"Open MPI 5\.0\.11, and .* to MPICH 5\.0\.2") as caught:
        find_mpi(ours / "mpicc", theirs / "mpiexec")
    assert caught.value.kind == "mixture"


def test_versions_of_open_mpi_are_distinguished(fake: Any, script: Any) -> None:
    folder = fake("openmpi")
    other = script("other/bin/mpiexec", "echo 'mpiexec (Open MPI) 4.1.6'")
    with pytest.raises(MpiError) as caught:
        find_mpi(folder / "mpicc", other)
    assert caught.value.kind == "mixture"


def test_launcher_of_a_batch_system_matches_any_mpi(
    fake: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = script("bin/srun", "echo slurm 24.05")
    script("bin/mpicc", "echo '#define MPI_VERSION 3'")
    ours = fake("mpich")
    assert find_mpi(ours / "mpicc", srun).mpiexec == srun
    monkeypatch.setenv("PATH", f"{ours}:{srun.parent}:/usr/bin:/bin")
    found = find_mpi(None, srun)
    assert (found.mpicc, found.mpiexec, found.starts) == (ours / "mpicc", srun, "other")
    assert found.why == "its mpicc is first on PATH; srun starts any MPI library"


def test_mpiexec_on_path_selects_the_mpi(
    fake: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, wheel = fake("mpich", "module"), fake("openmpi", "wheel")
    alone = script("alone/mpicc", "echo '#define MPI_VERSION 3'").parent
    monkeypatch.setenv("PATH", f"{alone}:{module}:{wheel}:/usr/bin:/bin")
    found = find_mpi()
    assert (found.kind, found.mpicc, found.mpiexec) == (
        "mpich", module / "mpicc", module / "mpiexec"
    )  # fmt: skip
    assert found.why == "its mpiexec is first on PATH"
    assert launchers_on_path()[:2] == [module / "mpiexec", wheel / "mpiexec"]


def test_launcher_is_paired_with_a_matching_wrapper(
    fake: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = script("run/mpiexec", "echo 'mpiexec (Open MPI) 5.0.11'")
    theirs, ours = fake("mpich", "theirs"), fake("openmpi", "ours")
    monkeypatch.setenv("PATH", f"{lone.parent}:{theirs}:{ours}:/usr/bin:/bin")
    found = find_mpi()
    assert (found.mpiexec, found.mpicc) == (lone, ours / "mpicc")


def test_the_compiler_and_its_machine_are_known(fake: Any, script: Any) -> None:
    folder = fake("openmpi")
    macros = ("MPI_VERSION 3", '__VERSION__ "12.2.0"', "__aarch64__ 1")
    lines = "\n".join(f"#define {one}" for one in macros)
    script("mpi/bin/mpicc", f"cat <<'END'\n{lines}\nEND")
    found = find_mpi(folder / "mpicc")
    assert (found.compiler, found.machine) == ("gcc 12.2.0", "aarch64")


def test_wrapper_of_the_standard_abi_matches_any_mpi(fake: Any, script: Any) -> None:
    wrapper = script("mpi/bin/mpicc_abi", "echo '#define MPI_VERSION 5'")
    mpi = find_mpi(wrapper, fake("mpich") / "mpiexec")
    assert mpi.kind == "other"


def test_missing_mpi_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "version", _none)
    with pytest.raises(MpiError, match="no mpiexec on PATH") as caught:
        find_mpi()
    assert caught.value.kind == "no_mpi"
    assert "pip install" in caught.value.hint


def _none(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


def test_placeholder_wheel_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pip installs this without a binary wheel for the system: only a name and a version.
    wheel = tmp_path / "mpich-0.0.0.dist-info"
    wheel.mkdir()
    (wheel / "METADATA").write_text("Metadata-Version: 2.1\nName: mpich\nVersion: 0.0.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MpiError, match=r"the wheel `mpich` 0\.0\.0") as caught:
        find_mpi()
    assert caught.value.kind == "placeholder"


@pytest.mark.parametrize(
    ("body", "kind", "output"),
    [
        ("echo 'cc: not found' >&2; exit 127", "no_compiler", "no C compiler: cc: not found"),
        ("echo 'fatal error: mpi.h: No such file or directory' >&2; exit 1", "no_version", "mpi.h"),
        ("echo '#define __linux__ 1'", "no_version", "no mpi.h found"),
    ],
)
def test_broken_wrappers_are_refused(
    fake: Any, script: Any, body: str, kind: str, output: str
) -> None:
    launcher = fake("openmpi") / "mpiexec"
    with pytest.raises(MpiError, match=output) as caught:
        find_mpi(script("bad/mpicc", body), launcher)
    assert caught.value.kind == kind


def test_missing_wrapper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MpiError, match="not an executable program") as caught:
        find_mpi(tmp_path / "mpicc")
    assert caught.value.kind == "no_mpi"
