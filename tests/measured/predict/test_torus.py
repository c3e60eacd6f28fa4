"""Loads of links and hops on a torus, against the messages of schedules."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

import tutti
from tutti.measured.predict.catalogue import execution
from tutti.measured.predict.stages import Stage, closed_form
from tutti.measured.predict.torus import box_of, link_load, mean_hops, negabinary_distance

if TYPE_CHECKING:
    from collections.abc import Iterator


def messages(notation: str, collective: str, ranks: int) -> list[list[tuple[int, int]]]:
    """The sender and the receiver of each message of a schedule, by step."""
    schedule = tutti.schedule(notation, collective=collective, ranks=ranks)
    steps = max(schedule.steps(rank) for rank in range(ranks))
    return [
        [
            (rank, op.peer)
            for rank in range(ranks)
            if step < schedule.steps(rank)
            for op in schedule.ops(rank, step)
            if op.kind == "send" and op.peer is not None
        ]
        for step in range(steps)
    ]


def route(source: int, target: int, sides: tuple[int, ...]) -> Iterator[tuple[object, float]]:
    """The links of a dimension-order route; half of a message for each direction at half a ring."""
    at, below = source, 1
    for dimension, side in enumerate(sides):
        here, there = at // below % side, target // below % side
        hops = (there - here) % side
        forwards = 0.5 if 2 * hops == side else float(2 * hops < side)
        for sign, count, share in ((1, hops, forwards), (-1, side - hops, 1 - forwards)):
            for hop in range(count if hops and share else 0):
                position = (here + sign * hop) % side
                # A ring of two nodes is one link.
                ring = (dimension, at - here * below)
                yield (ring, position, 0 if side == 2 else sign), share
        at += (there - here) * below
        below *= side


def largest_load(pairs: list[tuple[int, int]], sides: tuple[int, ...]) -> float:
    """The most messages on a link, if all are sent by dimension-order routes."""
    load: defaultdict[object, float] = defaultdict(float)
    for source, target in pairs:
        for link, share in route(source, target, sides):
            load[link] += share
    return max(load.values())


@pytest.mark.parametrize("sides", [(4, 4, 4), (8, 8, 2), (2, 2, 2)])
def test_recursive_doubling_loads_links_like_its_schedule(sides: tuple[int, ...]) -> None:
    steps = messages("recursive_doubling", "all_reduce", math.prod(sides))
    for step, pairs in enumerate(steps):
        stage = Stage(1, 1, 1.0, partners="doubling", step=step)
        assert link_load(stage, sides) == largest_load(pairs, sides)


@pytest.mark.parametrize("sides", [(4, 4, 4), (8, 8, 8), (8, 4, 2)])
def test_bine_partners_load_links_like_swing_on_a_torus(sides: tuple[int, ...]) -> None:
    """Swing and Bine butterflies have the same partners, with the dimensions in turn."""
    notation = f"swing:{'x'.join(map(str, sides))}:latency_optimal"
    for step, pairs in enumerate(messages(notation, "all_reduce", math.prod(sides))):
        stage = Stage(1, 1, 1.0, partners="doubling", step=step, alternating=True, in_turn=True)
        assert link_load(stage, sides) == largest_load(pairs, sides)


def test_a_tree_in_order_never_shares_a_link() -> None:
    for collective, step in itertools.product(("reduce", "gather", "scatter"), range(6)):
        tree = execution(collective, "binomial")
        assert tree is not None
        stages = tree.stages(64, (4, 4, 4), 1 << 20)
        assert stages is not None
        assert all(link_load(one, (4, 4, 4)) == 1 for one in stages)
        pairs = messages("binomial", collective, 64)[step]
        assert largest_load(pairs, (4, 4, 4)) <= 1


def test_shifts_load_the_links_of_pairwise_exchange() -> None:
    sides = (9, 5, 3)
    loads = [largest_load(pairs, sides) for pairs in messages("pairwise", "all_to_all", 135)]
    mean = sum(loads) / len(loads)
    assert link_load(Stage(134, 1, 1 / 135, partners="shift"), sides) == pytest.approx(mean)


def test_copies_over_more_interfaces_use_other_links() -> None:
    """Six copies on 4x4x4 nodes use both directions of three dimensions; links of 2x2x2 are one."""
    near = Stage(1, 1, 1 / 6, partners="doubling", step=0, alternating=True, in_turn=True, ports=6)
    far = Stage(1, 1, 1 / 6, partners="doubling", step=6, alternating=True, in_turn=True, ports=6)
    assert [link_load(near, sides) for sides in ((2, 2, 2), (4, 4, 4))] == [2, 1]
    # Three and two messages of the pair of mirror images share a link: at distance 3, all links.
    assert link_load(far, (8, 8, 8)) == negabinary_distance(2) == 3
    tree = Stage(1, 1, 1 / 6, partners="doubling", step=6, is_tree=True, ports=6)
    assert [link_load(tree, sides) for sides in ((2, 2, 2), (8, 8, 8), (16, 32))] == [2, 1, 2]


def test_two_sides_count_between_the_box_and_the_plane() -> None:
    assert box_of((64, 64)) == (16, 16, 16)
    assert box_of((32, 256)) == (32, 16, 16)
    assert box_of((4, 4, 4)) == (4, 4, 4)
    far = Stage(1, 1, 1.0, partners="doubling", step=5)
    assert link_load(far, (64, 64)) == pytest.approx(math.sqrt(16 * 2))
    assert mean_hops(far, (64, 64)) == pytest.approx(math.sqrt(31))
    assert mean_hops(far, (16, 16, 16)) == 1
    assert link_load(far, (4096,)) == 1
    assert mean_hops(far, (4096,)) == 0
    assert mean_hops(Stage(1, 63, 1.0, partners="root"), (4, 4, 4)) == 5


def test_partners_of_bine_trees_stay_closer() -> None:
    assert [negabinary_distance(step) for step in range(6)] == [1, 1, 3, 5, 11, 21]
    far = Stage(1, 1, 1.0, partners="doubling", step=8)
    near = Stage(1, 1, 1.0, partners="doubling", step=8, alternating=True, in_turn=True)
    assert mean_hops(near, (8, 8, 8)) < mean_hops(far, (8, 8, 8))
    assert link_load(far, (512,)) == 1


def test_a_ring_per_dimension_follows_the_sides_of_the_job() -> None:
    ring = execution("all_reduce", "RING-B_CONT-UTOFU-0-4")
    assert ring is not None
    stages = ring.stages(4096, (64, 64), 1 << 20)
    assert stages is not None
    assert sum(one.count for one in stages) == 4 * 63
    sent = sum(one.count * one.messages * one.fraction * one.ports for one in stages)
    assert sent == pytest.approx(2 * (1 - 1 / 4096))
    assert sum(one.count * one.folded for one in stages) == pytest.approx(1 - 1 / 4096)


def test_interfaces_that_take_turns_do_not_shorten_messages() -> None:
    for ports in (1, 3, 6):
        tree = execution("reduce", f"BINE-BINOMIAL_TREE-UTOFU-0-{ports}")
        assert tree is not None
        stages = tree.stages(64, (4, 4, 4), 1 << 20)
        assert stages is not None
        assert sum(one.count * one.fraction for one in stages) == pytest.approx(6)
        assert all(one.ports == 1 for one in stages)


@pytest.mark.parametrize("sides", [(4, 4, 4), (8, 8, 2)])
def test_loads_never_exceed_those_of_the_flow_model(sides: tuple[int, ...]) -> None:
    """Each stage of recursive doubling moves 64 MiB at 1 GB/s past the load of its link."""
    topology = tutti.Topology.build(
        "torus:" + "x".join(map(str, sides)), rate="1 GB/s", latency="0 ns"
    )
    model = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    machine = tutti.Platform(name="t", model=model, routes=topology.routes("shortest_path"))
    ranks = math.prod(sides)
    run = tutti.simulate(tutti.schedule("recursive_doubling", ranks=ranks), machine, size="64 MiB")
    stages = closed_form("recursive_doubling", "all_reduce", ranks)
    assert stages is not None
    predicted = sum(link_load(one, sides) for one in stages) * (64 << 20) * 1000
    # Partners half a side apart use both directions here, one in the flow model.
    assert 0.6 < predicted / run.completion_ps <= 1.0
