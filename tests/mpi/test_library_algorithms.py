"""The tables of libraries' algorithms and defaults, against the installed libraries."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tutti.measured.tune.library_algorithms import (
    FORCING,
    LibraryAlgorithm,
    left_out,
    library_algorithm,
    library_algorithms,
    variables,
)
from tutti.measured.tune.library_defaults import default_algorithm
from tutti.measured.tune.mpich import stock
from tutti.measured.tune.watch import Call, sent_by_mpi, sent_by_schedule
from tutti.mpi.underneath import Mpi, find_mpi
from tutti.schedules.ir import schedule

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


@functools.cache
def output(*command: str | Path) -> str:
    """Runs a command once; `ompi_info` takes half a second."""
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


@pytest.mark.parametrize(
    ("library", "collective", "name", "segment", "fan"),
    [
        ("openmpi", "all_reduce", "segmented_ring", 128, 0),
        ("openmpi", "broadcast", "chain", 128, 3),
        ("openmpi", "reduce", "in-order_binary", 256, 0),
        ("mpich", "broadcast", "pipelined_tree kary", 128, 3),
        ("mpich", "all_to_all", "k_brucks", 0, 3),
    ],
)
def test_forced_algorithms_send_the_messages_of_their_schedule(
    library: str, collective: str, name: str, segment: int, fan: int, open_mpi: Mpi, mpich: Mpi
) -> None:
    """All are counted by ``validation/library_patterns.py``."""
    mpi = {"openmpi": open_mpi, "mpich": mpich}[library]
    call = Call(collective, 5, 5 * 512)
    one = library_algorithm(library, mpi.version, collective, name)
    notation = one.notation(call.ranks, call.size, segment=segment, fan=fan)
    assert notation is not None
    expected = sent_by_schedule(schedule(notation, collective=collective, ranks=5), call)
    assert sent_by_mpi(mpi, call, env=environment(one, segment, fan)) == expected


def environment(one: LibraryAlgorithm, segment: int, fan: int) -> dict[str, str]:
    prefix = "OMPI_MCA_" if one.library == "openmpi" else ""
    named = FORCING[one.library] | variables(one, segment=segment, fan=fan)
    return {f"{prefix}{variable}": value for variable, value in named.items()}


# --- defaults -------------------------------------------------------------------------------------


def selected(tree: Any, ranks: int, size: int, parts: int) -> str:
    """Returns the algorithm of a tree, for a commutative predefined operation out of place."""
    facts = {"comm_type": "intra", "comm_hierarchy": "any", "is_commutative": "yes",
             "is_op_built_in": "yes", "is_sendbuf_inplace": "no"}  # fmt: skip
    numbers = {"comm_size": ranks, "avg_msg_size": size // parts, "total_msg_size": size}
    for key, below in tree.items():
        name, sign, value = re.fullmatch(r"(\w+?)(<=|<|=)(.*)", key).groups()  # type: ignore[union-attr]
        if name == "algorithm":
            return str(value)
        if name == "count":
            holds = value == "any"  # enough elements
        elif value == "pow2":
            holds = ranks & (ranks - 1) == 0
        elif name in numbers and value != "any":
            holds = numbers[name] < int(value) + (sign == "<=")
        else:
            holds = value == "any" or facts[name] == value
        if holds:
            return selected(below, ranks, size, parts)
    raise AssertionError(tree)


@pytest.mark.parametrize("collective", [one for one in MPI_NAMES if one != "reduce_scatter_v"])
def test_defaults_of_mpich_are_those_of_its_trees(collective: str, mpich: Mpi) -> None:
    tree = stock(mpich).algorithms[f"collective={MPI_NAMES[collective]}"]
    for ranks in (2, 3, 4, 7, 8, 12, 16, 512):
        parts = ranks if collective == "all_to_all" else 1
        for exponent in range(12, 26):
            for size in (1 << exponent, (1 << exponent) + 4 * ranks):
                found = default_algorithm("mpich", mpich.version, collective, ranks, size)
                assert found.algorithm.tree_name == selected(tree, ranks, size, parts)


@pytest.mark.parametrize(
    ("collective", "size"), [("all_reduce", 4096), ("all_reduce", 1 << 15), ("reduce", 1 << 15)]
)
def test_open_mpi_sends_the_messages_of_its_default(
    collective: str, size: int, open_mpi: Mpi
) -> None:
    call = Call(collective, 4, size)
    found = default_algorithm("openmpi", open_mpi.version, collective, 4, size)
    env = environment(found.algorithm, 0, found.fan)
    assert sent_by_mpi(open_mpi, call) == sent_by_mpi(open_mpi, call, env=env)
