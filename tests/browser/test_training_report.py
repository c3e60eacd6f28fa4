"""Opens the report of a training step in headless Chromium: bars, windows, endpoints, layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Ring, configurations
from tutti.training.runs import watched
from tutti.training.step import Step
from tutti.training.view.page import write_training_report
from tutti.workloads import build

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of GNMT on eight NPUs, with every configuration of the paper."""
    rings = tuple(
        Ring(name, nodes, TimePerByte.parse(rate), Time.parse(latency))
        for name, nodes, rate, latency in (
            ("local", 4, "200 GB/s", "72 ns"),
            ("vertical", 2, "25 GB/s", "402 ns"),
        )
    )
    every = configurations()
    step = watched(Step(model=build("gnmt"), batch=32, rings=rings), every["ideal"])
    path = tmp_path_factory.mktemp("training") / "report.html"
    return write_training_report(path, [step.run(one) for one in every.values()])


def test_report_opens_from_disk_without_errors(inspect_report: Any, report: Path) -> None:
    # The charts are breakdown, exposed communication, timeline, utilisation over time, links,
    # servers and stalls.
    page = inspect_report(report, "training", charts=7)
    # Every row has the grid of the theme.
    colours = """(lines) => [...new Set(lines.map((line) => getComputedStyle(line).stroke))]"""
    grid = page.locator("#over_time .xgrid, #over_time .ygrid").evaluate_all(colours)
    assert len(grid) == 1, grid


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("#breakdown .trace:first-child .point:last-child path", ["no_overlap", "ms, ", " %"]),
        (
            "#servers .trace:first-child .point:first-child path",
            ["no_overlap", "memory: ", " utilisation"],
        ),
        ("#exposed .trace:first-child .point:last-child path", ["no_overlap", "in flight for"]),
        ("#tasks .trace:first-child .point path", ["forward", "iteration "]),
    ],
)
def test_a_bar_has_a_tooltip(page: Page, point_at: Any, selector: str, expected: list[str]) -> None:
    tooltip = point_at(page, selector)
    for words in expected:
        assert words in tooltip


def test_every_configuration_is_drawn_over_time(page: Page) -> None:
    titles = page.locator("#over_time text[class$='title']").all_text_contents()
    assert {"no_overlap", "comm_opt", "comp_opt", "ace", "ideal"} <= set(titles)
    assert page.locator("#over_time .scatterlayer .trace").count() == 10


def test_a_heading_sorts_the_layers(page: Page) -> None:
    section = page.locator("section", has_text="Time per layer")
    waits = """(body) => [...body.rows].map((row) => Number(row.cells[5].dataset.value))"""
    heading = section.locator("th", has_text="wait before the layer").locator("button")
    heading.click()
    once = section.locator("tbody").evaluate(waits)
    heading.click()
    twice = section.locator("tbody").evaluate(waits)
    assert sorted((once == sorted(once), twice == sorted(twice))) == [False, True]
    assert sorted(once) == sorted(twice)
    assert max(once) > 0


def test_timeline_follows_the_selected_configuration(opened: Any, report: Path) -> None:
    page = opened(report).page
    waits = """() => {
      const shown = document.getElementById("tasks").data.filter((one) => one.visible !== false);
      const sum = (values) => values.reduce((all, one) => all + one, 0);
      return shown.filter((one) => one.name === "exposed communication").map((one) => sum(one.x));
    }"""
    ranges = """() => document.getElementById("tasks").layout.xaxis.range"""
    first, start = page.evaluate(waits), page.evaluate(ranges)
    page.select_option("#tasks-choice", label="ideal")
    second = page.evaluate(waits)
    assert len(first) == len(second) == 1
    assert second[0] < first[0]
    # All configurations share the time axis.
    assert page.evaluate(ranges) == start
