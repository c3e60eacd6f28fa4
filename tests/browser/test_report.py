"""Opens the demo's report in headless Chromium as a person would: reads it, points at it, sorts it.

Screenshots of every width and theme are kept in out/browser, to be looked at.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "out" / "browser"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Chromium opens the report and talks to nobody; Playwright gives it an empty profile."""
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "Chromium is missing: `make browser` installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=QUIET)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page with everything that it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def opened(browser: Browser, path: Path, width: int, theme: Any) -> Opened:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, offline=True
    )
    found = Opened(context.new_page())
    found.page.on("console", lambda message: found.complaints.append(message.text))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    # A slow machine takes its time to draw.
    found.page.goto(path.as_uri(), timeout=150_000)
    found.page.wait_for_selector("html[data-ready=true]")
    return found


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    found = opened(browser, report, 1280, "light")
    yield found.page
    assert not found.complaints
    found.page.context.close()


def point_at(page: Page, selector: str) -> str:
    """Moves the mouse to the middle of the widest match; the text of the tooltip that appears."""
    widths = "(found) => found.map((one) => one.getBoundingClientRect().width)"
    found = page.locator(selector).evaluate_all(widths)
    target = page.locator(selector).nth(found.index(max(found)))
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tooltip = page.locator(".hoverlayer .hovertext").first
    tooltip.wait_for(timeout=60_000)
    return tooltip.text_content() or ""


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_it_opens_from_disk_without_a_complaint(
    browser: Browser, report: Path, width: int, theme: str
) -> None:
    found = opened(browser, report, width, theme)
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
def test_pointing_at_a_chart_tells_more(page: Page, selector: str, said: list[str]) -> None:
    tooltip = point_at(page, selector)
    for words in said:
        assert words in tooltip


def test_another_rank_count_brings_its_curves(page: Page) -> None:
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
