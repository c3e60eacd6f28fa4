"""The lines of a program that call the step of an optimizer."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["StepLines"]


class StepLines:
    """The lines that have called the step of an optimizer, and those that may."""

    def __init__(self) -> None:
        """Starts without lines."""
        self._numbers: dict[tuple[str, int], int] = {}
        self._calls: dict[str, list[tuple[str, range]]] = {}

    def number(self, place: tuple[str, int] | None) -> int:
        """Returns the number of a line, from 1; 0 without a line.

        Args:
            place: The file and the line.
        """
        return self._numbers.setdefault(place, len(self._numbers) + 1) if place else 0

    def unseen(self) -> list[str]:
        """Returns the lines that call the step of the same object and have not run."""
        found = []
        for file in dict.fromkeys(file for file, _ in self._numbers):
            seen = [line for other, line in self._numbers if other == file]
            calls = self._of(file)
            names = {name for name, lines in calls if any(line in lines for line in seen)}
            found += [f"{file}, line {lines.start}" for name, lines in calls
                      if name in names and not any(line in lines for line in seen)]  # fmt: skip
        return found

    def _of(self, file: str) -> list[tuple[str, range]]:
        """Returns the object and the lines of each call of a method `step` in a file."""
        if file not in self._calls:
            self._calls[file] = _calls(file)
        return self._calls[file]


def _calls(file: str) -> list[tuple[str, range]]:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        (ast.unparse(node.func.value), range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
    ]
