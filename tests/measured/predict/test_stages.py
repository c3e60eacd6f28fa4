"""Stages of algorithms, names of libraries, and the messages that share a link."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from tutti.measured.predict.catalogue import execution, is_default, known_algorithms
from tutti.measured.predict.features import sides_of
from tutti.measured.predict.forms import replaced
from tutti.measured.predict.sharing import (
    crossing,
    node_load,
)
from tutti.measured.predict.stages import Stage, closed_form
from tutti.measured.tune.library_algorithms import every_algorithm


def sent(stages: tuple[Stage, ...]) -> float:
    """Bytes that a rank sends, as a fraction of the vector."""
    return sum(stage.count * stage.messages * stage.fraction for stage in stages)


@pytest.mark.parametrize("ranks", [4, 64, 1024])
def test_stages_send_what_the_algorithm_sends(ranks: int) -> None:
    halves = closed_form("recursive_halving_doubling", "all_reduce", ranks, "large_near")
    ring = closed_form("ring", "all_reduce", ranks, "neighbour")
    doubling = closed_form("recursive_doubling", "all_reduce", ranks)
    assert halves is not None
    assert ring is not None
    assert doubling is not None
    assert sent(halves) == pytest.approx(2 * (1 - 1 / ranks))
    assert sent(ring) == pytest.approx(2 * (1 - 1 / ranks))
    assert sent(doubling) == ranks.bit_length() - 1
    assert sum(stage.folded * stage.count for stage in halves) == pytest.approx(1 - 1 / ranks)


def test_messages_between_groups_of_the_network() -> None:
    halves, apart = bytes([0, 0, 0, 0, 1, 1, 1, 1]), bytes([0, 1] * 4)
    ring = Stage(7, 1, 1 / 8, partners="neighbour")
    steps = [Stage(1, 1, 1.0, partners="doubling", step=step) for step in range(3)]
    assert crossing(ring, halves) == (2 / 8, 1)
    assert crossing(ring, apart) == (1, 4)
    assert [crossing(one, halves) for one in steps] == [(0, 0), (0, 0), (1, 4)]
    assert [crossing(one, apart) for one in steps] == [(1, 4), (0, 0), (0, 0)]
    shift, busiest = crossing(Stage(7, 1, 1 / 8, partners="shift"), halves)
    assert shift == pytest.approx(4 / 7)
    assert busiest == 4 * 4 / 8
    assert crossing(Stage(1, 7, 1.0, partners="root"), halves)[0] == pytest.approx(4 / 7)
    bine = Stage(1, 1, 1.0, partners="doubling", step=0, alternating=True)
    assert crossing(bine, halves) == (0, 0)
    assert crossing(ring, bytes(8)) == (0, 0)


def test_equal_steps_are_one_stage() -> None:
    ring = closed_form("ring", "all_gather", 1000, "neighbour")
    assert ring is not None
    assert [(one.count, one.messages) for one in ring] == [(999, 1)]


def test_the_largest_messages_go_near_or_far() -> None:
    near = closed_form("recursive_halving_doubling", "reduce_scatter", 16, "large_near")
    far = closed_form("recursive_halving_doubling", "reduce_scatter", 16, "large_far")
    assert near is not None
    assert far is not None
    assert [(one.fraction, one.step) for one in near][:2] == [(0.5, 0), (0.25, 1)]
    assert [(one.fraction, one.step) for one in far][:2] == [(0.5, 3), (0.25, 2)]


def test_ranks_beyond_a_power_of_two_hand_over_their_vector() -> None:
    folded = closed_form(
        "recursive_halving_doubling", "reduce_scatter", 200, "large_far", folds=True
    )
    assert folded is not None
    assert (folded[0].fraction, folded[0].folded) == (1.0, 1.0)
    assert folded[-1].fraction == 1 / 200


def test_names_carry_parameters() -> None:
    tofu = execution("all_reduce", "BINE-L-UTOFU-4096-6")
    assert tofu is not None
    assert (tofu.segment_bytes, tofu.ports, tofu.interface) == (4096, 6, "utofu")
    assert tofu.algorithm.notation == "bine:latency_optimal"
    segmented = execution("all_reduce", "bine_bdw_remap_segmented_over_16384")
    assert segmented is not None
    assert segmented.segment_bytes == 16384
    assert segmented.stages(4, (4,), 65536) == (
        Stage(1, 2, 0.25, 0.5, "large_near", 0, alternating=True),
        Stage(1, 1, 0.25, 0.25, "large_near", 1, alternating=True),
        Stage(1, 1, 0.25, 0.0, "large_near", 1, alternating=True),
        Stage(1, 2, 0.25, 0.0, "large_near", 0, alternating=True),
    )
    assert execution("all_reduce", "swing") is not None
    assert execution("all_reduce", "no_such_algorithm") is None
    assert execution("all_reduce", "default_ompi") is None
    assert is_default("default-default")
    assert is_default(None)
    assert not is_default("default-trix6")


def test_every_known_algorithm_has_stages_somewhere() -> None:
    for (collective, name), known in known_algorithms().items():
        run = execution(collective, name)
        assert run is not None
        shapes = [(64,), (4, 4, 4)] if known.notation else [(4, 4, 4)]
        for sides in shapes:
            stages = run.stages(64, sides, 1 << 20)
            assert stages, (collective, name, sides)
            assert all(one.count > 0 and one.fraction >= 0 for one in stages)


def test_names_of_open_mpi_and_mpich_are_in_one_table() -> None:
    """`libraries.toml` has one name of each; the others come from `library_algorithms.toml`."""
    text = resources.files("tutti.measured.predict").joinpath("libraries.toml").read_text("utf-8")
    for entry in tomllib.loads(text)["algorithm"]:
        assert not {"Open MPI", "MPICH"} & set(entry.get("libraries", ()))
        for library in ("openmpi", "mpich"):
            for one in every_algorithm(library):
                names = {name.replace("-", "_") for name in (one.name, *one.aliases)}
                if one.collective.removesuffix("_v") == entry["collective"]:
                    assert len(names & set(entry["names"])) <= 1, (entry["names"], names)
    known = known_algorithms()
    rabenseifner = known["all_reduce", "rabenseifner"]
    assert known["all_reduce", "reduce_scatter_allgather"] is rabenseifner
    assert rabenseifner.libraries == ("Open MPI", "MPICH", "Cray MPICH", "PICO")
    assert known["all_reduce", "linear"].libraries == ("Open MPI", "Fujitsu MPI")
    assert known["all_gather", "k_brucks"].libraries == ("MPICH",)


def test_short_sides_replace_algorithms_of_the_torus() -> None:
    assert replaced("tree_all_reduce", (2, 2, 2))
    assert not replaced("tree_all_reduce", (4, 4, 4))
    assert not replaced("tree_all_reduce", (8,))
    assert not replaced("bucket", (2, 2, 2))


def test_sides_of_a_job() -> None:
    assert sides_of(None, 100) == (100,)
    assert sides_of("4x4x4", 64) == (4, 4, 4)
    assert sides_of("64x64", 4096) == (64, 64)


def test_ranks_of_a_node_share_its_interfaces() -> None:
    near, far = (Stage(1, 1, 1.0, partners="doubling", step=step) for step in (1, 2))
    assert node_load(near, 4) is None
    assert node_load(far, 4) == 4
    assert node_load(Stage(1, 1, 1.0), 4) == 1
    # 56 ranks per node: pairs at distance 4 start anywhere, so four ranks have one elsewhere.
    assert node_load(far, 56) == 4
