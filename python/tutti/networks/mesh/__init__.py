"""Single-cycle multi-hop meshes with multicast and reduction: settings, traffic and results.

Examples:
    >>> from tutti.networks import mesh as smart
    >>> mesh = smart.SmartMesh(design="fully_connected", columns=4, rows=4)
    >>> plan = smart.ReplicationPlan(warmup=100, measure=1000, seeds=2)
    >>> run = smart.run(mesh, smart.Traffic(kind="broadcast", rate=0.01), plan)
    >>> run.ending, run.latency.mean
    ('stable', 1.0)
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
