"""Small networks of routers, and a short measurement plan."""

from __future__ import annotations

from typing import Any

import tutti
from tutti.networks import flit as noc

SHORT = noc.MeasurementPlan(
    warmup=500, measure=2000, batches=10, drain=4000, patience=1000, sample=50
)


def mesh(notation: str = "mesh:4x4", *, latency: str = "1 ns", rate: str = "16 GB/s") -> Any:
    return tutti.Topology.build(notation, rate=rate, latency=latency, length="2 mm")


def network(notation: str = "mesh:4x4", **options: Any) -> noc.Network:
    options.setdefault("routing", "dimension_order")
    options.setdefault("topology", mesh(notation))
    return noc.Network(**options)
