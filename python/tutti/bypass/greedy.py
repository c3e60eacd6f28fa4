"""Dedicated links by a greedy policy: shortest flows first, as in ARIES.

Bypass wires are cut for short flows first ("we follow a greedy policy to segment the bypass links
to connect any short-distanced nodes"; section IV of Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023).
Flows along one line come first, by span, then flows with a turn, by distance; ties follow the order
of the request. Each takes the first path that fits: the fewest hops, then the shortest, row before
column. Flows without such a path share links.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tutti.bypass.exact import Chosen, most, paths_between
from tutti.bypass.space import TakenHops

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.bypass.exact import NodePath
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Space

_HOPS, _DETOUR = 3, 2
"""The most hops of a path, and the most segments of detour."""


def place(space: Space, flows: Sequence[Flow]) -> Chosen:
    """Returns a selection of dedicated paths.

    Args:
        space: The resources of the mesh.
        flows: Source and destination; repeated pairs request parallel links.
    """
    requested = Counter(flows)
    order = sorted(requested, key=lambda flow: (flow not in space.hops, space.distance(*flow)))
    return place_in_order(space, requested, order)


def place_in_order(space: Space, requested: Counter[Flow], order: Iterable[Flow]) -> Chosen:
    """Returns the selection that places flows in the given order."""
    taken = TakenHops(space)
    paths: dict[Flow, NodePath] = {}
    links: dict[Flow, int] = {}
    for flow in order:
        for path in short_paths(space, flow):
            hops = hops_of(path)
            count = 0
            while count < requested[flow] and taken.add(hops):
                count += 1
            if count:
                paths[flow], links[flow] = path, count
                break
    return Chosen(paths, links, most(requested))


def hops_of(path: Sequence[int]) -> list[Flow]:
    """Returns the hops of a path."""
    return list(pairwise(path))


@cache
def short_paths(space: Space, flow: Flow) -> tuple[NodePath, ...]:
    """Returns the candidate paths of a flow, best first."""
    found = paths_between(space, flow, _HOPS, _DETOUR)

    def merit(path: NodePath) -> tuple[int, int, bool, NodePath]:
        length = sum(space.distance(*hop) for hop in hops_of(path))
        turns_late = path[1] // space.columns == path[0] // space.columns
        return len(path), length, not turns_late, path

    return tuple(sorted(found, key=merit))
