"""Classes that are tables in files: keys, defaults, ranges and excluded fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import Field

from tutti.base.errors import ConfigError
from tutti.base.files.described import (
    Count,
    InFiles,
    bounds_of,
    described_by,
    table_of,
)
from tutti.base.files.tables import Table
from tutti.base.files.typed import refuse_fields
from tutti.base.files.validate import validated
from tutti.base.parameters import Parameters


@dataclass(frozen=True)
class Cache(InFiles):
    """A cache.

    Attributes:
        verbose: Not in files.
    """

    lines: Annotated[Count, Field(description="Lines of a set.")]
    sets: Annotated[int | None, Field(ge=1, le=64, description="Sets, 1 to 64.")] = None
    verbose: bool = False


class File(Table):
    """A file with a cache."""

    cache: Annotated[Cache, Field(description="The cache.")]


def test_file_is_read_into_the_dataclass() -> None:
    assert validated(File, {"cache": {"lines": 4}}, source="x").cache == Cache(4)
    assert File(cache=Cache(3, verbose=True)).cache.verbose


def test_a_table_has_the_keys_of_the_dataclass() -> None:
    table = table_of(Cache)
    assert list(table.model_fields) == ["lines", "sets"]
    assert table.model_fields["sets"].description == "Sets, 1 to 64."
    assert table.__doc__ == "A cache."


@pytest.mark.parametrize(
    ("cache", "fragment"),
    [
        ({}, "cache.lines: `lines` is missing\nexpected: lines of a set"),
        ({"lines": 1, "sets": 65}, "cache.sets: is out of range\ngiven: 65\nexpected: 1 to 64"),
        ({"lines": "1"}, "cache.lines: is not an integer"),
        ({"lines": 1, "verbose": True}, "unknown key `verbose`\nexpected: one of lines, sets"),
        (3, "cache: is not a table"),
    ],
)
def test_mistakes_name_the_key(cache: object, fragment: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(File, {"cache": cache}, source="x")
    assert fragment in str(caught.value).replace("\ngiven: true", "")


def test_dataclass_checks_bounds() -> None:
    assert bounds_of(Cache) == {"lines": (0, (1 << 32) - 1), "sets": (1, 64)}
    refuse_fields(Cache(0, 64), ConfigError)
    for cache, text in (
        (Cache(-1, 64), "Cache: `lines` is -1: expected an integer from 0 to 4294967295"),
        (Cache(1, 0), "Cache: `sets` is 0: expected an integer from 1 to 64"),
        (Cache(1, "a"), "Cache: `sets` is 'a': expected an integer or None"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match=text):
            refuse_fields(cache, ConfigError)


class Queue(Parameters):
    """A queue."""

    length: Annotated[int, Field(ge=1, le=64, description="Customers it holds.")] = 8
    name: str = ""


@described_by(Queue, without={"name"})
class QueueTable(Table):
    """A queue of a file."""


def test_a_table_has_the_keys_of_a_pydantic_class() -> None:
    assert list(QueueTable.model_fields) == ["length"]
    assert QueueTable.model_validate({}).model_dump() == {"length": 8}
    with pytest.raises(ConfigError, match="is out of range"):
        validated(QueueTable, {"length": 65}, source="x")
