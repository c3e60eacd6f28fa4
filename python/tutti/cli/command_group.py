"""Groups of commands, such as `tutti noc`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """Lists each command with the complete first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as its base has it
        """Writes the list; typer would truncate each sentence to the width of the terminal."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                (name, command.get_short_help_str(_COMPLETE))
                for name, command in commands
                if command
            )


_COMPLETE = 1_000
"""Characters of a first sentence at most."""
