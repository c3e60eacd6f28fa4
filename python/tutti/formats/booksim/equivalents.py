"""What keys and names of BookSim 2 mean in tutti: the tables of `equivalents.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


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


_TEXT = files("tutti.formats.booksim").joinpath("equivalents.toml").read_text("utf-8")
_READ = tomllib.loads(_TEXT)
TABLES = Equivalents(**{**_READ, "without_meaning": frozenset(_READ["without_meaning"])})
