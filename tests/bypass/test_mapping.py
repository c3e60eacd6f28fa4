"""Flows onto bypass meshes: the trees and rings of ARIES, and what holds for any flows.

The numbers of dedicated flows were found by an independent CP-SAT model of complete routes,
written before this one (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023, give none).
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutti
from tutti.base.errors import UnitError
from tutti.bypass import (
    BypassMesh,
    Mapping,
    Muxes,
    balanced_flows,
    flows_of,
    improve,
    map_flows,
)
from tutti.bypass.bounds import cut_bound
from tutti.bypass.errors import BypassError
from tutti.bypass.mapping import space_of

Flow = tuple[int, int]


def edges(nodes: int) -> list[Flow]:
    """Child and parent of NCCL's two trees, from `trees.cc`."""
    first = []
    for child in range(1, nodes):
        bit = child & -child
        parent = (child ^ bit) | (2 * bit)
        first.append((child, parent if parent < nodes else child ^ bit))
    return first + [(nodes - 1 - child, nodes - 1 - parent) for child, parent in first]


def reduce(nodes: int) -> list[Flow]:
    return edges(nodes)


def broadcast(nodes: int) -> list[Flow]:
    return [(parent, child) for child, parent in edges(nodes)]


def check(mapping: Mapping) -> None:
    """Checks that the core accepts the configuration and every path matches the mapping."""
    network, links = mapping.configuration, mapping.links
    found = Counter((link.source, link.destination) for link in network.links)
    assert found == links
    assert network.mesh == mapping.mesh
    check_slowly(mapping)
    requested = Counter(mapping.flows)
    placed = Counter(mapping.dedicated) + Counter(mapping.shared) + Counter(mapping.unplaced)
    assert placed == requested
    assert len(mapping.dedicated) <= mapping.bound <= len(mapping.flows)
    own: Counter[Flow] = Counter()
    for flow, count in Counter(mapping.dedicated).items():
        for hop in pairwise(mapping.paths[flow]):
            own[hop] += count
    for (source, destination), path in mapping.paths.items():
        assert (path[0], path[-1]) == (source, destination)
        assert len(set(path)) == len(path)
        assert all(hop in links for hop in pairwise(path))
    # Dedicated flows have that many links. Unless lent, no other flow uses them.
    assert all(links[hop] >= count for hop, count in own.items())
    for flow in set(mapping.dedicated) - set(mapping.lent) - set(mapping.shared):
        for hop in pairwise(mapping.paths[flow]):
            assert mapping.loads[hop] <= links[hop]
    graph = nx.DiGraph(list(links))
    graph.add_nodes_from(range(mapping.mesh.nodes))
    for flow in mapping.unplaced:
        assert not nx.has_path(graph, *flow)


def check_slowly(mapping: Mapping) -> None:
    """Slow check: no segment or port is used twice, and muxes allow every port."""
    side = mapping.mesh.columns
    segments: set[tuple[object, ...]] = set()
    ports: set[tuple[object, ...]] = set()
    for link in mapping.configuration.links:
        (row, column), (to_row, to_column) = (
            divmod(link.source, side),
            divmod(link.destination, side),
        )
        assert (row == to_row) != (column == to_column)
        across = row == to_row
        at, to = (column, to_column) if across else (row, to_row)
        travel = ("east" if to > at else "west") if across else ("south" if to > at else "north")
        for segment in range(min(at, to), max(at, to)):
            place = (travel, row if across else column, segment, link.wire)
            assert place not in segments
            segments.add(place)
        opposite = {"east": "west", "west": "east", "south": "north", "north": "south"}
        assert link.bypass or (abs(at - to) == 1 and link.output == travel)
        for node, port, end, own in (
            (link.source, link.output, "output", travel),
            (link.destination, link.input, "input", opposite[travel]),
        ):
            assert (node, port, end) not in ports
            ports.add((node, port, end))
            assert port in _allowed(mapping.mesh.muxes, own)


def _allowed(muxes: Muxes, port: str) -> set[str]:
    axis = {"east", "west"} if port in {"east", "west"} else {"north", "south"}
    sign = {"east", "south"} if port in {"east", "south"} else {"west", "north"}
    return {"own": {port}, "axis": axis, "sign": sign, "any": {"east", "west", "north", "south"}}[
        muxes
    ]


@pytest.mark.parametrize("flows", [reduce(16), broadcast(16)], ids=["reduce", "broadcast"])
@pytest.mark.parametrize(
    ("muxes", "expected"), [("any", 30), ("sign", 30), ("axis", 30), ("own", 22)]
)
def test_a_phase_of_the_trees_on_16_nodes(flows: list[Flow], muxes: Muxes, expected: int) -> None:
    mapping = map_flows(BypassMesh(4, muxes=muxes), flows)
    check(mapping)
    assert (len(mapping.dedicated), mapping.bound, mapping.optimal) == (expected, expected, True)
    assert len(mapping.shared) == 30 - expected
    assert not mapping.unplaced


@pytest.mark.parametrize(
    ("muxes", "wires", "expected"),
    [("any", 1, 44), ("any", 2, 52), ("sign", 1, 44), ("sign", 2, 44), ("own", 1, 32)],
)
def test_both_phases_of_the_trees_at_once(muxes: Muxes, wires: int, expected: int) -> None:
    flows = reduce(16) + broadcast(16)
    mapping = map_flows(BypassMesh(4, wires, muxes), flows)
    check(mapping)
    assert (len(mapping.dedicated), mapping.optimal) == (expected, True)


@pytest.mark.parametrize("flows", [reduce(64), broadcast(64)], ids=["reduce", "broadcast"])
def test_a_phase_of_the_trees_on_64_nodes(flows: list[Flow]) -> None:
    mapping = map_flows(BypassMesh(8), flows)
    check(mapping)
    assert (len(mapping.dedicated), mapping.optimal) == (126, True)


@pytest.mark.parametrize(("muxes", "expected"), [("own", 94), ("sign", 124), ("any", 126)])
def test_greedy_mapping_dedicates_as_many_links(muxes: Muxes, expected: int) -> None:
    """The exact method proves 94 for paths of up to 5 hops, and 124 for up to 3 hops."""
    mapping = map_flows(BypassMesh(8, muxes=muxes), reduce(64), method="greedy")
    check(mapping)
    assert len(mapping.dedicated) == expected


def test_hops_match_equation_1_of_the_paper() -> None:
    """Edges of level h span N / 2^h nodes: along rows or columns, so one hop instead of the span.

    Edges that change both row and column have two: 4 of 30, and 8 of 126.
    """
    for side, turning in ((4, 4), (8, 8)):
        flows = reduce(side * side)
        mapping = map_flows(BypassMesh(side, 2), flows)
        assert mapping.hops == len(flows) + turning
        hops = {flow: len(mapping.paths[flow]) - 1 for flow in flows}
        spans = {
            a: abs(a[0] // side - a[1] // side) + abs(a[0] % side - a[1] % side) for a in flows
        }
        saved: dict[int, set[int]] = {}
        for flow in flows:
            if hops[flow] == 1:
                far = abs(flow[0] - flow[1])
                saved.setdefault(far, set()).add(spans[flow] - hops[flow])
        expected = {4: {8: {1}, 4: {0}, 2: {1}, 1: {0}},
                    8: {32: {3}, 16: {1}, 8: {0}, 4: {3}, 2: {1}, 1: {0}}}  # fmt: skip
        assert saved == expected[side]


def test_mirrored_rings_use_all_segments_and_ports() -> None:
    """The rings of section IV-B of the paper: both levels, both directions."""
    rings = [[corner + place for place in (0, 1, 5, 4)] for corner in (0, 2, 8, 10)]
    rings += [[1, 2, 14, 13], [0, 3, 15, 12], [5, 6, 10, 9], [4, 7, 11, 8]]
    around = [edge for ring in rings for edge in zip(ring, ring[1:] + ring[:1], strict=True)]
    flows = [flow for a, b in around for flow in ((a, b), (b, a))]
    mapping = map_flows(BypassMesh(4), flows)
    check(mapping)
    network = mapping.configuration
    assert len(mapping.dedicated) == 64
    assert (network.used_segments, network.total_segments) == (96, 96)
    assert network.idle_ports() == ()


def test_a_pair_requested_twice_gets_parallel_links() -> None:
    ring = [0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4]
    flows = 2 * list(zip(ring, ring[1:] + ring[:1], strict=True))
    for method in ("exact", "greedy"):
        mapping = map_flows(BypassMesh(4), flows, method=method, fill=False)
        check(mapping)
        assert (len(mapping.dedicated), mapping.optimal) == (32, True)
        assert set(mapping.links.values()) == {2}
        assert mapping.hops == 32


def test_unused_segments_double_existing_links() -> None:
    flows = [(0, 1), (1, 2)]
    bare = map_flows(BypassMesh(4), flows, fill=False)
    assert bare.configuration.notation == "0>1,1>2"
    full = map_flows(BypassMesh(4), flows)
    check(full)
    assert full.links[0, 1] == full.links[1, 2] == 2
    assert sum(full.links.values()) > 40  # and mesh links everywhere


def test_flows_without_dedicated_links_share_links() -> None:
    """Five flows leave node 5, which has four ports."""
    flows = [(5, 4), (5, 6), (5, 1), (5, 9), (5, 10)]
    mapping = map_flows(BypassMesh(4), flows)
    check(mapping)
    assert (len(mapping.dedicated), len(mapping.shared), mapping.bound) == (4, 1, 4)
    assert mapping.lent
    routes = mapping.routes(mapping.configuration.topology(rate="68 GB/s", latency="12 ns"))
    assert all(routes.pair(*flow).hops == len(path) - 1 for flow, path in mapping.paths.items())


def test_local_search_ejects_flows_for_more_and_shorter_ones() -> None:
    flows = reduce(64) + broadcast(64)
    greedy, local = (
        map_flows(BypassMesh(8), flows, method=method) for method in ("greedy", "local")
    )
    check(local)
    assert len(greedy.dedicated) < len(local.dedicated) <= local.bound == 188


def test_larger_meshes_are_mapped_by_local_search() -> None:
    flows = reduce(256)
    greedy = map_flows(BypassMesh(16), flows, method="greedy")
    mapping = map_flows(BypassMesh(16), flows)
    check(mapping)
    assert (greedy.method, mapping.method) == ("greedy", "local")
    assert (len(greedy.dedicated), greedy.optimal) == (446, True)
    assert (len(mapping.dedicated), len(mapping.unplaced)) == (446, 0)
    assert mapping.hops <= greedy.hops


@pytest.mark.parametrize("flows", [reduce(64), broadcast(64)], ids=["reduce", "broadcast"])
def test_equally_many_dedicated_flows_take_the_fewest_hops(flows: list[Flow]) -> None:
    """118 of the 126 edges are straight and 8 turn.

    In every row, 2 of the edges that span two nodes overlap on the wire of their direction.
    """
    greedy, local = (map_flows(BypassMesh(8), flows, method=one) for one in ("greedy", "local"))
    assert len(local.dedicated) == len(greedy.dedicated) == 126
    assert local.hops <= greedy.hops
    assert local.hops_bound == 118 + 2 * 8 + 8 * 2
    # With two wires, no pieces overlap.
    wide = map_flows(BypassMesh(8, 2), flows, method="local")
    assert (len(wide.dedicated), wide.hops, wide.hops_bound) == (126, 134, 134)


def test_balanced_flows_share_links_evenly() -> None:
    flows = reduce(256)
    mesh = BypassMesh(16)
    balanced = balanced_flows(mesh, flows)
    check(balanced)
    assert not balanced.dedicated
    assert balanced.load_bound <= balanced.most_loaded <= 2
    # Nine flows from a node with four ports.
    star = [(4, other) for other in range(9) if other != 4] + [(4, 0)]
    assert balanced_flows(BypassMesh(3), star).load_bound == 9 / 4


def test_bounds_hold_on_small_meshes() -> None:
    """The bounds for any size, compared with the exact method."""
    for side, wires in ((3, 1), (4, 1), (4, 2)):
        mesh = BypassMesh(side, wires)
        flows = reduce(side * side) + broadcast(side * side)
        exact = map_flows(mesh, flows, time_limit="2 s")
        bound = cut_bound(space_of(mesh), Counter(flows))
        assert len(exact.dedicated) <= exact.bound <= len(flows)
        assert len(exact.dedicated) <= bound
        assert exact.hops >= exact.hops_bound
        assert exact.most_loaded >= exact.load_bound


@settings(max_examples=60)
@given(
    side=st.integers(2, 4),
    rows=st.integers(2, 4),
    wires=st.integers(0, 3),
    muxes=st.sampled_from(["own", "axis", "sign", "any"]),
    method=st.sampled_from(["exact", "local", "greedy"]),
    fill=st.booleans(),
    data=st.data(),
)
def test_any_flows(
    side: int, rows: int, wires: int, muxes: Muxes, method: str, *, fill: bool, data: st.DataObject
) -> None:
    node = st.integers(0, side * rows - 1)
    pair = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    flows = data.draw(st.lists(pair, max_size=24))
    mesh = BypassMesh(side, wires, muxes, rows=rows)
    mapping = map_flows(mesh, flows, method=method, time_limit="2 s", fill=fill)  # type: ignore[arg-type]
    check(mapping)
    assert mapping == map_flows(mesh, flows, method=method, time_limit="2 s", fill=fill)  # type: ignore[arg-type]
    check(balanced_flows(mesh, flows))


def test_exact_method_is_no_worse_than_greedy() -> None:
    for side, muxes in ((3, "sign"), (4, "axis"), (4, "any")):
        mesh = BypassMesh(side, muxes=muxes)  # type: ignore[arg-type]
        flows = reduce(side * side) + broadcast(side * side)
        exact, greedy = (map_flows(mesh, flows, method=m) for m in ("exact", "greedy"))
        assert len(exact.dedicated) >= len(greedy.dedicated)


def test_local_search_improves_the_mapping() -> None:
    trees = tutti.schedule("double_binary_tree:nccl", collective="all_reduce", ranks=16)
    found = improve(BypassMesh(4), trees, trials=200)
    check(found.best)
    assert found.best_time < found.start_time  # 4.5 and 4.9 us
    again = improve(BypassMesh(4), trees, trials=200)
    assert (again.best, again.best_time) == (found.best, found.best_time)


def test_the_flows_of_a_schedule() -> None:
    trees = tutti.schedule("double_binary_tree:nccl", collective="all_reduce", ranks=16)
    assert flows_of(trees) == sorted(set(reduce(16) + broadcast(16)))
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    assert flows_of(ring) == [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_invalid_arguments_are_refused() -> None:
    mesh = BypassMesh(4)
    with pytest.raises(BypassError, match="flow 3 -> 16: node 16 does not exist"):
        map_flows(mesh, [(3, 16)])
    with pytest.raises(BypassError, match="flow 3 -> 3: expected two different nodes"):
        map_flows(mesh, [(3, 3)])
    with pytest.raises(BypassError, match=r"unknown method `gredy`[\s\S]*did you mean `greedy`"):
        map_flows(mesh, [(0, 1)], method="gredy")  # type: ignore[arg-type]
    with pytest.raises(UnitError):
        map_flows(mesh, [(0, 1)], time_limit="20")
    assert map_flows(mesh, []).dedicated == ()
