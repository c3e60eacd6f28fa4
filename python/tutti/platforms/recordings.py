"""Reads measured noise, skew and traffic from CSV, Parquet or text files.

The name of a column (`detour_ns`, `arrival_us`) or `unit` gives the unit of numbers; numbers
without a unit are errors. Times are rounded to integer picoseconds. In text files `#` starts a
comment, and empty lines are skipped. Errors name file and line.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from tutti import _core
from tutti.base.errors import ConfigError, UnitError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_frame, read_text
from tutti.base.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")

_UNITS = ("ps", "ns", "us", "ms", "s")
_SUFFIX = re.compile(r"_(ps|ns|us|ms|s)$")
_LONGEST_PS = 2**63 - 1


@dataclass(frozen=True)
class _File:
    """A table of text cells, with the line of each row."""

    source: str
    frame: pl.DataFrame
    lines: list[int]
    """The line of each row, from 1; empty for a file without lines."""

    def place(self, row: int) -> str:
        """Returns the place of a row, for messages."""
        return f"line {self.lines[row]}" if self.lines else f"row {row + 1}"


def durations(
    path: str | Path, *, column: str | None = None, unit: str | None = None
) -> list[Time]:
    """Reads durations, one per row.

    Args:
        path: A CSV or Parquet file with a header, or a text file with one duration per line.
        column: The column; by default the only one except `rank`, so that the durations of all
            ranks form one distribution.
        unit: The unit of bare numbers: ps, ns, us, ms or s.

    Raises:
        ConfigError: The file cannot be read, or a cell is not a duration.
    """
    file = _read(Path(path), columns=("duration",))
    names = [name for name in file.frame.columns if name != "rank"]
    if column is None and len(names) != 1:
        raise mistake(
            f"has the columns {', '.join(file.frame.columns)}",
            source=file.source,
            expected="one column of durations, or a `column`",
        )
    return _times(file, _known(file, column or names[0]), unit)


def detours(path: str | Path, *, unit: str = "ns") -> list[tuple[Time, Time]]:
    """Reads a trace of detours: start and duration of each.

    The file has two columns without a header, separated by spaces or tabs, as Netgauge writes and
    LogGOPSim reads them (in ns), or is a CSV or Parquet file with two columns.

    Raises:
        ConfigError: The file cannot be read, or a line is not two times.
    """
    file = _read(Path(path), columns=("start", "duration"))
    if file.frame.width != 2:
        raise mistake(
            f"has {file.frame.width} columns",
            source=file.source,
            expected="two columns: the start of a detour and its duration",
        )
    starts, lengths = (_times(file, name, unit) for name in file.frame.columns)
    for row in range(1, len(starts)):
        if starts[row].ps < starts[row - 1].ps:
            raise mistake(
                f"{file.place(row)}: a detour starts before the previous one",
                source=file.source,
                value=str(starts[row]),
                expected=f"{starts[row - 1]} or later",
            )
    return list(zip(starts, lengths, strict=True))


def arrivals(path: str | Path, *, unit: str | None = None) -> list[list[Time]]:
    """Reads the arrival time of each rank in each recorded repetition.

    The file has a column `rank`, ascending from 0, and a column per repetition; or no column
    `rank`, a column per rank and a row per repetition; or it is text with one time per line, by
    rank.

    Returns:
        A list per repetition, by rank.

    Raises:
        ConfigError: The file cannot be read, ranks are missing, or a cell is not a time.
    """
    file = _read(Path(path), columns=("arrival",))
    names = [name for name in file.frame.columns if name != "rank"]
    columns = [_times(file, name, unit) for name in names]
    if "rank" not in file.frame.columns and file.frame.columns != ["arrival"]:
        return [list(row) for row in zip(*columns, strict=True)]
    for row, rank in enumerate(file.frame["rank"] if "rank" in file.frame.columns else ()):
        if rank != str(row):
            raise mistake(
                f"{file.place(row)}: rank {shown(rank)} appears instead of rank {row}",
                source=file.source,
                expected="ranks 0, 1, 2, ... in ascending order",
            )
    return columns


def flows(path: str | Path, build: Callable[..., F]) -> list[F]:
    """Reads background traffic, one flow per row.

    Columns: source and destination (ranks), bytes; optionally start and period with their unit
    (`start_us`), and count.

    Args:
        path: A CSV or Parquet file with a header.
        build: Called with these values by name for each flow, such as
        `tutti.platforms.conditions.Flow`.

    Raises:
        ConfigError: The file cannot be read, or a row is not a flow.
    """
    file = _read(Path(path), columns=("source", "destination", "bytes"))
    found = {_SUFFIX.sub("", name): name for name in file.frame.columns}
    unknown = set(found) - {"source", "destination", "bytes", "start", "period", "count"}
    missing = {"source", "destination", "bytes"} - set(found)
    if unknown or missing:
        raise mistake(
            f"has the columns {', '.join(file.frame.columns)}",
            source=file.source,
            expected="source, destination, bytes, and optionally start, period and count",
        )
    integers = {name: _counts(file, name) for name in ("source", "destination", "bytes")}
    integers["count"] = _counts(file, "count") if "count" in found else [1] * file.frame.height
    zero = [Time(ps=0)] * file.frame.height
    times = {
        name: _times(file, found[name], None) if name in found else zero
        for name in ("start", "period")
    }
    flows = []
    for row in range(file.frame.height):
        counts = {name: column[row] for name, column in integers.items()}
        size = Size(bytes=counts.pop("bytes"))
        when = {name: column[row] for name, column in times.items()}
        try:
            flows.append(build(size=size, **counts, **when))
        except ConfigError as error:
            problem = f"{file.place(row)}: {error.problem}"
            raise mistake(problem, source=file.source, hint=error.hint) from None
    return flows


def _read(path: Path, *, columns: tuple[str, ...]) -> _File:
    """Reads a file as a table of text; `columns` names the columns of a file without a header."""
    if path.suffix == ".parquet":
        return _parquet(path)
    text = read_text(path, limits.Bytes.TABLE, "a table in text form", line=limits.LINE)
    numbered = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if path.suffix == ".csv":
        header, rows = numbered[:1], numbered[1:]
        separator = ","
    else:
        header, rows = [(0, "\t".join(columns))], [(n, "\t".join(x.split())) for n, x in numbered]
        rows = [(n, "\t".join(_joined(x.split("\t")))) for n, x in rows]
        separator = "\t"
    if not rows:
        raise mistake("is empty", source=str(path), expected="a value on each line")
    width = len(header[0][1].split(separator))
    for number, line in rows:
        if len(line.split(separator)) != width:
            raise mistake(
                f"line {number}: {len(line.split(separator))} values",
                source=str(path),
                value=shown(line),
                expected=f"{width}, as in the header" if header[0][0] else f"{width}",
            )
    table = "\n".join(line for _, line in header + rows).encode()
    try:
        frame = pl.read_csv(io.BytesIO(table), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise mistake(f"is not a table: {error}", source=str(path)) from None
    frame = frame.rename({name: name.strip() for name in frame.columns})
    return _File(str(path), frame.with_columns(pl.all().str.strip_chars()), [n for n, _ in rows])


def _joined(words: list[str]) -> list[str]:
    """Joins numbers and units in the words of a line: `1.5 us` is one value."""
    joined: list[str] = []
    for word in words:
        if word in _UNITS and joined:
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def _parquet(path: Path) -> _File:
    frame = read_frame(path, "a Parquet file with a value in each row")
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    if nested:
        raise mistake(f"column {nested[0]} holds nested values", source=str(path))
    if frame.height == 0:
        raise mistake("is empty", source=str(path), expected="a value in each row")
    return _File(str(path), frame.with_columns(pl.all().cast(pl.String)), [])


def _known(file: _File, column: str) -> str:
    if column in file.frame.columns:
        return column
    raise mistake(
        f"has no column `{column}`",
        source=file.source,
        expected=f"one of {', '.join(file.frame.columns)}",
    )


def _times(file: _File, column: str, unit: str | None) -> list[Time]:
    """Returns a column of times."""
    cells = file.frame[column]
    suffix = _SUFFIX.search(column)
    unit = suffix.group(1) if suffix else unit
    if unit is None:
        return [_with_unit(file, column, row, cell) for row, cell in enumerate(cells)]
    if unit not in _UNITS:
        raise mistake(
            f"unknown unit `{unit}`", source=file.source, expected=f"one of {', '.join(_UNITS)}"
        )
    numbers = cells.cast(pl.Float64, strict=False)
    ps = (numbers * _core.parse_time(f"1 {unit}")).round()
    good = ps.is_between(0, _LONGEST_PS).fill_null(value=False)
    if not good.all():
        row = int(good.arg_min() or 0)
        raise _no_time(file, column, row, cells[row], f"a number of {unit}, zero or more")
    return [Time(ps=value) for value in ps.cast(pl.Int64)]


def _with_unit(file: _File, column: str, row: int, cell: str | None) -> Time:
    """Returns the time in a cell that includes a unit."""
    try:
        return Time.parse(cell or "")
    except UnitError:
        expected = (
            'a time with its unit, such as "1.5 us", or a unit for the column: in its name '
            f"(`{column}_us`), or as `unit`"
        )
        raise _no_time(file, column, row, cell, expected) from None


def _no_time(file: _File, column: str, row: int, cell: str | None, expected: str) -> Exception:
    return mistake(
        f"{file.place(row)}: column {column} is not a time",
        source=file.source,
        value=shown(cell if cell is not None else ""),
        expected=expected,
    )


def _counts(file: _File, column: str) -> list[int]:
    """Returns a column of integers."""
    cells = file.frame[column]
    counts = cells.cast(pl.Int64, strict=False)
    good = (counts >= 0).fill_null(value=False)
    if not good.all():
        row = int(good.arg_min() or 0)
        raise mistake(
            f"{file.place(row)}: column {column} is not a count",
            source=file.source,
            value=shown(cells[row] or ""),
            expected="an integer, zero or more",
        )
    return counts.to_list()
