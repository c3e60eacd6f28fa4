"""Groups of commands, such as `tutti noc`, and the option `--json` of every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from tutti.study.document import started

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


Force = Annotated[
    bool, typer.Option("--force", help="Replace the output file, also if its content differs.")
]


class Commands(typer.Typer):
    """Commands that all have the option `--json`, and `--force` if they write a named file."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - as its base has it
        """Returns a decorator that adds a command."""
        add = super().command

        def added(function: Any) -> Any:  # noqa: ANN401 - as its base has it
            add(name, **settings)(_with_shared(function))
            return function

        return added


def _with_shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of a command, with the options that commands share.

    A parameter of the type `typer.Context` gets the command line, which typer passes only once.
    """
    signature = inspect.signature(function, eval_str=True)
    parameters = signature.parameters.values()
    own = [parameter for parameter in parameters if parameter.annotation is not typer.Context]
    contexts = [parameter.name for parameter in parameters if parameter not in own]
    outputs = _outputs(function, signature)
    is_init = function.__module__ == "tutti.cli.init"  # its default is a file that users edit

    @functools.wraps(function)
    def called(
        *arguments: object,
        json_requested: bool,
        json_context: typer.Context,
        force: bool = False,
        **options: object,
    ) -> object:
        document = started()
        if document is not None:
            named = (_is_named(json_context, name) for name in outputs)
            document.may_replace = force or not (is_init or any(named))
            if json_requested:
                document.activate(json_context.command_path)
        return function(*arguments, **options, **dict.fromkeys(contexts, json_context))

    shared = [
        *own,
        *([_FORCE] if outputs or is_init else []),
        inspect.Parameter("json_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter(
            "json_requested", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json
        ),
    ]
    called.__signature__ = signature.replace(parameters=shared)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in shared}
    return called


_FORCE = inspect.Parameter("force", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Force)
_OUTPUTS = {"--out", "--write", "--draw"}
"""Options that name an output file."""


def _outputs(function: Callable[..., Any], signature: inspect.Signature) -> list[str]:
    """Returns the parameters by which a user names a file that `Study.write` writes."""
    if function.__module__.startswith("tutti.cli.mpi"):
        return []  # plans and reports contain the time at which they were made
    return [
        parameter.name
        for parameter in signature.parameters.values()
        for each in getattr(parameter.annotation, "__metadata__", ())
        if isinstance(each, OptionInfo | ArgumentInfo)
        and (each.metavar == "OUT" or _is_output(each))
    ]


def _is_output(option: OptionInfo | ArgumentInfo) -> bool:
    # Within `Annotated`, the first name of an option is its `default`.
    names = [option.default, *(option.param_decls or ())]
    return option.metavar == "FILE" and not _OUTPUTS.isdisjoint(names)


def _is_named(context: typer.Context, parameter: str) -> bool:
    """Returns whether the user named an output file: a default may be replaced."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


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
