"""File formats of other tools, and of tutti, that `tutti convert` reads and writes.

A format reads files into one of four contents, and writes that content. A conversion between
contents exists in one direction only: a schedule of a given size becomes a trace, and a trace
becomes messages.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from tutti.base.bundled import bundled
from tutti.base.files.mistakes import known_name, mistake
from tutti.base.files.reader import missing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.base.units import Size

    Reader = Callable[[Path, "Options"], tuple[Any, tuple[str, ...]]]
    Writer = Callable[[Any, Path, "Options"], tuple[str, ...]]

INFERRED = "inferred: "
"""The start of a line about a value that a file does not state, among the lines of losses."""


def stated(line: str) -> str:
    """Returns the remark about a loss or an inferred value."""
    return line if line.startswith(INFERRED) else f"lost: {line}"


Content = Literal["schedule", "trace", "topology", "messages"]
"""What a file holds: a `tutti.Schedule`, `tutti.workloads.operations.Trace`, `tutti.Topology` or
`tutti.formats.messages.Messages`."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a conversion. A format refuses those that it does not list.

    Attributes:
        size: The payload by the collective's convention, for formats with sizes.
        algorithm: The algorithm that replaces collectives by messages.
        repair: Whether faults with a known repair are repaired.
        groups: A file of process groups, for traces that name groups.
        set: Values that a file takes from the command line of its tool, each ``KEY=VALUE``.
    """

    size: Size | None = None
    algorithm: str | None = None
    repair: bool = False
    groups: Path | None = None
    set: tuple[str, ...] = ()

    def given(self) -> tuple[str, ...]:
        """Returns the names of the options that differ from their defaults."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name) != each.default)


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format.

    Attributes:
        name: The name, such as ``"msccl-xml"``.
        content: What its files hold.
        endings: File endings, such as ``".xml"``; several formats may share one.
        summary: One line for the list of formats.
        source: Project, file and version that define the format.
        read: Reads a file. Returns the content and one line per loss: each part of the file
            that the content does not represent. None if the format is write-only.
        write: Writes a file and returns one line per loss. None if the format is read-only.
        matches: Whether the first bytes of a file (at most 4,096) have this format.
        files: Returns the files that `write` creates for a value and a path. None if it is the
            path.
        read_options: The options that `read` honours.
        write_options: The options that `write` honours.
    """

    name: str
    content: Content
    endings: tuple[str, ...]
    summary: str
    source: str
    read: Reader | None = None
    write: Writer | None = None
    matches: Callable[[bytes], bool] | None = None
    files: Callable[[Any, Path], list[Path]] | None = None
    read_options: tuple[str, ...] = ()
    write_options: tuple[str, ...] = ()

    def reader(self, *, option: str = "--from") -> Reader:
        """Returns the function `read`.

        Raises:
            ConfigError: The format is write-only; `option` names it.
        """
        if self.read is None:
            able = ", ".join(each.name for each in formats() if each.read)
            raise mistake(f"{self.name} is write-only", source=option, expected=f"one of {able}")
        return self.read

    def writer(self, *, option: str = "--to") -> Writer:
        """Returns the function `write`.

        Raises:
            ConfigError: The format is read-only; `option` names it.
        """
        if self.write is None:
            able = ", ".join(each.name for each in formats() if each.write)
            raise mistake(f"{self.name} is read-only", source=option, expected=f"one of {able}")
        return self.write


_HEAD = 4096


@cache
def formats() -> tuple[Format, ...]:
    """Returns all formats in the order of their names; none of their modules is imported."""
    tables = bundled("formats/formats.toml")
    return tuple(_format(name, **table) for name, table in tables.items())


def named(name: str, *, option: str) -> Format:
    """Returns the format of a name.

    Raises:
        ConfigError: No format has the name.
    """
    known = {each.name: each for each in formats()}
    return known[known_name(name, known, what="format", source=option)]


def head(path: Path) -> bytes:
    """Returns the first bytes of a file, from which its format is recognised.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except FileNotFoundError:
        raise missing(path, "a file of a known format") from None
    except OSError as error:
        raise mistake(f"cannot be read: {error.strerror}", source=str(path)) from None


def recognised(
    path: Path,
    start: bytes | None,
    *,
    option: str,
    contents: tuple[Content, ...] = get_args(Content),
) -> Format:
    """Returns the format of a file, from its ending and, for input, its first bytes.

    Args:
        path: The file.
        start: The first bytes of an input file; None for an output file.
        option: The option that names a format explicitly, for the error.
        contents: Contents that decide if several formats have the ending.

    Raises:
        ConfigError: No format fits, or several do.
    """
    usable = [each for each in formats() if (each.write if start is None else each.read)]
    fitting = [each for each in usable if any(path.name.endswith(end) for end in each.endings)]
    if start is not None:
        fitting = [each for each in fitting if each.matches is None or each.matches(start)] or [
            each for each in usable if each.matches is not None and each.matches(start)
        ]
    fitting = [each for each in fitting if each.content in contents] or fitting
    if len(fitting) == 1:
        return fitting[0]
    choices = fitting or [each for each in usable if each.content in contents]
    raise mistake(
        "several formats have this ending" if fitting else "unknown format",
        source=str(path),
        expected=f"{option} with one of {', '.join(each.name for each in choices)}",
    )


def _format(
    name: str,
    *,
    matches: list[str] | None = None,
    may_be_gzipped: bool = False,
    without_options: bool = False,
    arguments: dict[str, Any] | None = None,
    **keys: Any,  # noqa: ANN401 - each key has its type
) -> Format:
    """Returns the format that a table of `formats.toml` describes."""
    patterns = [re.compile(pattern.encode()) for pattern in matches or ()]

    def is_match(start: bytes) -> bool:
        text = _unpacked(start) if may_be_gzipped else start
        return all(pattern.search(text) for pattern in patterns)

    for key in {"read", "write", "files"} & keys.keys():
        keys[key] = _at(keys[key], takes_options=not without_options, **arguments or {})
    for key in {"endings", "read_options", "write_options"} & keys.keys():
        keys[key] = tuple(keys[key])
    return Format(name=name, matches=is_match if patterns else None, **keys)


def _at(place: str, *, takes_options: bool = True, **fixed: object) -> Callable[..., Any]:
    """Returns a function that calls the function at a place, whose module it imports then.

    Args:
        place: The module below this package, and the function.
        takes_options: Whether the function takes the options of the conversion.
        fixed: Further arguments.
    """
    module, _, name = place.partition(":")

    def call(*arguments: object) -> Any:  # noqa: ANN401 - the content depends on the format
        function = getattr(import_module(f"tutti.formats.{module}"), name)
        return function(*(arguments if takes_options else arguments[:-1]), **fixed)

    return call


def _unpacked(start: bytes) -> bytes:
    """Returns the first bytes of a file, decompressed if they are gzipped."""
    if not start.startswith(b"\x1f\x8b"):
        return start
    try:
        return zlib.decompressobj(wbits=31).decompress(start, _HEAD)
    except zlib.error:
        return b""
