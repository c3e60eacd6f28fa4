"""Single-cycle multi-hop meshes with multicast and reduction: settings, traffic and results.

Examples:
    >>> from tutti.noc import smart
    >>> mesh = smart.SmartMesh(design="fully_connected", columns=4, rows=4)
    >>> plan = smart.ReplicationPlan(warmup=100, measure=1000, seeds=2)
    >>> run = smart.run(mesh, smart.Traffic(kind="broadcast", rate=0.01), plan)
    >>> run.ending, run.latency.mean
    ('stable', 1.0)
"""

from __future__ import annotations

from tutti.noc.smart.frame import frame
from tutti.noc.smart.measured import Measured, Run
from tutti.noc.smart.mesh import SmartMesh, designs
from tutti.noc.smart.runs import Case, Saturation, at_load, check, run, run_all, saturation, sweep
from tutti.noc.smart.traffic import UNITS, Ideal, ReplicationPlan, Traffic, ideal
from tutti.noc.smart.watched import Watched, watch

__all__ = [
    "UNITS",
    "Case",
    "Ideal",
    "Measured",
    "ReplicationPlan",
    "Run",
    "Saturation",
    "SmartMesh",
    "Traffic",
    "Watched",
    "at_load",
    "check",
    "designs",
    "frame",
    "ideal",
    "run",
    "run_all",
    "saturation",
    "sweep",
    "watch",
]
