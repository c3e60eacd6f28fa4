"""Topologies: which NPU is linked to which, how fast, and the way a message takes.

A topology comes from a family, from a networkx graph, or from a file; all three give the same
immutable graph, laid out by the core.

>>> torus = Topology.build("torus:4x4", rate="50 GB/s", latency="300 ns")
>>> torus.facts.diameter
4
>>> torus.routes("dimension_order").pair(0, 5).latency
Time('600 ns')
"""

from __future__ import annotations

from tutti.topology.graph import (
    Link,
    Routes,
    Topology,
    Vertex,
    Wire,
    families,
    link_classes,
)

__all__ = ["Link", "Routes", "Topology", "Vertex", "Wire", "families", "link_classes"]
