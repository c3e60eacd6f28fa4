"""Hints at the closest known names."""

from __future__ import annotations

import pytest

from tutti.base.suggestions import meant
from tutti.mpi.plan import COLLECTIVES


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("allreduce", "all_reduce"),
        ("osu_allreduce", "all_reduce"),
        ("all_reduce_perf", "all_reduce"),
        ("MPI_Iallreduce", "all_reduce"),
        ("all-redcue", "all_reduce"),
        ("allgatherv", "all_gather"),
        ("alltoall_perf", "all_to_all"),
        ("osu_alltoallv", "all_to_all"),
        ("MPI_Bcast", "broadcast"),
        ("osu_ibcast", "broadcast"),
        ("reduce_perf", "reduce"),
        ("MPI_Reduce_scatter_block", "reduce_scatter"),
        ("reducescatter", "reduce_scatter"),
        ("sendrecv", ""),
        ("", ""),
    ],
)
def test_collectives_are_found_by_names_of_other_libraries(written: str, known: str) -> None:
    assert meant(written, COLLECTIVES) == known


def test_other_names_are_found_by_similarity() -> None:
    assert meant("rign", ["bruck", "ring", "swing"]) == "ring"
    assert meant("alpa_r", ["alpha_p", "alpha_r", "beta"]) == "alpha_r"
    assert meant("xyz", ["bruck", "ring"]) == ""


def test_a_beginning_is_the_shortest_name() -> None:
    known = ["dgx_b200", "gb200_nvl72_cluster", "gb200_nvl72"]
    assert meant("gb200", known) == "gb200_nvl72"
    assert meant("gb2", known) == ""
    assert meant("h100", ["h100_sharp", "dgx_h100_cluster", "dgx_h100"]) == "dgx_h100"
