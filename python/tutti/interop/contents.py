"""Conversions between contents: a schedule becomes a trace, and a trace becomes messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.files.mistakes import mistake
from tutti.interop.messages import messages_of

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
) -> tuple[Any, tuple[str, ...]]:
    """Returns a value as another content, and the names of the options that mattered.

    Raises:
        ConfigError: The content does not convert, or an option that it requires is missing.
    """
    if given == needed:
        return value, ()
    convertible = given in _ORDER and needed in _ORDER
    if not convertible or _ORDER.index(given) > _ORDER.index(needed):
        raise mistake(f"a {given} does not convert to a {needed}", source="convert")
    del options
    if given == "trace" and needed == "messages":
        value = messages_of(value)
    return value, ()
