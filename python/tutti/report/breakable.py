"""Text in narrow columns: it breaks after a name's marks, and never within a word or a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

MARKS = re.compile(r"([_:,/])")
"""After these a name may go on in the next line."""

_PIECES = re.compile(r"[^ _:,/]*(?:[_:,/]+| +|$)")


class Breakable:
    """Lines of text for a cell of a table."""

    def __init__(self, *lines: str, styles: tuple[str, ...] = ()) -> None:
        """Keeps the lines.

        Args:
            lines: Each is broken for itself.
            styles: Of the lines, as rich names styles; the last one holds for what is left.
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
        """From the longest piece to the longest line."""
        from rich.measure import Measurement

        least, most = (min(width, options.max_width) for width in (self.least, self.most))
        return Measurement(least, most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines, broken."""
        from rich.text import Text

        for number, line in enumerate(self._lines):
            style = self._styles[min(number, len(self._styles) - 1)]
            for part in broken(line, options.max_width):
                yield Text(part, style=style, overflow="fold")


def pieces(line: str) -> list[str]:
    """What stays in one line, each piece with the mark or the blanks that it ends with."""
    return [piece for piece in _PIECES.findall(line) if piece]


def broken(line: str, width: int) -> Iterator[str]:
    """The line in parts of at most so many characters, unless a piece alone is longer."""
    part = ""
    for piece in pieces(line):
        if part and len(part) + len(piece.rstrip()) > width:
            yield part.rstrip()
            part = ""
        part += piece
    yield part.rstrip()
