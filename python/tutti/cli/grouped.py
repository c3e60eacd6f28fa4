"""Groups of options: dataclasses whose fields are the options of a command."""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command whose options are the fields of its dataclass parameters, in order.

    Args:
        command: Its parameters are dataclasses; fields have typer annotations and defaults.
    """
    taken = {name: kind for name, kind in get_type_hints(command).items() if name != "return"}
    of_each = {name: list(_parameters(kind)) for name, kind in taken.items()}

    @functools.wraps(command)
    def flat(**given: Any) -> None:  # noqa: ANN401 - typer's values, of any type
        command(**{
            name: kind(**{one.name: given[one.name] for one in of_each[name]})
            for name, kind in taken.items()
        })  # fmt: skip

    every = [one for some in of_each.values() for one in some]
    flat.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined] # for typer
    flat.__annotations__ = {one.name: one.annotation for one in every}
    return flat


def _parameters(kind: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name]
        )
