"""Headless Chromium, and a report opened in it as a person would."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

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


def _opened(browser: Browser, path: Path, width: int, theme: Any) -> Opened:
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
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens a report: its path, and the width and the theme of the window."""

    def opening(path: Path, width: int = 1280, theme: str = "light") -> Opened:
        return _opened(browser, path, width, theme)

    yield opening
    # What stays open goes on drawing while other tests run.
    for context in browser.contexts:
        context.close()


def _point_at(page: Page, selector: str) -> str:
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


@pytest.fixture
def point_at() -> Callable[[Page, str], str]:
    """Moves the mouse onto something of a page, and reads the tooltip."""
    return _point_at
