"""Quantities of results: one declaration for pages, the terminal, notebooks, files and `--json`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from .breakable import Breakable, unbroken
from .quantity import (
    count,
    estimate,
    exact_size,
    flag,
    format_limit,
    format_rate,
    format_share,
    format_size,
    format_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as TerminalTable
    from rich.text import Text

Row = TypeVar("Row")
_UNLIMITED = 10_000
"""A width in characters that no table exceeds."""
MOST_ROWS = 3000
"""Maximum number of rows of a table on a page; the results file has all rows."""
_UNITS: dict[Any, str] = {
    exact_size: "B",
    format_limit: "fraction",
    format_rate: "B/s",
    format_share: "fraction",
    format_size: "B",
    format_time: "ps",
}
"""The units of the values that these functions format."""


class Cell(NamedTuple):
    """A cell of a page.

    Attributes:
        text: The text.
        key: The sort key.
        half_width: The half-width of the 95 % confidence interval; None without one.
        style: The CSS class.
        colour: The colour of the swatch.
        soft: The second line.
    """

    text: str
    key: object
    half_width: float | None
    style: str
    colour: str | None
    soft: str


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: heading, value of a row and format.

    Attributes:
        name: The heading.
        get: Returns the value of a row. None is shown as a dash.
        show: Formats the value. Without it, the column is text.
        unit: The unit of the values, unless `show` writes it.
        exported: The unit of the values in exported tables, by default that of `show` or `unit`.
        key: The name in files and `--json`; empty if the column is not there. Columns shown by
            `estimate` have a second one, `<key>_half_width`.
        scope: The tables that show the column: "run" for those of one result, "runs" for those
            that compare results, "file" for files and `--json` only. By default all.
        fact: Returns name and text of the fact on a single result in the terminal and in
            notebooks, or None. Or states whether there is one: with the column's name and value.

        kind: The style of the cells: "text", "number", "nowrap", "reason", "wrap", or "hidden"
            for a column of exported tables only. By default text or number.
        when: Returns whether a row has a value.

        colour: Returns the colour of the swatch before the text.
        soft: Returns a second line, in a softer colour.
        short: The heading in the terminal, if it is narrower than on a page; may have markup.
        terminal: Formats the value for the terminal, or states whether the terminal shows the
            column.
        spare: Whether a terminal that is too narrow omits the column; the last ones first.
    """

    name: str
    get: Callable[[Row], Any]
    show: Callable[[Any], str] | None = None
    unit: str = ""
    kind: str = ""
    when: Callable[[Row], bool] | None = None
    colour: Callable[[Row], str] | None = None
    soft: Callable[[Row], str] | None = None
    short: str = ""
    terminal: Callable[[Any], str] | bool = True
    spare: bool = False
    exported: str = ""
    key: str = ""
    scope: Literal["", "run", "runs", "file"] = ""
    fact: Callable[[Row], tuple[str, str] | None] | bool = True

    @property
    def export_heading(self) -> str:
        """Name and unit in exported tables, whose numbers are not scaled."""
        unit = self.exported or _UNITS.get(self.show, "") or self.unit
        return f"{self.name} ({unit})" if unit else self.name

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def style(self) -> str:
        """The style of the cells."""
        return self.kind or ("number" if self.show else "text")

    def value(self, row: Row) -> Any:  # noqa: ANN401 - whatever a row has
        """Returns the value of a row, or None."""
        return None if self.when and not self.when(row) else self.get(row)

    def fact_of(self, row: Row) -> tuple[str, str] | None:
        """Returns name and text of the fact on a result; None without a fact or a value."""
        value = self.value(row)
        if value is None or self.fact is False:
            return None
        if callable(self.fact):
            return self.fact(row)
        if self.show is None or self.scope not in {"", "run"}:
            return None
        return self.name, f"{self.show(value)} {self.unit or self.exported}".strip()

    def text(self, row: Row) -> str:
        """Returns the text for the terminal."""
        show, value = self.terminal if callable(self.terminal) else self.show, self.value(row)
        return "-" if value is None else (show or str)(value)

    def cell(self, row: Row) -> Cell:
        """Returns the cell of a page in a row."""
        value = self.value(row)
        half_width = getattr(value, "half_width", math.nan)
        return Cell(
            "-" if value is None else (self.show or str)(value),
            sort_key(value),
            None if math.isnan(half_width) else half_width,
            self.style,
            self.colour(row) if self.colour else None,
            self.soft(row) if self.soft else "",
        )


@dataclass(frozen=True)
class ReportTable(Generic[Row]):
    """A table of columns and rows.

    Attributes:
        columns: The columns.
        rows: The rows, in display order.
        bold: Returns whether a row is bold.
        look: The class of the HTML table; a "sortable" table is sorted by its headings.
        gap: The spaces between columns in the terminal.
        has_second_lines: Whether the terminal shows the second lines of columns, too.
        heading: The text above the table of the terminal and of notebooks.
        caption: The legend below that table, also in `--json`.
    """

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    bold: Callable[[Row], bool] | None = None
    look: str = "sortable"
    gap: int = 1
    has_second_lines: bool = False
    heading: str = ""
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields heading, table and caption for the terminal."""
        width = options.max_width
        if self.heading:
            yield from _wrapped(f"\n{self.heading}", "bold", console, width)
        yield self._fitted(console, width)
        if self.caption:
            yield from _wrapped(self.caption, "table.caption", console, width)

    def _fitted(self, console: Console, width: int) -> TerminalTable:
        """Returns the table without the spare columns that do not fit: rich would cut digits."""
        from rich.measure import Measurement

        table = self.terminal()
        options = console.options.update(width=_UNLIMITED)
        spare = [column for column in self.narrow if column.spare]
        for omitted in range(1, len(spare) + 1):
            if Measurement.get(console, options, table).maximum <= width:
                break
            left = [column for column in self.columns if column not in spare[-omitted:]]
            table = replace(self, columns=left).terminal()
        return table

    def cells(self, most: int = MOST_ROWS) -> list[tuple[bool, list[Cell]]]:
        """Returns the first `most` rows: whether each is bold, and its cells."""
        return [
            (bool(self.bold and self.bold(row)), [column.cell(row) for column in self.columns])
            for row in self.rows[:most]
        ]

    def cut(self, file: str, most: int = MOST_ROWS) -> str:
        """Returns a sentence on the rows that only `file` has; empty if the page has all rows."""
        every = len(self.rows)
        if every <= most:
            return ""
        return f"Shows the first {most:,} of {every:,} rows; {file} has all."

    @property
    def narrow(self) -> list[Column[Row]]:
        """The columns that the terminal and notebooks show."""
        shown = (column for column in self.columns if column.terminal)
        return [column for column in shown if column.style != "hidden"]

    def terminal(self) -> TerminalTable:
        """Returns the columns for the terminal as a table of rich."""
        from rich.table import Table as TerminalTable

        table = TerminalTable(box=None, pad_edge=False, padding=(0, self.gap, 0, 0))
        columns = self.narrow
        for column in columns:
            table.add_column(
                column.short or column.heading,
                justify="right" if column.style == "number" else "left",
                no_wrap=column.style not in {"wrap", "reason"},
                overflow="fold",
            )
        for row in self.rows:
            style = "bold" if self.bold and self.bold(row) else ""
            cells = (_narrow(column, column.text(row), style) for column in columns)
            table.add_row(*cells)
            if self.has_second_lines and any(
                column.soft and column.soft(row) for column in columns
            ):
                second = ((column, column.soft(row) if column.soft else "") for column in columns)
                table.add_row(*(_narrow(column, text, "dim") for column, text in second))
        return table


def _wrapped(text: str, style: str, console: Console, width: int) -> Iterator[Text]:
    """Yields the lines of a text, without blanks at their ends."""
    from rich.text import Text

    for line in Text(text, style).wrap(console, width):
        line.rstrip()
        yield line


def _narrow(column: Column[Any], text: str, style: str = "") -> Breakable | Text:
    """Returns the cell of a table in the terminal."""
    from rich.text import Text

    if column.style == "wrap":
        return Breakable(unbroken(text), styles=(style,))
    return Text(text, style)


def of_scope(columns: Iterable[Column[Row]], scope: str) -> list[Column[Row]]:
    """Returns the columns that tables of a scope show: "run" or "runs"."""
    return [column for column in columns if column.scope in {"", scope}]


def frame_of(columns: Iterable[Column[Row]], rows: Iterable[Row]) -> pl.DataFrame:
    """Returns a data frame of the columns with a key; absent values and NaN are null.

    Args:
        columns: The columns: integers if shown by `count`, `exact_size`, `format_size` or
            `format_time`, Booleans if by `flag`, texts without `show`, else floats.
        rows: The rows, in order.
    """
    import polars as pl

    several = list(rows)
    series = []
    for column in columns:
        if column.key:
            values = [column.value(row) for row in several]
            kind = _type_of(column)
            means = [getattr(value, "mean", value) for value in values]
            series.append(pl.Series(column.key, means, dtype=kind))
            if column.show is estimate:
                widths = [getattr(value, "half_width", None) for value in values]
                series.append(pl.Series(f"{column.key}_half_width", widths, dtype=kind))
    return pl.DataFrame(series).fill_nan(None)


def records_of(columns: Iterable[Column[Row]], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Returns a mapping per row of the columns with a key, with values of any type.

    Args:
        columns: The columns.
        rows: The rows, in order.
    """
    keyed = [column for column in columns if column.key]
    return [{column.key: column.value(row) for column in keyed} for row in rows]


def _type_of(column: Column[Any]) -> type[pl.DataType]:
    import polars as pl

    types: dict[Any, type[pl.DataType]] = {
        None: pl.String,
        count: pl.UInt64,
        exact_size: pl.Int64,
        flag: pl.Boolean,
        format_size: pl.Int64,
        format_time: pl.Int64,
    }
    return types.get(column.show, pl.Float64)


def sort_key(value: Any) -> object:  # noqa: ANN401 - whatever a row has
    """Returns a sort key: the mean of an estimate, the first item of a tuple, 0 for None."""
    if isinstance(value, tuple):
        value = value[0]
    value = getattr(value, "mean", value)
    return 0 if value is None else value
