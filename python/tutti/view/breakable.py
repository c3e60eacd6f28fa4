"""Text for narrow columns, which wraps at delimiters of names, never within a word or number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

MARKS = re.compile(r"([:,/])")
"""Delimiters of arguments after which a line of a page may break."""

_QUANTITY = re.compile(r"(?<=\d) (?=(?:%|[kMGT]?B/s|[KMGT]iB|B|[mun]?s|ps|TFLOP/s)(?![\w/]))")
"""The space between a number and its unit."""

_PIECES = re.compile(r"(?:[^ _:,/]|(?<=B)/(?=s\b))*(?:[_:,/]+| +|$)")


class Breakable:
    """Lines of text for a table cell."""

    def __init__(self, *lines: str, styles: tuple[str, ...] = ()) -> None:
        """Stores the lines.

        Args:
            lines: Lines of text, each wrapped separately.
            styles: Styles of rich, one per line; the last one applies to all further lines.
        """
        self._lines = lines
        self._styles = styles or ("",)

    @property
    def least(self) -> int:
        """The width of the longest piece."""
        found = (piece for line in self._lines for piece in pieces(line))
        return max((len(piece.rstrip()) for piece in found), default=0)

    @property
    def most(self) -> int:
        """The width of the longest line."""
        return max((len(line) for line in self._lines), default=0)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Returns the width of the longest piece and of the longest line."""
        from rich.measure import Measurement

        least, most = (min(width, options.max_width) for width in (self.least, self.most))
        return Measurement(least, most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the wrapped lines."""
        from rich.text import Text

        for number, line in enumerate(self._lines):
            style = self._styles[min(number, len(self._styles) - 1)]
            for part in broken(line, options.max_width):
                yield Text(part, style=style, overflow="fold")


def unbroken(text: str) -> str:
    """Returns the text with spaces between numbers and units at which a line cannot break."""
    return _QUANTITY.sub("\u00a0", text)


def pieces(line: str) -> list[str]:
    """Splits a line into unbreakable pieces, each with its trailing delimiters or blanks."""
    return [piece for piece in _PIECES.findall(line) if piece]


def broken(line: str, width: int) -> Iterator[str]:
    """Wraps a line to `width` characters; a longer piece takes a line alone."""
    part = ""
    for piece in pieces(line):
        if part and len(part) + len(piece.rstrip()) > width:
            yield part.rstrip()
            part = ""
        part += piece
    yield part.rstrip()
