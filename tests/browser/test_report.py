"""Opens a report in headless Chromium as a person would: reads it, points at it, sorts it.

Screenshots of every width and theme are kept in out/browser, to be looked at.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.report import write_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SCREENSHOTS = Path(__file__).parents[2] / "out" / "browser"
LOOKS = [(1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small comparison on the machine of Table 1 of Ruefenacht et al. 2017."""
    model = tutti.PipeliningPostal(
        alpha_p="1.34 us", alpha_r="0.34 us", beta="0.1 ns/B", gamma="0.05 ns/B"
    )
    machine = tutti.Platform(name="cray_xc30", model=model)
    frame = tutti.compare(
        machine,
        collective="all_reduce",
        ranks=[4, 8, 16, 24, 32, 64],
        sizes=[f"{8 << 2 * power} B" for power in range(11)],
    )
    schedule = tutti.schedule("recursive_multiplying:a2,a4", collective="all_reduce", ranks=8)
    run = tutti.simulate(schedule, machine, size="8 B")
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html",
        frame,
        machine,
        run.timeline,
        run.messages_frame,
        notes=["The timeline shows recursive_multiplying:a2,a4 on 8 ranks with 8 B."],
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "Chromium is missing: `make browser` installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
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
    found.page.goto(path.as_uri())
    found.page.wait_for_selector("html[data-ready=true]")
    return found


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    found = opened(browser, report, 1280, "light")
    yield found.page
    assert not found.complaints
    found.page.context.close()


def point_at(page: Page, selector: str) -> str:
    """Moves the mouse to the middle of the first match; the text of the tooltip that appears."""
    target = page.locator(selector).first
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tooltip = page.locator(".hoverlayer .hovertext").first
    tooltip.wait_for(timeout=5000)
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
        ("#case0-time .scatterlayer .points path", ["64 ranks, 8 B", "time ", "busbw "]),
        ("#case0-busbw .scatterlayer .points path", ["64 ranks, 8 B", "time ", "busbw "]),
        ("#case0-ranks .scatterlayer .points path", ["4 ranks, 8 B", "time "]),
        ("#timeline .barlayer .point path", ["rank 0: send to 1", "step 0", "8 B"]),
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
        assert page.evaluate(shown, chart) == [64]
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
