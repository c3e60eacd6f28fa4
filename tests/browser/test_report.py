"""Opens the demo's report in headless Chromium as a person would: reads it, points at it, sorts it.

Screenshots of every width and theme are kept in out/browser, to be looked at.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "out" / "browser"
LOOKS = [(1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's report, made as `make demo` makes it."""
    folder = tmp_path_factory.mktemp("demo")
    experiment = ROOT / "examples" / "01_which_all_reduce" / "experiment.toml"
    run = "from tutti.cli import main; main()"
    command = [sys.executable, "-c", run, "compare", str(experiment), "--out", str(folder)]
    subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=120)
    return folder / "report.html"


@pytest.fixture
def page(opened: Any, report: Path) -> Iterator[Page]:
    found = opened(report)
    yield found.page
    assert not found.complaints
    found.page.context.close()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_it_opens_from_disk_without_a_complaint(
    opened: Any, report: Path, width: int, theme: str
) -> None:
    found = opened(report, width, theme)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    found.page.screenshot(path=SCREENSHOTS / f"report_{width}_{theme}.png", full_page=True)
    charts = found.page.locator(".chart")
    assert charts.count() == 5
    for index in range(charts.count()):
        assert charts.nth(index).locator("svg.main-svg").first.is_visible()
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
    assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found.page.context.close()


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("#case0-map .nsewdrag", ["fastest: ", "runner-up: ", "margin: "]),
        ("#case0-time .scatterlayer .points path", ["1,024 ranks, ", "time ", "busbw "]),
        ("#case0-busbw .scatterlayer .points path", ["1,024 ranks, ", "time ", "busbw "]),
        ("#case0-ranks .scatterlayer .points path", [" ranks, 8 B", "time "]),
        ("#timeline .barlayer .point path", ["rank ", "step ", " to "]),
    ],
)
def test_pointing_at_a_chart_tells_more(
    page: Page, point_at: Any, selector: str, said: list[str]
) -> None:
    tooltip = point_at(page, selector)
    for words in said:
        assert words in tooltip


def test_another_rank_count_brings_its_curves(page: Page, point_at: Any) -> None:
    shown = """(id) => [...new Set(document.getElementById(id).data
        .filter((trace) => trace.visible).map((trace) => trace.meta))]"""
    for chart in ("case0-time", "case0-busbw"):
        assert page.evaluate(shown, chart) == [1024]
    page.select_option("#case0-size-choice", "16")
    for chart in ("case0-time", "case0-busbw"):
        page.wait_for_function(f"String(({shown})('{chart}')) === '16'")
    assert "16 ranks" in point_at(page, "#case0-time .scatterlayer .points path")


def test_a_heading_sorts_the_results(page: Page) -> None:
    times = """() => [...document.querySelectorAll("table.sortable tbody tr")]
        .map((row) => Number(row.cells[3].dataset.value))"""
    heading = page.locator("table.sortable th", has_text="time").locator("button")
    heading.click()
    assert page.evaluate(times) == sorted(page.evaluate(times))
    heading.click()
    assert page.evaluate(times) == sorted(page.evaluate(times), reverse=True)


def test_the_charts_follow_the_theme(page: Page) -> None:
    paper = "() => document.querySelector('#case0-time .main-svg').style.background"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({paper})() !== '{light}'")
