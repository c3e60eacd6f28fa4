"""Reads tables of measured values whose columns are known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.measurements.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polars._typing import PolarsDataType


def read_columns(
    path: str | Path, columns: Mapping[str, PolarsDataType], *, optional: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Reads columns of a CSV file, all of whose rows must be complete.

    Args:
        path: The CSV file, with a heading.
        columns: The columns to read and their types. Numbers must be positive, except those of the
            columns `question` and `run`, which may be 0. An `Enum` accepts its categories.
        optional: Columns whose cells may be empty.

    Returns:
        The rows with these columns, in the order of the file.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or a row is damaged; the message has
            file, line, value and what was expected.
    """
    source = str(path)
    raw, damaged = read_table(Path(path))
    expected = f"the columns {', '.join(columns)}"
    for name in columns:
        if name not in raw.columns:
            raise mistake(f"lacks the column {name}", source=source, expected=expected)
    if damaged.height:
        one = damaged.row(0, named=True)
        raise mistake(str(one["reason"]), source=f"{source}, line {one['line']}")
    if raw.is_empty():
        raise mistake("has no rows", source=source, expected=expected)
    texts = raw.select(pl.col(name).str.strip_chars().fill_null("") for name in columns)
    found = texts.select(
        pl.col(name) if kind == pl.String else pl.col(name).cast(kind, strict=False)
        for name, kind in columns.items()
    )
    for name, kind in columns.items():
        wrong = _wrong(texts[name], found[name], kind, may_be_empty=name in optional)
        for place in wrong.arg_true()[:1]:
            raise mistake(
                f"{name} is not valid",
                source=f"{source}, line {raw['_line'][place]}",
                value=shown(texts[name][place]),
                expected=_expected(name, kind),
            )
    return found


_MAY_BE_ZERO = ("question", "run")


def _wrong(
    texts: pl.Series, values: pl.Series, kind: PolarsDataType, *, may_be_empty: bool
) -> pl.Series:
    """Returns which cells are not of the kind."""
    empty = texts == ""
    if kind == pl.String:
        return empty & (not may_be_empty)
    if isinstance(kind, pl.Enum):
        return values.is_null() & ((texts != "") | (not may_be_empty))
    least = values < 0 if texts.name in _MAY_BE_ZERO else values <= 0
    bad = values.is_null() | least.fill_null(value=True)
    if kind == pl.Float64:
        bad |= ~values.is_finite().fill_null(value=False)
    return pl.select(pl.when(empty).then(not may_be_empty).otherwise(bad)).to_series()


def _expected(name: str, kind: PolarsDataType) -> str:
    if kind == pl.String:
        return "a text"
    if isinstance(kind, pl.Enum):
        return f"one of {', '.join(kind.categories)}"
    number = "an integer" if kind == pl.Int64 else "a number"
    return f"{number} of at least 0" if name in _MAY_BE_ZERO else f"{number} above 0"
