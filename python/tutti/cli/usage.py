"""Mistakes in how a verb is called, in the form that all other mistakes have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tutti.files.mistakes import did_you_mean, mistake

if TYPE_CHECKING:
    import typer

    from tutti.errors import TuttiError

_OUT_OF_HELP = "NoArgsIsHelpError"
"""No mistake: a group of verbs that is called alone shows what there is."""


def as_mistake(error: typer.TyperException) -> TuttiError | None:
    """What typer found wrong as one of our errors; None for what is no mistake of usage."""
    if type(error).__name__ == _OUT_OF_HELP:
        return None
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tutti"
    problem, expected, hint = _said(error)
    key, value = _name(getattr(error, "param", None)), ""
    if chosen := re.fullmatch(r"'(.*)' is not one of (.*)", problem, re.DOTALL):
        value, known = chosen[1], re.findall(r"'([^']*)'", chosen[2])
        problem, expected = "there is no such choice", f"one of {', '.join(known)}"
        hint = did_you_mean(value, known)
    hint = _elsewhere(error, command) or hint or f"`{command} -h` shows what it takes"
    return mistake(problem, source=command, key=key, value=value, expected=expected, hint=hint)


_SAID_OTHERWISE = {
    "--set": "options stand in for keys, `{command} -h` shows which; `tutti run` and `tutti "
    "compare` take --set, and `tutti sweep` varies any key by its file",
    "--size": "-b and -e are the smallest and the largest: -b 8 -e 8 is one size",
}
"""What other verbs call what these have otherwise."""


def _elsewhere(error: Any, command: str) -> str:  # noqa: ANN401 - typer's own, not public
    """A hint at what another verb has, or this one by another name."""
    if type(error).__name__ == "NoSuchOption":
        options = {name for one in error.ctx.command.params for name in one.opts}
        if error.option_name == "--set" or {"-b", "-e"} <= options:
            return _SAID_OTHERWISE.get(error.option_name, "").format(command=command)
    asked = re.match(r"No such command '([^']*)'", getattr(error, "message", "") or "")
    if not asked:
        return ""
    verbs = getattr(error.ctx.command, "commands", {})
    groups = [name for name, verb in verbs.items() if asked[1] in getattr(verb, "commands", {})]
    found = [f"`{command} {name} {asked[1]}`" for name in groups]
    return f"did you mean {' or '.join(found)}?" if found else ""


def _name(parameter: Any) -> str:  # noqa: ANN401 - typer's own, which has no public type
    """What help calls an option or an argument."""
    if parameter is None:
        return ""
    name: str = max(parameter.opts, key=len)
    return name if name.startswith("-") else name.upper()


def _said(error: typer.TyperException) -> tuple[str, str, str]:
    """What is wrong, what was expected, and a hint, out of typer's one sentence."""
    if type(error).__name__ == "MissingParameter":
        return "is missing", "", ""
    text: str = getattr(error, "message", "") or str(error)
    text = text.removeprefix("Value error, ").rstrip(".")
    text, _, meant = text.partition(". Did you mean ")
    if meant:
        return _lower(text), "", f"did you mean {meant.replace(chr(39), '`')}"
    if wanted := re.match(r"Input should be (.*)", text):
        number = re.sub(r"^a valid (integer|number).*", "a number", wanted[1])
        return "does not fit", number, ""
    possible = getattr(error, "possibilities", None)
    return _lower(text), "", f"did you mean `{possible[0]}`?" if possible else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
