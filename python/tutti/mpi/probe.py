"""Queries an MPI library by a small program, which is compiled and started."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.mpi.errors import MpiError
from tutti.mpi.launch import run_ranks
from tutti.mpi.underneath import named

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi

_PROGRAM: Final = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int level, length, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    const char *name = level == MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
                       : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                       : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                                        : "MPI_THREAD_SINGLE";
    if (rank == 0)
        printf("%s\n%s\n", name, version);
    MPI_Finalize();
    return 0;
}
"""
_RANKS: Final = 2
_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Probe:
    """Properties of a running MPI library.

    Attributes:
        threads: The supported level of thread support, such as ``"MPI_THREAD_MULTIPLE"``.
        version: Its name and version.
    """

    threads: str
    version: str


def probe(mpi: Mpi) -> Probe:
    """Compiles a program and starts it on two ranks.

    Raises:
        MpiError: It cannot be compiled, or does not run.
        LaunchError: The launcher was not found, or it hangs.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-") as folder:
        source, program = Path(folder) / "probe.c", Path(folder) / "probe"
        source.write_text(_PROGRAM)
        done = subprocess.run(  # noqa: S603 - the user's compiler
            [str(mpi.mpicc), str(source), "-o", str(program)],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode != 0:
            message = f"{mpi.mpicc} cannot compile: {done.stderr.strip()}"
            raise MpiError(message, kind="no_compiler", fields={"mpicc": str(mpi.mpicc)})
        finished = run_ranks(mpi, _RANKS, [program], timeout=_SECONDS)
    lines = finished.stdout.splitlines()
    if finished.code != 0 or len(lines) < 2:
        message = f"{mpi.mpiexec} cannot start {_RANKS} ranks: {finished.stderr.strip()}"
        raise MpiError(message, kind="not_running", fields={"mpiexec": str(mpi.mpiexec)})
    return Probe(lines[0], named(lines[1]))
