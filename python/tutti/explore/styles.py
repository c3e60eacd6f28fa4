"""The styles of algorithms on a page."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.view.palette import Style, styles, styles_in_order

if TYPE_CHECKING:
    from tutti.collectives.comparison import Comparison

_LEAST_DISTANCE = 110
"""The least distance of two colours of a decision map, in steps of red, green and blue."""


def styles_of(case: Comparison) -> dict[str, Style]:
    """Returns a style per algorithm, with other colours for winners of similar colours."""
    found = styles(case.algorithms)
    free = [one.colour for one in styles_in_order(map(str, range(10))).values()]
    used: list[str] = []
    wins = Counter(one.winner.algorithm for one in case.decisions().values())
    for name, _ in sorted(wins.items(), key=lambda item: (-item[1], item[0])):
        colours = (found[name].colour, *free)
        distant = (one for one in colours if all(_distance(one, u) > _LEAST_DISTANCE for u in used))
        found[name] = replace(found[name], colour=next(distant, found[name].colour))
        used.append(found[name].colour)
    return found


def _distance(first: str, second: str) -> float:
    return math.dist(*([int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in (first, second)))
