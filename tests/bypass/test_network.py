"""Meshes with bypass wires and their configurations: live links, drawings and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tutti
import tutti.networks.flit
from tutti.base.errors import SimulationError
from tutti.base.units import Size
from tutti.bypass import BypassMesh, LiveLink, plan
from tutti.bypass.errors import BypassError
from tutti.networks.errors import NocError
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

RINGS = "mesh,0=3,0=12,1=13,2=14,3=15,4=7,8=11,12=15"
"""The paper's hierarchical rings on 4x4, in both directions."""

ENDS = tutti.PipeliningPostal(alpha_p="1 ns", alpha_r="0 ns")


def test_a_configuration_lists_live_links() -> None:
    mesh = BypassMesh(side=4, wires=1, muxes="any")
    network = mesh.configure("mesh,0=>3")
    assert (network.used_segments, network.total_segments) == (51, 96)
    assert (network.used_mesh_links, network.used_bypass_segments) == (48, 3)
    piece = network.links[-1]
    assert piece == LiveLink(0, 3, bypass=True, wire=0, output="west", input="east")
    assert (piece.name, network.span(piece)) == ("0=>3", 3)
    assert network.notation == "mesh,0=>3"
    assert network == mesh.configure(["mesh", "0=>3@0/west/east"])
    assert repr(network) == "<Configuration of 4x4: mesh,0=>3>"
    assert network.mesh == mesh == BypassMesh()
    assert hash(network) == hash(mesh.configure("mesh,0=>3"))


def test_rows_and_columns_may_have_different_lengths() -> None:
    mesh = BypassMesh(6, rows=4)
    assert (mesh.columns, mesh.rows, mesh.nodes, mesh.size) == (6, 4, 24, "6x4")
    assert mesh == BypassMesh.parse("6x4")
    assert mesh.total_segments == 2 * 2 * (4 * 5 + 6 * 3)
    network = mesh.configure("mesh,0=>5,2=20")
    assert [link.name for link in network.links if link.bypass] == ["0=>5", "2=>20", "20=>2"]
    assert network.span(network.links[-1]) == 3
    topology = network.topology(rate="68 GB/s", latency="12 ns")
    assert (topology.name, topology.ranks) == ("bypass:6x4:mesh,0=>5,2=20", 24)
    assert repr(mesh) == "BypassMesh(side=6, wires=1, muxes='any', rows=4)"
    with pytest.raises(BypassError, match="a mesh of 6x1 nodes; expected 2x2 to 256x256"):
        BypassMesh(6, rows=1)


def test_chiplets_and_links_have_their_own_rates() -> None:
    network = BypassMesh(2).configure("mesh,0=>1")
    links: dict[str, Any] = {"rate": "68 GB/s", "latency": "12 ns"}
    graph = network.topology(**links, chiplets={3: "34 GB/s"}, pairs={(0, 1): "17 GB/s"})
    rates = {(link.source, link.target): str(link.rate) for link in graph.links}
    assert rates["npu0", "npu1"] == "17 GB/s"
    assert rates["npu1", "npu0"] == rates["npu0", "npu2"] == "68 GB/s"
    assert rates["npu1", "npu3"] == rates["npu3", "npu2"] == "34 GB/s"
    # Both parallel links from 0 to 1 have that rate, and form a bundle.
    assert str(network.routes(graph).pair(0, 1).bottleneck) == "34 GB/s"
    # A rate above that of a link does not make the link faster.
    fast = network.topology(**links, chiplets={0: "900 GB/s"})
    assert {str(link.rate) for link in fast.links} == {"68 GB/s"}
    with pytest.raises(BypassError, match="the rate of node 4: expected a node from 0 to 3"):
        network.topology(**links, chiplets={4: "34 GB/s"})
    with pytest.raises(BypassError, match="from node 0 to node 3: expected a live link"):
        network.topology(**links, pairs={(0, 3): "34 GB/s"})


def test_a_slow_chiplet_slows_the_ring() -> None:
    """Each of 2 (N - 1) steps sends 1/N of the payload; two links of the ring take twice as long.

    The slow links are neighbours, so that their delays do not overlap completely.
    """
    ring = tutti.schedule("ring:6x4", collective="all_reduce", ranks=24)
    planned = plan(ring, BypassMesh(6, rows=4))
    size = 24 * 68_000
    took = [
        planned.run(Size(bytes=size), rate="68 GB/s", latency="0 ns", chiplets=chiplets)
        for chiplets in (None, {5: "34 GB/s"})
    ]
    # Bundles of two links on every hop of the ring.
    fast, slow = (run.completion_ps / 1e12 for run in took)
    assert fast == pytest.approx(46 * 68_000 / 136e9, rel=0.01)
    assert 46 * 68_000 / 68e9 <= slow <= 1.2 * 46 * 68_000 / 68e9


def test_the_rings_of_the_paper_take_all_segments_and_ports() -> None:
    rings = BypassMesh().configure(RINGS)
    assert (rings.used_segments, rings.total_segments) == (96, 96)
    assert rings.idle_ports() == ()
    for node in range(16):
        assert sum(link.source == node for link in rings.links) == 4
        assert sum(link.destination == node for link in rings.links) == 4


def test_idle_ports_are_filled() -> None:
    empty = BypassMesh().configure("")
    assert len(empty.idle_ports()) == 16 * 8
    assert empty.filled().notation == "mesh"
    one = BypassMesh().configure("1=>3").filled()
    assert "1>2" not in one.notation.split(",")
    assert one.used_mesh_links == 46


@pytest.mark.parametrize(
    ("links", "kind", "problem"),
    [
        ("mesh,0=>3,1=>2", "segment_taken", "segment 1 of row 0 going east, wire 0"),
        ("0>1,0=>3/east/west", "port_taken", "output port east of node 0, which 0>1 uses"),
        ("mesh,5=>7", "no_port", "5=>7 has no free output port at node 5"),
        ("0=>5", "aslant", "node 0 and node 5"),
        ("0-2", "no_neighbours", "node 0 and node 2"),
        ("0=>16", "no_such_node", "node 16 does not exist on 4x4"),
        ("0=>3@7", "no_such_wire", "wire 7"),
        ("0=>0", "same_node", "node 0"),
        ("0~1", "malformed", "found `0~1`"),
        ("bypass:8x8:mesh", "other_mesh", "a configuration of 8x8"),
    ],
)
def test_invalid_configurations_are_refused(links: str, kind: str, problem: str) -> None:
    with pytest.raises(BypassError) as refused:
        BypassMesh().configure(links)
    assert refused.value.kind == kind
    assert problem in refused.value.problem
    assert refused.value.hint


def test_error_points_at_the_mistake() -> None:
    with pytest.raises(BypassError) as refused:
        BypassMesh().configure("mesh,0=>3,1=>2")
    lines = str(refused.value).splitlines()
    assert lines[1:3] == ["    mesh,0=>3,1=>2", "              ^"]
    assert (refused.value.segment, refused.value.wire) == (1, 0)
    with pytest.raises(BypassError, match="unknown muxes `all`"):
        BypassMesh(muxes="all")  # type: ignore[arg-type]
    with pytest.raises(BypassError, match="expected 2x2 to 256x256"):
        BypassMesh(side=1)


def test_the_graph_is_that_of_the_live_links() -> None:
    network = BypassMesh().configure("mesh,0=>3")
    flat = network.topology(rate="68 GB/s", latency="12 ns", length="5 mm")
    assert (flat.ranks, len(flat.links)) == (16, 49)
    assert flat.name == "bypass:4x4:mesh,0=>3"
    long = network.topology(rate="68 GB/s", latency="10 ns", length="5 mm", per_span=True)
    assert long.name == "bypass:4x4,distance:mesh,0=>3"
    piece = next(link for link in long.links if (link.source, link.target) == ("npu0", "npu3"))
    assert (str(piece.latency), str(piece.length)) == ("30 ns", "15 mm")
    assert str(flat.routes().pair(0, 3).latency) == "12 ns"
    assert tutti.topologies.link_classes(long.name) == ["mesh", "bypass"]


def test_explicit_paths_are_used() -> None:
    network = BypassMesh().configure("mesh,0=>1/north/north")
    topology = network.topology(rate="68 GB/s", latency="12 ns")
    routes = network.routes(topology, {(0, 5): [0, 4, 5], (2, 1): [2, 6, 5, 1]})
    passed = [link.target for link in routes.path(2, 1)]
    assert passed == ["npu6", "npu5", "npu1"]
    assert routes.pair(2, 1).hops == 3
    assert [link.target for link in routes.path(0, 5)] == ["npu4", "npu5"]
    assert routes.pair(1, 2).hops == 1
    # The rates of two parallel links add up.
    assert str(routes.pair(0, 1).bottleneck) == "136 GB/s"
    assert routes.fingerprint != network.routes(topology).fingerprint
    for paths, problem in [
        ({(0, 5): [0, 5]}, "goes from npu0 to npu5, but no link joins them"),
        ({(0, 5): [0, 1]}, "ends at npu1"),
        ({(0, 5): [1, 5]}, "starts at npu1"),
        ({(0, 5): [0, 1, 0, 4, 5]}, "routed in a loop"),
        ({(0, 16): [0, 16]}, "rank 16"),
    ]:
        with pytest.raises(TopologyError, match=problem):
            network.routes(topology, paths)
    with pytest.raises(BypassError, match="not a graph of this configuration"):
        BypassMesh().configure("mesh").routes(topology)


def test_ranks_without_a_path_are_rejected_before_anything_runs() -> None:
    network = BypassMesh(side=2).configure("0>1,1>3,3>2")
    topology = network.topology(rate="68 GB/s", latency="12 ns")
    routes = network.routes(topology)
    assert topology.facts.diameter == 3
    with pytest.raises(TopologyError, match="no path from npu2 to npu0"):
        routes.pair(2, 0)
    ring = tutti.schedule("ring", collective="all_gather", ranks=4)
    for packets in (None, tutti.Packets()):
        platform = tutti.Platform(name="t", model=ENDS, routes=routes, contention=packets)
        with pytest.raises(
            SimulationError, match="no path of live links connects rank 2 to rank 3"
        ) as refused:
            tutti.simulate(ring, platform, size="64 KiB")
        assert refused.value.kind == "no_path"


def test_drawing_shows_all_wires_and_links(tmp_path: Path) -> None:
    network = (
        BypassMesh(wires=2).configure("0-1,0=>3,1=>13,9=>11,9=>10@1,14=>6/east/north").filled()
    )
    drawn = network.draw(tmp_path / "network.svg", paths={(0, 13): [0, 1, 13]})
    text = drawn.read_text(encoding="utf-8")
    for word in ["mesh link", "segment of wire 0", "segment of wire 1", "idle port", "route 0 to"]:
        assert word in text
    again = network.draw(tmp_path / "again.svg", paths={(0, 13): [0, 1, 13]})
    assert again.read_bytes() == drawn.read_bytes()
    for mesh, name, paths, problem in [
        (BypassMesh(side=17), "a.svg", {}, "17 nodes in a row"),
        (BypassMesh(), "a.txt", {}, "expected a suffix"),
        (BypassMesh(), "a.svg", {(0, 5): [0, 5]}, "a hop from 0 to 5"),
    ]:
        with pytest.raises(BypassError, match=problem):
            mesh.configure("mesh").draw(tmp_path / name, paths=paths)


@pytest.mark.parametrize("meets", ["packets", "flits"])
def test_a_schedule_runs_over_its_paths(meets: str) -> None:
    network = BypassMesh().configure(RINGS)
    topology = network.topology(rate="68 GB/s", latency="10 ns")
    routes = network.routes(topology, {(0, 3): [0, 3], (1, 3): [1, 0, 3]})
    schedule = tutti.schedule("mirrored_ring:4x4,bidirectional", ranks=16)
    router = tutti.networks.flit.Router(vcs=4, buffer=32, injection=4, ejection=4)
    flits = tutti.Flits(flit="68 B", router=router, deadlock="ignore")
    platform = (
        tutti.Platform(name="t", model=ENDS, routes=routes, contention=tutti.Packets())
        if meets == "packets"
        else tutti.Platform(name="t", model=ENDS, routes=routes, contention=flits)
    )
    run = tutti.simulate(schedule, platform, size="64 KiB")
    # In rings of 4 and then of their mirror images, 2 x 3 x (16 KiB + 4 KiB) out of each NPU.
    assert run.links["bytes"].sum() >= 16 * 2 * 3 * (1 << 14) * 5 // 4


def test_networks_for_schedules_are_refused_for_traffic() -> None:
    network = BypassMesh().configure("mesh").topology(rate="16 GB/s", latency="1 ns")
    wide = tutti.networks.flit.Network(
        topology=network, routing="shortest_path", router=tutti.networks.flit.Router(injection=2)
    )
    with pytest.raises(NocError, match="2 of them inject for each NPU"):
        tutti.networks.flit.run(wide, tutti.networks.flit.Traffic(rate=0.1))
    partial = BypassMesh(side=2).configure("0>1,1>3,3>2").topology(rate="16 GB/s", latency="1 ns")
    lost = tutti.networks.flit.Network(topology=partial, routing="shortest_path")
    with pytest.raises(NocError, match="no path leads from router 1 to node 0"):
        tutti.networks.flit.run(lost, tutti.networks.flit.Traffic(rate=0.1))
