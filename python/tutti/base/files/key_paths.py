"""Key paths: the place of a value in the tables of a file.

Examples are ``platform.models.minimum.alpha_p`` and, with a list,
``platform.topology.links[0].rate``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

_PART = re.compile(r"([A-Za-z0-9_:+-]+)((?:\[[0-9]{1,6}\])*)")

Path = tuple[str | int, ...]


class NoSuchPlaceError(LookupError):
    """Raised for a path that does not exist; `at` is its longest existing part."""

    def __init__(self, problem: str, at: Path) -> None:
        """Stores problem and place."""
        super().__init__(problem)
        self.problem = problem
        self.at = at


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Path | None:
    """Returns the parts of a key path; None for other text."""
    parts: list[str | int] = []
    for piece in text.split("."):
        found = _PART.fullmatch(piece)
        if not found:
            return None
        parts.append(found[1])
        parts.extend(int(index) for index in re.findall(r"[0-9]+", found[2]))
    return tuple(parts)


def written(path: Path) -> str:
    """Returns a path as written in files and errors."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def with_value(tables: Any, path: Path, value: object, *, at: Path = ()) -> Any:  # noqa: ANN401
    """Returns the tables with a value set at a path; tables along the path are copied.

    Missing tables along the path are created.

    Raises:
        NoSuchPlaceError: A value along the path is neither a table nor a list, or a list is too
            short.
    """
    if len(at) == len(path):
        return value
    part = path[len(at)]
    here = (*at, part)
    if isinstance(part, int):
        if not isinstance(tables, list):
            problem = "is not a list"
            if isinstance(tables, Mapping):
                problem += f"; without an index: `{written((*at, *path[len(here) :]))}`"
            raise NoSuchPlaceError(problem, at)
        if part >= len(tables):
            values = "1 value" if len(tables) == 1 else f"{len(tables)} values"
            problem = f"has {values}, and no index {part}; indices start at 0"
            raise NoSuchPlaceError(problem, at)
        changed = list(tables)
        changed[part] = with_value(tables[part], path, value, at=here)
        return changed
    if not isinstance(tables, Mapping):
        problem = "is not a table"
        if isinstance(tables, list):
            problem = f"is a list; its first entry: `{written((*at, 0, *path[len(at) :]))}`"
        raise NoSuchPlaceError(problem, at)
    inner = tables.get(part, {})
    return {**tables, part: with_value(inner, path, value, at=here)}
