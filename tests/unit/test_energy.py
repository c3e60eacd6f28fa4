"""Energy and area from Python: sums, tables, refusals. The laws are tested in the core."""

from __future__ import annotations

import pickle
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import tutti
from tutti.energy import (
    Events,
    Interval,
    Links,
    Network,
    Router,
    Technology,
    area,
    costs,
    energy,
    technologies,
)
from tutti.errors import ConfigError, EnergyError, UnitError

CHIP = Technology(router="dsent_45nm", link="dsent_45nm_spaced")
ROUTER = Router(ports=5, vcs=12, buffer_flits=12, flit_bits=128)
MESH = Network(
    router=ROUTER,
    routers=64,
    links=[Links(length="1 mm", count=224), Links(length="8 mm", count=16)],
    cycle="1 ns",
)
WINDOW = Events(
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
    """Every count times what `costs` says of it, added up here."""
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
    assert WINDOW + Events(link_flits=[0, 0]) == WINDOW
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
    nothing = Network(router=ROUTER, routers=0, cycle="1 ns")
    assert energy(nothing, Events(cycles=5), CHIP).total == Interval(0.0, 0.0, 0.0)
    energy(nothing, Events(), CHIP).table()
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


def test_every_technology_can_be_had_and_is_in_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "energy.md"
    text = page.read_text("utf-8")
    entries = technologies()
    assert {entry.part for entry in entries} == {"router", "link"}
    for entry in entries:
        assert f"## {entry.part} {entry.name}\n" in text
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
        ("zero_cycle", lambda: area(Network(router=ROUTER, routers=1, cycle="0 ps"), CHIP)),
        ("wrong_links", lambda: energy(MESH, Events(link_flits=[1]), CHIP)),
        ("wrong_links", lambda: WINDOW + Events()),
        (
            "too_many_outputs",
            lambda: energy(
                MESH, Events(link_flits=[0, 0], crossbar_traversals=[0, 0, 0, 0, 0, 1]), CHIP
            ),
        ),
        ("too_many", lambda: Events(cycles=2**64 - 1) + Events(cycles=1)),
    ],
)
def test_what_cannot_be_is_refused(kind: str, make: object) -> None:
    with pytest.raises(EnergyError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.kind == kind
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [{"cycles": -1}, {"cycles": 1.5}, {"cycles": 2**64}, {"link_flits": [-1]}, {"hops": 1}],
)
def test_counts_are_whole_and_not_negative(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Events(**values)


def test_lengths_and_cycles_carry_units() -> None:
    with pytest.raises(ConfigError, match="unit"):
        Links(length="5", count=1)
    with pytest.raises(UnitError):
        costs(ROUTER, CHIP, lengths=["5 inches"])


def test_networks_and_events_travel_between_processes() -> None:
    assert pickle.loads(pickle.dumps((MESH, WINDOW))) == (MESH, WINDOW)
    report = energy(MESH, WINDOW, CHIP)
    assert pickle.loads(pickle.dumps(report)) == report


def test_the_module_is_there_without_an_import() -> None:
    assert tutti.energy.technologies() == technologies()
