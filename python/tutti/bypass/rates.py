"""Different rates of links: slower chiplets, and links of a given rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.units import TimePerByte
from tutti.bypass.errors import BypassError
from tutti.topologies.graph import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping


def with_rates(
    topology: Topology,
    chiplets: Mapping[int, str | TimePerByte],
    pairs: Mapping[tuple[int, int], str | TimePerByte],
) -> Topology:
    """Returns the graph with other rates of some links.

    Args:
        topology: A graph whose vertices are all NPUs.
        chiplets: By node, the rate of its ports: no link from or to it is faster.
        pairs: By source and destination, the rate of each of their links.

    Raises:
        BypassError: A node does not exist, or a pair has no link.
        TopologyError: Some nodes are not connected.
        UnitError: A value has no unit.
    """
    limits = {node: TimePerByte.of_any(rate) for node, rate in chiplets.items()}
    fixed = {pair: TimePerByte.of_any(rate) for pair, rate in pairs.items()}
    found = {(link.source, link.target) for link in topology.core.links()}
    _check(topology.ranks, found, limits, fixed)
    links = []
    for link in topology.core.links():
        source, target = pair = link.source, link.target
        limit = [limits[node].core for node in pair if node in limits]
        slowest = max([link.rate, *limit], key=lambda rate: rate.ps_per_byte)
        chosen = fixed[pair].core if pair in fixed else slowest
        links.append((source, target, (chosen, link.latency_ps, link.length_um)))
    npus = [vertex.name for vertex in topology.vertices]
    name = f"{topology.name} with other rates"
    return Topology(_core.Topology.from_links(name, npus, [], links))


def _check(
    nodes: int,
    found: set[tuple[int, int]],
    limits: Mapping[int, TimePerByte],
    fixed: Mapping[tuple[int, int], TimePerByte],
) -> None:
    for node in limits:
        if not 0 <= node < nodes:
            message = f"the rate of node {node}: expected a node from 0 to {nodes - 1}"
            raise BypassError(message, kind="rate", fields={"node": node})
    for source, target in fixed:
        if (source, target) not in found:
            message = f"the rate from node {source} to node {target}: expected a live link"
            raise BypassError(message, kind="rate", fields={"flow": (source, target)})
