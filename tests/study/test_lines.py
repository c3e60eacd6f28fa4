"""Printed lines have no blanks at their ends."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tutti.study.lines import Trimming
from tutti.view.quantity import count
from tutti.view.tables import Column, ReportTable


def printed(*parts: object, terminal: bool, **options: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=40, highlight=False,
                      color_system="truecolor" if terminal else None)  # fmt: skip
    console.push_render_hook(Trimming())
    for part in parts:
        console.print(part, **options)  # type: ignore[arg-type]
    return text.getvalue()


TABLE = ReportTable(
    [Column("name", lambda row: row[0]), Column("number", lambda row: row[1], count),
     Column("remark", lambda row: row[2], kind="wrap")],
    [("a", 1, "short"), ("longer name", 22, "words " * 8), ("b", 3, "")],
    caption="a caption",
)  # fmt: skip


@pytest.mark.parametrize("terminal", [False, True])
def test_rows_of_tables_have_no_blanks_at_their_ends(*, terminal: bool) -> None:
    lines = printed(TABLE, Text("text   "), terminal=terminal).splitlines()
    assert not [line for line in lines if line.replace("\x1b[0m", "").endswith(" ")]
    assert lines[1].split() == ["a", "1", "short"]
    assert lines[-1] == "text"


def test_blanks_within_lines_and_backgrounds_stay() -> None:
    filled = Text("  ", Style(bgcolor="red"))
    assert printed("a  b", "", "  c ", terminal=False) == "a  b\n\n  c\n"
    assert "  " in printed(filled, terminal=True)


def test_long_lines_of_soft_wrapped_texts_stay() -> None:
    assert printed("x" * 60, terminal=False, soft_wrap=True) == "x" * 60 + "\n"
