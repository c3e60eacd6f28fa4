"""Published values compared with computed ones: tolerance, ranges, verdict lines."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tutti_papers.claims import (
    Claim,
    Conclusion,
    conclusions_frame,
    counted,
    frame_of,
    tallies,
    verdict_line,
)


def claim(published: float | tuple[float, float], computed: float, **more: Any) -> Claim:
    return Claim(quantity="speedup", published=published, computed=computed, **more)


@pytest.mark.parametrize(
    ("published", "computed", "verdict"),
    [
        (2.0, 2.3, "agrees"),
        (2.0, 2.31, "differs"),
        (-4.0, -3.4, "agrees"),
        (-4.0, -3.3, "differs"),
        (0.0, 0.0, "agrees"),
        (0.0, 0.01, "differs"),
        ((24.0, 32.0), 32.0, "agrees"),
        ((24.0, 32.0), 33.0, "differs"),
        ((1.0, math.inf), 1.0, "agrees"),
        ((1.0, math.inf), 0.99, "differs"),
        (2.0, math.nan, "not computed"),
    ],
)
def test_value_agrees_within_15_percent_or_inside_a_range(
    published: float | tuple[float, float], computed: float, verdict: str
) -> None:
    assert claim(published, computed).verdict == verdict


def test_ratio_exists_only_for_published_numbers() -> None:
    assert claim(2.0, 1.5).ratio == 0.75
    assert claim((1.0, 2.0), 1.5).ratio is None
    assert claim(0.0, 1.5).ratio is None
    assert claim(2.0, math.nan).ratio is None


def test_unknown_certainty_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown certainty 'V'"):
        claim(1.0, 1.0, certainty="V")


def test_formulas_and_inputs_are_counted_apart_from_simulated_values() -> None:
    claims = [
        claim(2.0, 2.1),
        claim(2.0, 3.0),
        claim(2.0, 2.0, method="formula"),
        claim(2.0, 2.0, method="input"),
        claim(2.0, math.nan, method="input"),
    ]
    assert tallies(claims) == {"simulated": (1, 2), "formula": (1, 1), "input": (1, 1)}
    assert verdict_line(claims) == (
        "1 of 2 simulated values, 1 of 1 formulas, 1 of 1 inputs within 15 %"
    )
    assert verdict_line(claims[2:3]) == "1 of 1 formulas within 15 %"
    assert frame_of(claims)["method"].to_list()[2:] == ["formula", "input", "input"]
    with pytest.raises(ValueError, match="unknown method 'read'"):
        claim(1.0, 1.0, method="read")


def test_variants_of_a_published_value_are_not_counted() -> None:
    claims = [claim(2.0, 2.1), claim(2.0, 2.2, variant=True), claim(2.0, 3.0, variant=True)]
    assert counted(claims) == (1, 1)
    assert verdict_line(claims) == "1 of 1 published value within 15 %"
    assert frame_of(claims)["verdict"].to_list()[1:] == [
        "agrees, not counted", "differs, not counted"
    ]  # fmt: skip


def test_verdict_line_counts_values_and_names_conclusions() -> None:
    claims = [claim(2.0, 2.1), claim(2.0, 3.0), claim(2.0, math.nan)]
    conclusions = [
        Conclusion(statement="rings are faster", holds=True),
        Conclusion(statement="trees are faster", holds=False, why="they share links"),
    ]
    assert verdict_line(claims, conclusions) == (
        "1 of 2 published values within 15 %. Holds: rings are faster. "
        "Does not hold: trees are faster"
    )
    assert verdict_line(claims[:1]) == "1 of 1 published value within 15 %"
    assert verdict_line([]) == "no published values to compare"


def test_frames_have_a_row_per_claim_and_conclusion() -> None:
    row = frame_of([claim((1.0, math.inf), 2.0, certainty="words")]).row(0, named=True)
    assert (row["published"], row["ours"], row["verdict"]) == ("at least 1", 2.0, "agrees")
    assert frame_of([claim((-math.inf, 3.0), 2.0)])["published"].item() == "at most 3"
    assert frame_of([claim((1.0, 3.0), 2.0)])["published"].item() == "1 to 3"
    assert frame_of([]).is_empty()
    shown = conclusions_frame([Conclusion(statement="it holds", holds=False, why="no")])
    assert shown.row(0) == ("it holds", "no", "no")
