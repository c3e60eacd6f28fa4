"""The table of libraries' algorithms: versions, variables and schedules."""

from __future__ import annotations

import pytest

from tutti.measured.errors import TuningError
from tutti.measured.tune.library_algorithms import (
    every_algorithm,
    library_algorithm,
    library_algorithms,
    patterns,
    release_line,
    release_lines,
    variables,
)
from tutti.measured.tune.targets import TARGETS, counterparts
from tutti.schedules.ir import schedule

COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "reduce_scatter_v", "broadcast", "reduce",
    "all_to_all", "barrier", "gather", "scatter",
)  # fmt: skip


def test_variables_of_open_mpi() -> None:
    ring = library_algorithm("openmpi", "5.0.11", "all_reduce", "segmented_ring")
    assert variables(ring, segment=8192) == {
        "coll_tuned_allreduce_algorithm": "5",
        "coll_tuned_allreduce_algorithm_segmentsize": "8192",
    }
    chain = library_algorithm("openmpi", "4.1.6", "broadcast", "chain")
    assert variables(chain)["coll_tuned_bcast_algorithm_chain_fanout"] == "4"


def test_variables_of_mpich_and_ucc() -> None:
    tree = library_algorithm("mpich", "5.0.2", "broadcast", "pipelined_tree knomial_1")
    assert variables(tree, segment=4096, fan=3) == {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "pipelined_tree",
        "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "0",
        "MPIR_CVAR_BCAST_TREE_TYPE": "knomial_1",
        "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": "4096",
        "MPIR_CVAR_BCAST_TREE_KVAL": "3",
    }
    ring = library_algorithm("ucc", "1.9", "reduce_scatter", "ring")
    assert variables(ring) == {"UCC_TL_UCP_TUNE": "reduce_scatter:0-inf:host:inf:@ring"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [("4.1.6", "4.1"), ("5.0.11", "5.0"), ("5.1.0a1", "5.0"), ("main", "6.0"), ("6.1.0a1", "6.0")],
)
def test_release_lines(version: str, expected: str) -> None:
    assert release_line("openmpi", version) == expected


@pytest.mark.parametrize("version", ["4.0.7", "new"])
def test_unknown_versions_are_refused(version: str) -> None:
    with pytest.raises(TuningError, match=r"expected 4\.1 or newer"):
        library_algorithms("openmpi", version, "all_reduce")


def test_a_version_that_lacks_an_algorithm_refuses_it() -> None:
    assert library_algorithm("openmpi", "6.0", "all_reduce", "allgather_reduce").number == 7
    with pytest.raises(
        TuningError, match=r"5\.0\.11 has no algorithm allgather_reduce .* 6\.0 has"
    ):
        library_algorithm("openmpi", "5.0.11", "all_reduce", "allgather_reduce")
    with pytest.raises(TuningError, match="expected one of basic_linear, nonoverlapping") as raised:
        library_algorithm("openmpi", "5.0", "all_reduce", "rings")
    assert raised.value.hint == "did you mean `ring`?"


def test_numbers_are_those_of_the_versions_that_have_the_algorithm() -> None:
    direct = library_algorithm("openmpi", "main", "all_gather", "direct_messaging")
    assert direct.numbers == {"6.0": 8}
    ring = library_algorithm("openmpi", "main", "all_gather", "ring")
    assert ring.numbers == {"4.1": 4, "5.0": 4, "6.0": 4}


@pytest.mark.parametrize("library", ["openmpi", "mpich", "ucc"])
def test_schedules_can_be_laid_out(library: str) -> None:
    for version in release_lines(library):
        for collective in COLLECTIVES:
            listed = library_algorithms(library, version, collective)
            assert len({one.label for one in listed}) == len(listed)
            for one in listed:
                for ranks in (2, 3, 4, 6, 8, 9):
                    for fan in (2, 3, 4) if one.fan else (0,):
                        found = one.notation(ranks, 4096 * ranks, segment=1024, fan=fan)
                        if found is not None:
                            assert schedule(found, collective=collective, ranks=ranks).name == found


def test_segments_divide_messages_halves_and_blocks() -> None:
    def notation(collective: str, name: str, size: int, segment: int) -> str | None:
        found = library_algorithm("openmpi", "5.0", collective, name)
        return found.notation(4, size, segment=segment)

    assert notation("broadcast", "pipeline", 4096, 0) == "chain"
    assert notation("broadcast", "pipeline", 4096, 1000) == "chain:segments=5"
    assert notation("broadcast", "chain", 4096, 1024) == "chain:segments=4,fanout=4"
    assert notation("broadcast", "split_binary_tree", 4096, 512) == "split_binary_tree:segments=4"
    assert notation("broadcast", "split_binary_tree", 4096, 4096) is None
    assert notation("all_reduce", "segmented_ring", 16384, 1024) == "ring:segments=4"
    assert notation("all_reduce", "segmented_ring", 16384, 0) == "ring"
    assert notation("broadcast", "binomial", 4096, 1024) is None


@pytest.mark.parametrize("target", [one for one in TARGETS if one != "plan"])
def test_rules_name_algorithms_that_their_version_has(target: str) -> None:
    versions = {
        "openmpi": "5.0", "openmpi4": "4.1", "openmpi6": "6.0", "mpich": "5.0", "ucc": "1.4"
    }  # fmt: skip
    for collective in COLLECTIVES:
        for ranks in range(2, 18):
            for one in counterparts(target, collective, ranks):
                assert versions[target] in one.algorithm.versions
                assert one.algorithm.runs_on(ranks)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_the_table_states_what_was_counted(library: str) -> None:
    """Written by ``validation/library_patterns.py``, with 512 B per rank."""
    checked = 0
    for one in every_algorithm(library):
        for case, verdicts in patterns(one).items():
            segment, fan = (int(part) for part in case.split())
            for verdict, counted in verdicts.items():
                for ranks in counted:
                    size = 0 if one.collective == "barrier" else 512 * ranks
                    found = one.equivalent(ranks, size, segment=segment, fan=fan)
                    match = "none" if found is None else found.match
                    checked += verdict in {"same", "alike"}
                    assert (
                        verdict
                        in {
                            "exact": {"same"},
                            "alike": {"same", "alike"},
                            "unchecked": {"same", "alike", "other"},
                            "none": {"none", "failed"},
                        }[match]
                    ), (one.collective, one.label, case, ranks)
    assert checked > 300
