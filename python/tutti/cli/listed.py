"""Lists of names and descriptions in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(entries: Iterable[tuple[str, str]]) -> Table:
    """Returns a table of names and descriptions, without headings."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(overflow="fold", max_width=34)
    table.add_column()
    for name, text in entries:
        table.add_row(Text(name), Text(text))
    return table
