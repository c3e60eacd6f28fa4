"""The fastest variant of an all_reduce on each of the paper's networks, by size."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tutti.base.progress import at_once
from tutti.bypass.package_networks import DEFAULT, Assumptions, variants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.base.units import Size
    from tutti.bypass.package_networks import Variant
    from tutti.collectives.phases import PhasedRun

Case = tuple[str, str, int]
"""Network, algorithm, side."""


def fastest(
    cases: Iterable[Case],
    sizes: Iterable[Size],
    assumptions: Assumptions = DEFAULT,
    *,
    quiet: bool = False,
) -> dict[tuple[Case, Size], PhasedRun]:
    """Returns the run of the fastest variant by case and size; `quiet` reports no progress."""
    known = at_once(lambda case: variants(*case, assumptions), cases, None if quiet else "mappings")

    def best(request: tuple[Case, Size]) -> PhasedRun:
        case, size = request
        return fastest_of(known[case], size)

    return at_once(best, product(known, sizes), None if quiet else "runs")


def fastest_of(known: Iterable[Variant], size: Size) -> PhasedRun:
    """Returns the run of the fastest of these variants."""
    return min((variant.run(size) for variant in known), key=lambda run: run.completion_ps)
