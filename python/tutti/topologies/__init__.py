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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
