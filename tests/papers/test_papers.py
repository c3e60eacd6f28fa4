"""Papers are found by the PAPER of their module; their exhibits are selected by number.

The stored comparison of all papers has every exhibit, and the values that the code has.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tutti.base.errors import ConfigError
from tutti.cli import app
from tutti.cli import paper as entry
from tutti_papers import Claim, Conclusion, Exhibit, ExhibitResult, Paper, Reading, papers, summary
from tutti_papers import command as paper
from tutti_papers.aries.published import ENERGY_SAVED, SPEEDUPS
from tutti_papers.claims import tallies
from tutti_papers.overview import overview, papers_page
from tutti_papers.recursive_multiplying.archer import CALIBRATED
from tutti_papers.recursive_multiplying.published import TABLE_2

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path) -> ExhibitResult:
    drawn = folder / "figure-1.svg"
    drawn.write_text("<svg/>")
    frame = pl.DataFrame({"ranks": [4], "found": [3.0], "published": [3.1]})
    return ExhibitResult(
        frame=frame,
        published=[
            Claim(quantity="time, us", published=3.1, computed=3.0, certainty="figure"),
            Claim(quantity="rate", published=(2.0, math.inf), computed=1.0),
            Claim(quantity="energy", published=1.0, computed=math.nan),
        ],
        conclusions=[Conclusion(statement="it is faster", holds=True, why="3 of 4")],
        readings=[Reading(name="default", meaning="as the text states", met=1, values=2)],
        source="Fig. 1, read off by hand",
        figures=(drawn,),
    )


@pytest.fixture
def one_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = Exhibit(title="time over ranks", make=made)
    paper = Paper(name="one-paper", citation="A. Author 2017", figures={1: figure, 2: figure})
    for where in ("tutti_papers.papers", "tutti_papers.overview.papers"):
        monkeypatch.setattr(where, lambda: {paper.name: paper})


def test_without_the_distribution_the_command_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "entry_points", lambda **_: ())
    with pytest.raises(ConfigError, match="reproductions of papers are not installed") as caught:
        entry.find_paper_command()(None)
    assert caught.value.hint.startswith("pip install tutti-papers")


@pytest.mark.usefixtures("one_paper")
def test_papers_are_compared_from_the_stored_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = summary.comparison_of("one-paper", "figure 1", "time over ranks", made(tmp_path))
    for where in ("tutti_papers.overview.stored", "tutti_papers.command.stored"):
        monkeypatch.setattr(where, lambda: [found])
    output = " ".join(CliRunner().invoke(app, ["paper"]).output.split())
    assert "one-paper: A. Author 2017" in output
    assert "1 of 2 published values" in output
    assert "1 of 1 conclusions hold" in output
    assert "figure 1: time over ranks (1 of 2 values, 1 of 1 conclusions)" in output
    assert "figure 2: time over ranks (not stored)" in output
    assert "it is faster" in output
    assert "what the text leaves open default: 1 of 2 simulated values: as the text" in output
    assert "conclusions of the paper that hold it is faster 3 of 4" in output
    shown = json.loads(CliRunner().invoke(app, ["paper", "--json"]).stdout)["tables"]["exhibits"]
    assert summary.read(json.dumps(shown))[0].claims[:2] == found.claims[:2]
    page = papers_page()
    assert "| time, us | 3.1 (figure) | 3 | yes |" in page
    assert "- It is faster. Holds: 3 of 4." in page
    assert "- Reading default: 1 of 2 simulated values: as the text states." in page
    assert "| [one-paper](one-paper.md) | 1 of 2 |  |  | 1 of 1 |" in page


def test_claims_survive_storage_and_replace_their_exhibit(tmp_path: Path) -> None:
    found = summary.comparison_of("one-paper", "figure 1", "time over ranks", made(tmp_path))
    assert summary.read(summary.dumped([found]))[0].claims[:2] == found.claims[:2]
    assert math.isnan(found.claims[2].computed)
    assert summary.read(summary.dumped([found]))[0].readings == found.readings
    other = replace(found, exhibit="figure 2")
    summary.store(tmp_path, found)
    summary.store(tmp_path, other)
    path = summary.store(tmp_path, replace(found, title="another"))
    assert [(one.exhibit, one.title) for one in summary.read(path.read_text("utf-8"))] == [
        ("figure 1", "another"),
        ("figure 2", "time over ranks"),
    ]
    assert len(summary.distinct([found, other])) == 2, "repeated claims count once"
    path.write_text("[{}]", "utf-8")
    with pytest.raises(ConfigError, match="not a comparison of `tutti paper`"):
        summary.store(tmp_path, found)


RERUN = {
    "ace": ("table 4",),
    "aries": ("figure 5", "table 1"),
    "recursive-multiplying": ("figure 3", "figure 17", "figure 21"),
}
"""Exhibits that take no time."""
REMEDY = "stale: run `make papers`"


def test_readings_and_pages_count_the_same_values() -> None:
    """The first reading of a paper is its default, whose values the pages list."""
    counted = [one for one in overview() if one.readings]
    assert counted
    for one in counted:
        default = one.readings[0]
        found = tallies(claim for _, claim in one.claims)["simulated"]
        assert (default.met, default.values) == found, one.paper.name


def test_stored_comparisons_are_of_known_exhibits() -> None:
    known = {
        (name, label): exhibit.title
        for name, paper in papers().items()
        for label, exhibit in paper.exhibits()
    }
    stored = {one.key: one.title for one in summary.stored()}
    assert stored == {key: known.get(key) for key in stored}, REMEDY
    assert {name for name, _ in stored} >= set(RERUN), REMEDY


@pytest.mark.parametrize(
    ("name", "label"), [(n, label) for n, some in RERUN.items() for label in some]
)
def test_stored_comparison_is_what_the_code_computes(name: str, label: str, tmp_path: Path) -> None:
    exhibit = dict(papers()[name].exhibits())[label]
    found = summary.comparison_of(name, label, exhibit.title, exhibit.make(tmp_path))
    (stored,) = (one for one in summary.stored() if one.key == found.key)
    assert stored.claims == found.claims, REMEDY
    assert stored.conclusions == found.conclusions, REMEDY


def test_stored_comparison_has_the_published_values_of_the_code() -> None:
    stored = {one.key: {claim.published for claim in one.claims} for one in summary.stored()}
    predicted = [row for row in TABLE_2 if row.ranks not in CALIBRATED]
    expected = {
        ("aries", "figure 10"): {value for one in SPEEDUPS.values() for value in one},
        ("aries", "figure 11"): {value for one in ENERGY_SAVED.values() for value in one},
        ("recursive-multiplying", "table 2"): {
            value for row in predicted for value in (*row.minimum, *row.median)
        },
    }
    for key, values in expected.items():
        assert key not in stored or values <= stored[key], REMEDY


@pytest.mark.usefixtures("one_paper")
def test_an_exhibit_is_made_and_its_values_are_written(tmp_path: Path) -> None:
    options = ["paper", "one-paper", "--figure", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "Fig. 1, read off by hand" in result.output
    written = pl.read_csv(tmp_path / "one-paper" / "figure_1.csv")
    assert written["published"].to_list() == [3.1]
    assert not (tmp_path / "one-paper" / "figure_2.csv").exists()
    assert "1 of 2 published values within 15 %. Holds: it is faster" in result.output
    text = (tmp_path / "one-paper" / summary.FILE).read_text("utf-8")
    assert [one.exhibit for one in summary.read(text)] == ["figure 1"]


@pytest.mark.usefixtures("one_paper")
def test_another_reading_needs_a_paper_that_has_readings(tmp_path: Path) -> None:
    options = ["paper", "one-paper", "--reading", "text", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "the exhibits of one-paper have one reading" in result.output
    for option in (["--reading", "text"], ["--figure", "3"], ["--table", "1"], ["--out", "x"]):
        result = CliRunner().invoke(app, ["paper", *option])
        assert result.exit_code == 2
        assert f"{option[0]}: expected a paper" in result.output


def test_refused_readings_name_the_tables_that_compare_them() -> None:
    compared = {"ace": "`readings` and `score` of figure 11", "smart": "tables 2, 3 and 4"}
    for name, tables in compared.items():
        result = CliRunner().invoke(app, ["paper", name, "--reading", "best"])
        assert result.exit_code == 2
        assert tables in " ".join(result.output.split())


def test_another_reading_has_a_folder_of_its_own(tmp_path: Path) -> None:
    options = ["paper", "aries", "--figure", "5", "--out", str(tmp_path)]
    for more in ([], ["--reading", "wires=1"]):
        result = CliRunner().invoke(app, [*options, *more])
        assert result.exit_code == 0, result.output
    default, other = (
        pl.read_csv(tmp_path / "aries" / folder / "figure_5_published.csv")["ours"][-1]
        for folder in ("", "reading-wires=1")
    )
    assert other < default


def test_a_reading_without_effect_is_remarked(tmp_path: Path) -> None:
    options = ["paper", "aries", "--reading", "one-wire", "--out", str(tmp_path)]
    for label, has_effect in (("table", False), ("figure", True)):
        number = "5" if has_effect else "1"
        result = CliRunner().invoke(app, [*options, f"--{label}", number])
        assert result.exit_code == 0, result.output
        remarked = f"--reading has no effect on {label} {number}" in result.output
        assert remarked != has_effect


@pytest.mark.usefixtures("one_paper")
def test_unknown_exhibit_is_refused(tmp_path: Path) -> None:
    options = ["paper", "one-paper", "--table", "2", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "has no table 2: expected one of figure 1, figure 2" in result.output


def test_wide_tables_continue_below_without_breaking_words() -> None:
    names = ["ranks", *(f"completion_of_schedule_{index}_ns" for index in range(11)), "note"]
    cells = [4, *(1.25e6 + index for index in range(11)), "published | ours (+10 %)"]
    frame = pl.DataFrame([cells], schema=names, orient="row")
    shown = paper.tables(frame, "table 7", 80)
    assert [table.title for table in shown] == ["table 7", "table 7, continued"]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(*shown)
    words = console.export_text().split(" ")
    for word in (
        "ranks",
        "completion",
        "schedule",
        "published",
        "1250010.0",
        "(+10\N{NO-BREAK SPACE}%)",
    ):
        assert any(word == found.strip() for found in words), word
    assert sum("ranks" in found for found in words) == 2, "each part identifies its rows"
