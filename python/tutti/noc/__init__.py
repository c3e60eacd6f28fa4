"""Flit-level network simulation: latency against offered load, causes of stalls, and saturation.

Examples:
    >>> import tutti
    >>> from tutti import noc
    >>> mesh = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns")
    >>> network = noc.Network(topology=mesh, routing="dimension_order")
    >>> plan = noc.MeasurementPlan(warmup=1000, measure=4000)
    >>> run = noc.run(network, noc.Traffic(rate=0.1, packet=4), plan)
    >>> run.ending
    'stable'
"""

from __future__ import annotations

from tutti.noc.events import Events
from tutti.noc.frame import frame
from tutti.noc.measured import Estimate, Measured, NocRun, Stalls
from tutti.noc.network import Network, patterns, routings
from tutti.noc.runs import Saturation, at_load, run, saturation, sweep
from tutti.noc.settings import MeasurementPlan, Router, Speculation, Trace, Traffic
from tutti.noc.smart import SmartMesh

__all__ = [
    "Estimate",
    "Events",
    "Measured",
    "MeasurementPlan",
    "Network",
    "NocRun",
    "Router",
    "Saturation",
    "SmartMesh",
    "Speculation",
    "Stalls",
    "Trace",
    "Traffic",
    "at_load",
    "frame",
    "patterns",
    "routings",
    "run",
    "saturation",
    "sweep",
]
