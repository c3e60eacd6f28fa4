"""Endpoint models on package networks and SMART meshes, by hand calculation on small cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Frequency, Size, TimePerByte
from tutti.bypass.endpoints import candidates, memory_sweep
from tutti.networks.mesh import SmartMesh
from tutti.platforms.contention import MeshFlits
from tutti.platforms.machine import LogGP, Platform
from tutti.training.collective import Alone, AloneResult
from tutti.training.endpoint import Configuration, Npu, configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads.model import Model, linear

ENDPOINTS = configurations()
NODES = 4
FREE = LogGP(L="0 ns", o="0 ns", g="0 ns", G="0.001 ns/B")
NPU = replace(Npu(), clock=Frequency.parse("1 GHz"))


def smart(design: str = "sfo_greedy", fan_in: Any = "complete") -> Platform:
    """Returns a 2x2 mesh with flits of 64 B and cycles of 1 ns."""
    mesh = SmartMesh(design=design, columns=2, rows=2, fan_in=fan_in)
    return Platform(name="smart", model=FREE, contention=MeshFlits(mesh=mesh, flit=Size(bytes=64)))


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


def test_a_flit_on_a_smart_mesh_takes_the_cycles_of_mesh_and_endpoints() -> None:
    # Four cycles to the root and a cycle of its endpoint, four back and a cycle of theirs.
    assert on_smart(ENDPOINTS["ideal"], 64).time.ps == (4 + 1 + 4 + 1) * 1000
    # The executor has no endpoints: 4, a cycle to turn, and 4.
    schedule = tutti.schedule("in_network:0", ranks=NODES)
    run = tutti.simulate(schedule, smart(), size="64 B")
    assert run.completion_ps // 1000 == 4 + 1 + 4


def test_routers_relieve_the_memory_of_endpoints() -> None:
    size = 4096
    baseline = on_smart(ENDPOINTS["comp_opt"], size)
    # A member sends its contribution; the root reads its own and the combined one to reduce them,
    # and forks the result without further reads.
    reads = [_read(baseline, npu) for npu in range(NODES)]
    assert reads == [2 * size, size, size, size]
    # Without such routers the root reduces three contributions, and sends the result three times.
    folded = on_smart(ENDPOINTS["comp_opt"], size, design="smart_1d", fan_in="unicasts")
    assert _read(folded, 0) == (3 * 2 + 2) * size
    assert folded.time.ps > baseline.time.ps
    # Each byte enters and leaves the network once per NPU.
    sent = [sum(used.bytes for used in baseline.record.links(npu)) for npu in range(NODES)]
    assert sent == [size] * 4
    assert baseline.limit.servers["memory"].ps == 2 * size * 1000 // 128


def _read(found: AloneResult, npu: int) -> int:
    return next(used.bytes for used in found.record.servers(npu) if used.name == "memory")


def test_a_training_step_runs_on_a_smart_mesh() -> None:
    layers = tuple(linear(f"layer{at}", 128, 256, first=at == 0) for at in range(3))
    step = Step(
        model=Model(name="small", source="made up", layers=layers, samples="rows"),
        batch=1,
        rings=(Dimension("nodes", NODES),),
        platform=smart(),
        algorithms={"all_reduce": "in_network:all"},
        iterations=1,
        order="fifo",
    )
    run = step.run(ENDPOINTS["ace"])
    parts = run.record.breakdown()
    times = (parts.compute_ps, parts.overlap_ps, parts.exposed_ps, parts.idle_ps)
    assert sum(times) == run.total.ps
    assert parts.exposed_ps > 0


def test_bypass_links_gain_only_with_memory_bandwidth_for_them() -> None:
    # A ring reads 3 bytes for 2 sent: 68 GB/s of the mesh need 102 GB/s, two links 204 GB/s.
    size = Size.parse("256 KiB")
    rings = {
        name: next(one for one in candidates(name, 4) if "ring" in one.name)
        for name in ("mesh", "aries")
    }

    def gain(memory: str, sms: int) -> float:
        endpoint = Configuration(
            name=memory, kind="baseline", memory=TimePerByte.parse(memory), sms=sms
        )
        times = {name: one.alone(size, endpoint) for name, one in rings.items()}
        assert all(found.limit.time <= found.time for found in times.values())
        assert {found.read for found in times.values()} == {3 * 15 * size.bytes // 16}
        return times["mesh"].time.ps / times["aries"].time.ps

    assert gain("64 GB/s", 1) == pytest.approx(1, abs=0.01)
    assert gain("153 GB/s", 2) == pytest.approx(1.5, abs=0.1)
    assert gain("450 GB/s", 6) == pytest.approx(2, abs=0.1)


def test_the_sweep_names_unknown_networks() -> None:
    with pytest.raises(ConfigError, match="unknown package network `torus`: expected one of mesh"):
        memory_sweep(["torus"], ["64 GB/s"], Size.parse("64 KiB"))
