"""The arguments of algorithms: the grid, its best arguments, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tutti
from tutti import PipeliningPostal, _core
from tutti.base.units import Size
from tutti.collectives import arguments
from tutti.collectives.argument_grids import grid
from tutti.collectives.arguments import ArgumentChoice, tune_arguments
from tutti.platforms import platform
from tutti.platforms.machine import Platform

if TYPE_CHECKING:
    import pytest

FLAT = Platform(name="flat", model=PipeliningPostal(alpha_p="400 ns", alpha_r="100 ns"))
NOT_TUNED = {
    "concentrated_multi_tree": "its argument describes the grid of the network",
    "forest": "its argument describes the topology",
    "in_network": "its argument names roots of the network",
    "mirrored_ring": "its argument describes the grid of the network",
    "multi_ring": "its argument describes the grid of the network",
    "multi_tree": "its argument describes the topology",
    "recursive_multiplying": "tutti.search covers its schedules",
}
"""Algorithms with an argument that `grid` leaves at its default, and why."""
SIZES = [Size.of_any(f"{8 << (2 * power)} B") for power in range(9)]


def test_every_algorithm_with_an_argument_has_a_grid_or_a_reason() -> None:
    for entry in _core.algorithms():
        collectives = [grid(entry.name, collective, 24) for collective in entry.collectives]
        has_grid = any(len(notations) > 1 for notations in collectives)
        assert has_grid + (entry.name in NOT_TUNED) == bool(entry.argument), entry.name


def test_times_are_those_of_the_engine_and_the_best_of_the_grid() -> None:
    size = SIZES[4]
    tuned = tune_arguments(FLAT, "all_reduce", 24, [size], most=10_000_000)
    for one in tuned.variants:
        family = one.notation.split(":", 1)[0]
        times = [
            tutti.simulate(tutti.schedule(notation, ranks=24), FLAT, size=size).completion_ps
            for notation in grid(family, "all_reduce", 24)
            if notation not in {"direct:two_step"} and fits(notation)
        ]
        assert one.time_ps <= min(times), one
        run = tutti.simulate(tutti.schedule(one.notation, ranks=24), FLAT, size=size)
        assert run.completion_ps == one.time_ps


def fits(notation: str) -> bool:
    try:
        tutti.schedule(notation, ranks=24)
    except tutti.schedules.errors.AlgorithmError:
        return False
    return True


def test_several_sizes_are_as_good_as_one_size_at_a_time() -> None:
    together = tune_arguments(FLAT, "all_reduce", 12, SIZES, most=10_000_000, defaults=False)
    for size in SIZES:
        alone = tune_arguments(FLAT, "all_reduce", 12, [size], most=10_000_000, defaults=False)
        best = {one.notation.split(":", 1)[0]: one.time_ps for one in alone.variants}
        for one in together.variants:
            if one.size == size:
                assert one.time_ps <= 1.05 * best[one.notation.split(":", 1)[0]]


def test_variants_of_the_best_argument_need_no_more_than_the_fastest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = platform("fat_tree:m=4x3,w=1x2,rate=10GB/s")
    sizes = [Size.of_any("960 KiB")]
    quick = tune_arguments(shared, "all_reduce", 12, sizes, most=10_000_000)
    timed = arguments._Timer._time
    variants = []

    def keeps_two(*given: Any, **named: Any) -> dict[Any, ArgumentChoice]:
        variants.extend([name for name, _ in given[2]] if len(given) > 5 else [])
        return timed(*given[:5], **named)

    monkeypatch.setattr(arguments._Timer, "_time", keeps_two)
    assert tune_arguments(shared, "all_reduce", 12, sizes, most=10_000_000).variants == (
        quick.variants
    )
    assert any("/" in one for one in variants)


def test_what_takes_too_long_is_left_out_with_the_reason() -> None:
    tuned = tune_arguments(FLAT, "all_reduce", 97, [SIZES[0]], most=1000)
    assert "above the limit of 1,000" in tuned.left_out["ring"]
    assert "dissemination" in {one.notation.split(":", 1)[0] for one in tuned.variants}
    many = tune_arguments(FLAT, "all_reduce", 1 << 15, [SIZES[0]], most=1000)
    assert many.left_out["ring"] == "32,768 ranks, above the limit of 16,384"
