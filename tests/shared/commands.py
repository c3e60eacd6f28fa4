"""The commands of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every command that is not a group, with its name."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name in command.commands:
        yield from leaves(command.commands[name], f"{path} {name}".strip())
