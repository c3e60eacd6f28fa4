"""JSON objects whose largest member is read element by element."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.base.files.json_stream import members
from tutti.base.files.reader import read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def loaded(text: str, size: int = 7) -> list[tuple[str, Any]]:
    return list(members(pieces(text, size), "rows", source="f", expected="rows"))


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(), VALUES, max_size=3), st.lists(VALUES, max_size=5), st.integers(1, 9)
)
def test_members_equal_those_of_json(other: dict[str, Any], rows: list[Any], size: int) -> None:
    """Pieces may end anywhere, also within a number."""
    other.pop("rows", None)
    expected = [*other.items(), ("rows", None), *(("rows", row) for row in rows)]
    for indent in (None, 1):
        assert loaded(json.dumps(other | {"rows": rows}, indent=indent), size) == expected


def test_values_that_json_does_not_have() -> None:
    """Profiles have infinite rates, and tabs in names."""
    assert loaded('{"a": [NaN, -Infinity], "b": "\t"}') == [("a", [None, None]), ("b", "\t")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ("{1: 2}", "a name is not text"),
        ('{"a" 2}', "`2` instead of `:`"),
        ('{"a": 1 "b": 2}', '`"` instead of `,`'),
        ('{"a": tru}', "not JSON: `a`"),
        ('{"a": 1', "the JSON ends before `,`"),
        ('{"rows": [1, {"b": 2}', "the JSON ends before `,`"),
        ('{"rows": [1, {"b": ', "the JSON ends in element 1 of `rows`"),
        ('{"rows": [1, ', "the JSON ends before element 1 of `rows`"),
        ('{"a": ' + "[" * 100_000, "too deeply nested"),
        ('{"a": ' + "9" * 5_000 + "}", "`a` is Exceeds the limit"),
    ],
)
def test_errors_say_where(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(text, 4096)
    assert problem in str(raised.value)


def test_files_are_read_in_pieces(tmp_path: Path) -> None:
    text = "aé" * (1 << 20)
    (tmp_path / "a").write_text(text, encoding="utf-8")
    (tmp_path / "b").write_bytes(gzip.compress(text.encode()))
    for name in ("a", "b"):
        found = list(read_pieces(tmp_path / name, 1 << 24, "text"))
        assert "".join(found) == text
        assert max(map(len, found)) <= 1 << 20
        with pytest.raises(ConfigError, match="too large"):
            list(read_pieces(tmp_path / name, 1 << 20, "text"))
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        list(read_pieces(tmp_path / "a", 1 << 20, "text"))
    (tmp_path / "b").write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_pieces(tmp_path / "b", 1 << 24, "text"))
