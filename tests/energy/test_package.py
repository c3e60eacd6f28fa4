"""Packages: energies counted by hand, areas compared with published ones, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Length, Time
from tutti.cli.energy_tables import area_table
from tutti.collectives.files.resolve import resolve
from tutti.energy.errors import EnergyError
from tutti.energy.package import (
    PUBLISHED_UM2,
    Package,
    PackageTraffic,
    packages,
    scaled_um2,
    technologies,
)
from tutti.energy.technology import RouterHardware, Technology, costs
from tutti.platforms.files.builder import machine

if TYPE_CHECKING:
    from tutti.energy.technology import EnergyReport

NO_TIME = Time(ps=0)
ENDS = tutti.Postal(alpha="1 ps")


def topology(notation: str, length: str | None = None) -> tutti.Topology:
    return tutti.Topology.build(notation, rate="68 GB/s", latency="12 ns", length=length)


def pj(report: EnergyReport) -> dict[str, float]:
    """The energies of events, in picojoules."""
    return {name: cost.nominal * 1e12 for name, cost in report.dynamic_by_component.items()}


def one_message(graph: tutti.Topology, size: int, *ends: tuple[str, str]) -> PackageTraffic:
    """A message of `size` bytes over the links between these endpoints."""
    carried = tuple(size * ((link.source, link.target) in ends) for link in graph.links)
    return PackageTraffic(link_bytes=carried, sent_bytes=size, time=NO_TIME)


def test_a_message_over_two_links_by_hand() -> None:
    """1000 B from chiplet 0 over 1 to 3 of 2 x 2: 8000 bits through 3 routers and over 2 links."""
    mesh = topology("mesh:2x2")
    traffic = one_message(mesh, 1000, ("npu0", "npu1"), ("npu1", "npu3"))
    spent = pj(packages(2)["mesh"].energy(mesh, traffic))
    assert spent["links"] == pytest.approx(2 * 8000 * 0.5)
    assert spent["buffers"] == pytest.approx(3 * 8000 * (0.20 + 0.20))
    assert spent["crossbar"] == pytest.approx(3 * 8000 * 0.017)
    assert spent["clock"] == spent["vc_allocator"] == 0
    router = RouterHardware(ports=5, vcs=4, buffer_flits=128, flit_bits=128)
    flit = costs(router, technologies()["usual"])["switch_allocation"].nominal
    assert flit / 128 == pytest.approx(0.002, abs=0.0003)
    assert spent["switch_allocator"] == pytest.approx(3 * 8000 / 128 * flit)
    by_circuit = pj(packages(2)["bypass"].energy(mesh, traffic))
    assert by_circuit == pytest.approx(spent | {"buffers": 2 * 8000 * 0.40})


def test_a_ring_on_2_x_2_by_hand() -> None:
    """6 steps of 1 KiB from each of 4; those from 1 to 2 and from 3 to 0 go over two links."""
    mesh = topology("mesh:2x2")
    platform = tutti.Platform(
        name="p", model=ENDS, routes=mesh.routes("dimension_order"), contention=tutti.Packets()
    )
    run = tutti.simulate(tutti.schedule("ring", ranks=4), platform, size="4 KiB")
    traffic = PackageTraffic.of(run)
    assert traffic.sent_bytes == 4 * 6 * 1024
    assert sum(traffic.link_bytes) == 6 * 1024 * (1 + 2 + 1 + 2)
    report = packages(2)["mesh"].energy_of(run)
    spent = pj(report)
    assert spent["links"] == pytest.approx(36_864 * 8 * 0.5)
    assert spent["buffers"] == pytest.approx((36_864 + 24_576) * 8 * 0.4)
    assert spent["crossbar"] == pytest.approx((36_864 + 24_576) * 8 * 0.017)
    cycles = -(-run.completion_ps // 1000)
    assert spent["clock"] == pytest.approx(4 * cycles * (4.3 + 0.00125 * 128 * 5))
    # 128 bits x 5 ports x (registers + 128 flits), a fifth of the leakage of flip-flops.
    buffers_w = 4 * 128 * 5 * (2.183 + 2.004 * 128) / 5 * 1e-6
    leaked = report.leakage_by_component["buffers"].nominal
    assert leaked == pytest.approx(buffers_w * cycles * 1e-9)


def test_wires_beyond_5_mm_pay_by_length() -> None:
    """A wrap link of a torus crosses 3 chiplets of 5 mm: 0.5 + 10 x 0.12 pJ per bit."""
    torus = topology("torus:4x4")
    spent = pj(packages(4)["torus"].energy(torus, one_message(torus, 1, ("npu3", "npu0"))))
    assert spent["links"] == pytest.approx(8 * 1.7)
    given = Package(pitch=None)
    long = topology("torus:4x4", length="8 mm")
    spent = pj(given.energy(long, one_message(long, 1, ("npu3", "npu0"))))
    assert spent["links"] == pytest.approx(8 * (0.5 + 3 * 0.12))


def test_other_links_and_buffers_cost_more() -> None:
    mesh = topology("mesh:2x2")
    traffic = one_message(mesh, 1000, ("npu0", "npu1"))

    def spent(name: str) -> dict[str, float]:
        return pj(Package(technology=technologies()[name]).energy(mesh, traffic))

    assert spent("simba links")["links"] == pytest.approx(8000 * (1.17 + 0.5 * 0.12))
    assert spent("usual")["buffers"] == spent("simba links")["buffers"]
    idle = PackageTraffic(link_bytes=(0,) * 8, sent_bytes=0, time=Time(ps=1_000_000))
    leaks = {
        name: Package(technology=technology).energy(mesh, idle).leakage.nominal
        for name, technology in technologies().items()
    }
    # 195 mW per router with flip-flop buffers, like in DSENT.
    assert leaks["flip-flop buffers"] == pytest.approx(4 * 0.195 * 1e-6, rel=0.15)
    assert 4 < leaks["flip-flop buffers"] / leaks["usual"] < 5.5


def test_synthesised_routers_take_constant_power() -> None:
    """98740 um2 of flip-flops of 4.522 um2 with 8 fJ per cycle, and 79 nW of leakage each."""
    mesh = topology("mesh:2x2")
    traffic = one_message(mesh, 1000, ("npu0", "npu1"))
    package = Package(technology=technologies()["synthesis"])
    spent = pj(package.energy(mesh, traffic))
    assert spent["buffers"] == spent["crossbar"] == spent["switch_allocator"] == 0
    assert spent["links"] == pytest.approx(8000 * (0.00113 + 5 * 0.03923))
    idle = package.idle(4, Time(ps=1_000_000))
    flip_flops = 98740 / 4.522
    assert idle.dynamic.nominal == pytest.approx(4 * 1000 * flip_flops * 8e-15)
    assert idle.leakage_by_component["buffers"].nominal == pytest.approx(4e-6 * flip_flops * 79e-9)


def test_bytes_by_circuit_use_no_buffers() -> None:
    mesh = topology("mesh:2x2")
    traffic = one_message(mesh, 1000, ("npu0", "npu1"))
    half = PackageTraffic(**{**vars(traffic), "circuit_bytes": 500})
    spent = pj(packages(2)["bypass"].energy(mesh, half))
    assert spent["buffers"] == pytest.approx(1500 * 8 * 0.4)


def test_npus_at_a_switch_are_no_routers() -> None:
    """Two hops, one router; a header of 8 B on each of 2 packets."""
    star = topology("switch:4", length="5 mm")
    packets = tutti.Packets(size="512 B", header="8 B")
    platform = tutti.Platform(name="p", model=ENDS, routes=star.routes(), contention=packets)
    run = tutti.simulate(tutti.schedule("direct", ranks=4), platform, size="1 KiB")
    traffic = PackageTraffic.of(run)
    each = 1024 + 2 * 8
    assert traffic.sent_bytes == 12 * each
    spent = pj(Package(pitch=None).energy(star, traffic))
    assert spent["links"] == pytest.approx(24 * each * 8 * 0.5)
    assert spent["buffers"] == pytest.approx(12 * each * 8 * 0.4)
    assert Package(pitch=None).area_of(star) == Package().area(1)


@given(st.lists(st.integers(0, 10**9), min_size=8, max_size=8), st.integers(0, 10**12))
def test_energy_is_linear_in_traffic(carried: list[int], ps: int) -> None:
    mesh, package = topology("mesh:2x2"), packages(2)["bypass"]
    one = PackageTraffic(
        link_bytes=tuple(carried), sent_bytes=sum(carried), time=Time(ps=1000 * ps)
    )
    twice = PackageTraffic(
        link_bytes=tuple(2 * size for size in carried),
        sent_bytes=2 * sum(carried),
        time=Time(ps=2000 * ps),
    )
    report = package.energy(mesh, one)
    both = report + report
    assert both.total.nominal == pytest.approx(package.energy(mesh, twice).total.nominal)
    assert report.total.low <= report.total.nominal <= report.total.high


def test_areas_match_published_ones() -> None:
    published = sum(um2 for name, um2 in PUBLISHED_UM2.items() if name != "bypass")
    assert published == 130_201
    assert 64 * published / 1e6 == pytest.approx(8.33, abs=0.005)
    assert 64 * PUBLISHED_UM2["bypass"] / 1e6 == pytest.approx(0.3)
    assert PUBLISHED_UM2["bypass"] / published == pytest.approx(0.036, abs=0.0005)
    found = {
        name: um2.nominal for name, um2 in packages(8)["mesh"].area(1).um2_by_component.items()
    }
    for name in ("crossbar", "switch_allocator", "vc_allocator", "buffers"):
        assert found[name] == pytest.approx(PUBLISHED_UM2[name], rel=1e-3)
    assert found["muxes"] == 0


def test_muxes_of_bypass_wires_by_hand() -> None:
    """128 bits of 2-input muxes of 1.862 um2, and latches of 2.66 um2 for their select bits."""
    # Any: 4 inputs choose among 5, 4 wires among 4 outputs or pass through. 12 + 12 select bits.
    any_ = 128 * (4 * 4 + 4 * 3) * 1.862 + 24 * 2.66
    # Same axis, or sign: 4 inputs among 3, 4 wires among 2 outputs or pass through. 8 + 8 bits.
    own = 128 * (4 * 2 + 4 * 1) * 1.862 + 16 * 2.66
    found = {muxes: Package(muxes=muxes).mux_um2 for muxes in ("own", "sign", "any")}
    assert found == pytest.approx({"own": own, "sign": own, "any": any_})
    assert found["sign"] < PUBLISHED_UM2["bypass"] < found["any"]
    assert Package(muxes="own", wires=2).mux_um2 > found["own"]
    assert packages(8)["bypass"].area(64).um2_by_component["muxes"].nominal == 64 * found["any"]


def test_a_flattened_butterfly_has_as_many_pins() -> None:
    four, eight = (packages(side)["flattened_butterfly"] for side in (4, 8))
    assert (four.ports, four.width) == (7, round(128 * 4 / 6))
    assert (eight.ports, eight.width) == (15, round(128 * 4 / 14))
    # By hand: (1.4 x 85/128)^2 x 17806 + 1.96 x 13655 + 1.4 x 85/128 x 98740.
    assert scaled_um2(7, 85) == pytest.approx(15_390 + 26_764 + 91_797, rel=1e-4)
    assert four.area(1).total_um2.nominal == pytest.approx(scaled_um2(7, 85), rel=0.05)
    assert scaled_um2(5, 128) == 130_201


@pytest.mark.parametrize("side", [4, 8])
def test_the_table_has_a_line_for_each_network(side: int) -> None:
    table = area_table(side)
    assert table.row_count == len(packages(side)) + 1


def test_bypass_routers_are_those_of_a_mesh_with_muxes() -> None:
    mesh, bypass = (packages(8)[name] for name in ("mesh", "bypass"))
    more = bypass.area(64).total_um2.nominal - mesh.area(64).total_um2.nominal
    assert more == pytest.approx(64 * bypass.mux_um2)
    assert (bypass.ports, bypass.width) == (mesh.ports, mesh.width)


def mixed() -> tutti.Topology:
    graph: nx.Graph[str] = nx.Graph()
    for name, kind in (("a", "npu"), ("b", "npu"), ("c", "npu"), ("s", "switch")):
        graph.add_node(name, kind=kind)
    for one, other in (("a", "s"), ("b", "s"), ("b", "c")):
        graph.add_edge(one, other, rate="1 GB/s", latency="1 ns", length="1 mm")
    return tutti.Topology.from_networkx(graph)


def test_a_link_without_bits_is_refused() -> None:
    with pytest.raises(ConfigError, match="`width`: 0 should be greater than or equal to 1"):
        Package(width=0)


@pytest.mark.parametrize(
    ("graph", "package", "problem"),
    [
        (topology("mesh:3x2"), Package(), "from npu0 to npu1 is not on a square grid"),
        (topology("switch:4"), Package(), "is not on a square grid of chiplets"),
        (topology("mesh:2x2"), Package(pitch=None), "npu0 to npu1 is not known"),
        (mixed(), Package(pitch=None), "NPU a attaches to a router, but other NPUs are routers"),
    ],
)
def test_invalid_packages_are_rejected(
    graph: tutti.Topology, package: Package, problem: str
) -> None:
    idle = PackageTraffic(link_bytes=(0,) * len(graph.links), sent_bytes=0, time=NO_TIME)
    for ask in (lambda: package.check(graph), lambda: package.energy(graph, idle)):
        with pytest.raises(EnergyError, match=problem):
            ask()


def test_traffic_of_another_topology_is_refused() -> None:
    other = PackageTraffic(link_bytes=(0,) * 3, sent_bytes=0, time=NO_TIME)
    with pytest.raises(EnergyError, match="3 links on a topology of 8"):
        Package().energy(topology("mesh:2x2"), other)
    alone = tutti.Platform(name="p", model=ENDS)
    run = tutti.simulate(tutti.schedule("ring", ranks=4), alone, size="4 KiB")
    with pytest.raises(EnergyError, match="where packets queue"):
        PackageTraffic.of(run)


def test_a_run_reports_energy_and_area() -> None:
    mesh = topology("mesh:2x2")
    package = packages(2)["mesh"]

    def run(packets: tutti.Packets) -> tutti.Run:
        routes = mesh.routes("dimension_order")
        platform = tutti.Platform(name="p", model=ENDS, routes=routes, contention=packets)
        return tutti.simulate(tutti.schedule("ring", ranks=4), platform, size="4 KiB")

    measured = run(tutti.Packets(package=package))
    assert measured.energy() == package.energy_of(measured)
    assert measured.area() == package.area(4)
    simba = Technology(router="aries_45nm", link="simba_package")
    assert measured.energy(simba).total.nominal > measured.energy().total.nominal
    bare = run(tutti.Packets())
    assert bare.energy(simba) == measured.energy(simba)
    with pytest.raises(EnergyError, match="the technology of the package"):
        bare.energy()


def experiment(**package: Any) -> dict[str, Any]:
    platform = {
        "name": "p",
        "models": {"m": {"kind": "postal", "alpha": "1 ps"}},
        "topology": {
            "build": "mesh:2x2",
            "links": [{"rate": "68 GB/s", "latency": "12 ns"}],
            "packets": {"package": package},
        },
    }
    tables = {"collective": "all_reduce", "algorithms": ["ring"], "ranks": 4, "sizes": "4 KiB"}
    return tables | {"platform": platform, "output": "out"}


def made(tables: dict[str, Any]) -> tutti.Platform:
    read = resolve(tables, source="file.toml", folder=Path())
    return machine(read.platform, "m", source="file.toml")


def test_a_file_configures_the_package() -> None:
    given = {"pitch": "4 mm", "ports": 7, "width": 85, "circuit": True, "link": "grs_package"}
    packets = made(experiment(**given, muxes="sign")).contention
    assert isinstance(packets, tutti.Packets)
    link = Technology(router="aries_45nm", link="grs_package")
    expected = Package(
        ports=7, width=85, pitch=Length(um=4000), circuit=True, muxes="sign", technology=link
    )
    assert packets.package == expected


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ({}, ("topology.packets.package", "npu0 to npu1 is not known")),
        ({"pitch": "5 mm", "ports": 0}, ("packets.package.ports",)),
        ({"pitch": "5 mm", "link": "rope"}, ("topology.packets.package", "rope")),
        ({"pitch": "5"}, ("packets.package.pitch", "unit")),
        ({"pitch": "5 mm", "muxes": "all"}, ("packets.package.muxes",)),
    ],
)
def test_mistakes_in_a_file_are_reported(package: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as refused:
        made(experiment(**package))
    for word in ("file.toml", *words):
        assert word in str(refused.value)
