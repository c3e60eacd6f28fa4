"""Links of their own for as many flows as a short look finds: shortest first, as in ARIES.

Where flows of one line compete for a wire, it is cut for the shorter ones ("we follow a greedy
policy to segment the bypass links to connect any short-distanced nodes"; section IV of Yin,
Ghazizadeh, Louri and Zheng, ICCAD 2023). Flows along one line come first, by span; then those that
turn, by distance; among equals the order in which they are asked for decides. Each takes the first
way that has room: the fewest hops, then the shortest, along the row before along the column. What
finds none is left to share.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tutti.bypass.exact import Chosen, most, ways_between
from tutti.bypass.space import TakenHops

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.bypass.exact import Way
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Space

_HOPS, _DETOUR = 3, 2
"""What a way has at most: hops, and segments beyond the shortest."""


def place(space: Space, flows: Sequence[Flow]) -> Chosen:
    """A choice of ways with links of their own.

    Args:
        space: what there is room for.
        flows: source and destination; repeated pairs ask for that many links side by side.
    """
    wanted = Counter(flows)
    order = sorted(wanted, key=lambda flow: (flow not in space.hops, space.distance(*flow)))
    return place_in_order(space, wanted, order)


def place_in_order(space: Space, wanted: Counter[Flow], order: Iterable[Flow]) -> Chosen:
    """The same with the flows in an order of one's own."""
    taken = TakenHops(space)
    ways: dict[Flow, Way] = {}
    links: dict[Flow, int] = {}
    for flow in order:
        for way in short_ways(space, flow):
            hops = hops_of(way)
            count = 0
            while count < wanted[flow] and taken.add(hops):
                count += 1
            if count:
                ways[flow], links[flow] = way, count
                break
    return Chosen(ways, links, most(wanted))


def hops_of(way: Sequence[int]) -> list[Flow]:
    """The hops that a way consists of."""
    return list(pairwise(way))


@cache
def short_ways(space: Space, flow: Flow) -> tuple[Way, ...]:
    """The ways that a flow may take, best first."""
    found = ways_between(space, flow, _HOPS, _DETOUR)

    def merit(way: Way) -> tuple[int, int, bool, Way]:
        length = sum(space.distance(*hop) for hop in hops_of(way))
        turns_late = way[1] // space.side == way[0] // space.side
        return len(way), length, not turns_late, way

    return tuple(sorted(found, key=merit))
