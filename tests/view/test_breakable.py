"""Names in narrow columns break after their marks, never within words or numbers."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from tutti.view.breakable import Breakable, broken, pieces


@pytest.mark.parametrize(
    ("line", "width", "parts"),
    [
        ("m232g192a4,a4,n232g256a3", 16, ["m232g192a4,a4,", "n232g256a3"]),
        ("m232g192a4,a4,n232g256a3", 10, ["m232g192a4,", "a4,", "n232g256a3"]),
        ("recursive_multiplying:a4,a8", 14, ["recursive_", "multiplying:", "a4,a8"]),
        ("finish skew ns", 8, ["finish", "skew ns"]),
        ("", 8, [""]),
        ("ring", 2, ["ring"]),
    ],
)
def test_lines_break_after_marks_and_blanks(line: str, width: int, parts: list[str]) -> None:
    assert list(broken(line, width)) == parts


@pytest.mark.parametrize("line", ["a4,a4:b_c d", "  two blanks  ", "_,_", "-10 % | x"])
def test_pieces_join_to_the_text(line: str) -> None:
    assert "".join(pieces(line)) == line


def test_cell_breaks_at_the_column_width() -> None:
    table = Table(box=None, width=18, padding=0, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("")
    table.add_row("1", Breakable("m400000g150000a4,a4,a4", "ring", styles=("", "dim")))
    console = Console(width=18, file=io.StringIO(), record=True)
    console.print(table)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines[-3:] == [["1m400000g150000a4,"], ["a4,a4"], ["ring"]]
