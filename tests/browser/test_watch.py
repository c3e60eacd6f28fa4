"""Opens the page of `tutti noc watch` in headless Chromium: steps, plays, follows a message.

Screenshots of every width and theme are kept in out/browser, to be looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tutti.noc import smart
from tutti.report.smart_watch import write_watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SCREENSHOTS = Path(__file__).parents[2] / "out" / "browser"
LOOKS = [(1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Broadcasts and reductions at once, so that everything there is happens."""
    mesh = smart.SmartMesh(design="sfo_greedy", columns=6, rows=6, priority="bypass")
    traffic = [
        smart.Traffic(kind="broadcast", rate=0.006),
        smart.Traffic(kind="reduction", rate=0.2, message_class=1),
    ]
    path = tmp_path_factory.mktemp("watch") / "watch.html"
    return write_watch(path, smart.watch(mesh, traffic, 60))


def cycle(page: Page) -> int:
    text = page.locator("#cycle").inner_text()
    return int(text.removeprefix("cycle "))


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_it_opens_and_nothing_sticks_out(
    opened: Any, watched: Path, width: int, theme: str
) -> None:
    found = opened(watched, width, theme)
    page = found.page
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"watch-{width}-{theme}.png", full_page=True)
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith("file:")] == []
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert page.locator("#mesh .router").count() == 36


def test_it_steps_and_plays(opened: Any, watched: Path) -> None:
    page = opened(watched, 1280, "light").page
    assert cycle(page) == 0
    page.locator("#next").click()
    page.keyboard.press("ArrowRight")
    assert cycle(page) == 2
    page.locator("#back").click()
    assert cycle(page) == 1
    page.keyboard.press("End")
    assert cycle(page) == 59
    page.locator("#first").click()
    page.locator("#speed").fill("4")
    page.locator("#play").click()
    page.wait_for_function("Number(document.getElementById('cycle').textContent.slice(6)) >= 3")
    page.locator("#play").click()
    stands = cycle(page)
    page.wait_for_timeout(300)
    assert cycle(page) == stands


def test_it_follows_a_message(opened: Any, watched: Path) -> None:
    page = opened(watched, 1280, "light").page
    page.locator("#messages button").nth(2).click()
    page.keyboard.press("ArrowRight")
    page.mouse.move(5, 5)
    assert page.locator("#messages li.chosen").count() == 1
    every = page.locator("#mesh .flight").count()
    dim = page.locator("#mesh .flight.dim").count()
    assert every - dim > 0
    page.keyboard.press("Escape")
    assert page.locator("#mesh .dim").count() == 0


def test_the_bar_is_dragged(opened: Any, watched: Path) -> None:
    page = opened(watched, 1280, "light").page
    box = page.locator("#activity").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.up()
    assert cycle(page) == 30
