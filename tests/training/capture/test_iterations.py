"""Iterations of programs: which turns of optimizers are one step."""

from __future__ import annotations

import pytest

from tutti.training.capture.iterations import Iteration, Turn, iteration, last_iteration
from tutti.training.errors import CaptureError

D, G = (0,), (1,)


def turns(*each: tuple[int, ...], work: tuple[int, ...] = ()) -> list[Turn]:
    flops = work or (10**9,) * len(each)
    return [Turn(one, flops[at], at + 1, at + 1) for at, one in enumerate(each)]


def taken(every: list[Turn], step: int, *, waiting: bool = False) -> tuple[int, int, int]:
    """Returns the turns of a step, and after how many turns it is found; 0 for at the end."""
    optimizers = {number for turn in every for number in turn.optimizers}
    for count in range(1, len(every) + 1):
        stepped = {number for turn in every[:count] for number in turn.optimizers}
        found = iteration(every[:count], step, waiting=waiting or stepped < optimizers)
        if found is not None:
            return found.first, found.last, count
    found = last_iteration(every, step)
    return found.first, found.last, 0


@pytest.mark.parametrize(
    ("each", "step", "expected"),
    [
        ((D,) * 3, 2, (1, 2, 2)),
        ((D, G) * 3, 2, (2, 4, 5)),
        ((D, D, D, G) * 3, 2, (4, 8, 9)),
        ((G, D, D, D) * 3, 1, (0, 4, 5)),
        # Both step without operators in between: one turn.
        (((0, 1),) * 3, 3, (2, 3, 3)),
        ((D, D, (0, 1)) * 3, 2, (3, 6, 7)),
        # A program that ends has its last complete iteration.
        ((D, G) * 2, 3, (2, 4, 0)),
        ((D, G), 2, (0, 2, 0)),
        ((D,), 2, (0, 1, 0)),
    ],
)
def test_the_first_optimizer_starts_iterations(
    each: tuple[tuple[int, ...], ...], step: int, expected: tuple[int, int, int]
) -> None:
    assert taken(turns(*each), step) == expected


@pytest.mark.parametrize(
    ("work", "step", "expected"),
    [
        ((3, 2, 2), 2, (1, 2, 3)),
        ((2, 3) * 4, 2, (2, 4, 4)),
        ((2, 3, 4) * 4, 2, (3, 6, 6)),
        ((2, 3) * 4, 3, (4, 6, 6)),
        # Batches of other lengths: no period.
        (tuple(range(1, 20)), 2, (1, 2, 10)),
    ],
)
def test_turns_of_one_optimizer_alternate(
    work: tuple[int, ...], step: int, expected: tuple[int, int, int]
) -> None:
    assert taken(turns(*(D,) * len(work), work=work), step) == expected


@pytest.mark.parametrize(
    ("lines", "step", "expected"),
    [
        ((1, 1, 2) * 3, 2, (3, 6, 7)),
        ((1, 2, 3) * 3, 1, (0, 3, 4)),
        # A line before the loop, and one that runs later or never.
        ((1, *(2,) * 9), 2, (2, 3, 6)),
        ((1,) * 9, 2, (1, 2, 2)),
        ((1, 2, 2), 2, (2, 3, 0)),
        ((1, 1, 2), 2, (0, 3, 0)),
    ],
)
def test_turns_of_one_optimizer_in_several_lines(
    lines: tuple[int, ...], step: int, expected: tuple[int, int, int]
) -> None:
    every = [Turn((0,), 10**9, at, at, (line,)) for at, line in enumerate(lines, 1)]
    for count in range(1, len(every) + 1):
        unseen = not set(lines) <= set(lines[:count])
        found = iteration(every[:count], step, unseen=unseen)
        if found is not None:
            assert (found.first, found.last, count) == expected
            return
    found = last_iteration(every, step)
    assert (found.first, found.last, 0) == expected


def test_an_optimizer_that_has_not_stepped_is_awaited() -> None:
    assert taken(turns(*(D,) * 20), 2, waiting=True) == (1, 2, 16)


def test_iterations_are_remarked_or_refused() -> None:
    remark = "the iteration has 2 turns of optimizers"
    assert iteration(turns(D, G, D), 1) == Iteration(1, 0, 2, remark)
    uneven = last_iteration(turns(D, D, D, work=(10**9, 2 * 10**9, 3 * 10**9)), 3)
    assert uneven.remark.startswith("the products of 3 steps have 1 to 3 GFLOP")
    with pytest.raises(CaptureError, match="does not step again"):
        iteration(turns(D, *(G,) * 4095), 1)
