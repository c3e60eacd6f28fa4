"""Topologies and messages in files of htsim, ns-3, BookSim and networkx."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

from called import call
from damaged import refused
from network_files import FILES
from tutti.base.errors import ConfigError, TuttiError
from tutti.formats.formats import Options, formats, named, recognised
from tutti.formats.messages import Messages
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

RATES: dict[str, Any] = {"rate": "100 Gb/s", "latency": "1 us"}
TOPOLOGIES = [each for each in formats() if each.content == "topology" and each.write]
FAT_TREES = [
    "fat_tree:k=2,n=3",
    "fat_tree:radix=4,levels=3",
    "fat_tree:m=4x4,w=1x2,p=1x2",
    "fat_tree:m=8x4,w=1x4",
    "fat_tree:m=4x4x4,w=1x2x2",
]


def through(name: str, content: object, path: Path) -> tuple[Any, tuple[str, ...]]:
    """Writes and reads a file; returns what was read, and the losses of the writer."""
    form = named(name, option="--to")
    assert form.write is not None
    assert form.read is not None
    losses = form.write(content, path, Options())
    return form.read(path, Options())[0], losses


def read(name: str, path: Path, text: str) -> tuple[Any, tuple[str, ...]]:
    path.write_text(text)
    form = named(name, option="--from")
    assert form.read is not None
    return form.read(path, Options())


def ring(count: int) -> Messages:
    """Returns a ring all-gather: each message awaits the one that it forwards, and the last."""
    rows, awaited = [], []
    for step in range(count - 1):
        for rank in range(count):
            rows.append((rank, (rank + 1) % count, 1000, 0))
            before = [(step - 1) * count + each for each in ((rank - 1) % count, rank)]
            awaited.append(dict.fromkeys(before, 0) if step else {})
    return Messages.of_rows("ring", count, rows, awaited)


# --- all formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each.name for each in TOPOLOGIES])
@pytest.mark.parametrize(
    "notation",
    ["switch:4", "torus:2x3", "fat_tree:k=2,n=3", "rail_optimized:npus=4,hosts=2,pods=2,spines=2"],
)
def test_a_topology_is_equal_or_the_losses_state_the_difference(
    tmp_path: Path, name: str, notation: str
) -> None:
    form = named(name, option="--to")
    topology = Topology.build(notation, **RATES)
    path = tmp_path / f"t{form.endings[0]}"
    if name == "htsim-topo" and not notation.startswith("fat_tree"):
        with pytest.raises(ConfigError, match="not a fat tree"):
            through(name, topology, path)
        return
    found, losses = through(name, topology, path)
    assert found == topology or losses
    if name in {"graphml", "node-link"}:
        assert found == topology
        assert not losses
    assert found.ranks == topology.ranks


def test_first_bytes_select_a_format(tmp_path: Path) -> None:
    topology = Topology.build("switch:4", **RATES)
    for name in ("ns3-topology", "ns3-simai", "graphml", "node-link", "anynet"):
        form = named(name, option="--to")
        assert form.write is not None
        path = tmp_path / ("x" + (".txt" if name.startswith("ns3") else form.endings[0]))
        form.write(topology, path, Options())
        assert recognised(path, path.read_bytes()[:4096], option="--from") is form


def test_networkx_reads_what_is_written(tmp_path: Path) -> None:
    topology = Topology.build("torus:3x3", **RATES)
    path = tmp_path / "t.graphml"
    through("graphml", topology, path)
    assert Topology.from_networkx(nx.read_graphml(path)) == topology


# --- htsim ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("notation", FAT_TREES)
def test_fat_trees_of_htsim_have_the_same_paths(tmp_path: Path, notation: str) -> None:
    topology = Topology.build(notation, **RATES)
    found, _ = through("htsim-topo", topology, tmp_path / "t.topo")
    assert len(found.links) == len(topology.links)
    assert found.bound_by_links("all_to_all") == topology.bound_by_links("all_to_all")
    ranks, pairs = range(topology.ranks), (topology.routes(), found.routes())
    assert all(pairs[0].pair(a, b) == pairs[1].pair(a, b) for a in ranks for b in ranks)


@pytest.mark.parametrize(
    ("notation", "reason"),
    [
        ("torus:2x2", "exactly one cable"),
        ("switch:4", "has 1 tiers"),
        ("dragonfly:p=2,a=4,h=2,g=9", "within its tier"),
        ("fat_tree:m=6x4,w=1x4", "Gb/s down"),
    ],
)
def test_other_topologies_are_refused_with_a_reason(
    tmp_path: Path, notation: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        through("htsim-topo", Topology.build(notation, **RATES), tmp_path / "t.topo")


def test_switch_latencies_of_htsim_are_part_of_links(tmp_path: Path) -> None:
    tiers = (
        "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 1\n"
    )
    tiers += "Oversubscribed 2\nDownlink_Latency_ns 10\nSwitch_Latency_ns 3\nTier 1\n"
    tiers += "Downlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 20\nSwitch_Latency_ns 5\n"
    topology, _ = read("htsim-topo", tmp_path / "t.topo", tiers)
    assert str(topology.routes().pair(0, 3).latency) == "71 ns"


def test_a_dependency_of_htsim_is_a_trigger(tmp_path: Path) -> None:
    messages = ring(4)
    found, losses = through("htsim-cm", messages, tmp_path / "m.cm")
    assert found == messages
    assert losses == ("8 x recv_done_trigger, which only htsim_ndp and htsim_eqds use",)
    lines = (tmp_path / "m.cm").read_text().splitlines()
    assert lines[:3] == ["Nodes 4", "Connections 12", "Triggers 8"]
    assert lines[3] == "0->1 id 1 start 0 size 1000 send_done_trigger 1 recv_done_trigger 2"
    assert lines[7] == "0->1 id 5 trigger 1 size 1000 send_done_trigger 5 recv_done_trigger 6"
    assert lines[-1] == "trigger id 8 barrier count 2"


def test_triggers_of_htsim_are_dependencies(tmp_path: Path) -> None:
    text = (
        "Nodes 3\nConnections 3\nTriggers 1\n# a comment\n"
        "0->1 id 1 start 5.000 size 10 send_done_trigger 7\n"
        "1->2 id 2 start 0 size 20 recv_done_trigger 7 prio 3\n"
        "2->0 id 3 trigger 7 size 30\ntrigger id 7 barrier count 2\n"
    )
    messages, losses = read("htsim-cm", tmp_path / "m.cm", text)
    assert messages.starts.tolist() == [5, 0, 0]
    assert messages.awaited(2).tolist() == [0, 1]
    assert losses == ("1 x priorities",)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(0, 0, 1, 0)], "same source and destination"),
        ([(0, 1, 2**31, 0)], "larger than htsim reads"),
    ],
)
def test_messages_that_htsim_cannot_read_are_refused(
    tmp_path: Path, rows: list[tuple[int, int, int, int]], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        through("htsim-cm", Messages.of_rows("m", 2, rows, [{}]), tmp_path / "m.cm")


def test_a_third_trigger_is_refused(tmp_path: Path) -> None:
    rows = [(0, 1, 1, 0), (2, 1, 1, 0), (3, 1, 1, 0), (1, 2, 1, 0), (1, 3, 1, 0), (1, 0, 1, 0)]
    awaited = [{}, {}, {}, {0: 0}, {0: 0, 1: 0}, {0: 0, 2: 0}]
    with pytest.raises(ConfigError, match="more than two triggers"):
        through("htsim-cm", Messages.of_rows("m", 4, rows, awaited), tmp_path / "m.cm")


# --- ns-3 -----------------------------------------------------------------------------------------


def test_a_server_of_simai_has_an_nvswitch(tmp_path: Path) -> None:
    topology = Topology.build("rail_optimized:npus=4,hosts=2,pods=2,spines=2", **RATES)
    path = tmp_path / "t.txt"
    through("ns3-simai", topology, path)
    head, switches, first = path.read_text().splitlines()[:3]
    inside = [v.name for v in topology.vertices if v.rank is None]
    assert head.split()[:1] == [str(topology.ranks + len(inside))]
    assert switches.split()[0] == str(topology.ranks)
    assert first.split()[2:] == ["100Gbps", "1000ns", "0"]


def test_nvswitches_are_the_switches_of_npus_only(tmp_path: Path) -> None:
    text = (
        "7 2 2 1 8 A100\n4 5 6\n0 4 2400Gbps 25ns 0\n1 4 2400Gbps 25ns 0\n2 5 2400Gbps 25ns 0\n"
        "3 5 2400Gbps 25ns 0\n0 6 100Gbps 0.0005ms 0\n1 6 100Gbps 0.0005ms 0\n"
        "2 6 100Gbps 0.0005ms 0\n3 6 100Gbps 0.0005ms 0.1\n"
    )
    topology, losses = read("ns3-simai", tmp_path / "t.txt", text)
    assert str(topology.routes().pair(0, 3).latency) == "1 us"
    assert losses == (
        "1 error rates of links",
        '2 GPUs per server of type "A100"',
        "inferred: routing ecmp, as ns-3 distributes flows over equal paths",
    )
    found, losses = through("ns3-simai", topology, tmp_path / "u.txt")
    assert found == topology
    assert (tmp_path / "u.txt").read_text().startswith("7 2 2 1 8 H100\n4 5 6\n")
    assert losses == ("the GPU type, which is written as H100",)


def test_counts_of_a_file_agree(tmp_path: Path) -> None:
    link = "0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n"
    read("ns3-simai", tmp_path / "t.txt", f"3 2 0 1 2 A100\n2\n{link}")
    for name, text, problem in (
        ("ns3-topology", f"4 2 2\n2 2\n{link}", "line 2: node 2 is a switch already"),
        ("ns3-simai", f"3 3 0 1 2 A100\n2\n{link}", "3 GPUs per server do not divide the 2 GPUs"),
    ):
        with pytest.raises(ConfigError, match=problem):
            read(name, tmp_path / "t.txt", text)


RAILS = "".join(
    [
        "22 4 0 6 24 H100\n16 17 18 19 20 21\n",
        *(f"{gpu} {16 + gpu % 4} 200Gbps 0.0005ms 0\n" for gpu in range(16)),
        *(f"{leaf} {spine} 400Gbps 0.0005ms 0\n" for leaf in range(16, 20) for spine in (20, 21)),
    ]
)
"""aliyun/SimAI#138: 16 GPUs, 4 rails under 2 spines, no NVSwitch."""


@pytest.mark.parametrize(("states", "time"), [(True, 31.76), (False, 40.33)])
def test_imported_fabrics_route_over_equal_paths(tmp_path: Path, states: bool, time: float) -> None:
    """ns-3 hashes flows over both spines; the first of equal paths leaves one of them idle.

    The lower bound is 2 x 15/16 x 256 MiB / 25 GB/s = 20.13 ms.
    """
    (tmp_path / "t.simai").write_text(RAILS)
    assert call("convert", "t.simai", "t.json", cwd=tmp_path).returncode == 0
    graph = json.loads((tmp_path / "t.json").read_text())
    assert graph["graph"].pop("routing") == "ecmp"
    if not states:
        (tmp_path / "t.json").write_text(json.dumps(graph))
    (tmp_path / "p.toml").write_text(
        'name = "p"\n[topology]\nfile = "t.json"\n'
        '[models.pp]\nkind = "pipelining_postal"\nalpha_p = "1 ns"\nalpha_r = "1 ns"\n'
    )
    done = call("run", "ring", "--ranks", "16", "--size", "256MiB", "-p", "p.toml", "--json",
                cwd=tmp_path)  # fmt: skip
    document = json.loads(done.stdout)
    assert round(document["result"]["time_ps"] / 1e9, 2) == time
    text = '8 links between switches are on no route; routing = "ecmp" uses them'
    assert (text in document["remarks"]) != states


def test_flows_of_hpcc(tmp_path: Path) -> None:
    text = "2\n2 1 3 100 200000000 2\n0 1 3 100 7 2.000000001\n5 5\n"
    messages, losses = read("ns3-flows", tmp_path / "f.txt", text)
    assert messages.starts.tolist() == [2 * 10**12, 2 * 10**12 + 1000]
    assert losses[1] == "2 words after the last flow, which ns-3 does not read"
    assert through("ns3-flows", messages, tmp_path / "g.txt") == (messages, ())
    _, losses = through("ns3-flows", ring(4), tmp_path / "h.txt")
    assert losses == ("16 x dependencies: each message starts at its time",)


def test_links_without_a_reverse_are_refused(tmp_path: Path) -> None:
    topology = Topology.build("ring:4,unidirectional", **RATES)
    for name in ("ns3-topology", "anynet"):
        with pytest.raises(ConfigError, match="reverse"):
            through(name, topology, tmp_path / "t.txt")


# --- BookSim --------------------------------------------------------------------------------------


def test_networks_of_booksim(tmp_path: Path) -> None:
    text = (
        "router 0 node 0 node 1 router 1 15\nrouter 1 node 2 router 0 7 router 2\nrouter 2 node 3\n"
    )
    topology, losses = read("anynet", tmp_path / "t.anynet", text)
    assert losses == ("the file has neither cycle nor rate: 1 ns and 16 GB/s are assumed",)
    assert through("anynet", topology, tmp_path / "u.anynet") == (topology, ())
    assert (tmp_path / "u.anynet").read_text().splitlines()[
        0
    ] == "router 0 node 0 node 1 router 1 15"


# --- damaged files --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    read(name, tmp_path / "f", FILES[name])
    form = named(name, option="--from")

    def again(path: Path) -> object:
        return form.read(path, Options()) if form.read else None

    assert refused(again, FILES[name].encode(), tmp_path / "f", count=150) > 30


def test_counts_that_are_too_large_are_refused(tmp_path: Path) -> None:
    for name, text in (
        ("ns3-topology", "1000000 0 2000000000000\n"),
        ("htsim-topo", FILES["htsim-topo"].replace("Nodes 4", "Nodes 999999")),
        ("htsim-cm", "Nodes 99999999999\nConnections 0\n"),
    ):
        with pytest.raises(TuttiError):
            read(name, tmp_path / "f", text)
