"""Keys of a file that `--set` changes."""

from __future__ import annotations

import pytest

from tutti.base.files.overrides import with_changes
from tutti.networks.flit.files.tables import RawNoc


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ('"1 ns"', "1 ns"),
        ("1 ns", "1 ns"),
        ("[1, 2]", [1, 2]),
        ("3 # cycles", 3),
        ("3\nseed = 4", "3\nseed = 4"),
        ("3\n[router]\nvcs = 2", "3\n[router]\nvcs = 2"),
    ],
)
def test_a_change_sets_one_value(text: str, value: object) -> None:
    tables = {"seed": 1}
    assert with_changes(tables, [f"cycle={text}"], RawNoc, example="a=1") == {
        "seed": 1,
        "cycle": value,
    }
    assert tables == {"seed": 1}
