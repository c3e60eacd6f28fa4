"""Rank counts on the command line: one notation, and no range that misses its end."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.base.ranges import expanded_ranks, rank_counts
from tutti.cli.loads import load_values


@pytest.mark.parametrize(
    ("text", "counts", "in_file"),
    [
        ("4", [4], [4]),
        ("4-6", [4, 5, 6], [4, 5, 6]),
        ("4:16", [4, 8, 16], [{"from": 4, "to": 16, "factor": 2}]),
        ("4:64:4,5", [4, 5, 16, 64], [{"from": 4, "to": 64, "factor": 4}, 5]),
    ],
)
def test_all_options_have_one_notation(text: str, counts: list[int], in_file: list[Any]) -> None:
    assert expanded_ranks(text) == counts
    assert rank_counts(text) == in_file


@pytest.mark.parametrize("parse", [expanded_ranks, rank_counts])
def test_a_range_that_misses_its_end_is_refused(parse: Any) -> None:
    """`4:6` once meant 4 without a word."""
    with pytest.raises(ConfigError) as caught:
        parse("2,4:6")
    assert str(caught.value).splitlines() == [
        "--ranks: the last rank count is 4: 6 is not 4 times a power of 2",
        'given: "4:6"',
        "expected: 4-6 for each, or 4, or 4:8",
        "see docs/reference/errors.md#configerror-invalid",
    ]
    with pytest.raises(ConfigError, match="expected: 4-100 for each, or 4:64:4, or 4:256:4"):
        parse("4:100:4")


def test_a_range_of_loads_that_misses_its_end_is_refused() -> None:
    assert load_values("0.1:0.4:0.1") == [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(ConfigError, match=r"the last load is 0\.4"):
        load_values("0.1:0.5:0.3")
