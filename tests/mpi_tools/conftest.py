"""Fake programs of an MPI library, with the output of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

OPEN_MPI = "\n".join(
    [
        "#define MPI_VERSION 3",
        "#define MPI_SUBVERSION 1",
        "#define OMPI_MAJOR_VERSION 5",
        "#define OMPI_MINOR_VERSION 0",
        "#define OMPI_RELEASE_VERSION 11",
    ]
)
MPICH = "\n".join(
    ["#define MPI_VERSION 5", "#define MPI_SUBVERSION 0", '#define MPICH_VERSION "5.0.2"']
)
STANDARD = "#define MPI_VERSION 5\n#define MPI_SUBVERSION 0"
REPORTED = {
    "openmpi": ("mpiexec (Open MPI) 5.0.11", OPEN_MPI),
    "mpich": ("HYDRA build details:\n    Version:   5.0.2", MPICH),
}

Script = Callable[..., Path]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a shell script."""

    def write(path: str, text: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    return write


@pytest.fixture
def fake(script: Script) -> Callable[[str, str], Path]:
    """Writes mpicc and mpiexec of an MPI library into a folder."""

    def write(kind: str, folder: str = "mpi") -> Path:
        version, macros = REPORTED[kind]
        script(f"{folder}/bin/mpicc", f"cat <<'END'\n{macros}\nEND")
        return script(f"{folder}/bin/mpiexec", f"cat <<'END'\n{version}\nEND").parent

    return write
