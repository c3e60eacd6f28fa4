"""Topologies: NPUs, switches and routers, the links between them, and the routes of messages.

A topology comes from a family, a networkx graph, or a file. All three yield the same immutable
graph of the core.

Examples:
    >>> torus = Topology.build("torus:4x4", rate="50 GB/s", latency="300 ns")
    >>> torus.facts.diameter
    4
    >>> torus.routes("dimension_order").pair(0, 5).latency
    Time('600 ns')
"""

from __future__ import annotations

from tutti.topology.faults import cables, with_faults
from tutti.topology.graph import (
    Link,
    Routes,
    Topology,
    Vertex,
    Wire,
    families,
    link_classes,
)

__all__ = [
    "Link",
    "Routes",
    "Topology",
    "Vertex",
    "Wire",
    "cables",
    "families",
    "link_classes",
    "with_faults",
]
