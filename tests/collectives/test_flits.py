"""Platforms with flits: errors, names, and counts of links and routers."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import tutti
import tutti.platforms
import tutti.topologies
from tutti.base.errors import ConfigError, DeadlockError
from tutti.energy.errors import EnergyError
from tutti.energy.technology import Technology
from tutti.networks.errors import NocError
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

ENDS = tutti.LogGP(L="5 ns", o="3 ns", g="0 ns", G="0 ns/B", gamma="0.1 ns/B")
CHIP = Technology(router="dsent_45nm", link="dsent_45nm")


def routes(notation: str = "mesh:4x4", rule: str = "dimension_order") -> tutti.topologies.Routes:
    graph = tutti.Topology.build(notation, rate="64 GB/s", latency="1 ns", length="1 mm")
    return graph.routes(rule)  # type: ignore[arg-type]


def platform(notation: str = "mesh:4x4", rule: str = "dimension_order", **flits: Any) -> Any:
    settings = tutti.Flits(**({"flit": "64 B"} | flits))
    return tutti.Platform(name="t", model=ENDS, routes=routes(notation, rule), contention=settings)


def test_results_name_the_network() -> None:
    table = tutti.compare(
        platform(), collective="all_reduce", ranks=[16], sizes=["1 KiB"], algorithms=["ring"]
    )
    assert table["model"].to_list() == ["loggp+flit"]
    assert table["closed_form_ps"].to_list() == [None]
    assert table["of_limit"][0] <= 1


@pytest.mark.parametrize("algorithm", ["ring", "recursive_doubling", "direct", "binomial"])
def test_every_schedule_runs_and_no_bound_is_beaten(algorithm: str) -> None:
    run = tutti.simulate(tutti.schedule(algorithm, ranks=16), platform(packet=8), size="10000 B")
    flits = sum(
        -(-row["bytes"] // 64) * routes().pair(row["source"], row["destination"]).hops
        for row in run.messages_frame.to_dicts()
    )
    assert run.links["flits"].sum() == flits
    assert run.links["bytes"].sum() == 64 * flits
    assert run.links["utilisation"].max() <= 1  # type: ignore[operator]
    assert run.bound.at_least_ps <= run.completion_ps
    assert run.events.link_flits == flits
    assert run.channels.filter(kind="link")["flits"].sum() == flits


def test_packets_and_flits_agree_where_nothing_contends() -> None:
    """A ring of neighbours on a torus of one dimension, within 5 %."""
    ring = tutti.schedule("ring", ranks=8)
    of = routes("torus:8", "dimension_order")
    for ends in (ENDS, tutti.Postal(alpha="1 us", beta="0.05 ns/B")):
        flits = tutti.Flits(flit="64 B", packet=16, router={"buffer": 16})
        one = tutti.Platform(name="t", model=ends, routes=of, contention=flits)
        packets = tutti.Packets(size="1 KiB", buffer="4 KiB")
        other = tutti.Platform(name="t", model=ends, routes=of, contention=packets)
        times = [tutti.simulate(ring, each, size="1 MB").completion_ps for each in (one, other)]
        assert abs(times[0] - times[1]) <= 0.05 * times[1], ends


def test_the_same_seed_gives_the_same_bits_whatever_the_threads() -> None:
    arguments: dict[str, Any] = {
        "collective": "all_reduce",
        "ranks": [16],
        "sizes": ["1 KiB", "4 KiB"],
        "algorithms": ["ring", "recursive_doubling"],
        "seed": 7,
    }
    where = platform(routing="o1_turn")
    tables = [tutti.compare(where, threads=threads, **arguments) for threads in (1, 2)]
    assert tables[0].equals(tables[1])
    other = tutti.compare(where, **(arguments | {"seed": 8}))
    assert not other["time_ps"].equals(tables[0]["time_ps"])


def test_energy_is_the_sum_over_events() -> None:
    ring = tutti.schedule("ring", ranks=16)
    with_energy = tutti.simulate(ring, platform(technology=CHIP), size="4 KiB")
    without = tutti.simulate(ring, platform(), size="4 KiB")
    assert with_energy.completion_ps == without.completion_ps
    report = with_energy.energy()
    assert report == without.energy(CHIP)
    assert 0 < report.dynamic.low < report.dynamic.nominal < report.dynamic.high
    assert report.leakage.nominal > 0
    events, flits = with_energy.events, 8 * 64
    mm = CHIP.constants["wire_pj_per_bit_mm"].value
    wires = report.dynamic_by_component["links"].nominal
    assert wires == pytest.approx(events.link_flits * flits * mm * 1e-12, rel=0.2)
    assert with_energy.area().total_um2.nominal > 0
    with pytest.raises(EnergyError, match="the technology of the routers"):
        without.energy()
    alone = tutti.Platform(name="t", model=ENDS, routes=routes())
    with pytest.raises(EnergyError, match="require a platform with flits"):
        tutti.simulate(ring, alone, size="4 KiB").energy(CHIP)


def test_links_without_a_length_have_no_energy() -> None:
    graph = tutti.Topology.build("mesh:4x4", rate="64 GB/s", latency="1 ns")
    flits = tutti.Flits(flit="64 B")
    where = tutti.Platform(name="t", model=ENDS, routes=graph.routes(), contention=flits)
    run = tutti.simulate(tutti.schedule("ring", ranks=16), where, size="4 KiB")
    with pytest.raises(EnergyError, match="the length of the link from npu0 to npu1"):
        run.energy(CHIP)


def test_technology_can_be_pickled() -> None:
    changed = CHIP.with_value(
        "wire_pj_per_bit_mm", 0.05, source="a datasheet", low_factor=0.5, high_factor=2
    )
    for one in (CHIP, changed):
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert again.constants == one.constants


@pytest.mark.parametrize(
    ("flits", "message"),
    [
        ({"flit": "128 B"}, "a flit of 128 B is wider than what npu0 > npu1 carries .* 64 B"),
        ({"router": {"vcs": 0}}, "`router.vcs`: 0 should be"),
        ({"router": {"cut_through": True, "buffer": 2}}, "holds no packet of 4 flits"),
        ({"packet": 2, "header": 2}, "more than the header of 2"),
        ({"cycle": "0 ns"}, "a cycle of 0 s"),
        ({"routing": "d_mod_k"}, "fat tree"),
        ({"routing": "zigzag"}, "unknown routing `zigzag`"),
        ({"router": {"vc_allocator": "fair"}}, "fair"),
    ],
)
def test_invalid_flit_settings_are_refused(flits: dict[str, Any], message: str) -> None:
    ring = tutti.schedule("ring", ranks=16)
    with pytest.raises((NocError, TopologyError, ConfigError), match=message):
        tutti.simulate(ring, platform(**flits), size="1 KiB")


def test_conflicting_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="the platform has none"):
        tutti.Platform(name="t", model=ENDS, contention=tutti.Flits())
    graph = tutti.Topology.build("ring:3", rate="64 GB/s", latency="1 ns")
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    by_path = graph.routes_by_path({pair: graph.routes().core.path(*pair) for pair in pairs})
    where = tutti.Platform(name="t", model=ENDS, routes=by_path, contention=tutti.Flits())
    with pytest.raises(ConfigError, match="a routing by name"):
        tutti.simulate(tutti.schedule("ring", ranks=3), where, size="3 KiB")
    flow = tutti.platforms.Flow(source=0, destination=1, size="1 MB")
    met = tutti.Conditions(background=tutti.platforms.Background(flows=[flow]))
    ring = tutti.schedule("ring", ranks=16)
    with pytest.raises(ConfigError, match="background flows need"):
        tutti.simulate(ring, platform(), size="1 KiB", conditions=met)


def test_deadlock_is_reported_before_and_during_a_run() -> None:
    arguments: dict[str, Any] = {"packet": 16, "router": {"vcs": 1, "buffer": 1}}
    where = platform("ring:5", "shortest_path", **arguments)
    remark, throttled = where.remarks
    assert "16-flit packets on 1 VC of depth 1" in throttled
    assert "can deadlock" in remark
    assert "npu0 > npu1" in remark
    exchange = tutti.schedule("direct", collective="all_to_all", ranks=5)
    with pytest.raises(DeadlockError, match=r"VC 0 of npu\d") as caught:
        tutti.simulate(exchange, where, size="20 KiB")
    assert caught.value.kind == "network_deadlock"
    assert len(caught.value.fields["deadlock_cycle"]) >= 5
    refusing = platform("ring:5", "shortest_path", deadlock="refuse", **arguments)
    with pytest.raises(NocError, match="can deadlock"):
        tutti.simulate(exchange, refusing, size="20 KiB")
    assert platform("ring:5", "shortest_path", deadlock="ignore").remarks == []
    assert platform().remarks == []


FILE = """
name = "mine"
[models.m]
kind = "postal"
alpha = "1 us"
[topology]
build = "mesh:4x4"
links = [{{ rate = "64 GB/s", latency = "1 ns", length = "1 mm" }}]
routing = "dimension_order"
{rest}
"""


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("[topology.flits]\nflit = 64", "topology.flits.flit"),
        ("[topology.flits]\nflit = '65 B'", "topology.flits.flit: a flit of 65 B is wider"),
        ("[topology.flits]\nflits = '64 B'", "unknown key `flits`"),
        ("[topology.flits.router]\nvcs = 0", "router.vcs: is out of range"),
        ("[topology.flits]\nrouting = 'minimal'", "topology.flits.routing"),
        ("[topology.flits.router]\nspeculation = 3", "speculation"),
        (
            "[topology.flits.router]\ncut_through = true\nbuffer = 3",
            "topology.flits.router.buffer: a VC buffer of 3 flits holds no packet of 4 flits",
        ),
        ("[topology.packets]\n[topology.flits]", "has `packets` and `flits`: expected at most one"),
        (
            "[topology.flits.energy]\nrouter = 'x'\nlink = 'dsent_45nm'",
            "topology.flits.energy: .*`x`",
        ),
    ],
)
def test_invalid_files_are_refused(rest: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE.format(rest=rest))
    with pytest.raises(ConfigError, match=message):
        tutti.platforms.platform(path)


def test_file_configures_flits_routers_and_energy(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    rest = """
[topology.flits]
flit = "64 B"
packet = 8
header = 1
routing = "o1_turn"
[topology.flits.router]
vcs = 2
speculation = true
[topology.flits.energy]
router = "dsent_45nm"
link = "dsent_45nm"
[topology.flits.energy.constants.wire_pj_per_bit_mm]
value = 0.05
source = "a datasheet"
"""
    path.write_text(FILE.format(rest=rest))
    built = tutti.platforms.platform(path)
    assert built.network == "postal+flit"
    assert isinstance(built.contention, tutti.Flits)
    assert (built.contention.packet, built.contention.header, built.contention.routing) == (
        8,
        1,
        "o1_turn",
    )
    assert built.contention.router.vcs == 2
    assert built.contention.router.speculation is not None
    assert isinstance(built.contention.technology, Technology)
    assert built.contention.technology.constants["wire_pj_per_bit_mm"].value == 0.05
    run = tutti.simulate(tutti.schedule("ring", ranks=16), built, size="16 KiB")
    # 1 KiB is 16 flits, in three packets of at most seven: 19 with their headers.
    assert run.channels.filter(kind="injection")["flits"].to_list() == [30 * 19] * 16
    assert run.energy().total.nominal > 0
