"""Reads a JSON object whose largest member is a list, element by element, in bounded memory."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.base.errors import ConfigError

_LONGEST = 1 << 24
"""Characters of a single value; a list that is streamed has no limit."""
_NOT_NUMBER = re.compile(r"[^-+.eE0-9]").search
_NOT_SPACE = re.compile(r"[^ \t\n\r]").search


def members(
    pieces: Iterator[str], streamed: str, *, source: str, expected: str
) -> Iterator[tuple[str, Any]]:
    """Yields names and values of the members of a JSON object.

    The member `streamed` appears once per element, and once with None before the first. NaN and
    infinity, which JSON does not have, are read as None.

    Args:
        pieces: The text.
        streamed: The member whose elements are read one at a time.
        source: The name of the text in errors.
        expected: What the text should be, for errors.

    Raises:
        ConfigError: The text is not a JSON object, or is truncated.
    """
    text = _Text(pieces, source, expected)
    if text.next() != "{":
        raise mistake("is not a JSON object", source=source, expected=expected)
    text.take("{")
    if text.next() == "}":
        return
    while True:
        name = text.value("the name of a member")
        if not isinstance(name, str):
            raise text.malformed("a name is not text")
        text.take(":")
        if name == streamed and text.next() == "[":
            yield name, None
            for element in _elements(text, name):
                yield name, element
        else:
            yield name, text.value(f"`{name[:40]}`")
        if text.next() == "}":
            return
        text.take(",")


def _elements(text: _Text, name: str) -> Iterator[Any]:
    """Yields the elements of the list that starts here."""
    text.take("[")
    if text.next() == "]":
        text.take("]")
        return
    number = 0
    while True:
        yield text.value(f"element {number} of `{name}`")
        number += 1
        if text.next() == "]":
            text.take("]")
            return
        text.take(",")


class _Text:
    """The part of a text that is needed to read its next value."""

    def __init__(self, pieces: Iterator[str], source: str, expected: str) -> None:
        self._pieces, self._source, self._expected = pieces, source, expected
        self._text, self._at, self._ended = "", 0, False
        self._decode = json.JSONDecoder(parse_constant=lambda _: None, strict=False).raw_decode

    def next(self) -> str:
        """Returns the next character that is not a space, or "" at the end."""
        while True:
            found = _NOT_SPACE(self._text, self._at)
            if found:
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        """Moves behind a character, which must be next.

        Raises:
            ConfigError: Another character, or none, is next.
        """
        found = self.next()
        if not found:
            raise self._truncated(f"before `{character}`")
        if found != character:
            raise self.malformed(f"`{found}` instead of `{character}`")
        self._at += 1

    def value(self, what: str) -> Any:  # noqa: ANN401 - any JSON value
        """Returns the next value; `what` names it in errors.

        Raises:
            ConfigError: It is not JSON, is too long, or the text ends within it.
        """
        if not self.next():
            raise self._truncated(f"before {what}")
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                problem, cut = error.msg, error.pos >= len(self._text) or "Unterm" in error.msg
            except (ValueError, RecursionError) as error:  # too many digits; too many levels
                reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
                raise self.malformed(f"{what} is {reason[:60]}") from None
            else:
                # A number may continue in the next piece: `1`, `1.` and `1e` are parts of `1.5e3`.
                is_number = isinstance(found, int | float)
                ends_here = is_number and not _NOT_NUMBER(self._text, end)
                if not ends_here or not self._more():
                    self._at = end
                    return found
                continue
            if len(self._text) - self._at > _LONGEST:
                raise self.malformed(f"{what} is not JSON, or longer than 16 MiB")
            if not self._more():
                raise self._truncated(f"in {what}") if cut else self.malformed(f"{what}: {problem}")

    def _more(self) -> bool:
        """Appends the next piece; returns whether there was one."""
        if not self._ended:
            piece = next(self._pieces, None)
            while piece == "":
                piece = next(self._pieces, None)
            if piece is not None:
                self._text, self._at = self._text[self._at :] + piece, 0
                return True
        self._ended = True
        return False

    def malformed(self, problem: str) -> ConfigError:
        """Returns the error of a text that is not JSON."""
        return mistake(f"not JSON: {problem}", source=self._source, expected=self._expected)

    def _truncated(self, where: str) -> ConfigError:
        return mistake(
            f"the JSON ends {where}",
            source=self._source,
            expected=self._expected,
            hint="was it copied completely? A job that is killed leaves an incomplete file",
        )
