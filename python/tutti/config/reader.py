"""Files as they stand on disk, up to the TOML tables in them.

Every way in which a file can be unusable before its meaning matters ends here, in a `ConfigError`:
it is missing, a folder, too large, not UTF-8, or not TOML.
"""

from __future__ import annotations

import stat
import tomllib
from typing import TYPE_CHECKING, Any

from tutti.config.mistakes import did_you_mean, mistake

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.errors import ConfigError

MAX_BYTES = 1 << 20
"""No configuration that a person wrote is larger; larger files are refused before they are read."""


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file into tables.

    Raises:
        ConfigError: The file is missing, no regular file, too large, not UTF-8 or not TOML.
    """
    return parse_toml(_read_text(path), source=str(path))


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


def _read_text(path: Path) -> str:
    source = str(path)
    try:
        status = path.stat()
        _refuse_unreadable(path, status.st_mode, status.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise mistake("there is no such file", source=source, hint=_near(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise mistake(f"cannot be read: {reason}", source=source) from None
    if len(data) > MAX_BYTES:
        raise _too_large(source, len(data))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise mistake(
            f"not text: byte 0x{data[error.start]:02x} at line {line}, column {column} "
            "is not UTF-8",
            source=source,
            expected="a TOML file in UTF-8",
        ) from None


def _refuse_unreadable(path: Path, mode: int, size: int) -> None:
    source = str(path)
    if stat.S_ISDIR(mode):
        inside = sorted(p.name for p in path.glob("*.toml"))[:3]
        hint = f"it holds {', '.join(inside)}: name one of them" if inside else ""
        raise mistake("is a folder", source=source, expected="a TOML file", hint=hint)
    if not stat.S_ISREG(mode):
        raise mistake("is no regular file", source=source, expected="a TOML file")
    if size > MAX_BYTES:
        raise _too_large(source, size)


def _too_large(source: str, size: int) -> ConfigError:
    return mistake(
        f"has {size} bytes, which is too large for a configuration",
        source=source,
        expected=f"a TOML file of at most {MAX_BYTES} bytes (1 MiB)",
        hint="is this the right file?",
    )


def _near(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix == ".toml"]
    except OSError:
        return f"the folder {path.parent} does not exist either"
    return did_you_mean(path.name, names)


def _one_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text[:1].lower() + text[1:]
