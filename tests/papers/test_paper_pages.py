"""The pages of papers: counts of values and of conclusions are those of the stored comparison."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tutti_papers.claims import tallies
from tutti_papers.overview import Overview, overview

PAGES = Path(__file__).parents[2] / "docs" / "papers"
PAPERS = {one.paper.name: one for one in overview() if one.comparisons}
COUNTS = re.compile(
    r"\*\*(\d+) of (\d+) distinct simulated values are within 15 % by default, "
    r"(\d+) of (\d+) in the best joint reading\*\*"
)
REMEDY = "correct the page, or run `make papers` if the stored comparison is stale"


def page(name: str) -> str:
    return " ".join((PAGES / f"{name}.md").read_text("utf-8").split())


def of_default(paper: Overview) -> tuple[int, int]:
    return tallies(claim for _, claim in paper.claims)["simulated"]


@pytest.mark.parametrize("name", PAPERS)
def test_pages_state_the_counts_of_the_default_and_of_the_best_reading(name: str) -> None:
    paper = PAPERS[name]
    (stated,) = COUNTS.findall(page(name))
    default, best = (int(stated[0]), int(stated[1])), (int(stated[2]), int(stated[3]))
    assert default == of_default(paper), REMEDY
    # A paper without stored joint readings has its default as the best one.
    readings = [(one.met, one.values) for one in paper.readings]
    assert best == max([default, *readings]), REMEDY


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_of_all_papers_has_the_same_counts(name: str) -> None:
    met, values = of_default(PAPERS[name])
    assert f"| [{name}]({name}.md) | {met} of {values} |" in page("README"), REMEDY


def test_times_of_table_2_are_counted_on_the_page() -> None:
    (table,) = (
        one for one in PAPERS["recursive-multiplying"].comparisons if one.exhibit == "table 2"
    )
    met, values = tallies(table.claims)["simulated"]
    row = f"| predicted minima and medians of Table 2, within 15 % | {met} of {values} |"
    assert row in page("recursive-multiplying"), REMEDY


@pytest.mark.parametrize("name", PAPERS)
def test_pages_list_every_conclusion_with_its_verdict(name: str) -> None:
    """A row has `yes`, `no`, or the number of its conclusions that hold."""
    text = (PAGES / f"{name}.md").read_text("utf-8")
    table = text.partition("| conclusion | holds |")[2].partition("\n\n")[0]
    held = values = 0
    for line in table.splitlines()[2:]:
        cell = line.split("|")[2].strip()
        verdict = re.fullmatch(r"yes|no|(\d) of (\d)", cell)
        assert verdict, line
        met, of = verdict.groups()
        held += int(met) if met else cell == "yes"
        values += int(of) if of else 1
    assert f"{held} of {values}" == PAPERS[name].held, REMEDY
