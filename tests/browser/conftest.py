"""Fixtures that open a report in headless Chromium.

Screenshots of every width and theme are written to out/browser for inspection.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

SCREENSHOTS = Path(__file__).parents[2] / "out" / "browser"
LOOKS = [(1280, 800, "light"), (800, 900, "dark"), (390, 844, "light")]

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Options that prevent network access; Playwright uses an empty profile."""


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
    """A page with its console messages, errors and requests."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextlib.contextmanager
def _opened(
    browser: Browser, path: Path, width: int, theme: Any, height: int = 900
) -> Iterator[Opened]:
    viewport: Any = {"width": width, "height": height}
    # An open page continues to draw while other tests run, so the context closes it.
    with browser.new_context(viewport=viewport, color_scheme=theme, offline=True) as context:
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        # Slow machines need a long timeout to draw.
        found.page.goto(path.as_uri(), timeout=150_000)
        found.page.wait_for_selector("html[data-ready=true]")
        yield found


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens a report: its path, and the width and the theme of the window."""
    with contextlib.ExitStack() as stack:

        def opening(
            path: Path, width: int = 1280, theme: str = "light", height: int = 900
        ) -> Opened:
            return stack.enter_context(_opened(browser, path, width, theme, height))

        yield opening


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """The `report` of a module, opened once because opening dominates the time of a test.

    Tests that change more than the order of a table use `opened`.
    """
    with _opened(browser, report, 1280, "light") as found:
        yield found.page
        assert not found.complaints


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[2]}")
def inspect_report(opened: Any, request: pytest.FixtureRequest) -> Callable[..., Page]:
    """Opens a report, writes a screenshot, and checks its charts and its first screen."""
    width, height, theme = request.param

    def looking(path: Path, name: str, charts: int) -> Page:
        found: Opened = opened(path, width, theme, height)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        found.page.screenshot(path=SCREENSHOTS / f"{name}_{width}_{theme}.png", full_page=True)
        drawn = found.page.locator(".chart")
        assert drawn.count() == charts
        for index in range(charts):
            assert drawn.nth(index).locator("svg.main-svg").first.is_visible()
        assert found.complaints == []
        assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
        assert found.page.locator("figcaption").count() == charts
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        answer = found.page.locator(".answer").bounding_box()
        assert answer is not None
        assert answer["y"] + answer["height"] <= height
        return found.page

    return looking


def _point_at(page: Page, selector: str) -> str:
    """Moves the mouse to the middle of the widest match, and returns the text of its tooltip."""
    widths = "(found) => found.map((one) => one.getBoundingClientRect().width)"
    found = page.locator(selector).evaluate_all(widths)
    target = page.locator(selector).nth(found.index(max(found)))
    # Remove earlier tooltips.
    page.mouse.move(0, 0)
    page.locator(".hoverlayer .hovertext").first.wait_for(state="detached")
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tooltip = page.locator(".hoverlayer .hovertext").first
    tooltip.wait_for(timeout=60_000)
    return tooltip.text_content() or ""


@pytest.fixture
def point_at() -> Callable[[Page, str], str]:
    """Moves the mouse to a match of a selector, and returns the tooltip."""
    return _point_at
