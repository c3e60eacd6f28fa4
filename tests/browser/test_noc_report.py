"""Opens reports of networks in headless Chromium: links on the topology, VCs, latency by load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.energy.technology import Technology
from tutti.networks import flit as noc
from tutti.networks.flit.view.load import load_view
from tutti.networks.flit.view.run import run_view
from tutti.view.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PLAN = noc.MeasurementPlan(warmup=500, measure=2000, drain=3000, sample=50, keep_vcs=True)


def network() -> noc.Network:
    mesh = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns", length="1 mm")
    return noc.Network(topology=mesh, routing="dimension_order")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run, with energy and a remark."""
    run = noc.run(network(), noc.Traffic(rate=0.3, pattern="transpose", packet=4), PLAN)
    chip = Technology(router="dsent_45nm", link="dsent_45nm")
    path = tmp_path_factory.mktemp("noc") / "report.html"
    return page_of(run_view(run, technology=chip, remarks=["a remark"])).write(path)


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of latency against load."""
    traffic = noc.Traffic(rate=0, packet=4)
    runs = noc.sweep(network(), traffic, [0.1, 0.2, 0.3, 0.4], PLAN)
    found = noc.saturation(network(), traffic, PLAN, tolerance=0.1, known=runs)
    path = tmp_path_factory.mktemp("noc") / "report.html"
    return page_of(load_view(runs, found)).write(path)


def test_report_opens_from_disk_without_errors(inspect_report: Any, report: Path) -> None:
    # Links, buffers over time, VCs over time, fullest VCs, buffers by VC, stalls, energy.
    inspect_report(report, "noc_report", charts=7)


def test_latency_report_opens_from_disk_without_errors(inspect_report: Any, curves: Path) -> None:
    inspect_report(curves, "noc_curves", charts=2)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("#links .trace:nth-last-child(2) .points path", [" to ", "utilisation ", " flits"]),
        ("#links .trace:nth-last-child(1) .points path", ["npu", " flits in its buffers"]),
        ("#over-time .scatterlayer .trace:first-child .js-line", ["cycle ", " flits in VC 0"]),
        ("#fullest .heatmaplayer image", ["VC ", "cycle ", " flits"]),
        ("#vcs .barlayer .point path", ["VC ", " flits"]),
        ("#stalls .barlayer .point path", [" %"]),
        ("#energy .trace:first-child .point:first-child path", ["buffers, dynamic: ", " nJ"]),
    ],
)
def test_charts_have_tooltips(
    page: Page, point_at: Any, selector: str, expected: list[str]
) -> None:
    tooltip = point_at(page, selector)
    for words in expected:
        assert words in tooltip


def test_the_tooltip_of_a_curve_has_load_and_unit(opened: Any, point_at: Any, curves: Path) -> None:
    found = opened(curves)
    assert "load 0." in point_at(found.page, "#latency .scatterlayer .points path")
    assert "flits per node" in point_at(found.page, "#throughput .scatterlayer .points path")
    assert found.page.locator(".answer", has_text="Stable up to").count() == 1
    assert not found.complaints


def test_report_shows_remark_and_energy(page: Page) -> None:
    assert page.locator(".note", has_text="A remark.").count() == 1
    rows = page.locator("section", has_text="Energy and area").locator("tbody tr")
    names = [row.split("\t")[0] for row in rows.all_inner_texts()]
    assert names[-1].startswith("total")


def test_a_heading_sorts_the_links(page: Page) -> None:
    section = page.locator("section", has=page.locator("#links"))
    busy = """(body) => [...body.rows].map((row) => Number(row.cells[2].dataset.value))"""
    heading = section.locator("th", has_text="utilisation").locator("button")
    heading.click()
    once = section.locator("tbody").evaluate(busy)
    heading.click()
    twice = section.locator("tbody").evaluate(busy)
    assert sorted((once == sorted(once), twice == sorted(twice))) == [False, True]
    assert sorted(once) == sorted(twice)
