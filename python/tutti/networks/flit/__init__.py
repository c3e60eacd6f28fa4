"""Flit-level network simulation: latency against offered load, causes of stalls, and saturation.

Examples:
    >>> import tutti
    >>> from tutti.networks import flit as noc
    >>> mesh = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns")
    >>> network = noc.Network(topology=mesh, routing="dimension_order")
    >>> plan = noc.MeasurementPlan(warmup=1000, measure=4000)
    >>> run = noc.run(network, noc.Traffic(rate=0.1, packet=4), plan)
    >>> run.ending
    'stable'
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
