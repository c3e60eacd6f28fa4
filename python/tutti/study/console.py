"""Consoles: results go to stdout, progress and errors to stderr.

With `--json`, stdout gets the document of `tutti.study.document` only.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING

import typer

from tutti.study.document import active, record, record_table, started

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tutti.base.errors import TuttiError

__all__ = [
    "echo",
    "echo_error",
    "err",
    "fail",
    "out",
    "record",
    "record_table",
    "remark",
    "wrapped",
    "wrote",
]


@functools.cache
def _consoles() -> tuple[Console, Console]:
    from rich.console import Console

    from tutti.study.lines import Trimming

    class Piped(Console):
        """A console whose reader, such as `head`, may exit: files are still written."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    consoles = Piped(highlight=False), Piped(stderr=True, highlight=False)
    for console in consoles:
        console.push_render_hook(Trimming())
    return consoles


@functools.cache
def _muted() -> Console:
    from rich.console import Console

    return Console(quiet=True, highlight=False)


def out() -> Console:
    """Returns the console for results, which prints nothing with `--json`."""
    return _muted() if active() else _consoles()[0]


def echo(text: str) -> None:
    """Writes a complete file to stdout; with `--json`, records it as `text` instead."""
    record(text=text)
    if not active():
        typer.echo(text, nl=False)


def err() -> Console:
    """Returns the console for progress and remarks."""
    return _consoles()[1]


def fail(error: TuttiError) -> None:
    """Writes an error to stderr, and adds it to the document."""
    if document := started():
        document.fail(error)
    echo_error(str(error))


def echo_error(text: str) -> None:
    """Writes the text of an error to stderr, wrapped if it is a terminal."""
    label = "error: "
    if sys.stderr.isatty():
        text = wrapped(text, _columns(), len(label))
    typer.secho(label, err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo(text, err=True)


def wrapped(text: str, width: int, before: int = 0) -> str:
    """Wraps long lines at word boundaries, indented by two spaces; words are never broken.

    Commands between backticks stay on one line if they fit one, so that they can be copied.
    Indented lines are excerpts of files, which must stay aligned; they are not wrapped.

    Args:
        text: The lines.
        width: The width in characters.
        before: The characters before the first line.
    """
    lines = list[str]()
    for number, line in enumerate(text.splitlines()):
        indent = 0 if number else before
        if len(line) <= width - indent or line.startswith(" "):
            lines.append(line)
            continue
        first, *rest = textwrap.wrap(
            _QUOTED.sub(lambda found: _joined(found[0], width - 2), line),
            width,
            initial_indent=" " * indent,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [first[indent:], *rest]
    return "\n".join(lines).replace(_JOIN, " ")


_QUOTED = re.compile(r"`[^`]+`")
_JOIN = "\0"
"""The character that stands for a space at which no line ends; messages are printable."""


def _joined(text: str, most: int) -> str:
    return text.replace(" ", _JOIN) if len(text) <= most else text


def _columns() -> int:
    """Returns the width of the terminal of stderr; the variable COLUMNS has precedence."""
    try:
        actual = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        actual = 80
    return int(os.environ.get("COLUMNS", "0") or 0) or actual or 80


def wrote(*paths: Path, wrap: bool = False, note: str = "", first: bool = False) -> None:
    """Lists written files, one per line, each followed by a note.

    Args:
        paths: The files.
        wrap: Whether long lines are wrapped.
        note: Text after each path.
        first: Whether only the first file is listed, whose note describes the others.
    """
    if document := active():
        document.files += map(str, paths)
    for path in paths[:1] if first else paths:
        out().print(f"wrote {path}{note}", markup=False, soft_wrap=not wrap)


def remark(text: str) -> None:
    """Writes a remark to stderr."""
    if document := active():
        document.remarks.append(text)
    err().print(text, markup=False)
