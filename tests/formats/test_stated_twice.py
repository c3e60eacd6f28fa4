"""Where a file states a thing twice, both are compared; what has no effect is remarked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from profiles import RankProfile, communication
from tutti.base.errors import ConfigError
from tutti.base.units import TimePerByte
from tutti.formats.astrasim.networks import load_network
from tutti.formats.astrasim.systems import load_system
from tutti.formats.booksim.network import load
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.formats.formats import Options
from tutti.formats.goal.text import read_goal
from tutti.formats.graph_files import read_graph
from tutti.formats.htsim.topology import read_fat_tree
from tutti.formats.kineto.trace import read_trace
from tutti.formats.matched_sizes import other_sizes
from tutti.formats.msccl.xml_reader import read_xml_program
from tutti.workloads.trace import NodeRates

if TYPE_CHECKING:
    from pathlib import Path

FAT_TREE = (
    "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 1\n"
    "Oversubscribed {}\nDownlink_Latency_ns 10\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\n"
    "Downlink_Latency_ns 20\n"
)
PAIR = "num_ranks 2\nrank 0 {{\nsend 10b to 1 tag 3\n}}\nrank 1 {{\nrecv {}b from {} tag 3\n}}\n"


def made(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_oversubscription_of_htsim_is_that_of_ports_and_rates(tmp_path: Path) -> None:
    """htsim stops, too: mismatch between linkspeeds, radix and oversubscription."""
    path = tmp_path / "t.topo"
    assert read_fat_tree(made(path, FAT_TREE.format(2)))[0].ranks == 4
    with pytest.raises(ConfigError, match="is 4, but its switches have 200 Gb/s down and 100"):
        read_fat_tree(made(path, FAT_TREE.format(4)))


@pytest.mark.parametrize(
    ("size", "source", "words"),
    [(10, 0, ""), (20, 0, "operation 0 of rank 1 expects 20 B, and rank 0 sends 10 B"),
     (20, -1, "")],
)  # fmt: skip
def test_receives_of_another_size_are_remarked(
    tmp_path: Path, size: int, source: int, words: str
) -> None:
    trace, _ = read_goal(made(tmp_path / "a.goal", PAIR.format(size, source)), Options())
    assert words in "".join(other_sizes(trace))
    assert bool(words) == bool(other_sizes(trace))


def test_an_algorithm_needs_collectives(tmp_path: Path) -> None:
    """As in `tutti trace run`."""
    path = made(tmp_path / "a.goal", PAIR.format(10, 0))
    done = call("convert", path, tmp_path / "b.goal", "-a", "ring", cwd=tmp_path)
    assert done.returncode == 2
    assert "--algorithm: has no effect" in done.stderr


def message(kind: str, **ends: int) -> Node:
    attributes = {name: Attribute("int32", end) for name, end in ends.items()}
    return Node(id=1, name="m", type=kind, attributes=attributes | {"comm_size": BYTES})


BYTES = Attribute("int64", 1000)


@pytest.mark.parametrize("verb", ["convert", "astrasim"])
def test_a_message_belongs_to_the_rank_of_its_file(tmp_path: Path, verb: str) -> None:
    """ASTRA-sim throws: send node should be issued by the sender."""
    nodes = [message("COMM_SEND", comm_src=1, comm_dst=1), message("COMM_RECV", comm_src=0)]
    for rank, node in enumerate(nodes):
        chakra.write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=(node,)))
    network = "topology: [Ring]\nnpus_count: [2]\nbandwidth: [1]\nlatency: [1]\n"
    made(tmp_path / "n.yml", network)
    made(tmp_path / "s.json", "{}")
    words = {
        "convert": ("convert", "t.0.et", "x.goal"),
        "astrasim": ("train", "from-astrasim", "t", "--network", "n.yml", "--system", "s.json"),
    }[verb]
    done = call(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "node 1: `comm_src` is 1: expected 0, the rank of the file" in done.stderr


def test_calls_that_differ_name_both_ranks(tmp_path: Path) -> None:
    for rank, size in enumerate((4096, 8192)):
        attributes = {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", size)}
        node = Node(id=1, name="ar", type="COMM_COLL", attributes=attributes)
        chakra.write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=(node,)))
    done = call("trace", "run", "t.0.et", "-p", "dgx_h100", "-a", "ring", cwd=tmp_path)
    assert "call 0 of all_reduce with 4096 B, rank 1 with 8192 B" in done.stderr


def test_the_roofline_replaces_recorded_times_of_gpus() -> None:
    """ASTRA-sim with `roofline-enabled`; recorded times have precedence in `tutti train run`."""
    work = {"num_ops": Attribute("int64", 1000), "tensor_size": Attribute("int64", 1)}
    node = Node(id=1, name="k", type="COMP", duration_us=7, attributes=work)
    cpu = Node(id=1, name="k", type="COMP", duration_us=7,
               attributes=work | {"is_cpu_op": Attribute("bool", value=True)})  # fmt: skip
    empty = Node(id=1, name="k", type="COMP", duration_us=7, attributes={})
    rates = NodeRates(10**9, TimePerByte.parse("1 ns/B"), replace=True)
    assert [rates.of(each) for each in (node, cpu, empty)] == [1_000_000, 7_000_000, 7_000_000]
    assert NodeRates(10**9, TimePerByte.parse("1 ns/B")).of(node) == 7_000_000


@pytest.mark.parametrize(
    ("collective", "received", "is_stated"),
    [("allreduce", 1000, False), ("allreduce", 5, True), ("_allgather_base", 2000, False),
     ("_allgather_base", 3000, True)],
)  # fmt: skip
def test_elements_in_and_out_of_a_profile_fit_the_group(
    tmp_path: Path, collective: str, received: int, *, is_stated: bool
) -> None:
    for rank in range(2):
        profile = RankProfile(rank, 2)
        arguments = communication(collective, 1000, (0, 1), **{"Out msg nelems": received})
        profile.record((0, 9), 500, arguments)
        kernel = {"External id": 500, **arguments}
        profile.kernel("ncclDevKernel_AllReduce", 20, (20, 100), 5, **kernel)
        profile.write(tmp_path)
    _, lines = read_trace(tmp_path / "rank0.json", Options())
    assert ("`In msg nelems` and `Out msg nelems` contradict" in "".join(lines)) == is_stated


def test_attributes_of_other_tools_are_lost(tmp_path: Path) -> None:
    pair = tutti.Topology.build("ring:3", links=[{"rate": "1 GB/s", "latency": "1 us"}])
    pair.write(tmp_path / "t.graphml")
    assert read_graph(tmp_path / "t.graphml", Options())[1] == ()
    pair.write(tmp_path / "t.json")
    table = json.loads((tmp_path / "t.json").read_text())
    table["edges"][0]["weight"] = 3
    table["nodes"][0]["color"] = "red"
    made(tmp_path / "t.json", json.dumps(table))
    lost = ("attributes of nodes: color", "attributes of links: weight")
    assert read_graph(tmp_path / "t.json", Options())[1] == lost


def test_channels_of_msccl_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    call("convert", "ring", path, "--ranks", "4", "-c", "all_gather", cwd=tmp_path)
    text = path.read_text()
    assert not any("nchannels" in line for line in read_xml_program(path, Options())[1])
    made(path, text.replace('nchannels="1"', 'nchannels="3"'))
    assert "nchannels 3: thread blocks use 1" in read_xml_program(path, Options())[1]


def test_buf_size_of_booksim_replaces_vc_buf_size(tmp_path: Path) -> None:
    text = "topology = mesh; k = 4; n = 2; routing_function = dor; num_vcs = 4; buf_size = 32;"
    assert load(made(tmp_path / "a.cfg", text)).remarks == ()
    found = load(made(tmp_path / "a.cfg", f"{text} vc_buf_size = 4;"))
    assert found.remarks == ("`vc_buf_size` has no effect: `buf_size` gives each VC 8 flits",)


def test_files_of_astrasim_1_are_named(tmp_path: Path) -> None:
    network = {"topology-name": "Hierarchical", "topologies-per-dim": ["Ring"], "units-count": [4]}
    with pytest.raises(ConfigError, match="is a network of ASTRA-sim 1") as refused:
        load_network(made(tmp_path / "n.json", json.dumps(network)))
    assert "`npus_count`" in str(refused.value.hint)
    with pytest.raises(ConfigError, match="is a system of ASTRA-sim 1"):
        load_system(made(tmp_path / "s.txt", "scheduling-policy: LIFO\nendpoint-delay: 1\n"))


def test_integral_numbers_of_astrasim_are_integers(tmp_path: Path) -> None:
    table = {"endpoint-delay": 10.0, "roofline-enabled": True, "peak-perf": 1, "local-mem-bw": 50}
    system = load_system(made(tmp_path / "s.json", json.dumps(table)))
    assert (system.delay, system.peak) == (10, 1)
    for wrong in ({"endpoint-delay": 10.5}, {"roofline-enabled": False}):
        with pytest.raises(ConfigError, match="is not an integer"):
            load_system(made(tmp_path / "s.json", json.dumps(wrong)))
