"""What keys and names of BookSim 2 mean in tutti: the tables of `equivalents.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tutti.base.bundled import bundled


@dataclass(frozen=True, kw_only=True)
class Equivalents:
    """The tables; `equivalents.toml` describes them."""

    without_meaning: frozenset[str]
    must_be: dict[str, list[Any]]
    routings: dict[str, dict[str, str]]
    parts_of_vcs: dict[str, int]
    keys: dict[str, str]
    allocators: dict[str, str]
    patterns: dict[str, str]


_READ = bundled("formats/booksim/equivalents.toml")
TABLES = Equivalents(**{**_READ, "without_meaning": frozenset(_READ["without_meaning"])})
