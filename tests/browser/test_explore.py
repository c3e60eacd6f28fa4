"""Opens the page of `tutti explore` in headless Chromium: every control, by mouse and keyboard.

Screenshots are written to out/browser for inspection.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="the extra explore is not installed")

from tutti.collectives.experiment import plan
from tutti.collectives.files.resolve import load_experiment
from tutti.explore import engine
from tutti.explore.app import create_app
from tutti.explore.guard import Access
from tutti.explore.jobs import Local
from tutti.explore.state import Base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from tutti.collectives.experiment import ExperimentPlan
    from tutti.collectives.files.resolve import Experiment

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SCREENSHOTS = Path(__file__).parents[2] / "out" / "browser"
IMAGE = SCREENSHOTS / "explore.png"
"""The screenshot of the guide: `docs/images/explore.png` is a copy."""

TABLES = {
    "platform": "infiniband_hdr_fat_tree",
    "collective": "all_reduce",
    "ranks": [4, 8, 16],
    "sizes": {"from": "1 KiB", "to": "16 MiB", "factor": 16},
    "algorithms": ["ring", "recursive_doubling", "recursive_halving_doubling", "bine", "swing"],
}
LOOKS = [(1280, 800, "light"), (390, 844, "dark")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server in this process."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    access = Access("127.0.0.1", listening.getsockname()[1])
    app = create_app(Local(engine.Engine(Base(TABLES, Path()), threads=1)), access)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield access.url
    server.should_exit = True
    thread.join()


@pytest.fixture
def explore(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Opens the page at a width, height and theme, with a state."""
    complaints: list[str] = []
    requests: list[str] = []
    with contextlib.ExitStack() as stack:

        def opening(
            width: int = 1280, height: int = 800, theme: Any = "light", state: Any = None
        ) -> Page:
            viewport: Any = {"width": width, "height": height}
            context = stack.enter_context(
                browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce")
            )
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(address + (f"#{quote(json.dumps(state))}" if state else ""))
            ready(page)
            return page

        yield opening
    # A browser reports each rejected request; the page shows its reason.
    assert [one for one in complaints if "status of 422" not in one] == []
    host = address.partition("/?")[0]
    assert [one for one in requests if not one.startswith((host, "data:", f"blob:{host}"))] == []


def ready(page: Page) -> None:
    page.wait_for_selector("html[data-ready=true]", timeout=60_000)


def until(page: Page, condition: str) -> None:
    """Waits for a condition; `wait_for_function` needs `eval`, which the page's policy refuses."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"not reached: {condition}")


def cells(page: Page) -> list[str]:
    names = "(found) => found.map((one) => one.getAttribute('aria-label'))"
    return list(page.locator(".map button").evaluate_all(names))


def choose(page: Page, number: int) -> None:
    page.locator(".map button").nth(number).click()
    page.wait_for_selector("#timeline canvas")
    ready(page)


@pytest.mark.parametrize(("width", "height", "theme"), LOOKS)
def test_page_fits_every_screen(explore: Any, width: int, height: int, theme: str) -> None:
    page = explore(width, height, theme)
    choose(page, -1)
    assert page.locator(".map button").count() == 12
    assert page.locator("#curve-time .curve").count() == 5
    assert page.locator("#curve-time path.bound").get_attribute("d")
    assert page.locator("#links line").count() > 16
    assert page.locator("#causes .bar span").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.mouse.move(0, 0)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"explore-{width}-{theme}.png", full_page=True)
    if (width, theme) == (1280, "light"):
        page.set_viewport_size({"width": 1080, "height": 700})
        # The page draws again 200 ms after the last change. Only the picture depends on it.
        page.wait_for_timeout(400)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=IMAGE)


def test_a_slower_link_changes_the_map_and_the_address(explore: Any) -> None:
    page = explore()
    before = cells(page)
    slider = page.locator("#parameters input[data-key='topology.links[0].rate']")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    until(page, "document.querySelector('#status').textContent.includes('measurements')")
    ready(page)
    after = cells(page)
    assert after != before
    assert page.locator(".slider.changed output").inner_text() == "12.5 GB/s"
    link = page.url
    again = explore(state=None)
    again.goto(link)
    ready(again)
    until(again, "document.querySelectorAll('.slider.changed').length === 1")
    ready(again)
    assert cells(again) == after
    page.locator("#reset").click()
    ready(page)
    assert cells(page) == before


def test_the_exported_experiment_is_that_of_the_page(explore: Any, tmp_path: Path) -> None:
    page = explore(state={**TABLES, "changes": {"topology.links[1].latency": "1 us"}})
    choose(page, 5)
    sizes = {}
    for kind in ("toml", "html", "trace"):
        with page.expect_download() as download:
            page.locator(f"[data-export={kind}]").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        sizes[path.name] = path.stat().st_size
    assert set(sizes) == {"experiment.toml", "report.html", "run.pftrace"}
    assert min(sizes.values()) > 100
    experiment = load_experiment(tmp_path / "experiment.toml")
    assert experiment.ranks == (4, 8, 16)
    assert experiment.platform.topology is not None
    assert str(experiment.platform.topology.links[1].latency) == "1 us"
    until(page, "document.querySelector('#status').innerText === 'exported'")
    page.locator("#share").click()
    until(page, "document.querySelector('#status').innerText.includes('link')")


def test_every_control_changes_the_comparison(explore: Any) -> None:
    page = explore()
    page.locator("#ranks").fill("4:8")
    page.locator("#ranks").press("Enter")
    until(page, "document.querySelectorAll('.map button').length === 8")
    page.locator("#size-to").fill("1 MiB")
    page.locator("#size-to").press("Enter")
    until(page, "document.querySelectorAll('.map button').length === 6")
    page.select_option("#datatype", "float64")
    page.select_option("#collective", "broadcast")
    page.select_option("#algorithms", "defaults")
    until(page, "document.querySelector('#title').textContent.startsWith('broadcast')")
    ready(page)
    page.select_option("#algorithms", "selected")
    boxes = page.locator("#selected input")
    assert boxes.count() > 3
    ready(page)
    boxes.nth(0).click()
    ready(page)
    page.select_option("#curve-ranks", "4")
    choose(page, 0)
    options = page.locator("#schedule option")
    if options.count() > 1:
        page.select_option("#schedule", index=1)
    page.locator("#path summary").click()
    assert page.locator("#path tbody tr").count() > 0
    page.select_option("#endpoint", "ace")
    until(page, "document.querySelector('#endpoint-found').textContent.includes('all 800 NPUs')")
    page.select_option("#endpoint", "")
    page.select_option("#platform", "cray_xc30")
    until(page, "document.querySelector('#title').textContent.includes('cray_xc30')")
    ready(page)
    assert "no topology" in page.locator("#about").inner_text()
    before = cells(page)
    page.select_option("#model", index=1)
    until(page, "location.hash.includes('model%22%3A%22')")
    ready(page)
    assert cells(page) != before
    page.locator("#size-factor").fill("2")
    page.locator("#size-factor").press("Enter")
    until(page, "document.querySelectorAll('.map button').length === 22")


def test_mistakes_are_shown_and_corrected(explore: Any) -> None:
    page = explore()
    page.locator("#ranks").fill("4, x")
    page.locator("#ranks").press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "ranks" in page.locator("#problem").inner_text()
    page.locator("#ranks").fill("4")
    page.locator("#ranks").press("Enter")
    page.wait_for_selector("#problem", state="hidden")


def test_keyboard_alone_selects_a_cell(explore: Any) -> None:
    page = explore()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.cell") == "8 16384"
    assert page.locator("#tip").is_visible()
    page.keyboard.press("Enter")
    page.wait_for_selector("#timeline canvas")
    assert "8 ranks, 16 KiB" in page.locator("#detail-title").inner_text()


def test_a_long_comparison_is_cancelled(explore: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = explore()
    released = threading.Event()

    def slow(experiment: Experiment, *, done: Callable[[int], object]) -> ExperimentPlan:
        released.wait(60)
        return plan(experiment, done=done)

    monkeypatch.setattr(engine, "plan", slow)
    page.locator("#ranks").fill("32")
    page.locator("#ranks").press("Enter")
    page.locator("#cancel").click()
    assert page.locator("#status").inner_text() == "cancelled"
    released.set()
    page.locator("#ranks").fill("4")
    page.locator("#ranks").press("Enter")
    until(page, "document.querySelectorAll('.map button').length === 4")
