"""Key paths: where in the tables of a file a value stands, as errors write it.

``platform.models.minimum.alpha_p`` goes down tables, ``platform.topology.links[0].rate`` also into
a list.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

_PART = re.compile(r"([A-Za-z0-9_-]+)((?:\[[0-9]{1,6}\])*)")

Path = tuple[str | int, ...]


class NoSuchPlaceError(LookupError):
    """A path that leads nowhere: `at` is how far it went, `found` what stands there."""

    def __init__(self, problem: str, at: Path) -> None:
        """Keeps both parts."""
        super().__init__(problem)
        self.problem = problem
        self.at = at


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Path | None:
    """The parts of a key path; None for what is none."""
    parts: list[str | int] = []
    for piece in text.split("."):
        found = _PART.fullmatch(piece)
        if not found:
            return None
        parts.append(found[1])
        parts.extend(int(index) for index in re.findall(r"[0-9]+", found[2]))
    return tuple(parts)


def written(path: Path) -> str:
    """A path as it is written in files and errors."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def with_value(tables: Any, path: Path, value: object, *, at: Path = ()) -> Any:  # noqa: ANN401
    """The same tables with one value put at a path; what is on the way is copied, never changed.

    Tables that are missing on the way are made.

    Raises:
        NoSuchPlaceError: Something else than a table or a list stands on the way, or a list is too
            short.
    """
    if len(at) == len(path):
        return value
    part = path[len(at)]
    here = (*at, part)
    if isinstance(part, int):
        if not isinstance(tables, list):
            problem = "is no list"
            raise NoSuchPlaceError(problem, at)
        if part >= len(tables):
            problem = f"has {len(tables)} values, and none at {part}: counting starts from 0"
            raise NoSuchPlaceError(problem, at)
        changed = list(tables)
        changed[part] = with_value(tables[part], path, value, at=here)
        return changed
    if not isinstance(tables, Mapping):
        problem = "is no table"
        raise NoSuchPlaceError(problem, at)
    inner = tables.get(part, {})
    return {**tables, part: with_value(inner, path, value, at=here)}
