"""Scheduling anomalies: runs that become faster when a component becomes slower.

`docs/models/README.md` explains each; `python benchmarks/anomalies.py` searches for more.
"""

from __future__ import annotations

import pytest

import tutti
from tutti.networks.flit import Router
from tutti.networks.mesh import SmartMesh

RATES = (31, 63, 80, 126, 189, 252)
"""Picoseconds per byte, the fastest link first."""


def alone(per_byte: int, router: Router) -> int:
    """Completion time of one message of eight packets of four flits, over a link of 500 cycles."""
    routes = tutti.Topology.build("ring:2", rate=f"{per_byte} ps/B", latency="500 ns").routes()
    flits = tutti.Flits(flit="16 B", narrow_links="serialize", router=router)
    ends = tutti.PipeliningPostal(alpha_p="1 ns", alpha_r="0 ns")
    machine = tutti.Platform(name="two", model=ends, routes=routes, contention=flits)
    message = tutti.schedule("direct", ranks=2, collective="broadcast")
    return tutti.simulate(message, machine, size="512 B").completion_time


def test_a_faster_link_fills_a_vc_before_its_credits_are_back() -> None:
    """Eight packets fit into four VCs of eight flits, if each VC gets two of them."""
    fast, slow = alone(63, Router()), alone(126, Router())
    assert (fast, slow) == (1_522_000, 571_000)


@pytest.mark.parametrize(
    "router", [Router(busy_when_full=True), Router(prioritize_empty=True), Router(vcs=1)]
)
def test_faster_link_is_faster_with_vc_allocation_by_credits(router: Router) -> None:
    times = [alone(per_byte, router) for per_byte in RATES]
    assert times == sorted(times)


def gathered(per_byte: int) -> tutti.Run:
    ends = tutti.Postal(alpha="1 ns", beta=f"{per_byte} ps/B")
    mesh = tutti.MeshFlits(mesh=SmartMesh(design="smart_1d", rows=4, columns=4))
    machine = tutti.Platform(name="tiles", model=ends, contention=mesh)
    schedule = tutti.schedule("dissemination", collective="all_gather", ranks=16)
    return tutti.simulate(schedule, machine, size="64 B")


def test_delayed_flits_can_finish_earlier() -> None:
    fast, slow = gathered(40), gathered(80)
    assert (fast.completion_time, slow.completion_time) == (25_000, 23_000)

    def arrivals(run: tutti.Run) -> dict[tuple[int, int, int], int]:
        rows = run.messages_frame.select("source", "destination", "index", "arrival_ps").rows()
        return {(source, destination, index): at for source, destination, index, at in rows}

    before, after = arrivals(fast), arrivals(slow)
    last, overtaken = (5, 13, 1), (1, 9, 1)
    assert before[overtaken] < before[last] == fast.completion_time
    assert after[overtaken] > after[last]


def pressed(per_byte: int, buffer: str) -> int:
    """Completion time of an all_reduce of 64 KiB, `direct` on a mesh whose links hold `buffer`."""
    ends = tutti.LogGP(L="50 ns", o="1 us", g="1 us", G=f"{per_byte} ps/B")
    mesh = tutti.Topology.build("mesh:4x4", rate="250 ps/B", latency="500 ns")
    routes = mesh.routes("shortest_path")
    packets = tutti.Packets(size="1 KiB", buffer=buffer)
    machine = tutti.Platform(name="mesh", model=ends, routes=routes, contention=packets)
    schedule = tutti.schedule("direct", collective="all_reduce", ranks=16)
    return tutti.simulate(schedule, machine, size="64 KiB").completion_time


def test_slower_ejection_ports_block_fewer_buffers() -> None:
    assert (pressed(100, "8 KiB"), pressed(200, "8 KiB")) == (606_846_000, 481_502_000)
    assert (pressed(100, "64 KiB"), pressed(200, "64 KiB")) == (463_302_000, 463_302_000)
