"""Views in the terminal, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from .view import Fact, View


def show(view: View, console: Console) -> None:
    """Prints a view: headline, inputs or table, and facts."""
    console.print(view.headline.text, style="bold", markup=False)
    if view.table is None:
        console.print(facts_table([*view.inputs, *view.facts]))
    else:
        console.print(view.table.terminal(view.caption))
        if any(fact.text for fact in view.facts):
            console.print(facts_table(view.facts))
    for table in view.below:
        console.print(table)


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
