"""One collective with an endpoint model: compared with its schedule and its bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import tutti
from tutti.base.errors import SimulationError
from tutti.base.units import Size, Time, TimePerByte
from tutti.training.collective import Alone
from tutti.training.endpoint import Npu, Ring, configurations

LINK = TimePerByte.parse("25 GB/s")
LATENCY = Time.parse("400 ns")


def alone(nodes: tuple[int, ...], size: str, collective: str = "all_reduce") -> Alone:
    rings = tuple(Ring(f"r{i}", count, LINK, LATENCY) for i, count in enumerate(nodes))
    return Alone(size=Size.parse(size), rings=rings, collective=collective)


@pytest.mark.parametrize("nodes", [(4, 4, 4), (2, 3), (2, 2, 5)])
def test_schedule_takes_as_long_if_each_step_is_one_packet(nodes: tuple[int, ...]) -> None:
    """Each step: a packet on the link, the latency of the link, and the ideal endpoint's cycle."""
    size = 4 * 240
    run = alone(nodes, f"{size} B").run(configurations()["ideal"])
    ranks = 1
    for count in nodes:
        ranks *= count
    notation = "hierarchical_local:" + "x".join(map(str, nodes))
    schedule = tutti.schedule(notation, ranks=ranks)
    step = LATENCY.ps + Npu().clock.cycles(1).ps
    machine = tutti.Platform(name="p", model=tutti.Postal(alpha=f"{step} ps", beta=str(LINK)))
    done = tutti.simulate(schedule, machine, size=f"{size} B", datatype="int8")
    assert run.time.ps == done.completion_ps


def test_a_collective_without_a_default_schedule_is_refused() -> None:
    with pytest.raises(SimulationError, match="no default schedule"):
        alone((4,), "1 KiB", "gather").run(configurations()["ideal"])


def test_stalls_are_reported_by_cause() -> None:
    run = alone((4, 4), "4 MiB").run(configurations()["ace"])
    assert run.stalls["entry"] > Time.parse("0 ps")
    assert run.limit.time <= run.time
    assert run.read == run.alone.size.bytes


MORE: dict[str, list[Size] | list[int]] = {
    "sram": [Size.parse(text) for text in ("2 MiB", "4 MiB", "8 MiB", "64 MiB")],
    "fsms": [8, 12, 16, 32],
    "alus": [1, 2, 4, 8],
    "banks": [2, 4, 8],
}


@pytest.mark.parametrize("resource", MORE)
def test_more_of_a_resource_of_ace_is_not_slower(resource: str) -> None:
    """Up to 1 %: the order of packets at a server changes with every resource."""
    ace = configurations()["ace"]
    inside = Ring("inside", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns"))
    step = alone((4, 4, 4), "8 MiB")
    step = replace(step, rings=(inside, *step.rings[1:]))
    times = []
    for value in MORE[resource]:
        settings = replace(ace.ace, **{resource: value})  # type: ignore[arg-type]
        times.append(step.run(replace(ace, ace=settings)).time.ps)
    for less, more in pairwise(times):
        assert more <= 1.01 * less
    assert times[-1] < times[0]
