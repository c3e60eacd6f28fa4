"""Pareto fronts: the points that no other point dominates.

Examples:
    >>> dominators([(1.0, 5.0), (2.0, 2.0), (2.0, 3.0), (3.0, 1.0)])
    [None, None, 1, None]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def dominators(points: Sequence[tuple[float, ...]]) -> list[int | None]:
    """Returns for each point a point of the front that dominates it; None for points of the front.

    A point dominates another one if no coordinate is larger, and one is smaller. Equal points do
    not dominate each other.

    Args:
        points: Coordinates to minimise, as many for each point.
    """
    front: list[int] = []
    found: list[int | None] = [None] * len(points)
    # A point that dominates another one precedes it in lexicographic order.
    for index in sorted(range(len(points)), key=lambda index: (points[index], index)):
        found[index] = next((one for one in front if _dominates(points[one], points[index])), None)
        if found[index] is None:
            front.append(index)
    return found


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
