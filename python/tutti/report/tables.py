"""Tables declared once: the page writes them as HTML, the terminal as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.table import Table as TerminalTable

Row = TypeVar("Row")
MOST_ROWS = 3000
"""Rows that a table of a page holds at most; the results file has all of them."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column: how its cells follow from a row.

    Attributes:
        name: The heading.
        get: The value of a row; None is shown as a dash.
        show: Formats the value; without it, the column holds text.
        unit: Of the values, where `show` does not write it.
        kind: How the cells are set: "text", "number", "nowrap", "reason" or "wrap"; by default
            text or number.
        when: The rows that have a value.
        colour: The colour of the swatch before the text.
        soft: A second line in a softer colour.
        terminal: Formats the value for the terminal; whether the terminal shows the column at all.
    """

    name: str
    get: Callable[[Row], Any]
    show: Callable[[Any], str] | None = None
    unit: str = ""
    kind: str = ""
    when: Callable[[Row], bool] | None = None
    colour: Callable[[Row], str] | None = None
    soft: Callable[[Row], str] | None = None
    terminal: Callable[[Any], str] | bool = True

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def style(self) -> str:
        """How the cells are set."""
        return self.kind or ("number" if self.show else "text")

    def value(self, row: Row) -> Any:  # noqa: ANN401 - whatever a row has
        """The value of a row, None without one."""
        return None if self.when and not self.when(row) else self.get(row)

    def text(self, row: Row) -> str:
        """The text for the terminal."""
        show, value = self.terminal if callable(self.terminal) else self.show, self.value(row)
        return "-" if value is None else (show or str)(value)

    def cell(self, row: Row) -> dict[str, Any]:
        """Text, value to sort by, and what else a cell of a page shows."""
        value = self.value(row)
        return {
            "text": "-" if value is None else (self.show or str)(value),
            "key": sort_key(value),
            "colour": self.colour(row) if self.colour else None,
            "soft": self.soft(row) if self.soft else "",
        }


@dataclass(frozen=True)
class ReportTable(Generic[Row]):
    """Columns over rows.

    Attributes:
        columns: What is shown of each row.
        rows: In the order in which they are shown.
        bold: The rows that stand out.
        look: The class of the HTML table; headings of a "sortable" one sort it.
    """

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    bold: Callable[[Row], bool] | None = None
    look: str = "sortable"

    def cells(self) -> list[tuple[bool, list[dict[str, Any]]]]:
        """The first `MOST_ROWS` rows: whether each stands out, and its cells."""
        return [
            (bool(self.bold and self.bold(row)), [column.cell(row) for column in self.columns])
            for row in self.rows[:MOST_ROWS]
        ]

    def cut(self, file: str) -> str:
        """A sentence on the rows that a page leaves out, which `file` has; empty if it has all."""
        every = len(self.rows)
        if every <= MOST_ROWS:
            return ""
        return f" The first {MOST_ROWS:,} of {every:,} rows; {file} has all."

    def terminal(self, caption: str = "") -> TerminalTable:
        """The columns that fit a terminal, as a table of rich."""
        from rich.table import Table as TerminalTable

        table = TerminalTable(
            box=None, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left", caption=caption
        )
        columns = [column for column in self.columns if column.terminal]
        for column in columns:
            justify = "right" if column.style == "number" else "left"
            table.add_column(column.heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for row in self.rows:
            table.add_row(*(column.text(row) for column in columns))
        return table


def sort_key(value: Any) -> object:  # noqa: ANN401 - whatever a row has
    """What a value is sorted by: the mean of an estimate, the first of several, 0 without one."""
    if isinstance(value, tuple):
        value = value[0]
    value = getattr(value, "mean", value)
    return 0 if value is None else value
