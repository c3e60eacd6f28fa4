"""`tutti paper`: the reproductions of published papers, from the distribution `tutti-papers`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


def find_paper_command() -> Callable[..., Any]:
    """Returns the command of the distribution `tutti-papers`, or one that names it."""
    for entry in entry_points(group="tutti.commands", name="paper"):
        command: Callable[..., Any] = entry.load()
        return command
    return _not_installed


def _not_installed(
    arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Reproduce a paper's figures and tables; needs the distribution tutti-papers."""
    del arguments
    problem = "the reproductions of papers are not installed"
    hint = "pip install tutti-papers; from a checkout: pip install ./papers"
    raise ConfigError(problem, kind="missing_extra", hint=hint)
