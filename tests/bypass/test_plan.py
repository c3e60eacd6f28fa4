"""Schedules on bypass meshes: configured once, and for each phase."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.base.units import Size
from tutti.bypass import BypassMesh, flows_of, map_flows
from tutti.bypass.plans import chunk_packets, plan
from tutti.schedules.ir import schedule

LINKS: dict[str, Any] = {"rate": "68 GB/s", "latency": "12 ns"}


def test_phases_are_mapped_separately() -> None:
    trees = schedule("double_binary_tree:nccl,phased,4", ranks=16)
    once = plan(trees, BypassMesh())
    switched = plan(trees, BypassMesh(), switched=True)
    assert [len(mapping.dedicated) for mapping in once.mappings] == [44]
    assert [len(mapping.dedicated) for mapping in switched.mappings] == [30, 30]
    ran = switched.run("2 MiB", switch="100 ns", **LINKS)
    assert (len(ran.runs), ran.switches) == (2, 1)
    assert ran.time < once.run("2 MiB", **LINKS).time


def test_a_schedule_of_one_phase_is_not_switched() -> None:
    ring = schedule("ring:4x4", ranks=16)
    assert len(plan(ring, BypassMesh(), switched=True).mappings) == 1


@pytest.mark.parametrize("payload", ["16 KiB", "2 MiB"])
def test_two_parallel_links_halve_serialization_time(payload: str) -> None:
    """30 steps, each of 12 ns and 1/32 of the payload on each of two links."""
    size = Size.parse(payload)
    ran = plan(schedule("ring:4x4", ranks=16), BypassMesh(), copies=2).run(payload, **LINKS)
    expected = 30 * (12e-9 + size.bytes / 16 / 2 / 68e9)
    assert ran.completion_ps / 1e12 == pytest.approx(expected, rel=0.02)


def test_shared_flows_are_balanced_over_links() -> None:
    """On 16x16 the greedy policy routes 15 flows over one link; balancing leaves at most two."""
    trees = schedule("double_binary_tree:nccl,phased", ranks=256)
    mesh = BypassMesh(side=16)
    (first, _) = plan(trees, mesh, switched=True).mappings
    greedy = map_flows(mesh, flows_of(trees, phase=0), method="greedy")
    assert greedy.most_loaded == 15.0
    assert first.most_loaded <= 2.0


def test_packet_size_follows_from_chunk_size() -> None:
    ring = schedule("ring:4x4", ranks=16)
    assert chunk_packets(Size.parse("1 KiB"), ring).size.bytes == 64
    assert chunk_packets(Size.parse("16 KiB"), ring).size.bytes == -(-1024 // 14)
    assert chunk_packets(Size.parse("16 MiB"), ring).size.bytes == 1024 * 1024 // 32
