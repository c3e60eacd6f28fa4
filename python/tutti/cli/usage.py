"""Usage errors, in the same form as every other error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tutti.base.files.mistakes import did_you_mean, mistake

if TYPE_CHECKING:
    import typer

    from tutti.base.errors import TuttiError

_OUT_OF_HELP = "NoArgsIsHelpError"
"""Not an error: a group without a command prints its help."""


def as_mistake(error: typer.TyperException) -> TuttiError | None:
    """Returns typer's usage error as a tutti error; None if it is not a usage error."""
    if type(error).__name__ == _OUT_OF_HELP:
        return None
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tutti"
    problem, expected, hint = _message(error)
    key, value = _name(getattr(error, "param", None)), ""
    if chosen := re.fullmatch(r"'(.*)' is not one of (.*)", problem, re.DOTALL):
        value, known = chosen[1], re.findall(r"'([^']*)'", chosen[2])
        problem, expected = "invalid choice", f"one of {', '.join(known)}"
        hint = did_you_mean(value, known)
    hint = _elsewhere(error, command) or hint or _siblings(error) or _without_dashes(error)
    hint = hint or f"`{command} -h` lists its options"
    return mistake(problem, source=command, key=key, value=value, expected=expected, hint=hint)


_ELSEWHERE = {
    "--set": "`{command} -h` lists the options that override keys; `tutti run` and `tutti "
    "compare` take --set, and `tutti sweep` varies any key from its file",
    "--size": "-b and -e are the smallest and the largest size: -b 8 -e 8 is one size",
}
"""Options of other commands, and what to use instead."""


def _elsewhere(error: Any, command: str) -> str:  # noqa: ANN401 - typer's own, not public
    """Returns a hint if another command has the option, or this one under another name."""
    if type(error).__name__ == "NoSuchOption":
        if error.option_name == "--json":  # of `tutti mpi exec` only
            return "stdout belongs to the program: --out FILE writes the report as JSON"
        options = {name for one in error.ctx.command.params for name in one.opts}
        if error.option_name in {"-p", "--platform"} and "--system" in options:
            return "--system names the nodes: `tutti nccl systems` lists them"
        if error.option_name == "--set" or {"-b", "-e"} <= options:
            return _ELSEWHERE.get(error.option_name, "").format(command=command)
    unknown = re.match(r"No such command '([^']*)'", getattr(error, "message", "") or "")
    if not unknown:
        return ""
    verbs = getattr(error.ctx.command, "commands", {})
    groups = [name for name, verb in verbs.items() if unknown[1] in getattr(verb, "commands", {})]
    found = [f"`{command} {name} {unknown[1]}`" for name in groups]
    return f"did you mean {' or '.join(found)}?" if found else ""


def _siblings(error: Any) -> str:  # noqa: ANN401 - typer's own, not public
    """Returns a hint if another command of the same group has the option."""
    parent = getattr(getattr(error, "ctx", None), "parent", None)
    if type(error).__name__ != "NoSuchOption" or parent is None or parent.parent is None:
        return ""
    verbs = parent.command.commands.items()
    found = [name for name, verb in verbs
             if any(error.option_name in one.opts for one in verb.params)]  # fmt: skip
    return f"`{parent.command_path} {found[0]}` takes {error.option_name}" if found else ""


def _without_dashes(error: Any) -> str:  # noqa: ANN401 - typer's own, not public
    """Returns a hint if the command takes keys of another program as KEY=VALUE."""
    parameters = getattr(getattr(getattr(error, "ctx", None), "command", None), "params", ())
    takes_keys = any(getattr(one, "metavar", None) == "KEY=VALUE" for one in parameters)
    if type(error).__name__ != "NoSuchOption" or not takes_keys:
        return ""
    key = error.option_name.lstrip("-").replace("-", "_")
    return f"write keys and options of the other program without dashes: {key}=VALUE"


def _name(parameter: Any) -> str:  # noqa: ANN401 - typer's own, which has no public type
    """Returns the name of an option or an argument as help prints it."""
    if parameter is None:
        return ""
    name: str = max(parameter.opts, key=len)
    return name if name.startswith("-") else name.upper()


def _message(error: typer.TyperException) -> tuple[str, str, str]:
    """Splits typer's sentence into problem, expectation and hint."""
    if type(error).__name__ == "MissingParameter":
        return "missing", "", ""
    text: str = getattr(error, "message", "") or str(error)
    text = text.removeprefix("Value error, ").rstrip(".")
    text, _, meant = text.partition(". Did you mean ")
    if meant:
        return _lower(text), "", f"did you mean {meant.replace(chr(39), '`')}"
    if expected := re.match(r"Input should be (.*)", text):
        number = re.sub(r"^a valid (integer|number).*", "a number", expected[1])
        return "invalid value", number, ""
    possible = getattr(error, "possibilities", None)
    return _lower(text), "", f"did you mean `{possible[0]}`?" if possible else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
