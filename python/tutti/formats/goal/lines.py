"""The lines of operations in GOAL text, for errors."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN = re.compile(
    rb"/\*.*?\*/|//[^\n]*|\brank\s+(\d+)\s*\{|\b(?:calc|send|recv)(?=\s+\d)", re.DOTALL
)
"""A comment, the start of a rank's block, or an operation."""


class Lines:
    """Finds the line of an operation. The file is read again on first use."""

    def __init__(self, path: Path) -> None:
        """Stores the file."""
        self._path = path

    def __call__(self, rank: int, operation: int) -> int | None:
        """Returns the line of an operation, from 1; None if the text does not have it."""
        found = self._starts.get(rank, [])
        if operation >= len(found):
            return None
        return bisect_right(self._line_ends, found[operation]) + 1

    @cached_property
    def _text(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:  # removed since: errors then name no line
            return b""

    @cached_property
    def _starts(self) -> dict[int, list[int]]:
        """The offsets of the operations of each rank."""
        starts: dict[int, list[int]] = {}
        current: list[int] = []
        for token in _TOKEN.finditer(self._text):
            if token[1] is not None:
                current = starts.setdefault(int(token[1]), [])
            elif not token[0].startswith(b"/"):
                current.append(token.start())
        return starts

    @cached_property
    def _line_ends(self) -> list[int]:
        lengths = (len(line) for line in self._text.splitlines(keepends=True))
        return list(accumulate(lengths))
