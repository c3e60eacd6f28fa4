"""Tables for pages and for the terminal, from one declaration."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from tutti.view.page import Page, Section
from tutti.view.quantity import count, format_time
from tutti.view.tables import MOST_ROWS, Column, ReportTable

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Run:
    name: str
    time_ps: int
    messages: int | None = None


COLUMNS: list[Column[Run]] = [
    Column("run", lambda run: run.name),
    Column("time", lambda run: run.time_ps, format_time, when=lambda run: run.time_ps > 0),
    Column("sent", lambda run: run.messages, count, "messages", terminal=False),
    Column("exact time", lambda run: run.time_ps, count, short="exact", terminal=str),
]
RUNS = [Run("<a>", 1_340_000, 1234), Run("b", 0)]


def test_pages_have_texts_and_sort_keys(tmp_path: Path) -> None:
    table = ReportTable(COLUMNS, RUNS, bold=lambda run: run.name == "b")
    sections = [Section("h", table=table)]
    page = Page(kind="network", kicker="k", question="t?", answer=["1."], facts=[],
                sections=sections)  # fmt: skip
    html = page.write(tmp_path / "r.html").read_text("utf-8")
    assert (
        '<th class="number" data-export="sent (messages)">'
        '<button type="button">sent (messages)</button>' in html
    )
    assert '<td class="text" data-value="&lt;a&gt;">&lt;a&gt;</td>' in html
    assert '<td class="number" data-value="1340000">1.34 us</td>' in html
    assert '<td class="number" data-value="1234">1,234</td>' in html
    assert html.count('<td class="number" data-value="0">-</td>') == 2
    assert html.count('<tr class="wins">') == 1


def test_terminal_drops_columns_that_do_not_fit() -> None:
    text = io.StringIO()
    table = ReportTable(COLUMNS, RUNS, heading="runs", caption="a caption " * 10)
    Console(width=80, file=text).print(table)
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert text.getvalue().endswith("a caption a caption\na caption a caption\n")
    assert lines[:-2] == [
        [],
        ["runs"],
        ["run", "time", "exact"],
        ["<a>", "1.34", "us", "1340000"],
        ["b", "-", "0"],
    ]


def test_truncated_tables_have_a_note() -> None:
    table = ReportTable(COLUMNS, RUNS * MOST_ROWS)
    assert len(table.cells()) == MOST_ROWS
    assert (
        table.cut("r.csv")
        == f"Shows the first {MOST_ROWS:,} of {2 * MOST_ROWS:,} rows; r.csv has all."
    )
    assert not ReportTable(COLUMNS, RUNS).cut("r.csv")


def test_a_narrow_terminal_omits_spare_columns_instead_of_digits() -> None:
    table = ReportTable([*COLUMNS, Column("spare", lambda _: "12345", spare=True)], RUNS)
    shown = {}
    for width in (30, 20):
        console = Console(width=width, file=io.StringIO())
        with console.capture() as captured:
            console.print(table)
        shown[width] = captured.get()
    assert "12345" in shown[30]
    assert "spare" not in shown[20]
    assert "1340000" in shown[20]
