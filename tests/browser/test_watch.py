"""Opens the page of `tutti noc watch` in headless Chromium: steps, plays, follows a message.

Screenshots of every width and theme are written to out/browser for inspection.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tutti.networks import mesh as smart
from tutti.networks.mesh.view.watch import write_watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SCREENSHOTS = Path(__file__).parents[2] / "out" / "browser"
PLAY_ALL = """() => {
  const boxes = (found) =>
    [...document.querySelectorAll(found)].map((one) => one.getBoundingClientRect());
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const letters = new Set();
  let covered = 0;
  for (let cycle = 0; cycle < 60; cycle += 1) {
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    const names = boxes("#mesh .name");
    covered += boxes("#mesh .badge").filter((one) => names.some((name) => meet(one, name))).length;
    for (const one of document.querySelectorAll("#mesh .letter")) letters.add(one.textContent);
  }
  return [[...letters], covered];
}"""
"""Steps through all cycles, and returns the badges and the number of badges that cover a label."""
LOOKS = [(1280, "light"), (800, "dark")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of broadcasts and reductions, which have all kinds of events."""
    mesh = smart.SmartMesh(design="sfo_greedy", columns=6, rows=6, priority="bypass")
    traffic = [
        smart.Traffic(kind="broadcast", rate=0.006),
        smart.Traffic(kind="reduction", rate=0.2, message_class=1),
    ]
    path = tmp_path_factory.mktemp("watch") / "watch.html"
    return write_watch(path, smart.watch(mesh, traffic, 60))


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of unicasts that cause premature stops in every direction, on a wide mesh."""
    mesh = smart.SmartMesh(design="smart_1d", columns=8, rows=4)
    traffic = [smart.Traffic(kind="unicast", rate=0.3)]
    path = tmp_path_factory.mktemp("crowded") / "watch.html"
    return write_watch(path, smart.watch(mesh, traffic, 60))


def cycle(page: Page) -> int:
    text = page.locator("#cycle").inner_text()
    return int(text.removeprefix("cycle "))


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_page_opens_without_overflow(opened: Any, watched: Path, width: int, theme: str) -> None:
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


def test_page_steps_and_plays(opened: Any, watched: Path) -> None:
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
    paused = cycle(page)
    # Playing on, it would show 3 to 4 cycles meanwhile. A slow page cannot fail: it shows fewer.
    page.wait_for_timeout(300)
    assert cycle(page) == paused


def test_page_follows_a_message(opened: Any, watched: Path) -> None:
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


def test_the_bar_is_dragged_along_its_axis(opened: Any, watched: Path) -> None:
    page = opened(watched, 1280, "light").page
    box = page.locator("#activity").bounding_box()
    to = page.locator("#activity .across", has_text="30").bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(to["x"] + to["width"] / 2, box["y"] + 20)
    page.mouse.up()
    assert cycle(page) == 30
    most = int(page.locator("#activity .up").first.text_content() or 0)
    bars = page.locator("#activity rect:not(.ground)").evaluate_all(
        "(found) => found.map((one) => one.getBoundingClientRect().height)"
    )
    flits = max(reached + stopped for reached, stopped in zip(bars[::2], bars[1::2], strict=True))
    ground = page.locator("#activity .ground").bounding_box()["height"]
    assert most > 1
    assert flits == pytest.approx(ground, abs=1)


def test_the_legend_is_visible_without_scrolling(opened: Any, watched: Path) -> None:
    page = opened(watched, 1280, "light").page
    page.set_viewport_size({"width": 1280, "height": 800})
    legend = page.locator("#legend").bounding_box()
    assert legend["y"] + legend["height"] <= 800
    assert page.locator("#legend li").count() >= 9


def test_the_legend_lists_all_badges_and_none_covers_a_label(opened: Any, crowded: Path) -> None:
    page = opened(crowded, 1280, "light").page
    letters, covered = page.evaluate(PLAY_ALL)
    assert letters
    assert covered == 0
    assert sorted(letters) == sorted(page.locator("#legend .letter").all_text_contents())


def test_the_list_of_messages_names_unicasts(opened: Any, crowded: Path) -> None:
    page = opened(crowded, 1280, "light").page
    assert page.locator("#messages button").first.inner_text().startswith("0: unicast from (")
