"""Remarks on routes: a default that selects among equal paths, and links that no route uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tutti.topologies.graph import Routes

_MOST_RANKS: Final = 256
"""Larger graphs are not searched: the paths of all pairs would take seconds."""


def default_routing(routes: Routes) -> str:
    """Returns a remark on a routing rule that the family of a topology selects, or ""."""
    if not routes.is_default or routes.rule in {None, "shortest_path"}:
        return ""
    rule = str(routes.rule).partition(":")[0]
    family = routes.topology.name.partition(":")[0]
    return f"the routing of {family} is {rule} unless `routing` states another"


def idle_links(routes: Routes) -> str:
    """Returns a remark on links of a graph that `shortest_path` leaves idle, or ""."""
    topology = routes.topology
    if routes.rule != "shortest_path" or topology.is_family or topology.ranks > _MOST_RANKS:
        return ""
    inner = _between_switches(routes)
    if not inner:
        return ""
    idle = inner - _used(routes)
    idle &= _used(topology.routes("ecmp")) if idle else idle
    if not idle:
        return ""
    text = f'{len(idle):,} links between switches are on no route; routing = "ecmp" uses them'
    return text if len(idle) > 1 else text.replace("links", "link").replace("are", "is")


def _between_switches(routes: Routes) -> set[int]:
    """Returns the links that do not end at an NPU."""
    core = routes.topology.core
    ranks = routes.topology.ranks
    return {
        index
        for index, link in enumerate(core.links())
        if link.source >= ranks and link.target >= ranks
    }


def _used(routes: Routes) -> set[int]:
    """Returns the links on the paths of all pairs of ranks."""
    ranks = range(routes.topology.ranks)
    used: set[int] = set()
    for source in ranks:
        for target in ranks:
            used.update(routes.core.path(source, target))
    return used
