"""The flow model from Python: the default of platforms with a topology, its options, its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.collectives.files.resolve import load_experiment
from tutti.formats.formats import Options
from tutti.formats.goal.text import read_goal
from tutti.platforms import platform
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

MODEL = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="100 ns")


def routes(notation: str, rule: str = "shortest_path") -> tutti.topologies.Routes:
    topology = tutti.Topology.build(notation, rate="10 GB/s", latency="0 ns")
    return topology.routes(rule)  # type: ignore[arg-type]


def machine(notation: str, rule: str = "shortest_path", **given: object) -> tutti.Platform:
    return tutti.Platform(name="t", model=MODEL, routes=routes(notation, rule), **given)


def time_of(where: tutti.Platform, algorithm: str, ranks: int, size: str) -> int:
    return tutti.simulate(tutti.schedule(algorithm, ranks=ranks), where, size=size).completion_ps


def test_messages_share_links_by_default() -> None:
    assert machine("switch:4").network == "pipelining_postal+flow"
    schedule = tutti.schedule("direct", collective="gather", ranks=4)
    run = tutti.simulate(schedule, machine("switch:4"), size="400 KB")
    # Three shards of 100 KB over the 10 GB/s link of the root; 100 ns of the model before it.
    assert run.completion_ps == pytest.approx(30_000_000 + 300_000, rel=0.01)
    assert run.completion_ps >= 30_000_000
    free = tutti.simulate(
        schedule, machine("switch:4", contention=tutti.platforms.Free()), size="400 KB"
    )
    assert free.completion_ps < 15_000_000


def test_no_ring_is_faster_than_the_network_interfaces_allow() -> None:
    """Two hosts of 8 GPUs: 30 messages of 4 MiB pass each host's busiest 50 GB/s interface."""
    where = platform("dgx_h100_cluster")
    assert time_of(where, "ring", 16, "64 MiB") >= 30 * (4 << 20) * 20


def test_links_frame_counts_messages_and_bytes() -> None:
    run = tutti.simulate(tutti.schedule("ring", ranks=4), machine("ring:4"), size="400 KB")
    assert run.links.columns[3:5] == ["messages", "bytes"]
    assert run.links["bytes"].sum() == run.message_bytes
    assert max(run.links["utilisation"].to_list()) <= 1


def test_ports_limit_a_flow() -> None:
    slow = machine("ring:4", contention=tutti.FlowLevel(injection="1 GB/s"))
    assert time_of(slow, "ring", 4, "400 KB") > 9 * time_of(machine("ring:4"), "ring", 4, "400 KB")


def test_minimal_adaptive_routing_spreads_a_flow() -> None:
    fixed, spread = machine("torus:4x4"), machine("torus:4x4", "adaptive")
    schedule = tutti.schedule("pairwise", collective="all_to_all", ranks=16)
    times = [
        tutti.simulate(schedule, where, size="1600 KB").completion_ps for where in (fixed, spread)
    ]
    assert times[1] < times[0]


NVLS = tutti.FlowLevel(multicast=True, reduce=True)
"""Switches with multicast and reduction, as NVSwitch with NVLS."""


def test_switches_that_reduce_and_multicast_halve_the_bytes_of_a_link() -> None:
    """8 GPUs at a switch, 8 MB at 10 GB/s: 800 us for the payload, in each direction."""
    schedule = tutti.schedule("in_network:all", ranks=8)
    run = tutti.simulate(schedule, machine("switch:8", contention=NVLS), size="8 MB")
    assert set(run.links["bytes"].to_list()) == {8_000_000}
    plain = tutti.simulate(schedule, machine("switch:8"), size="8 MB")
    assert set(plain.links["bytes"].to_list()) == {14_000_000}
    # Two phases of 7/8 of the payload.
    assert run.completion_ps == pytest.approx(1_400_000_000, rel=0.01)
    assert run.bound.at_least_ps == pytest.approx(800_000_000, rel=1e-3)
    segmented = tutti.schedule("in_network:all,segments=32", ranks=8)
    piped = tutti.simulate(segmented, machine("switch:8", contention=NVLS), size="8 MB")
    assert 800_000_000 < piped.completion_ps < 850_000_000


def test_either_function_can_be_absent() -> None:
    schedule = tutti.schedule("in_network", collective="broadcast", ranks=4)
    flows = [
        tutti.FlowLevel(),
        tutti.FlowLevel(multicast=True),
        tutti.FlowLevel(reduce=True),
    ]
    times = [
        tutti.simulate(schedule, machine("switch:4", contention=flow), size="1 MB").completion_ps
        for flow in flows
    ]
    assert times[1] < times[0] == times[2]


def test_trees_need_fixed_routes() -> None:
    where = machine("torus:4x4", "adaptive", contention=NVLS)
    with pytest.raises(TopologyError, match="several routes per pair of ranks"):
        tutti.simulate(tutti.schedule("in_network", ranks=16), where, size="1 KB")


@pytest.mark.parametrize("rule", ["valiant", "ugal"])
def test_routing_that_depends_on_queues_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="depends on queues"):
        machine("torus:4x4", rule)


@pytest.mark.parametrize("rule", ["adaptive", "ugal"])
def test_routing_that_depends_on_queues_needs_contention(rule: str) -> None:
    with pytest.raises(ConfigError, match="depends on queues"):
        machine("torus:4x4", rule, contention=tutti.platforms.Free())
    assert machine("torus:4x4", rule, contention=tutti.Packets()).network.endswith("+packet")


@pytest.mark.parametrize("contention", [{}, {"size": "1 KiB"}, True, tutti.FlowLevel])
def test_contention_has_a_type(contention: object) -> None:
    with pytest.raises(ConfigError, match="expected None or one of Free, FlowLevel, Packets"):
        machine("ring:4", contention=contention)


def test_contention_on_links_needs_links() -> None:
    with pytest.raises(ConfigError, match="has no links"):
        tutti.Platform(name="t", model=MODEL, contention=tutti.FlowLevel())
    with pytest.raises(ConfigError, match="without a topology"):
        tutti.Platform(name="t", model=MODEL, contention=tutti.platforms.Free())


def test_background_flows_slow_a_run_down() -> None:
    flow = tutti.platforms.Flow(source=0, destination=1, size="1 MB")
    busy = tutti.Conditions(background=tutti.platforms.Background(flows=[flow]))
    schedule = tutti.schedule("ring", ranks=4)
    quiet = tutti.simulate(schedule, machine("ring:4"), size="400 KB")
    slowed = tutti.simulate(schedule, machine("ring:4"), size="400 KB", conditions=busy)
    assert slowed.completion_ps > quiet.completion_ps


PLATFORM = """
title = "t"
collective = "all_reduce"
algorithms = ["ring"]
ranks = 4
sizes = ["400 KB"]
datatype = "float32"
output = "out"

[platform]
name = "four"
[platform.models.m]
kind = "postal"
alpha = "100 ns"
beta = "10 GB/s"
[platform.topology]
build = "ring:4"
links = [{{ rate = "10 GB/s", latency = "100 ns" }}]
{topology}
"""


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("contention_free = true\n[platform.topology.packets]", "at most one of"),
        ("[platform.topology.flow]\n[platform.topology.flits]", "has `flow` and `flits`"),
        ("[platform.topology.flow]\nrate = '1 GB/s'", "unknown key `rate`"),
        ("[platform.topology.flow]\ninjection = '1 ms'", "topology.flow.injection"),
        ("multicast = 'yes'", "topology.multicast"),
        ("reduce = []", "topology.reduce"),
        ("[platform.topology.flow]\nmulticast = true", "unknown key `multicast`"),
        ("[platform.topology.packets]\nmulticast = true", "unknown key `multicast`"),
        ("routing = 'ugal'", "depends on queues"),
    ],
)
def test_invalid_tables_are_refused(tmp_path: Path, topology: str, message: str) -> None:
    path = tmp_path / "e.toml"
    path.write_text(PLATFORM.format(topology=topology))
    with pytest.raises(ConfigError, match=message):
        load_experiment(path)


AGREEMENT = [
    (notation, rule, algorithm)
    for notation, rule in (
        ("torus:4x4", "dimension_order"),
        ("mesh:4x4", "dimension_order"),
        ("fat_tree:m=4x4,w=1x2", "d_mod_k"),
        ("dragonfly:p=2,a=4,h=1,g=2", "minimal"),
    )
    for algorithm in ("ring", "recursive_halving_doubling", "recursive_doubling", "swing")
]


@pytest.mark.parametrize(("notation", "rule", "algorithm"), AGREEMENT)
def test_flows_agree_with_packets(notation: str, rule: str, algorithm: str) -> None:
    """Messages of at least 64 packets; buffers large enough that backpressure plays no part."""
    where = machine(notation, rule)
    packets = tutti.Packets(size="1 KiB", buffer="256 KiB")
    flow, packet = (
        time_of(one, algorithm, 16, "1 MiB")
        for one in (where, where.model_copy(update={"contention": packets}))
    )
    assert flow == pytest.approx(packet, rel=0.03)


def test_unequal_messages_of_loggp_take_the_time_of_all_bytes_at_a_port(tmp_path: Path) -> None:
    """A port of 7 ns/B; the second message is alone once the first has arrived."""
    topology = tutti.Topology.build("switch:3", rate="0.9 ns/B", latency="310 ns")
    where = tutti.Platform(
        name="t",
        model=tutti.LogGP(L="2.5 us", o="0.7 us", g="1.1 us", G="6 ns/B"),
        routes=topology.routes("shortest_path"),
        contention=tutti.FlowLevel(ejection="7 ns/B"),
    )
    (tmp_path / "two.goal").write_text(
        "num_ranks 3\nrank 0 {\nsend 5716b to 2\n}\nrank 1 {\nsend 11428b to 2\n}\n"
        "rank 2 {\nrecv 5716b from 0\nrecv 11428b from 1\n}\n"
    )
    trace, _ = read_goal(tmp_path / "two.goal", Options())
    # o, L and two links, then all bytes through the port of rank 2, then o of the receiver.
    expected = 700_000 + 2_500_000 + 2 * 310_000 + (5716 + 11428) * 7000 + 700_000
    took = tutti.simulate_trace(trace, where).completion_ps
    assert expected <= took <= expected + 1  # ends are rounded up
