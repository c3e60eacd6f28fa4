"""What libraries select by themselves, by rank count and size."""

from __future__ import annotations

import pytest

from tutti.measured.tune.library_algorithms import release_lines
from tutti.measured.tune.library_defaults import LIBRARIES, default_algorithm, default_schedules
from tutti.schedules.ir import schedule

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
               "barrier", "gather", "scatter")  # fmt: skip


@pytest.mark.parametrize(
    ("collective", "ranks", "size", "name"),
    [
        ("all_reduce", 4, 8191, "recursive_doubling"),
        ("all_reduce", 4, 8192, "rabenseifner"),
        ("all_reduce", 2, 200_000, "segmented_ring"),
        # Too few elements for a ring.
        ("all_reduce", 4, 8, "recursive_doubling"),
        ("all_gather", 2, 64, "two_proc"),
        # recursive_doubling needs a power of two.
        ("all_gather", 6, 64, "bruck"),
        # Thresholds of all_to_all are bytes of a part.
        ("all_to_all", 4, 4 * 8192 - 4, "linear_sync"),
        ("all_to_all", 4, 4 * 8192, "linear"),
        ("broadcast", 2048, 1 << 30, "scatter_allgather"),
        ("barrier", 4, 0, "linear"),
    ],
)
def test_open_mpi(collective: str, ranks: int, size: int, name: str) -> None:
    for line in ("4.1", "5.0.11", "5.0"):
        found = default_algorithm("openmpi", line, collective, ranks, size)
        assert found.algorithm.name == name


def test_open_mpi_6_keeps_the_radix_of_bruck() -> None:
    found = default_algorithm("openmpi", "main", "all_gather", 6, 64)
    assert (found.algorithm.name, found.fan) == ("bruck-k-fanout", 2)


def test_open_mpi_passes_a_fan_out_of_0_to_its_chains() -> None:
    for line, fan in (("5.0", 1), ("6.0", 2)):
        found = default_algorithm("openmpi", line, "reduce", 4, 1 << 15)
        assert (found.algorithm.name, found.fan) == ("chain", fan)
    assert default_schedules("openmpi", "5.0", "reduce", 4, 1 << 15) == [("reduce", "chain")]


@pytest.mark.parametrize(
    ("collective", "ranks", "size", "name"),
    [
        ("all_reduce", 4, 8, "recursive_doubling"),
        ("all_reduce", 4, 1024, "reduce_scatter_allgather"),
        ("all_reduce", 64, 128, "recursive_doubling"),
        ("broadcast", 16, 12288, "binomial"),
        ("broadcast", 16, 12289, "scatter_recursive_doubling_allgather"),
        ("all_gather", 6, 81920, "ring"),
        ("all_to_all", 8, 8 * 64, "scattered"),
        ("all_to_all", 9, 9 * 64, "brucks"),
    ],
)
def test_mpich(collective: str, ranks: int, size: int, name: str) -> None:
    assert default_algorithm("mpich", "5.0.2", collective, ranks, size).algorithm.name == name


@pytest.mark.parametrize("library", LIBRARIES)
def test_defaults_are_algorithms_of_each_release_line(library: str) -> None:
    for line in release_lines(library):
        for collective in COLLECTIVES:
            for ranks in (2, 3, 6, 8, 40, 100, 300, 600, 1500, 3000, 5000):
                for size in (0, 8, 1 << 12, 1 << 18, 1 << 24):
                    found = default_algorithm(library, line, collective, ranks, size)
                    assert line in found.algorithm.versions
                    assert found.algorithm.ranks != "two" or ranks == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_schedules_of_defaults_can_be_laid_out(library: str) -> None:
    for collective in COLLECTIVES:
        for ranks in (2, 3, 6, 8, 9):
            for size in (64, 1 << 12, 1 << 18):
                found = default_schedules(library, "5.0", collective, ranks, size)
                for part, notation in found or ():
                    schedule(notation, collective=part, ranks=ranks)


def test_composed_defaults_are_several_schedules() -> None:
    assert default_schedules("openmpi", "5.0", "all_reduce", 128, 8) == [
        ("reduce", "binomial"), ("broadcast", "binary_tree"),
    ]  # fmt: skip
