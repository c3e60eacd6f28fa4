"""Views in the terminal, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table

    from .view import Fact, View


def show(view: View, console: Console) -> None:
    """Prints a view: headline, inputs or tables, and facts."""
    if view.headline.text:
        console.print(view.headline.text, style="bold", markup=False)
    for before, table in zip((None, *view.tables), view.tables, strict=False):
        if before and before.caption and not table.heading:
            console.print()
        console.print(table)
    facts = view.facts if view.tables else [*view.inputs, *view.facts]
    if any(fact.text for fact in facts):
        if any(table.heading for table in view.tables):
            console.print()
        console.print(facts_table(facts))
    for part in view.below:
        console.print(part, markup=False, soft_wrap=bool(getattr(part, "no_wrap", False)))


def indented(text: str, style: str = "") -> Padding:
    """Returns a text of the terminal with an indentation of two columns on every line."""
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text, style), (0, 0, 0, 2), expand=False)


def facts_table(facts: Sequence[Fact]) -> Table:
    """Returns a table of names and texts; long texts wrap, and a repeated name is omitted."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    previous = ""
    for fact in facts:
        if fact.text:
            table.add_row(f"  {fact.name}:" if fact.name != previous else "", Text(fact.text))
            previous = fact.name
    return table
