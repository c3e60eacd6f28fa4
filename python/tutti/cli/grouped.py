"""Groups of options: dataclasses whose fields are options of a command."""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command whose options are its parameters, or their fields, in order.

    Args:
        command: Its parameters are options, or dataclasses whose fields are; both have typer
            annotations and defaults.
    """
    hints = get_type_hints(command, include_extras=True)
    options = {
        name: list(_fields(hints[name])) if is_dataclass(hints[name]) else [
            _parameter(name, hints[name], parameter.default)
        ]
        for name, parameter in inspect.signature(command).parameters.items()
    }  # fmt: skip

    @functools.wraps(command)
    def flat(**given: Any) -> None:  # noqa: ANN401 - typer's values, of any type
        values = {}
        for name, each in options.items():
            own = {option.name: given[option.name] for option in each}
            values[name] = hints[name](**own) if is_dataclass(hints[name]) else own[name]
        command(**values)

    every = [option for each in options.values() for option in each]
    flat.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined] # for typer
    flat.__annotations__ = {option.name: option.annotation for option in every}
    return flat


def _fields(kind: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield _parameter(field.name, hints[field.name], default)


def _parameter(name: str, kind: Any, default: object) -> inspect.Parameter:  # noqa: ANN401 - a type
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
