"""The same graph from a notation, a networkx graph and a file; routes; errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tutti
from tutti.base.errors import UnitError
from tutti.base.units import Time
from tutti.topologies import Topology, families, link_classes
from tutti.topologies.errors import TopologyError
from tutti.topologies.idle import default_routing

if TYPE_CHECKING:
    from pathlib import Path

WIRE: dict[str, Any] = {"rate": "50 GB/s", "latency": "300 ns"}
UNEVEN = [
    {"rate": "450 GB/s", "latency": "100 ns"},
    {"rate": "0.3 ns/B", "latency": "2.5 us", "length": "12.5 m"},
]


def ring(nodes: int, **attributes: object) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.cycle_graph(nodes)
    for _, _, data in graph.edges(data=True):
        data.update(WIRE | attributes)
    return graph


def test_a_topology_is_public() -> None:
    torus = tutti.Topology.build("torus:4x4x4", **WIRE)
    assert (torus.name, torus.ranks, len(torus.links)) == ("torus:4x4x4", 64, 384)
    assert (torus.facts.diameter, torus.facts.bisection_links) == (6, 32)
    assert torus.facts.npu_degree == (6, 6)
    assert torus.grid == ([4, 4, 4], True)
    assert repr(torus) == "<Topology torus:4x4x4: 64 NPUs, 384 links>"
    first = torus.links[0]
    assert (first.source, first.target, str(first.rate)) == ("npu0", "npu1", "50 GB/s")


def test_every_family_builds_its_example() -> None:
    for family in families():
        assert family.summary
        assert family.argument
        assert family.example.startswith(f"{family.name}:")
        assert Topology.build(family.example, **WIRE).name == family.example


def test_links_differ_by_class() -> None:
    notation = "hierarchical:switch:4/ring:4"
    assert link_classes(notation) == ["level 0 (switch:4)", "level 1 (ring:4)"]
    topology = Topology.build(notation, links=UNEVEN)
    wire = topology.routes().pair(0, 8)
    # Up 100 ns, two switches on at 2.5 us each, down 100 ns; 0.3 ns/B is the slowest.
    assert (str(wire.latency), str(wire.bottleneck), wire.hops) == ("5.2 us", "0.3 ns/B", 4)


@pytest.mark.parametrize("suffix", [".graphml", ".json"])
@pytest.mark.parametrize(
    "notation",
    [
        "ring:5,unidirectional",
        "torus:3x2",
        "fully_connected:4",
        "hierarchical:switch:4/rail:switch:3",
        "hierarchical:ring:3/mesh:2",
    ],
)
def test_files_round_trip(tmp_path: Path, suffix: str, notation: str) -> None:
    topology = Topology.build(notation, links=UNEVEN[: len(link_classes(notation))])
    path = tmp_path / f"graph{suffix}"
    topology.write(path)
    again = Topology.read(path)
    assert again == topology
    assert again.name == notation
    topology.write(tmp_path / f"again{suffix}")
    assert (tmp_path / f"again{suffix}").read_bytes() == path.read_bytes()


@st.composite
def graphs(draw: st.DrawFn) -> nx.MultiDiGraph[str]:
    """Strongly connected graphs with links of many kinds, some of them parallel."""
    npus = draw(st.integers(1, 6))
    others = draw(st.lists(st.sampled_from(["switch", "router"]), max_size=3))
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for rank in draw(st.permutations(range(npus))):
        graph.add_node(f"gpu {rank}", kind="npu", rank=rank)
    for number, kind in enumerate(others):
        graph.add_node(f"<&{number}>", kind=kind)
    nodes = list(graph)
    around = [(a, b) for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True) if a != b]
    pair = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes))
    extra = draw(st.lists(pair.filter(lambda ends: ends[0] != ends[1]), max_size=12))
    for a, b in draw(st.permutations(around + extra)):
        rate = draw(st.sampled_from(["50 GB/s", "400 Gb/s", "0.3 ns/B", "1 GiB/s", "3.7 TB/s"]))
        latency = draw(st.sampled_from(["0 ns", "1 ps", "2.25 us"]))
        graph.add_edge(a, b, rate=rate, latency=latency)
        if draw(st.booleans()):
            graph.edges[a, b, graph.number_of_edges(a, b) - 1]["length"] = "7.5 mm"
    return graph


@given(graphs())
def test_any_graph_survives_networkx_and_both_files(
    tmp_path_factory: pytest.TempPathFactory, graph: nx.MultiDiGraph[str]
) -> None:
    topology = Topology.from_networkx(graph, name="random")
    assert len(topology.links) == graph.number_of_edges()
    assert Topology.from_networkx(topology.to_networkx()) == topology
    folder = tmp_path_factory.mktemp("graphs")
    for suffix in ("graphml", "json"):
        topology.write(folder / f"graph.{suffix}")
        assert Topology.read(folder / f"graph.{suffix}") == topology


@given(graphs())
def test_hops_and_connectivity_agree_with_networkx(graph: nx.MultiDiGraph[str]) -> None:
    topology = Topology.from_networkx(graph)
    routes = topology.routes()
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    for a in range(topology.ranks):
        for b in range(topology.ranks):
            assert routes.pair(a, b).hops == hops[f"gpu {a}"][f"gpu {b}"]
            path = routes.path(a, b)
            assert sum(link.latency.ps for link in path) == routes.pair(a, b).latency.ps
            ends = [link.source for link in path] + [f"gpu {b}"]
            assert ends == [f"gpu {a}"] + [link.target for link in path]


def test_an_undirected_edge_is_a_cable_and_ranks_follow_the_graph() -> None:
    topology = Topology.from_networkx(ring(6), name="cycle")
    built = Topology.build("ring:6", **WIRE)
    assert [v.name for v in topology.vertices] == ["0", "1", "2", "3", "4", "5"]
    assert [(link.rate, link.latency) for link in topology.links] == [
        (link.rate, link.latency) for link in built.links
    ]
    directed = Topology.from_networkx(ring(6).to_directed(), name="cycle")
    assert directed == topology


def test_routes_can_be_listed() -> None:
    topology = Topology.build("ring:4", **WIRE)
    index = {(link.source, link.target): link.index for link in topology.links}
    step = [index[f"npu{a}", f"npu{(a + 1) % 4}"] for a in range(4)]
    table = [(at, to, step[at]) for at in range(4) for to in range(4) if at != to]
    assert topology.routes_by_next_link(table).pair(1, 0).hops == 3
    paths = {
        (a, b): [step[(a + n) % 4] for n in range((b - a) % 4)] for a in range(4) for b in range(4)
    }
    assert topology.routes_by_path(paths).pair(1, 0).hops == 3
    with pytest.raises(TopologyError, match="npu0 has no route to rank 3") as caught:
        topology.routes_by_next_link(entry for entry in table if entry != (0, 3, step[0]))
    assert caught.value.kind == "no_route"
    with pytest.raises(TopologyError, match="rank 0 to rank 2 ends at npu1") as caught:
        topology.routes_by_path(paths | {(0, 2): [step[0]]})
    assert caught.value.kind == "wrong_end"


def test_dimension_order_needs_dimensions() -> None:
    torus = Topology.build("torus:4x4", **WIRE)
    path = torus.routes("dimension_order").path(0, 5)
    assert [link.target for link in path] == ["npu1", "npu5"]
    with pytest.raises(TopologyError) as caught:
        Topology.build("ring:4", **WIRE).routes("dimension_order")
    assert caught.value.kind == "no_dimensions"
    with pytest.raises(TopologyError, match="unknown routing rule `zigzag`"):
        torus.routes("zigzag")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="rank 16 is not one of"):
        torus.routes().pair(0, 16)


def test_minimal_routes_have_one_global_link_and_need_a_dragonfly() -> None:
    links = [{"rate": "5 GB/s", "latency": f"{ns} ns"} for ns in (1, 10, 1000)]
    dragonfly = Topology.build("dragonfly:p=1,a=4,h=2", links=links)

    def crossed(rule: Any) -> list[int]:
        paths = [dragonfly.routes(rule).path(1, target) for target in range(4, 36)]
        return [[link.latency for link in path].count(Time.parse("1 us")) for path in paths]

    assert crossed("minimal") == [1] * 32
    assert max(crossed("shortest_path")) == 2  # through a third group, which saves a hop
    with pytest.raises(TopologyError, match="is not a dragonfly") as caught:
        Topology.build("torus:4x4", **WIRE).routes("minimal")
    assert caught.value.kind == "not_a_dragonfly"
    assert "shortest_path" in (caught.value.hint or "")
    with pytest.raises(TopologyError, match="expected at most g=9"):
        Topology.build("dragonfly:p=2,a=4,h=2,g=10", **WIRE)


@pytest.mark.parametrize(
    ("notation", "rule"),
    [
        ("fat_tree:k=4,n=2", "d_mod_k"),
        ("rail_optimized:npus=2,hosts=2,pods=2,spines=2", "ecmp:0"),
        ("hierarchical:switch:2/fat_tree:k=2,n=2", "ecmp:0"),
        ("dragonfly:p=2,a=4,h=2,g=3", "minimal"),
        ("torus:4x4", "dimension_order"),
        ("mesh:3", "dimension_order"),
        ("cmesh:4x4:2x2", "dimension_order"),
        ("flattened_butterfly:4x4:2x2", "dimension_order"),
        ("hyperx:s=3x4,t=2", "dimension_order"),
        ("hierarchical:switch:2/ring:4", "shortest_path"),
        ("switch:8", "shortest_path"),
    ],
)
def test_a_family_has_a_default_rule(notation: str, rule: str) -> None:
    links = [{"rate": "50 GB/s", "latency": "1 us"} for _ in link_classes(notation)]
    topology = Topology.build(notation, links=links)
    default, name = topology.routes(), rule.partition(":")[0]
    assert (default.rule, default.is_default) == (rule, True)
    assert default.fingerprint == topology.routes(name).fingerprint  # type: ignore[arg-type] # a rule
    assert not topology.routes(name).is_default  # type: ignore[arg-type] # a rule
    remark = default_routing(default)
    assert remark.startswith("the routing of") == (name != "shortest_path")
    assert name in remark or not remark


def test_the_default_of_a_fat_tree_uses_all_its_top_switches() -> None:
    tree = Topology.build("fat_tree:k=4,n=2", **WIRE)
    tops = {tree.routes().path(0, target)[1].target for target in range(4, 16)}
    assert tops == {f"level2.switch{number}" for number in range(4)}


def test_d_mod_k_and_ecmp_spread_traffic_over_switches() -> None:
    tree = Topology.build("fat_tree:k=4,n=2", **WIRE)

    def tops(**options: Any) -> list[str]:
        routes = tree.routes(**options)
        return [routes.path(0, target)[1].target for target in range(4, 16)]

    assert tops(rule="shortest_path") == ["level2.switch0"] * 12
    assert tops(rule="d_mod_k") == [f"level2.switch{d % 4}" for d in range(4, 16)]
    assert tops(rule="ecmp") == tops(rule="ecmp", seed=0)
    assert tops(rule="ecmp") != tops(rule="ecmp", seed=1)
    assert tree.routes("ecmp").fingerprint != tree.routes("ecmp", seed=1).fingerprint
    with pytest.raises(TopologyError, match="`d_mod_k` takes no seed"):
        tree.routes("d_mod_k", seed=1)
    with pytest.raises(TopologyError, match="the seed -1 is out of range"):
        tree.routes("ecmp", seed=-1)
    with pytest.raises(TopologyError, match="is not a fat tree") as caught:
        Topology.build("torus:4x4", **WIRE).routes("d_mod_k")
    assert caught.value.kind == "not_a_fat_tree"


@pytest.mark.parametrize(
    ("change", "place", "attribute", "words"),
    [
        ({"rate": None}, "edge 0 - 1", "rate", "rate per direction"),
        ({"rate": 50}, "edge 0 - 1", "rate", "unit"),
        ({"rate": "50 Gbps"}, "edge 0 - 1", "rate", "Gbps"),
        ({"rate": "0 GB/s"}, "edge 0 - 1", "rate", "zero"),
        ({"latency": "-1 ns"}, "edge 0 - 1", "latency", "negative"),
        ({"length": "3 inches"}, "edge 0 - 1", "length", "inches"),
        ({"latencey": "1 ns", "latency": ...}, "edge 0 - 1", "latencey", "did you mean `latency`"),
    ],
)
def test_a_wrong_edge_is_named(
    change: dict[str, Any], place: str, attribute: str, words: str
) -> None:
    graph = ring(4)
    data = graph.edges[0, 1]
    data.update(change)
    for key in [key for key, value in change.items() if value is ...]:
        del data[key]
    with pytest.raises(TopologyError) as caught:
        Topology.from_networkx(graph, source="cluster.graphml")
    error = caught.value
    assert (error.kind, error.place, error.attribute) == ("attribute", place, attribute)
    assert str(error).startswith(f"cluster.graphml: {place}: ")
    assert words in str(error)


def test_a_missing_attribute_lists_the_present_ones() -> None:
    graph = nx.cycle_graph(3)
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, 400), "bandwidth_gbps")
    with pytest.raises(TopologyError) as caught:
        Topology.from_networkx(graph, source="the graph")
    assert str(caught.value).splitlines()[:3] == [
        "the graph: edge 0 - 1: `rate` is missing",
        'expected: a rate per direction, such as "50 GB/s", or a time per byte, "0.02 ns/B"',
        "hint: it has bandwidth_gbps",
    ]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ({0: {"kind": "npu"}}, "`kind` is missing, while other nodes have it"),
        ({0: {"kind": "gpu"}}, "npu, switch or router"),
        ({0: {"rank": 0}}, "`rank` is missing, while other NPUs have it"),
        ({0: {"rank": 0}, 1: {"rank": 0}, 2: {"rank": 1}}, "rank 0 is already on node 0"),
        ({0: {"rank": 0}, 1: {"rank": 1}, 2: {"rank": 3}}, "rank 3 is beyond the last"),
        ({0: {"rank": -1}}, "an integer from 0"),
        ({0: {"rank": "first"}}, "an integer from 0"),
        ({n: {"kind": "switch"} for n in range(3)}, "no NPU"),
        (
            {0: {"kind": "switch", "rank": 0}, 1: {"kind": "npu"}, 2: {"kind": "npu"}},
            "a switch has no rank",
        ),
    ],
)
def test_wrong_nodes_are_named(nodes: dict[int, dict[str, Any]], words: str) -> None:
    graph = ring(3)
    for node, data in nodes.items():
        graph.nodes[node].update(data)
    with pytest.raises(TopologyError) as caught:
        Topology.from_networkx(graph)
    assert words in str(caught.value)


def test_disconnected_graph_names_a_pair_and_the_groups() -> None:
    graph = nx.union(ring(3), nx.relabel_nodes(ring(2), {0: 3, 1: 4}))
    with pytest.raises(TopologyError) as caught:
        Topology.from_networkx(graph, source="two.json")
    error = caught.value
    assert error.kind == "disconnected"
    assert (error.fields["from"], error.to) == ("0", "3")
    assert error.components == [[0, 1, 2], [3, 4]]
    assert str(error).startswith("two.json: 0 cannot reach 3: the NPUs form 2 strongly connected")


def test_self_links_and_names_given_twice_are_refused() -> None:
    looped = ring(3)
    looped.add_edge(1, 1, **WIRE)
    with pytest.raises(TopologyError, match="linked to itself"):
        Topology.from_networkx(looped)
    twice: nx.DiGraph[int | str] = nx.DiGraph()
    twice.add_edge(1, "1", **WIRE)
    with pytest.raises(TopologyError, match="both named `1`"):
        Topology.from_networkx(twice)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("missing.json", None, "no such file"),
        ("graph.dot", b"graph {}", "unknown file ending"),
        ("bytes.json", b"\xff\xfe", "line 1, column 1 is not UTF-8"),
        ("cut.json", b'{"nodes": [', "not JSON: expecting value: line 1 column 12"),
        ("list.json", b"[]", "is not a table"),
        ("deep.json", b"[" * 200_000, "nested too deeply"),
        ("long.json", b"1" * 5000, "not JSON"),
        ("nodes.json", b'{"edges": []}', "`nodes` is missing"),
        ("id.json", b'{"nodes": [{}], "edges": []}', "node number 0: `id` is missing"),
        ("id2.json", b'{"nodes": [{"id": []}], "edges": []}', "node number 0: `id` is not an id"),
        ("two.json", b'{"nodes": [{"id": 1}, {"id": 1}], "edges": []}', "appears twice"),
        (
            "end.json",
            b'{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}',
            "edge 1 -> 2: node `2` is not defined",
        ),
        (
            "multi.json",
            (
                b'{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2},'
                b' {"source": 2, "target": 1}]}'
            ),
            "multigraph",
        ),
        ("empty.json", b'{"nodes": [], "edges": []}', "no NPU"),
        ("empty.graphml", b"", "not XML at line 1"),
        ("cut.graphml", b"<graphml>\n<graph", "not XML at line 2"),
        ("other.graphml", b"<html></html>", "not GraphML"),
        (
            "end.graphml",
            (
                b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
                b'<graph edgedefault="directed">'
                b'<node id="a"/><edge source="a" target="b"/></graph></graphml>'
            ),
            "edge a -> b: node `b` is not defined",
        ),
        (
            "key.graphml",
            (
                b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
                b'<graph edgedefault="directed">'
                b'<node id="a"><data key="nope">1</data></node></graph></graphml>'
            ),
            "not GraphML",
        ),
    ],
)
def test_unreadable_files_are_named(
    tmp_path: Path, name: str, data: bytes | None, words: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TopologyError) as caught:
        Topology.read(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)
    assert "\nsee docs/reference/errors.md#topologyerror-" in str(caught.value)


def test_a_folder_and_a_huge_file_are_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TopologyError, match="is a folder"):
        Topology.read(tmp_path / "folder.json")
    with (tmp_path / "huge.graphml").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(TopologyError, match="1073741824 bytes"):
        Topology.read(tmp_path / "huge.graphml")
    with pytest.raises(TopologyError, match="cannot be read: embedded null byte"):
        Topology.read("nul\0.json")


@pytest.mark.parametrize(
    ("notation", "arguments", "kind"),
    [
        ("circle:4", WIRE, "unknown_family"),
        ("torus:4xfour", WIRE, "argument"),
        ("ring:1", WIRE, "argument"),
        ("fully_connected:100000", WIRE, "too_many_links"),
        ("ring:99999999", WIRE, "too_many_npus"),
        ("torus:4x4", {"links": UNEVEN * 2}, "wrong_links"),
        ("torus:4x4", {}, "parameters"),
        ("torus:4x4", {"rate": "1 GB/s"}, "parameters"),
        ("torus:4x4", {**WIRE, "links": UNEVEN}, "parameters"),
        ("torus:4x4", {"length": "1 m", "links": UNEVEN}, "parameters"),
        ("torus:4x4", {"links": [{"rate": "1 GB/s"}]}, "parameters"),
        ("torus:4x4", {"links": [{**WIRE, "lane": 4}]}, "parameters"),
        ("ring:4", {"rate": "0 ns/B", "latency": "1 ns"}, "zero_time_per_byte"),
    ],
)
def test_invalid_topologies_are_refused(
    notation: str, arguments: dict[str, Any], kind: str
) -> None:
    with pytest.raises(TopologyError) as caught:
        Topology.build(notation, **arguments)
    assert caught.value.kind == kind
    assert caught.value.kind in TopologyError.kinds


def test_a_bare_number_is_no_rate() -> None:
    with pytest.raises(UnitError):
        Topology.build("ring:4", rate=50, latency="1 ns")  # type: ignore[arg-type]


@pytest.mark.parametrize("notation", ["torus:3x3x2", "hierarchical:switch:4/rail:switch:3"])
def test_drawing_is_deterministic(tmp_path: Path, notation: str) -> None:
    topology = Topology.build(notation, **WIRE)
    first, second = (topology.draw(tmp_path / name) for name in ("a.svg", "b.svg"))
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert notation in text
    assert f"NPU ({topology.ranks})" in text


def test_any_graph_can_be_drawn_up_to_a_size(tmp_path: Path) -> None:
    graph = nx.random_regular_graph(3, 498, seed=1)
    for _, _, data in graph.edges(data=True):
        data.update(WIRE)
    path = Topology.from_networkx(graph).draw(tmp_path / "large.png")
    assert path.stat().st_size > 10_000
    with pytest.raises(TopologyError) as caught:
        Topology.build("ring:500", **WIRE).draw(tmp_path / "ring.svg")
    assert caught.value.kind == "too_large_to_draw"
    with pytest.raises(TopologyError, match="expected a suffix"):
        Topology.build("ring:6", **WIRE).draw(tmp_path / "ring.txt")
