"""Consoles: results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tutti.errors import TuttiError


@functools.cache
def _consoles() -> tuple[Console, Console]:
    from rich.console import Console

    return Console(highlight=False), Console(stderr=True, highlight=False)


def out() -> Console:
    """Returns the console for results."""
    return _consoles()[0]


def err() -> Console:
    """Returns the console for progress and remarks."""
    return _consoles()[1]


def fail(error: TuttiError) -> None:
    """Writes an error to stderr without wrapping, so that it can be searched for."""
    typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo(str(error), err=True)


def wrote(*paths: Path, wrap: bool = False) -> None:
    """Lists written files, one per line; `wrap` wraps long lines."""
    for path in paths:
        out().print(f"wrote {path}", markup=False, soft_wrap=not wrap)


def remark(text: str) -> None:
    """Writes a remark to stderr."""
    err().print(text, markup=False)
