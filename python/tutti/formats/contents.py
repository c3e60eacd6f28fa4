"""Conversions between contents: a schedule becomes a trace, and a trace becomes messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.files.mistakes import mistake
from tutti.formats.formats import formats

if TYPE_CHECKING:
    from tutti.formats.formats import Content, Options

_ORDER: tuple[Content, ...] = ("schedule", "trace", "messages")
"""Each content converts to those after it."""

_NOUNS: dict[Content, str] = {
    "schedule": "a schedule",
    "trace": "a trace",
    "topology": "a topology",
    "messages": "a file of messages",
}


def reachable(given: Content) -> tuple[Content, ...]:
    """Returns a content and those that it converts to."""
    return _ORDER[_ORDER.index(given) :] if given in _ORDER else (given,)


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
    if needed not in reachable(given):
        able = [each.name for each in formats() if each.write and each.content in reachable(given)]
        raise mistake(
            f"{_NOUNS[given]} does not convert to {_NOUNS[needed]}",
            source="convert",
            expected=f"an output format of {', '.join(able)}",
        )
    used: list[str] = []
    losses: tuple[str, ...] = ()
    if given == "schedule" != needed:
        if options.size is None:
            raise mistake(
                f"is missing: {_NOUNS[needed]} has sizes",
                source="--size",
                expected="the payload, such as --size 1MiB",
            )
        from tutti.collectives.lowering import losses_of, lower

        value, losses = lower(value, options.size), losses_of(value)
        used.append("size")
    elif given == "trace" and options.algorithm is not None:
        if value.collectives:
            losses = (f"collectives: replaced by messages of {options.algorithm}",)
        from tutti.collectives.lowering import expand

        value = expand(value, options.algorithm)
        used.append("algorithm")
    if given != needed == "messages":
        from tutti.formats.messages import messages_of

        value = messages_of(value)
    return value, tuple(used), losses
