"""Endpoint models on package networks and SMART meshes, by hand calculation on small cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tutti
from tutti.alone import Alone, AloneResult
from tutti.endpoint import Configuration, Npu, configurations
from tutti.errors import ConfigError
from tutti.noc import SmartMesh
from tutti.papers.package_endpoints import candidates, memory_sweep
from tutti.platform import LogGP, MeshFlits, Platform
from tutti.step_fabric import Dimension
from tutti.training import Step
from tutti.units import Frequency, Size, TimePerByte
from tutti.workload import build

ENDPOINTS = configurations()
NODES = 4
FREE = LogGP(L="0 ns", o="0 ns", g="0 ns", G="0.001 ns/B")
NPU = replace(Npu(), clock=Frequency.parse("1 GHz"))


def smart(design: str = "sfo_greedy", fan_in: str = "complete") -> Platform:
    """Returns a 2x2 mesh with flits of 64 B and cycles of 1 ns."""
    mesh = SmartMesh(design=design, columns=2, rows=2, fan_in=fan_in)
    return Platform(name="smart", model=FREE, mesh=MeshFlits(mesh=mesh, flit=Size(bytes=64)))


def on_smart(
    endpoint: Configuration, size: int, notation: str = "in_network:0", **mesh: str
) -> AloneResult:
    """Runs an all_reduce behind endpoints on the 2x2 mesh."""
    alone = Alone(
        size=Size(bytes=size),
        rings=(Dimension("nodes", NODES),),
        platform=smart(**mesh),
        algorithms={"all_reduce": notation},
        npu=NPU,
    )
    return alone.run(endpoint)
