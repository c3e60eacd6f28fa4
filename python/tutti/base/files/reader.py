"""Reads files into tables, rows and columns.

All files are read here. A file that is missing, a folder, too large, not UTF-8, malformed, or
beyond the limits of `tutti.base.files.limits` raises a `ConfigError`. `tutti.base.files.validate`
then checks the tables against a schema.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import os
import stat
import tomllib
import zlib
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.repeated import checked_pairs, load_yaml
from tutti.base.suggestions import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import polars as pl

    from tutti.base.errors import ConfigError

_PIECE = 1 << 20
_COPIED = "was it copied completely?"


def read_toml(path: Path, expected: str = "a TOML file", *, hint: str = "") -> dict[str, Any]:
    """Reads a TOML file into tables.

    Args:
        path: The file.
        expected: What the file should be, for errors.
        hint: What to do if no file has this or a similar name.

    Raises:
        ConfigError: The file is missing, not a regular file, too large, not UTF-8 or not TOML.
    """
    text = read_text(path, limits.Bytes.CONFIG, expected, hint=hint)
    is_other = path.suffix.lower() in _OTHERS
    return parse_toml(text, source=str(path), expected=expected if is_other else "")


_OTHERS = {".csv", ".json", ".parquet", ".py", ".sh", ".xml", ".yaml", ".yml"}
"""Endings of files that are not TOML."""
_LINES = (
    'lines such as `key = "text"`, `key = 4` and `[table]`',
    "text needs quotes, and each key may appear once",
)


def parse_toml(text: str, *, source: str, expected: str = "") -> dict[str, Any]:
    """Reads TOML from text; errors name `source`, and what another file than TOML should be.

    Raises:
        ConfigError: The text is not TOML; the message gives line and column.
    """
    stated, hint = (expected, "is this the right file?") if expected else _LINES
    found: dict[str, Any] = _parsed(tomllib.loads, text, "TOML", source, expected=stated, hint=hint)
    return found


def read_json(path: Path, expected: str, most: int = limits.Bytes.CONFIG) -> dict[str, Any]:
    """Reads a JSON object; `expected` states in errors what the file should be.

    Raises:
        ConfigError: The file cannot be read, or is not a JSON object.
    """
    return parse_json(read_text(path, most, expected), source=str(path), expected=expected)


def parse_json(
    text: str, *, source: str, expected: str, parse: Callable[..., Any] = json.loads
) -> dict[str, Any]:
    """Reads a JSON object from text, as `read_json` does.

    Args:
        text: The text.
        source: The name of the text in errors.
        expected: What the text should be, for errors.
        parse: `json.loads`, with other options for formats that need them.

    Raises:
        ConfigError: The text is not a JSON object, or a key has two values that differ.
    """
    unique = partial(parse, object_pairs_hook=checked_pairs(source))
    found = _parsed(unique, text, "JSON", source, expected=expected)
    return _table(found, source, expected)


def read_yaml(path: Path, expected: str) -> dict[str, Any]:
    """Reads a YAML mapping; `expected` states in errors what the file should be.

    Raises:
        ConfigError: The file cannot be read, is not a YAML mapping, or defines a key twice.
    """
    text = read_text(path, limits.Bytes.NETWORK, expected)
    load = partial(load_yaml, source=str(path))
    found = _parsed(load, text, "YAML", str(path), expected=expected)
    return _table(found, str(path), expected)


def read_rows(path: Path, expected: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV file: the number of the first line, and the cells, stripped.

    Raises:
        ConfigError: The file cannot be read, or a line or a field is too long.
    """
    lines = read_text(path, limits.Bytes.TABLE, expected, line=limits.LINE).splitlines()
    reader = csv.reader(lines)
    start = 1
    try:
        for row in reader:
            long = next((cell for cell in row if len(cell) > limits.FIELD), None)
            if long is not None:
                raise _too_long(str(path), start, "field", long, limits.FIELD)
            yield start, [cell.strip() for cell in row]
            start = reader.line_num + 1
    except csv.Error as error:
        raise mistake(f"not CSV: line {start}: {error}", source=str(path)) from None


def read_frame(
    path: Path, expected: str, types: Mapping[str, type[pl.DataType]] | None = None
) -> pl.DataFrame:
    """Reads a Parquet or CSV file, by its suffix; `check_frame` checks its columns.

    Args:
        path: The file.
        expected: What the file should be, for errors.
        types: Types of columns of a CSV file; other types are inferred.

    Returns:
        The frame.

    Raises:
        ConfigError: The file cannot be read, is damaged or too large.
    """
    import polars as pl

    data = read_bytes(path, limits.Bytes.TABLE, expected)
    try:
        with _without_stderr():
            if path.suffix == ".csv":
                return pl.read_csv(io.BytesIO(data), schema_overrides=types)
            return pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PanicException:  # Parquet pages contradict the footer
        reason = "the file is damaged"
    except (pl.exceptions.PolarsError, OSError, UnicodeError, ValueError) as error:
        reason = _one_line(error)
    raise mistake(f"cannot be read: {reason}", source=str(path), expected=expected)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Discards the stderr of libraries: Polars reports its panics there, too."""
    try:
        saved = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    try:
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - not a user's path
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def check_frame(
    frame: pl.DataFrame, columns: Mapping[str, str], *, source: str, expected: str
) -> pl.DataFrame:
    """Checks the columns that a reader uses.

    Args:
        frame: A frame with these columns, and others.
        columns: The kind of each: `count` and `positive` are integers from 0 and from 1 to 2^62,
            `number` is finite and 0 or more, `text` is text, `flag` is true or false. A trailing
            `?` allows nulls.
        source: The name of the frame in errors.
        expected: What the frame should be, for errors.

    Returns:
        The frame, with one type for each of these columns.

    Raises:
        ConfigError: A column is missing, or has an invalid value: the error names the first row.
    """
    import polars as pl

    missing = [name for name in columns if name not in frame.columns]
    if missing:
        problem = f"lacks the columns {', '.join(missing)}"
        raise mistake(problem, source=source, expected=expected)
    casts = {}
    for name, kind in columns.items():
        casts[name] = _checked_column(frame[name], kind, source, expected)
    return frame.with_columns([pl.Series(name, column) for name, column in casts.items()])


_MOST_COUNT = 1 << 62
"""Medians are doubles; the double closest to 2^63 - 1 exceeds the range of results."""
_COLUMN_KINDS = {
    "count": "integers from 0 to 2^62",
    "positive": "integers from 1 to 2^62",
    "number": "finite numbers from 0",
    "text": "text",
    "flag": "true or false",
}


def _checked_column(column: pl.Series, kind: str, source: str, expected: str) -> pl.Series:
    plain, nullable = kind.rstrip("?"), kind.endswith("?")
    found = _of_kind(column, plain)
    if found is None:
        problem = f"holds {str(column.dtype).lower()}"
    else:
        good = found.is_not_null() | column.is_null() if nullable else found.is_not_null()
        if good.all():
            return found
        row = int(good.arg_min() or 0)
        problem = f"row {row + 1}: {shown(column[row])}"
    raise mistake(
        f"column `{column.name}`: {problem}",
        source=source,
        expected=f"{expected}, where it holds {_COLUMN_KINDS[plain]}",
    )


def _of_kind(column: pl.Series, kind: str) -> pl.Series | None:
    """Returns the column with values not of the kind set to null; None for another column type."""
    import polars as pl

    types = {"text": pl.String, "flag": pl.Boolean, "number": pl.Float64}
    if column.dtype == pl.Null:
        return column.cast(types.get(kind, pl.Int64))
    if kind in {"text", "flag"}:
        return column if column.dtype == types[kind] else None
    if kind == "number":
        if not column.dtype.is_numeric():
            return None
        numbers = column.cast(pl.Float64, strict=False)
        return numbers.set(~(numbers.is_finite() & (numbers >= 0)).fill_null(value=True), None)
    if not column.dtype.is_integer():
        return None
    counts = column.cast(pl.Int64, strict=False)
    good = counts.is_between(int(kind == "positive"), _MOST_COUNT)
    return counts.set(~good.fill_null(value=False), None)


def read_text(
    path: Path, most: int, expected: str, *, hint: str = "", line: int | None = None
) -> str:
    """Reads a text file.

    Args:
        path: The file.
        most: The largest size, in bytes.
        expected: What the file should be, for errors.
        hint: What to do if no file has this or a similar name.
        line: Most characters of a line; by default unlimited.

    Raises:
        ConfigError: The file is missing, not a regular file, too large, not UTF-8, or a line is too
            long.
    """
    source = str(path)
    text = decoded(read_bytes(path, most, expected, hint=hint), source=source, expected=expected)
    if line is not None:
        check_lines(text, line, source=source)
    return text


def decoded(data: bytes, *, source: str, expected: str) -> str:
    """Returns the text of a file, without a byte order mark.

    Raises:
        ConfigError: The data are not UTF-8; the message gives line and column.
    """
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise mistake(
            f"not text: byte 0x{data[error.start]:02x} at line {number}, column {column} "
            "is not UTF-8",
            source=source,
            expected=f"{expected} in UTF-8",
        ) from None


def check_lines(text: str, most: int, *, source: str) -> None:
    """Checks that no line is longer than `most` characters.

    Raises:
        ConfigError: A line is longer.
    """
    if len(text) > most:
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > most:
                raise _too_long(source, number, "line", line, most)


@contextmanager
def opened(path: Path, most: int, expected: str, hint: str = "") -> Iterator[BinaryIO]:
    """Opens a file of at most `most` bytes; `expected` states in errors what it should be.

    Raises:
        ConfigError: The file is missing, not a regular file, too large, or cannot be read.
    """
    try:
        _refuse_unreadable(path, path.stat(), most, expected)
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise missing(path, expected, hint=hint) from None
    except TuttiError:
        raise  # such as `is a folder`
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise mistake(f"cannot be read: {reason}", source=str(path)) from None


def read_bytes(path: Path, most: int, expected: str, *, hint: str = "") -> bytes:
    """Reads a file of at most `most` bytes; `expected` states in errors what it should be.

    Raises:
        ConfigError: The file is missing, not a regular file or too large.
    """
    with opened(path, most, expected, hint) as file:
        size = os.fstat(file.fileno()).st_size
        # A buffer of `most` bytes would be allocated at once.
        data = file.read(min(most, size) + 1)
        if size < len(data) <= most:  # the file grew, or has no size
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise _too_large(str(path), len(data), most, expected)
    return data


def read_pieces(path: Path, most: int, expected: str) -> Iterator[str]:
    """Yields the text of a file in pieces of about 1 MiB, decompressed if it is gzipped.

    Memory does not depend on the size of the file. `most` limits the text.

    Raises:
        ConfigError: The file is missing, not a regular file, too large, not UTF-8, or its
            compressed part is truncated or damaged.
    """
    source, size = str(path), 0
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    try:
        _refuse_unreadable(path, path.stat(), most, expected)
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            while piece := file.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise _too_large(source, size, most, expected)
                yield decode(piece)
            yield decode(b"", final=True)
    except FileNotFoundError:
        raise missing(path, expected) from None
    except TuttiError:
        raise
    except UnicodeDecodeError:
        raise mistake("is not UTF-8", source=source, expected=expected) from None
    except (EOFError, zlib.error, OSError, ValueError) as error:
        raise mistake(f"cannot be read: {_one_line(error)}", source=source, hint=_COPIED) from None


def _parsed(
    parse: Callable[[str], Any],
    text: str,
    form: str,
    source: str,
    *,
    expected: str,
    hint: str = "",
) -> Any:  # noqa: ANN401 - any value
    """Returns the parsed text, after checking the limits."""
    try:
        found = parse(text)
        _check_tree(found, source, most=len(text))
    except RecursionError:
        raise _too_deep(source) from None
    except TuttiError:
        raise
    # Decoders raise ValueError, also for numbers of too many digits; YAML has separate errors.
    except Exception as error:
        if not isinstance(error, ValueError) and type(error).__module__.partition(".")[0] != "yaml":
            raise
        problem = f"not {form}: {_one_line(error)}"
        raise mistake(problem, source=source, expected=expected, hint=hint) from None
    return found


def _check_tree(tree: object, source: str, *, most: int) -> None:
    """Rejects deep nesting, numbers of more than 64 bits, and YAML aliases that multiply.

    Without repeated aliases, a text has at most as many values as characters.
    """
    level: list[tuple[str, object]] = [("", tree)]
    for _ in range(limits.DEPTH):
        level = [inner for key, value in level for inner in _inside(key, value, source)]
        most -= len(level)
        if not level:
            return
        if most < 0:
            break
    raise _too_deep(source)


def _inside(key: str, value: object, source: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((f"{key}.{name}" if key else str(name), one) for name, one in value.items())
    elif isinstance(value, list):
        yield from ((f"{key}[{place}]", one) for place, one in enumerate(value))
    elif isinstance(value, int) and not -limits.MOST <= value <= limits.MOST:
        expected = f"an integer of at most {limits.MOST}"
        problem = "the number is too large"
        raise mistake(problem, source=source, key=key, value=shown(value), expected=expected)
    elif isinstance(value, float) and not math.isfinite(value):
        problem = "the number is not finite"
        raise mistake(problem, source=source, key=key, value=shown(value), expected="a number")


def _table(found: object, source: str, expected: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise mistake("is not a table of keys and values", source=source, expected=expected)
    return {str(key): value for key, value in found.items()}


def _too_deep(source: str) -> ConfigError:
    return mistake(
        "values are nested too deeply to be read",
        source=source,
        expected=f"at most {limits.DEPTH} levels",
    )


def _too_long(source: str, line: int, what: str, value: str, most: int) -> ConfigError:
    return mistake(
        f"line {line}: a {what} of {len(value):,} characters",
        source=source,
        value=shown(value),
        expected=f"at most {most:,} characters",
        hint="is this the right file?",
    )


def missing(path: Path, expected: str, *, hint: str = "") -> ConfigError:
    """Returns the error of a missing file; `hint` is used if no file has a similar name."""
    hint = near(path) or hint
    return mistake("there is no such file", source=str(path), expected=expected, hint=hint)


def _refuse_unreadable(path: Path, status: os.stat_result, most: int, expected: str) -> None:
    source = str(path)
    if stat.S_ISDIR(status.st_mode):
        inside = sorted(p.name for p in path.glob("*.toml"))[:3]
        hint = f"it holds {', '.join(inside)}: name one of them" if inside else ""
        raise mistake("is a folder", source=source, expected=expected, hint=hint)
    if not stat.S_ISREG(status.st_mode):
        raise mistake("is not a regular file", source=source, expected=expected)
    if status.st_size > most:
        raise _too_large(source, status.st_size, most, expected)


def _too_large(source: str, size: int, most: int, expected: str) -> ConfigError:
    return mistake(
        f"has {size} bytes, which is too large",
        source=source,
        expected=f"{expected} of at most {most} bytes ({most >> 20} MiB)",
        hint="is this the right file?",
    )


def _one_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text[:1].lower() + text[1:]
