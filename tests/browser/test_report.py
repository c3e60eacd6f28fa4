"""Opens the report of the demo in headless Chromium, reads tooltips and sorts tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from called import call

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo, with some of its algorithms and rank counts."""
    folder = tmp_path_factory.mktemp("demo")
    experiment = ROOT / "examples" / "01_which_all_reduce" / "experiment.toml"
    algorithms = ("-a", "ring", "-a", "recursive_doubling", "-a", "recursive_multiplying")
    words = ("compare", experiment, "--ranks", "4,16,1024", *algorithms, "--out", folder)
    done = call(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "report.html"


def test_report_opens_from_disk_without_errors(inspect_report: Any, report: Path) -> None:
    inspect_report(report, "report", charts=5)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("#case0-map .nsewdrag", ["fastest: ", "runner-up: ", "lead: "]),
        ("#case0-time .scatterlayer .points path", ["ranks: 1,024", "time: ", "busbw: "]),
        ("#case0-busbw .scatterlayer .points path", ["ranks: 1,024", "time: ", "busbw: "]),
        ("#case0-ranks .scatterlayer .points path", ["size: 8 B", "time: "]),
        ("#timeline .barlayer .point path", ["rank ", "step ", " to "]),
    ],
)
def test_charts_have_tooltips(
    page: Page, point_at: Any, selector: str, expected: list[str]
) -> None:
    tooltip = point_at(page, selector)
    for words in expected:
        assert words in tooltip


def test_selected_rank_count_shows_its_curves(opened: Any, report: Path, point_at: Any) -> None:
    page = opened(report).page
    shown = """(id) => [...new Set(document.getElementById(id).data
        .filter((trace) => trace.visible).map((trace) => trace.meta))]"""
    for chart in ("case0-time", "case0-busbw"):
        assert page.evaluate(shown, chart) == [1024]
    page.select_option("#case0-size-choice", "16")
    for chart in ("case0-time", "case0-busbw"):
        page.wait_for_function(f"String(({shown})('{chart}')) === '16'")
    assert "ranks: 16" in point_at(page, "#case0-time .scatterlayer .points path")


def test_a_heading_sorts_the_results(page: Page) -> None:
    times = """() => [...document.querySelectorAll("table.sortable tbody tr")]
        .map((row) => Number(row.cells[3].dataset.value))"""
    heading = page.locator("table.sortable th", has_text="completion time").locator("button")
    heading.click()
    assert page.evaluate(times) == sorted(page.evaluate(times))
    heading.click()
    assert page.evaluate(times) == sorted(page.evaluate(times), reverse=True)


def test_the_charts_follow_the_theme(opened: Any, report: Path) -> None:
    page = opened(report).page
    page.select_option("#case0-size-choice", "16")
    paper = "() => document.querySelector('#case0-time .main-svg').style.background"
    line = """() => getComputedStyle(
        document.querySelector("#case0-time .scatterlayer .js-line")).stroke"""
    light, colour = page.evaluate(paper), page.evaluate(line)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({paper})() !== '{light}'")
    assert page.evaluate(line) != colour
    shown = """() => [...new Set(document.getElementById("case0-time").data
        .filter((trace) => trace.visible).map((trace) => trace.meta))]"""
    assert page.evaluate(shown) == [16]


def test_tables_are_exported_as_csv_with_raw_numbers(page: Page, tmp_path: Path) -> None:
    section = page.locator("section", has=page.locator("h2", has_text="Results"))
    with page.expect_download() as download:
        section.locator("[data-export=csv]").click()
    assert download.value.suggested_filename == "results.csv"
    download.value.save_as(tmp_path / "results.csv")
    frame = pl.read_csv(tmp_path / "results.csv")
    assert frame.columns[:5] == [
        "ranks", "size (B)", "schedule", "completion time (ps)", "slowdown"
    ]  # fmt: skip
    results = pl.read_csv(page.url.removeprefix("file://").replace("report.html", "results.csv"))
    assert sorted(frame["completion time (ps)"]) == sorted(results["time_ps"])
    section.locator("[data-export=copy]").click()
    assert section.locator("[data-export=copy]").inner_text() == "Copied"
    regions = page.locator("section", has=page.locator("table.regions"))
    with page.expect_download() as download:
        regions.locator("[data-export=csv]").click()
    download.value.save_as(tmp_path / "regions.csv")
    found = pl.read_csv(tmp_path / "regions.csv")
    assert found["smallest size (B)"][0] == 8
    assert found["fastest"].str.contains("recursive").any()


CONTRAST = """(element) => {
  const light = (text) => {
    const [r, g, b] = text.match(/\\d+/g).slice(0, 3).map(Number).map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  const [low, high] = [light(getComputedStyle(element).color), light(ground)].sort();
  return (high + 0.05) / (low + 0.05);
}"""
"""The contrast of a text with the background, as in WCAG 2."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_terms_open_and_are_readable(opened: Any, report: Path, theme: str) -> None:
    page = opened(report, theme=theme).page
    terms = page.locator("section.terms")
    assert not terms.locator("dd").first.is_visible()
    terms.locator("summary").click()
    assert terms.locator("dd").first.is_visible()
    for part in ("summary", "dt", "dd", ".source", "li"):
        assert terms.locator(part).first.evaluate(CONTRAST) >= 4.5, part


def test_narrow_charts_show_every_legend_entry(opened: Any, report: Path) -> None:
    page = opened(report, width=390).page
    heights = """() => [...document.querySelectorAll(".chart")].map((chart) => {
        const plot = chart.querySelector(".nsewdrag").getBBox().height;
        const bar = chart.querySelector(".legend .scrollbar")?.getBBox().height ?? 0;
        return [plot, bar];
    })"""
    for plot, bar in page.evaluate(heights):
        assert plot > 80  # three rows of the decision map
        assert bar == 0
