"""Papers are found by the PAPER of their module; their exhibits are selected by number."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tutti.cli import app, paper
from tutti.papers import Exhibit, ExhibitResult, Paper

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path) -> ExhibitResult:
    drawn = folder / "figure-1.svg"
    drawn.write_text("<svg/>")
    frame = pl.DataFrame({"ranks": [4], "found": [3.0], "published": [3.1]})
    return ExhibitResult(frame=frame, source="Fig. 1, read off by hand", figures=(drawn,))


@pytest.fixture(autouse=True)
def one_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = Exhibit(title="time over ranks", make=made)
    paper = Paper(name="one-paper", citation="A. Author 2017", figures={1: figure, 2: figure})
    for where in ("tutti.papers.papers", "tutti.cli.paper.papers"):
        monkeypatch.setattr(where, lambda: {paper.name: paper})


def test_papers_are_listed_with_their_exhibits() -> None:
    output = CliRunner().invoke(app, ["paper"]).output
    assert "one-paper: A. Author 2017" in output
    assert "figure 1: time over ranks" in output


def test_an_exhibit_is_made_and_its_values_are_written(tmp_path: Path) -> None:
    options = ["paper", "one-paper", "--figure", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "Fig. 1, read off by hand" in result.output
    written = pl.read_csv(tmp_path / "one-paper" / "figure_1.csv")
    assert written["published"].to_list() == [3.1]
    assert not (tmp_path / "one-paper" / "figure_2.csv").exists()


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
