"""File formats of other tools, and of tutti, that `tutti convert` reads and writes.

A format reads files into one of four contents, and writes that content. A conversion between
contents exists in one direction only: a schedule of a given size becomes a trace, and a trace
becomes messages.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from tutti.base.files.mistakes import did_you_mean, mistake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.base.units import Size

    Reader = Callable[[Path, "Options"], tuple[Any, tuple[str, ...]]]
    Writer = Callable[[Any, Path, "Options"], tuple[str, ...]]

__all__ = ["INFERRED", "Content", "Format", "Options", "formats", "head", "named", "recognised"]

INFERRED = "inferred: "
"""The start of a line about a value that a file does not state, among the lines of losses."""

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
    """

    size: Size | None = None
    algorithm: str | None = None
    repair: bool = False

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

_MODULES = (
    "tutti.formats.chakra.trace",
    "tutti.formats.chunk_program",
    "tutti.formats.goal.text",
    "tutti.formats.graph_files",
    "tutti.formats.htsim.messages",
    "tutti.formats.msccl",
    "tutti.formats.ns3",
    "tutti.formats.schedule_text",
    "tutti.formats.simgrid",
)
"""Modules with a tuple `FORMATS`."""


def formats() -> tuple[Format, ...]:
    """Returns all formats in the order of their names."""
    found = [each for name in _MODULES for each in import_module(name).FORMATS]
    return tuple(sorted(found, key=lambda each: each.name))


def named(name: str, *, option: str) -> Format:
    """Returns the format of a name.

    Raises:
        ConfigError: No format has the name.
    """
    known = {each.name: each for each in formats()}
    if name not in known:
        raise mistake(
            f"unknown format `{name}`",
            source=option,
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(name, known),
        )
    return known[name]


def head(path: Path) -> bytes:
    """Returns the first bytes of a file, from which its format is recognised.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
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
