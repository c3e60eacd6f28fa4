"""The platform of lower bounds: one bound for each collective, rank count and size of a platform.

The bound of a row does not depend on the schedule or the protocol of a library: all rows are
compared with the bound of the platform as the user names it (docs/models/lower-bounds.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tutti.platforms.contention import FlowLevel, Packets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti.platforms.machine import Platform
    from tutti.topologies.graph import Routes

_MOST_RANKS = 512
"""Most ranks whose routes are followed: 262,144 routes take about 1 s."""


def bound_platform(platform: Platform, collective: str, ranks: int) -> Platform:
    """Returns the platform whose lower bounds hold for the first ranks of a platform.

    For an all_reduce, switches that multicast or reduce weaken the bound of the links: each joins
    the group of the nearest rank, with all its links. Those that no route between the ranks
    crosses, such as the NVSwitches of idle nodes, take part in no operation of the flow and packet
    models, whose trees consist of these routes. They are removed.

    Args:
        platform: The platform.
        collective: The collective.
        ranks: The number of ranks.
    """
    contention, routes = platform.effective_contention, platform.routes
    if collective != "all_reduce" or routes is None or routes.choice is not None:
        return platform
    if not isinstance(contention, FlowLevel | Packets) or ranks > _MOST_RANKS:
        return platform
    named = {
        key: names
        for key in ("multicast", "reduce")
        if isinstance(names := getattr(contention, key), tuple)
    }
    if not named or contention.multicast is True or contention.reduce is True:
        return platform
    every = {key: _matching(routes, names) for key, names in named.items()}
    used = _crossed(routes, ranks, frozenset().union(*every.values()))
    changes = {key: tuple(sorted(names & used)) or False for key, names in every.items()}
    if not used or all(names == names & used for key, names in every.items()):
        return platform
    return platform.model_copy(update={"contention": contention.model_copy(update=changes)})


def _matching(routes: Routes, patterns: tuple[str, ...]) -> frozenset[str]:
    """Returns the names of the vertices that match a pattern, where `*` is any characters."""
    texts = (".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns)
    matches = re.compile("|".join(texts)).fullmatch
    return frozenset(name for name, _ in routes.topology.core.vertices() if matches(name))


def _crossed(routes: Routes, ranks: int, switches: frozenset[str]) -> frozenset[str]:
    """Returns the switches, by name, that a route between two of the first ranks enters."""
    names = [name for name, _ in routes.topology.core.vertices()]
    entered: Mapping[int, str] = {
        index: names[link.target]
        for index, link in enumerate(routes.topology.core.links())
        if names[link.target] in switches
    }
    found: set[str] = set()
    for source, target in _pairs(min(ranks, routes.topology.ranks)):
        found.update(entered[link] for link in routes.core.path(source, target) if link in entered)
        if len(found) == len(switches):
            break
    return frozenset(found)


def _pairs(ranks: int) -> Iterator[tuple[int, int]]:
    """Returns all pairs of ranks, neighbours first: they cross the switches of every node."""
    for offset in range(1, ranks):
        for source in range(ranks):
            yield source, (source + offset) % ranks
