"""The recursive-multiplying paper: what its text says against what comes out here, and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.papers import ExhibitResult, find_paper

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = (3, 4, 17, 18, 19, 20, 21, 22, 23)

# Per schedule: completion and skew at the finish in ns, by hand. A message occupies its sender for
# 100 + 8 x 0.4 = 103.2 ns, arrives 500 ns after that, and a fold takes 10 ns.
BY_HAND = {
    18: (3 * 613.2, 0),
    19: (500 + 7 * 103.2 + 10, 0),
    # Rank 4 hears at the very end; rank 1 is done once it has sent its result to rank 0.
    20: (3 * 613.2 + 603.2, 1000),
    # Two stages; in the first the remainder's third message, in the second the second one, is last.
    21: (2 * 510 + 4 * 103.2, 103.2),
    22: (2 * 510 + 4 * 103.2, 206.4),
    23: (3 * 613.2, 510),
}


def made(number: int, folder: Path) -> ExhibitResult:
    return find_paper("recursive-multiplying").figures[number].make(folder)


@pytest.mark.parametrize("number", FIGURES)
def test_every_figure_is_drawn_with_its_values(number: int, tmp_path: Path) -> None:
    result = made(number, tmp_path)
    assert result.frame.height > 0
    assert all(drawn.stat().st_size > 1000 for drawn in result.figures)


@pytest.mark.parametrize("number", BY_HAND)
def test_timelines_take_what_they_take_by_hand(number: int, tmp_path: Path) -> None:
    shown = made(number, tmp_path).frame.row(0, named=True)
    assert (shown["completion_ns"], shown["finish_skew_ns"]) == pytest.approx(BY_HAND[number])


@pytest.mark.parametrize(
    ("number", "within"), [(3, 0.01), (4, 0.0), (17, 0.0), (21, 0.04), (22, 0.04)]
)
def test_what_the_text_says_comes_out(number: int, within: float, tmp_path: Path) -> None:
    published = made(number, tmp_path).published
    assert published is not None
    for row in published.iter_rows(named=True):
        assert row["ours"] == pytest.approx(row["published"], rel=within, abs=1e-9), row["quantity"]


def test_the_skew_of_splitting_lies_on_both_sides_of_what_the_text_says(tmp_path: Path) -> None:
    published = made(20, tmp_path).published
    assert published is not None
    issued, arrived = published["ours"].to_list()
    assert arrived == pytest.approx(603.2)
    assert arrived < 700 < issued
