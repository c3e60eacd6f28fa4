"""Reads CSV files as columns of text, with the line of each row."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import check_lines, read_text
from tutti.formats.measurements.schema import OMITTED, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCATION = frozenset({"file", "_line", "text"})
"""Columns that :func:`read_table` adds."""
_SEPARATORS = ",;\t"
_EXPECTED = "a CSV file of measurements"


def header(line: str) -> list[str]:
    """Returns the names of the columns of a CSV heading, in lower case.

    Examples:
        >>> header("Collective,nodes, vector_bytes")
        ['collective', 'nodes', 'vector_bytes']
    """
    return [name.strip().strip('"').strip().lower() for name in line.split(_separator(line))]


def _separator(line: str) -> str:
    return max(_SEPARATORS, key=line.count)


def read_table(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Reads a CSV file.

    Args:
        path: The file: comma, semicolon or tab separated, with a heading.

    Returns:
        The rows and those that were left out. Columns of the rows are those of the heading, in
        lower case and as text, and `file`, `_line` (from 1) and `text` (the row as written). The
        others have the columns of :data:`~tutti.formats.measurements.OMITTED`. A last row without a
        line ending is left out, since it may be truncated, and so is a row with more cells than the
        heading.

    Raises:
        ConfigError: The file cannot be read, or has quotes that do not end.
    """
    source = str(path)
    content = read_text(path, limits.Bytes.TABLE, _EXPECTED)
    check_lines(content, limits.LINE, source=source)
    lines = [
        (number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()
    ]
    if not lines:
        raise mistake("is empty", source=source, expected=_EXPECTED)
    (_, heading), body = lines[0], lines[1:]
    names = _unique(header(heading))
    cells = _separator(heading)
    omitted = []
    if body and not content.endswith("\n"):
        omitted.append((*body.pop(), "the last row has no line ending: it may be truncated"))
    most = len(names) - 1
    # Polars drops surplus cells without an error.
    longer = [row for row in body if row[1].count(cells) > most and '"' not in row[1]]
    omitted += [(*row, "has more cells than the heading") for row in longer]
    bad = {number for number, _, _ in omitted}
    body = [row for row in body if row[0] not in bad]
    frame = _parsed([line for _, line in body], names, cells, source)
    if frame.height != len(body):
        problem = "a quoted field contains a line break, or its quote does not end"
        raise mistake(problem, source=source, expected=_EXPECTED)
    rows = [(source, number, reason, as_text(line)) for number, line, reason in omitted]
    return _located(frame, body, source), pl.DataFrame(rows, schema=OMITTED, orient="row")


def _located(frame: pl.DataFrame, body: list[tuple[int, str]], source: str) -> pl.DataFrame:
    return frame.with_columns(
        pl.lit(source).alias("file"),
        pl.Series("_line", [number for number, _ in body], dtype=pl.Int64),
        pl.Series("text", [line for _, line in body], dtype=pl.String),
    )


def _unique(names: list[str]) -> list[str]:
    """Returns distinct names: a repeated or an empty name gets its position."""
    found: list[str] = []
    for place, name in enumerate(names):
        taken = not name or name in found or name in LOCATION
        found.append(f"{name} ({place})" if taken else name)
    return found


def _parsed(lines: list[str], names: list[str], cells: str, source: str) -> pl.DataFrame:
    if not lines:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    # Polars counts the columns of the first row.
    missing = len(names) - 1 - lines[0].count(cells)
    first = lines[0] + cells * missing
    try:
        return pl.read_csv(
            io.BytesIO("\n".join([first, *lines[1:]]).encode()),
            has_header=False,
            new_columns=names,
            schema=dict.fromkeys(names, pl.String),
            separator=cells,
            truncate_ragged_lines=True,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise mistake(f"cannot be read: {reason}", source=source, expected=_EXPECTED) from None


_SCALES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def time_column(
    columns: list[str], stems: tuple[str, ...], units: Mapping[str, str] | None = None
) -> tuple[str, float] | None:
    """Returns the first column of a time, and its unit in microseconds.

    Args:
        columns: The names of the columns, in lower case.
        stems: Names without the unit, by preference.
        units: Units of columns whose name has none.

    Examples:
        >>> time_column(["median_ms"], ("median",))
        ('median_ms', 1000.0)
    """
    for stem in stems:
        for unit, scale in _SCALES.items():
            if f"{stem}_{unit}" in columns:
                return f"{stem}_{unit}", scale
        if stem in columns and units and stem in units:
            return stem, _SCALES[units[stem]]
    return None
