"""The table of libraries' algorithms, against the installed libraries."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tutti.measured.tune.library_algorithms import left_out, library_algorithms, variables
from tutti.mpi.underneath import Mpi, find_mpi

ROOT = Path(__file__).parents[2]
MPI_NAMES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce_scatter_block",
    "reduce_scatter_v": "reduce_scatter",
    "broadcast": "bcast",
    "reduce": "reduce",
    "all_to_all": "alltoall",
    "barrier": "barrier",
    "gather": "gather",
    "scatter": "scatter",
}


@pytest.fixture(scope="module")
def open_mpi() -> Mpi:
    return find_mpi(ROOT / ".venv/bin/mpicc")


@pytest.fixture(scope="module")
def mpich() -> Mpi:
    return find_mpi(ROOT / "build/mpich/bin/mpicc")


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("collective", MPI_NAMES)
def test_open_mpi_has_these_numbers(collective: str, open_mpi: Mpi) -> None:
    text = output(open_mpi.mpicc.parent / "ompi_info", "--param", "coll", "tuned", "--level", "9")
    name = f'"coll_tuned_{MPI_NAMES[collective]}_algorithm"'
    values = re.search(r"Valid values: (.*)", text[text.index(name) :])
    assert values is not None
    installed = {
        name: int(number)
        for number, name in (one.split("|") for one in values[1].split(", "))
        if name not in left_out("openmpi")
    }
    listed = library_algorithms("openmpi", open_mpi.version, collective)
    assert {one.name: one.number for one in listed} == installed
    for one in listed:
        for variable in variables(one, segment=1024, fan=2):
            assert f'"{variable}"' in text


@pytest.mark.parametrize("collective", MPI_NAMES)
def test_mpich_has_these_algorithms(collective: str, mpich: Mpi) -> None:
    text = output(mpich.mpicc.parent / "mpivars")
    start = text.index(f"MPIR_CVAR_{MPI_NAMES[collective].upper()}_INTRA_ALGORITHM")
    end = text.index("\tMPIR_CVAR", start)
    installed = {name for name, _ in re.findall(r"^(\w+) +- (\w+)", text[start:end], re.MULTILINE)}
    listed = library_algorithms("mpich", mpich.version, collective)
    assert {one.name for one in listed} == installed - left_out("mpich")
    for one in listed:
        for variable in variables(one, segment=1024, fan=2):
            assert variable in text


def test_trees_of_mpich_have_these_names(mpich: Mpi) -> None:
    text = b"".join(path.read_bytes() for path in mpich.prefix.glob("lib/libmpi.so.*"))
    for collective, name in MPI_NAMES.items():
        if collective == "reduce_scatter_v":
            continue  # its tree has one algorithm
        for one in library_algorithms("mpich", mpich.version, collective):
            assert f"MPIR_{name.capitalize()}_intra_" in one.tree_name
            assert one.tree_name.encode() in text
