"""Files as they stand on disk, up to the TOML tables in them.

Every way in which a file can be unusable before its meaning matters ends here, in a `ConfigError`:
it is missing, a folder, too large, not UTF-8, or not TOML.
"""

from __future__ import annotations

import stat
import tomllib
from typing import TYPE_CHECKING, Any

from tutti.config.mistakes import mistake
from tutti.errors import TuttiError
from tutti.errors.meant import near

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tutti.errors import ConfigError
    from tutti.schedule import Schedule

MAX_BYTES = 1 << 20
"""No configuration that a person wrote is larger; larger files are refused before they are read."""

MAX_SCHEDULE_BYTES = 64 << 20
"""Schedules in text form are larger, but algorithms stream theirs and need no file."""

SCHEDULE_SUFFIX = ".schedule"
"""What tells the name of a file with a schedule from that of an algorithm."""


def read_toml(path: Path, expected: str = "a TOML file", *, hint: str = "") -> dict[str, Any]:
    """Reads a TOML file into tables.

    Args:
        path: The file.
        expected: What errors say it should be.
        hint: What a person may do where there is no such file, nor one with a name that is close.

    Raises:
        ConfigError: The file is missing, no regular file, too large, not UTF-8 or not TOML.
    """
    return parse_toml(read_text(path, MAX_BYTES, expected, hint=hint), source=str(path))


def read_schedule(path: Path) -> Schedule:
    """Reads a schedule in its text form.

    Raises:
        ConfigError: The file is missing, no regular file, too large, not UTF-8 or no schedule.
    """
    from tutti.schedule import Schedule

    text = read_text(path, MAX_SCHEDULE_BYTES, "a schedule in text form")
    try:
        return Schedule.from_text(text)
    except TuttiError as error:
        raise mistake(error.problem, source=str(path), hint=error.hint) from None


def parse_toml(text: str, *, source: str) -> dict[str, Any]:
    """Reads TOML from text; `source` names it in errors.

    Raises:
        ConfigError: The text is not TOML; the message gives line and column.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise mistake(
            "values are nested too deeply to be read", source=source, expected="a few levels"
        ) from None
    except ValueError as error:  # TOMLDecodeError, and numbers of more digits than Python reads
        raise mistake(
            f"not TOML: {_one_line(error)}",
            source=source,
            expected='lines such as `collective = "all_reduce"`',
            hint="text needs quotes, and each key stands once",
        ) from None


def read_text(path: Path, most: int, expected: str, *, hint: str = "") -> str:
    """Reads a text file of at most so many bytes; `expected` says in errors what it should be.

    Raises:
        ConfigError: The file is missing, no regular file, too large or not UTF-8.
    """
    source = str(path)
    try:
        status = path.stat()
        _refuse_unreadable(path, status, most, expected)
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise missing(path, expected, hint=hint) from None
    except TuttiError:
        raise  # such as `is a folder`
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise mistake(f"cannot be read: {reason}", source=source) from None
    if len(data) > most:
        raise _too_large(source, len(data), most, expected)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise mistake(
            f"not text: byte 0x{data[error.start]:02x} at line {line}, column {column} "
            "is not UTF-8",
            source=source,
            expected=f"{expected} in UTF-8",
        ) from None


def missing(path: Path, expected: str, *, hint: str = "") -> ConfigError:
    """The error that a file ends in which is not there; `hint` where no name is close."""
    hint = near(path) or hint
    return mistake("there is no such file", source=str(path), expected=expected, hint=hint)


def _refuse_unreadable(path: Path, status: os.stat_result, most: int, expected: str) -> None:
    source = str(path)
    if stat.S_ISDIR(status.st_mode):
        inside = sorted(p.name for p in path.glob("*.toml"))[:3]
        hint = f"it holds {', '.join(inside)}: name one of them" if inside else ""
        raise mistake("is a folder", source=source, expected=expected, hint=hint)
    if not stat.S_ISREG(status.st_mode):
        raise mistake("is no regular file", source=source, expected=expected)
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
