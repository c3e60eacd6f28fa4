"""Groups of commands, such as `tutti noc`, and the option `--json` of every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tutti.study.document import started

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class Commands(typer.Typer):
    """Commands that all have the option `--json`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - as its base has it
        """Returns a decorator that adds a command."""
        add = super().command

        def added(function: Any) -> Any:  # noqa: ANN401 - as its base has it
            add(name, **settings)(_with_json(function))
            return function

        return added


def _with_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of a command, with the option `--json`.

    A parameter `context` of the function gets the command line: typer passes it only once.
    """
    signature = inspect.signature(function, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "context"]
    takes_context = len(own) < len(signature.parameters)

    @functools.wraps(function)
    def called(
        *arguments: object, json_requested: bool, context: typer.Context, **options: object
    ) -> object:
        document = started()
        if json_requested and document is not None:
            document.activate(context.command_path)
        return function(*arguments, **options, **({"context": context} if takes_context else {}))

    parameters = [
        *own,
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter(
            "json_requested", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json
        ),
    ]
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


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
