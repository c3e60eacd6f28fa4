"""Energy and area from Python: sums, tables, errors. Tests of the core cover the equations."""

from __future__ import annotations

import pickle
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import tutti
from tutti.base.errors import ConfigError, UnitError
from tutti.energy.errors import EnergyError
from tutti.energy.technology import (
    EventCounts,
    Interval,
    LinkHardware,
    NetworkHardware,
    RouterHardware,
    Technology,
    area,
    costs,
    energy,
    technologies,
)
from tutti.networks.errors import NocError
from tutti.networks.mesh import SmartMesh
from tutti.networks.mesh.energy import mesh_energy

CHIP = Technology(router="dsent_45nm", link="dsent_45nm_spaced")
ROUTER = RouterHardware(ports=5, vcs=12, buffer_flits=12, flit_bits=128)
MESH = NetworkHardware(
    router=ROUTER,
    routers=64,
    links=[LinkHardware(length="1 mm", count=224), LinkHardware(length="8 mm", count=16)],
    cycle="1 ns",
)
WINDOW = EventCounts(
    cycles=1000,
    buffer_writes=40,
    buffer_reads=30,
    crossbar_traversals=[20, 5],
    vc_allocations=9,
    switch_allocations=25,
    link_flits=[25, 3],
    signal_bit_um=8000,
)


def test_a_report_is_the_sum_of_what_events_cost() -> None:
    """The sum of every count times its value in `costs`."""
    pj = {
        name: cost.nominal for name, cost in costs(ROUTER, CHIP, lengths=["1 mm", "8 mm"]).items()
    }
    signal = CHIP.constants["signal_pj_per_bit_mm"].value * 8
    expected = {
        "buffers": 40 * pj["buffer_write"] + 30 * pj["buffer_read"],
        "crossbar": 20 * pj["crossbar_to_1"] + 5 * pj["crossbar_to_2"],
        "switch_allocator": 25 * pj["switch_allocation"],
        "vc_allocator": 9 * pj["vc_allocation"],
        "links": 25 * pj["link of 1 mm"] + 3 * pj["link of 8 mm"] + signal,
        "clock": 64 * 1000 * pj["clock_cycle"],
    }
    report = energy(MESH, WINDOW, CHIP)
    found = {name: cost.nominal * 1e12 for name, cost in report.dynamic_by_component.items()}
    assert found == pytest.approx(expected)
    assert report.dynamic.nominal * 1e12 == pytest.approx(sum(expected.values()))
    assert report.total == report.dynamic.plus(report.leakage)


def test_events_and_reports_add() -> None:
    assert WINDOW + EventCounts(link_flits=[0, 0]) == WINDOW
    twice = WINDOW + WINDOW
    assert twice.crossbar_traversals == (40, 10)
    assert twice.cycles == 2000
    parts = energy(MESH, WINDOW, CHIP) + energy(MESH, WINDOW, CHIP)
    assert energy(MESH, twice, CHIP).total == pytest.approx(parts.total)
    both = area(MESH, CHIP) + area(MESH, CHIP)
    assert both.total_um2.nominal == pytest.approx(2 * area(MESH, CHIP).total_um2.nominal)


def test_frames_and_tables_hold_every_component() -> None:
    report, silicon = energy(MESH, WINDOW, CHIP), area(MESH, CHIP)
    assert report.frame.columns == [
        "component",
        "dynamic_j",
        "leakage_j",
        "total_j",
        "low_j",
        "high_j",
    ]
    assert report.frame["component"].to_list() == list(report.dynamic_by_component)
    assert report.frame["total_j"].sum() == pytest.approx(report.total.nominal)
    assert silicon.frame["area_um2"].sum() == pytest.approx(silicon.total_um2.nominal)
    assert (report.frame["low_j"] <= report.frame["total_j"]).all()
    for table in (report.table(), silicon.table()):
        console = Console(file=StringIO(), width=100)
        console.print(table)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert all(name in text for name in (*report.dynamic_by_component, "total", "100%"))


def test_a_network_of_no_energy_has_a_table_too() -> None:
    nothing = NetworkHardware(router=ROUTER, routers=0, cycle="1 ns")
    assert energy(nothing, EventCounts(cycles=5), CHIP).total == Interval(0.0, 0.0, 0.0)
    energy(nothing, EventCounts(), CHIP).table()
    area(nothing, CHIP).table()


def test_a_constant_can_be_replaced_with_its_source() -> None:
    other = CHIP.with_value(
        "crossbar_factor", 2.0, source="a guess", low_factor=0.5, high_factor=1.5
    )
    constant = other.constants["crossbar_factor"]
    assert (constant.value, constant.source, constant.inferred) == (2.0, "a guess", False)
    ours = energy(MESH, WINDOW, CHIP).dynamic_by_component["crossbar"]
    theirs = energy(MESH, WINDOW, other).dynamic_by_component["crossbar"]
    assert theirs.nominal == pytest.approx(2 * ours.nominal)
    assert theirs.low == pytest.approx(ours.low)
    assert theirs.high == pytest.approx(3 * ours.high)
    assert other != CHIP
    assert Technology(router="dsent_45nm", link="dsent_45nm_spaced") == CHIP


def test_every_technology_is_selectable_and_in_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "energy.md"
    text = " ".join(page.read_text("utf-8").split())
    entries = technologies()
    assert {entry.part for entry in entries} == {"router", "link"}
    for entry in entries:
        assert f"## {entry.part} {entry.name} " in text
        names = {"router": "dsent_45nm", "link": "dsent_45nm"} | {entry.part: entry.name}
        technology = Technology(**names)
        assert technology.constants.keys() == CHIP.constants.keys()
        assert all(constant.source in text for constant in technology.constants.values())


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("unknown_technology", lambda: Technology(router="dsent_90nm", link="dsent_45nm")),
        ("unknown_parameter", lambda: CHIP.with_value("wire", 1.0, source="a guess")),
        ("value", lambda: CHIP.with_value("clock_pj", -1.0, source="a guess")),
        ("value", lambda: CHIP.with_value("clock_pj", float("nan"), source="a guess")),
        ("bounds", lambda: CHIP.with_value("clock_pj", 1.0, source="a guess", low_factor=2.0)),
        ("no_source", lambda: CHIP.with_value("clock_pj", 1.0, source=" ")),
        ("zero", lambda: costs(ROUTER.model_copy(update={"vcs": 0}), CHIP)),
        ("zero_cycle", lambda: area(NetworkHardware(router=ROUTER, routers=1, cycle="0 ps"), CHIP)),
        ("wrong_links", lambda: energy(MESH, EventCounts(link_flits=[1]), CHIP)),
        ("wrong_links", lambda: WINDOW + EventCounts()),
        (
            "too_many_outputs",
            lambda: energy(
                MESH, EventCounts(link_flits=[0, 0], crossbar_traversals=[0, 0, 0, 0, 0, 1]), CHIP
            ),
        ),
        ("too_many", lambda: EventCounts(cycles=2**64 - 1) + EventCounts(cycles=1)),
    ],
)
def test_invalid_values_are_refused(kind: str, make: object) -> None:
    with pytest.raises(EnergyError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.kind == kind
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [{"cycles": -1}, {"cycles": 1.5}, {"cycles": 2**64}, {"link_flits": [-1]}, {"hops": 1}],
)
def test_counts_are_non_negative_integers(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        EventCounts(**values)


def test_lengths_and_cycles_carry_units() -> None:
    with pytest.raises(ConfigError, match="unit"):
        LinkHardware(length="5", count=1)
    with pytest.raises(UnitError):
        costs(ROUTER, CHIP, lengths=["5 inches"])


def test_networks_and_events_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps((MESH, WINDOW))) == (MESH, WINDOW)
    report = energy(MESH, WINDOW, CHIP)
    assert pickle.loads(pickle.dumps(report)) == report


def test_module_needs_no_separate_import() -> None:
    assert tutti.energy.technologies() == technologies()


NOTHING = {
    "buffer_writes": 0,
    "buffer_reads": 0,
    "crossings": [0, 0, 0, 0, 0],
    "link_hops": 0,
    "input_arbitrations": 0,
    "output_arbitrations": 0,
    "request_hops": 0,
    "response_request_hops": 0,
    "table_reads": 0,
    "cycles": 0,
}
STOP = NOTHING | {
    "buffer_writes": 1,
    "buffer_reads": 1,
    "crossings": [1, 0, 0, 0, 0],
    "link_hops": 1,
    "input_arbitrations": 1,
    "output_arbitrations": 1,
}
PASS = NOTHING | {"crossings": [1, 0, 0, 0, 0], "link_hops": 1}


def test_the_energy_of_a_mesh_hop_matches_dsent() -> None:
    """13.8 pJ with a stop; 7.5 pJ without, by the more expensive crossbar and the faster wire."""
    baseline = mesh_energy(STOP, SmartMesh(design="baseline", vcs=12))
    assert baseline.dynamic.nominal * 1e12 == pytest.approx(13.8, rel=0.01)
    assert baseline.leakage == Interval(0.0, 0.0, 0.0)
    bypass = mesh_energy(PASS, SmartMesh(design="smart_1d", vcs=12))
    assert bypass.dynamic.nominal * 1e12 == pytest.approx(7.5, rel=0.01)
    assert list(bypass.frame["component"]) == [
        "buffer_writes",
        "buffer_reads",
        "buffers",
        "crossbar",
        "allocation",
        "links",
        "requests",
        "tables",
        "clock",
    ]


def test_technology_and_hardware_of_a_mesh_can_be_given() -> None:
    mesh = SmartMesh(design="smart_1d", vcs=12)
    usual = Technology(router="smart_45nm", link="smart_45nm")
    assert mesh_energy(STOP, mesh, usual) == mesh_energy(STOP, mesh)
    plain = mesh_energy(PASS, mesh, CHIP)
    smart = mesh_energy(PASS, mesh)
    crossbars = [report.dynamic_by_component["crossbar"].nominal for report in (smart, plain)]
    assert crossbars[0] == pytest.approx(1.58 * crossbars[1])
    longer = mesh_energy(PASS, mesh, tile="2 mm")
    links = [report.dynamic_by_component["links"].nominal for report in (longer, smart)]
    assert links[0] == pytest.approx(2 * links[1])
    slower = mesh_energy(NOTHING | {"cycles": 10}, mesh, cycle="2 ns")
    faster = mesh_energy(NOTHING | {"cycles": 10}, mesh)
    assert slower.leakage.nominal == pytest.approx(2 * faster.leakage.nominal)
    assert slower.dynamic == faster.dynamic
    halves = mesh_energy(PASS, mesh, flit_bits=64)
    assert halves.dynamic.nominal == pytest.approx(smart.dynamic.nominal / 2)
    more = mesh_energy(STOP, mesh, classes=[(12, 1, True), (4, 5, False)])
    written = [report.dynamic_by_component["buffer_writes"] for report in (more, smart)]
    assert written[0].nominal > written[1].nominal


def test_response_requests_name_their_flow() -> None:
    """Four bits over a row of 8 mm are 0.91 pJ, and the eleven of a response 2.5 pJ."""
    plain = mesh_energy(NOTHING | {"request_hops": 8}, SmartMesh(design="smart_1d"))
    assert plain.dynamic.nominal * 1e12 == pytest.approx(0.91, rel=0.01)
    mesh = SmartMesh(design="smart_1d", fan_in="complete")
    response = mesh_energy(NOTHING | {"response_request_hops": 8}, mesh)
    assert response.dynamic.nominal * 1e12 == pytest.approx(2.5, rel=0.01)
    assert response.dynamic_by_component["requests"] == response.dynamic


def test_invalid_mesh_energy_is_rejected() -> None:
    mesh = SmartMesh(design="smart_1d")
    with pytest.raises(EnergyError, match="no routers") as connected:
        mesh_energy(STOP, SmartMesh(design="fully_connected"))
    assert connected.value.kind == "mesh"
    with pytest.raises(EnergyError, match="lack crossings, cycles") as missing:
        mesh_energy({key: STOP[key] for key in STOP if key[0] != "c"}, mesh)
    assert missing.value.kind == "mesh"
    with pytest.raises(EnergyError) as bits:
        mesh_energy(STOP, mesh, flit_bits=0)
    assert bits.value.kind == "zero"
    with pytest.raises(EnergyError) as cycle:
        mesh_energy(STOP, mesh, cycle="0 ns")
    assert cycle.value.kind == "zero_cycle"
    with pytest.raises(NocError, match="vcs"):
        mesh_energy(STOP, mesh, classes=[(0, 1, True)])
    with pytest.raises(UnitError):
        mesh_energy(STOP, mesh, tile="long")
