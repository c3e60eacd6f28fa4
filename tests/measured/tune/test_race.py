"""Races on synthetic libraries: what wins is known."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tutti.measured.tune.race import DEFAULT, Blocks, Cases, Race, Winner, is_faster

if TYPE_CHECKING:
    from collections.abc import Callable

KIB = 1024
SIZES = [8 << (2 * step) for step in range(11)]
NAMES = [f"algorithm{number}" for number in range(12)]


def default_us(size: int) -> float:
    return 10 + size / 1000


def race(
    time_us: Callable[[int, str], float],
    seed: int = 0,
    *,
    noise: float = 0.1,
    predicted: dict[tuple[int, str], int] | None = None,
) -> tuple[dict[int, Winner], Race]:
    """Races algorithms with these times and with noise that pairs share in part."""
    chance = random.Random(seed)

    def measure(cases: Cases, blocks: int) -> Blocks:
        times: Blocks = {}
        for block in range(blocks):
            for size, names in cases.items():
                shared = chance.lognormvariate(0, noise)
                for name in [DEFAULT, *names]:
                    truth = time_us(size, name) if name else default_us(size)
                    own = chance.lognormvariate(0, noise)
                    of_case = times.setdefault((size, name), {})
                    of_case[block] = round(1e6 * truth * shared * own)
        return times

    run = Race(SIZES, dict.fromkeys(SIZES, NAMES), 50, predicted or {})
    return run.run(measure), run


@pytest.mark.parametrize("seed", range(8))
def test_nothing_wins_against_a_default_that_is_best(seed: int) -> None:
    # The first is the default's own algorithm, so that it is exactly as fast.
    winners, _ = race(lambda size, name: default_us(size) * (1 + NAMES.index(name) / 5), seed)
    assert {one.name for one in winners.values()} == {DEFAULT}


def second(size: int, name: str) -> float:
    """The second algorithm wins from 4 to 64 KiB; the others are 5 % to 3 times slower."""
    if name == NAMES[1]:
        return default_us(size) * (0.7 if 4 * KIB <= size <= 64 * KIB else 1.4)
    return default_us(size) * (1.05 + NAMES.index(name) / 5)


@pytest.mark.parametrize("seed", range(8))
def test_an_algorithm_wins_where_it_is_faster_and_nowhere_else(seed: int) -> None:
    winners, _ = race(second, seed)
    won = [size for size, one in winners.items() if one.name == NAMES[1]]
    assert won == [size for size in SIZES if 4 * KIB <= size <= 64 * KIB]
    assert {one.name for one in winners.values()} == {NAMES[1], DEFAULT}
    for size in won:
        assert winners[size].time_ps < 0.85 * winners[size].default_ps


def test_a_race_measures_a_fifth_of_the_grid_at_equal_decisions() -> None:
    winners, run = race(second)
    assert 5 * run.measured_blocks <= run.grid_blocks == 50 * len(SIZES) * (len(NAMES) + 1)
    full, _ = race(second, noise=0.001)
    assert {s: one.name for s, one in winners.items()} == {s: one.name for s, one in full.items()}


def test_predictions_of_a_model_save_blocks() -> None:
    predicted = {(size, name): round(1e6 * second(size, name) ** 3)
                 for size in SIZES for name in NAMES}  # fmt: skip
    winners, with_model = race(second, predicted=predicted)
    others, without = race(second)
    assert with_model.measured_blocks < without.measured_blocks
    assert [one.name for one in winners.values()] == [one.name for one in others.values()]


def test_without_a_pair_of_blocks_in_time_the_default_stays() -> None:
    """On a busy machine, late blocks can leave no pair."""

    def measure(cases: Cases, blocks: int) -> Blocks:
        even = range(0, blocks, 2)
        return {
            (size, name): {block + (not name): 100 if name else 200 for block in even}
            for size, names in cases.items() for name in [DEFAULT, *names]
        }  # fmt: skip

    winners = Race([8], {8: ["fast"]}, 50).run(measure)
    assert winners == {8: Winner(DEFAULT, 200, 200, "fast")}


def test_few_or_equal_pairs_are_not_faster() -> None:
    assert not is_faster([(1, 100)] * 2)
    assert not is_faster([(100, 100)] * 50)
    assert is_faster([(90, 100)] * 50, 0.05)
    assert not is_faster([(99, 100)] * 50, 0.05)
