"""Conversions between contents: a schedule becomes a trace, and a trace becomes messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.files.mistakes import mistake
from tutti.interop.messages import messages_of
from tutti.lowering import LOSSES, expand, lower

if TYPE_CHECKING:
    from tutti.interop.formats import Content, Options

__all__ = ["as_content"]

_ORDER = ("schedule", "trace", "messages")
"""Each content converts to those after it."""


def as_content(
    value: Any,  # noqa: ANN401 - the type depends on the content
    given: Content,
    needed: Content,
    options: Options,
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Returns a value as another content, the names of the options that mattered, and the losses.

    Raises:
        ConfigError: The content does not convert, or an option that it requires is missing.
    """
    if given != needed and not (
        given in _ORDER and needed in _ORDER and _ORDER.index(given) < _ORDER.index(needed)
    ):
        raise mistake(f"a {given} does not convert to a {needed}", source="convert")
    used: list[str] = []
    losses: tuple[str, ...] = ()
    if given == "schedule" != needed:
        if options.size is None:
            raise mistake(f"a {needed} has sizes", source="--size", expected="--size, such as 1MiB")
        value, losses = lower(value, options.size), LOSSES
        used.append("size")
    elif given == "trace" and options.algorithm is not None:
        value = expand(value, options.algorithm)
        used.append("algorithm")
    if given != needed == "messages":
        value = messages_of(value)
    return value, tuple(used), losses
