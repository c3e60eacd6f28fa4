"""Phases of a schedule on different platforms."""

from __future__ import annotations

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time
from tutti.collectives.phases import simulate_phases
from tutti.platforms.contention import Packets


def machine(notation: str, latency: str = "12 ns") -> tutti.Platform:
    topology = tutti.Topology.build(notation, rate="68 GB/s", latency=latency)
    return tutti.Platform(
        name="chiplets",
        model=tutti.Postal(alpha="1 ps"),
        routes=topology.routes(),
        contention=Packets(size=Size(bytes=1024)),
    )


def trees() -> tutti.Schedule:
    return tutti.schedule("double_binary_tree:nccl,phased", ranks=16)


def test_one_platform_serves_all_phases() -> None:
    mesh = machine("mesh:4x4")
    complete = tutti.simulate(trees(), mesh, size="64 KiB")
    assert simulate_phases(trees(), [mesh], size="64 KiB").completion_ps == complete.completion_ps


def test_switching_platforms_costs_time() -> None:
    near, far = machine("fully_connected:16"), machine("fully_connected:16", "24 ns")
    switch = Time.parse("100 ns")
    alike = simulate_phases(trees(), [near, near], size="64 KiB", switch=switch)
    switched = simulate_phases(trees(), [near, far], size="64 KiB", switch=switch)
    assert (alike.switches, switched.switches) == (0, 1)
    # Four levels, each 12 ns further, in one of the two phases.
    more = switched.completion_ps - alike.completion_ps
    assert more == switch.ps + 4 * 12_000
    assert switched.algbw == pytest.approx(65536 / switched.completion_ps * 1e12)


def test_sequential_phases_take_at_least_as_long() -> None:
    alone = machine(
        "fully_connected:16"
    )  # without contention, waiting for all ranks is never faster
    parts = simulate_phases(trees(), [alone, alone], size="1 MiB")
    assert parts.completion_ps >= simulate_phases(trees(), [alone], size="1 MiB").completion_ps


def test_number_of_platforms_must_match_the_phases() -> None:
    mesh = machine("mesh:4x4")
    with pytest.raises(ConfigError, match="has 2 phases, but 3 platforms are given"):
        simulate_phases(trees(), [mesh, mesh, mesh], size="1 KiB")
