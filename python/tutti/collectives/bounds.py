"""The platform of lower bounds: one bound for each collective, rank count and size of a platform.

The bound of a row does not depend on the schedule or the protocol of a library: all rows are
compared with the bound of the platform as the user names it (docs/models/lower-bounds.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tutti.base.units import Time
from tutti.collectives.case import make_case
from tutti.platforms.contention import FlowLevel, Packets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti.base.units import Size
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.topologies.graph import Routes

_AT_ONCE = frozenset({"all_to_all", "gather", "scatter"})
"""Collectives that libraries execute as sends and receives on separate channels."""
_MOST_RANKS = 512
"""Most ranks whose routes are followed: 262,144 routes take about 1 s."""


def bound_platform(platform: Platform, collective: str, ranks: int) -> Platform:
    """Returns the platform whose lower bounds hold for the first ranks of a platform.

    For an all_reduce, switches that multicast or reduce weaken the bound of the links: each joins
    the group of the nearest rank, with all its links. Those that no route between the ranks
    crosses, such as the NVSwitches of idle nodes, take part in no operation of the flow and packet
    models, whose trees consist of these routes. They are removed.

    A library sends an all_to_all, a gather or a scatter at once, on a channel per peer: its
    messages are not spaced.

    Args:
        platform: The platform.
        collective: The collective.
        ranks: The number of ranks.
    """
    contention, routes = platform.effective_contention, platform.routes
    if collective in _AT_ONCE:
        return _unspaced(platform)
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


def bound_without_multicast(
    laid_out: Schedule, platform: Platform, size: Size, datatype: str
) -> int | None:
    """Returns the lower bound of an all_gather if switches do not multicast, in ps.

    With multicasts, a rank sends its shard once, and only the links into a rank limit an
    all_gather. Without them, the port of a sender does, as in a reduce_scatter.

    Returns:
        The bound; None for other collectives, and on platforms whose switches do not multicast.
    """
    contention = platform.effective_contention
    shares = isinstance(contention, FlowLevel | Packets) and bool(contention.multicast)
    if laid_out.collective != "all_gather" or not shares:
        return None
    changed = contention.model_copy(update={"multicast": False, "reduce": False})
    where = platform.model_copy(update={"contention": changed})
    return make_case(laid_out, where, size=size, datatype=datatype).bound().at_least_ps


def _unspaced(platform: Platform) -> Platform:
    """Returns the platform with the messages of channels: a step has its latency, but no spacing.

    :meth:`tutti.collectives.library.LibraryPlan.platform_of` has these costs, too.
    """
    model, contention = platform.model, platform.effective_contention
    if platform.library is None or not isinstance(contention, FlowLevel):
        return platform
    changes: dict[str, Time] = {}
    latency, spacing = (getattr(model, name, None) for name in ("alpha_p", "alpha_r"))
    for kind in ("", "_rendezvous"):
        latency = getattr(model, f"alpha_p{kind}", None) or latency
        spacing = getattr(model, f"alpha_r{kind}", None) or spacing
        if latency and spacing and hasattr(model, f"alpha_r{kind}"):
            changes[f"alpha_p{kind}"] = Time(ps=latency.ps + spacing.ps)
            changes[f"alpha_r{kind}"] = Time(ps=0)
    return platform.model_copy(update={"model": model.model_copy(update=changes)})


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
