"""Topologies with links that are down or slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files.mistakes import did_you_mean
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tutti.topologies.graph import Link, Topology

_SEPARATOR = " -- "
_FEWEST, _MOST = 1.0, 1e6


def cable(link: Link) -> str:
    """Returns the name of a link's cable, the same for both directions.

    Parallel cables between two vertices share a name.

    Args:
        link: The link.
    """
    return _SEPARATOR.join(sorted((link.source, link.target)))


def cables(topology: Topology) -> tuple[str, ...]:
    """Returns the names of all cables of a topology, sorted."""
    return tuple(sorted({cable(link) for link in topology.links}))


def with_faults(
    topology: Topology,
    *,
    down: Collection[str] = (),
    slowed: Mapping[str, float] | None = None,
) -> Topology:
    """Returns the topology without some cables, and with others at a lower rate.

    The result is a graph without family: `shortest_path` and `ecmp` route around the faults, also
    through other NPUs.

    Args:
        topology: The topology.
        down: Names of cables, as of :func:`cables`. All parallel cables of a name are removed.
        slowed: By name of a cable, the factor by which its rate is divided, at least 1.

    Raises:
        TopologyError: A cable is unknown, a factor is below 1, or two NPUs have no path left.
    """
    slowed = dict(slowed or {})
    known = cables(topology)
    for name in [*down, *slowed]:
        if name not in known:
            raise TopologyError(
                f"unknown cable `{name}`: expected two vertices of {topology.name} that a cable "
                f"joins, such as `{known[0]}`",
                kind="unknown_cable",
                hint=did_you_mean(name, known),
            )
    for name, factor in slowed.items():
        if not _FEWEST <= factor <= _MOST:
            raise TopologyError(
                f"the factor of `{name}` is {factor:g}: expected a number from 1 to 1e6",
                kind="slowed",
            )
    core = _built(topology, frozenset(down), slowed)
    return type(topology)(core, routing=topology.routing)


def _built(topology: Topology, down: frozenset[str], slowed: Mapping[str, float]) -> _core.Topology:
    index = {vertex.name: number for number, vertex in enumerate(topology.vertices)}
    links = []
    for link in topology.links:
        name = cable(link)
        if name not in down:
            rate = _slower(link.rate.core, slowed.get(name, 1.0))
            length = None if link.length is None else link.length.um
            links.append((index[link.source], index[link.target], (rate, link.latency.ps, length)))
    npus = [vertex.name for vertex in topology.vertices if vertex.kind == "npu"]
    others: list[tuple[str, str]] = [
        (one.kind, one.name) for one in topology.vertices if one.kind != "npu"
    ]
    name = f"{topology.name} with faults" if down or slowed else topology.name
    return _core.Topology.from_links(name, npus, others, links)


def _slower(rate: _core.TimePerByte, factor: float) -> _core.TimePerByte:
    """The time per byte times a factor, to nine digits."""
    if factor == 1:
        return rate
    return _core.TimePerByte(f"{rate.ps_per_byte * factor / 1000:.9f} ns/B")
