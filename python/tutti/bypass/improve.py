"""A local search for the configuration with the shortest completion time.

The number of dedicated flows is only a proxy for the completion time. Each trial therefore places
flows greedily in another order and simulates the result. A trial moves one flow forward, from the
most loaded links or any, and swaps two others. Trials that are faster are accepted. Equal seeds
yield equal results.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.units import Time
from tutti.bypass.errors import BypassError
from tutti.bypass.flows import flows_of
from tutti.bypass.greedy import hops_of, place, place_in_order
from tutti.bypass.mapping import completed, map_flows, space_of
from tutti.collectives.simulation import simulate
from tutti.platforms.contention import Packets
from tutti.platforms.machine import PipeliningPostal, Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.bypass.flows import Flow
    from tutti.bypass.mapping import Mapping
    from tutti.bypass.network import BypassMesh
    from tutti.schedules.ir import Schedule


_SEARCH = "5 s"
"""The time limit of the initial mapping, in deterministic time."""


@dataclass(frozen=True)
class Improved:
    """The result of the search and its starting point."""

    start: Mapping
    start_time: Time
    """The completion time on the initial mapping."""
    best: Mapping
    best_time: Time
    trials: int
    """The number of simulated configurations, including the initial one."""


def improve(
    mesh: BypassMesh,
    schedule: Schedule,
    *,
    size: str = "64 KiB",
    rate: str = "68 GB/s",
    latency: str = "12 ns",
    trials: int = 200,
    seed: int = 0,
    done: Callable[[Improved], None] | None = None,
    verify: bool = True,
) -> Improved:
    """Returns the configuration with the shortest completion time of all trials.

    Args:
        mesh: The mesh.
        schedule: The schedule, or one phase of it.
        size: Payload.
        rate: Link rate.
        latency: Link latency.
        trials: Number of configurations.
        seed: Random seed.
        done: Receives the result after each trial, if all flows have a path.
        verify: Whether to verify first.

    Raises:
        VerificationError: The schedule is incorrect.
        BypassError: Some flow has no path on any configuration.
        UnitError: A value has no unit.
    """
    flows = flows_of(schedule)

    def time(mapping: Mapping) -> Time | None:
        return completion(mapping, schedule, size=size, rate=rate, latency=latency, verify=verify)

    def report(trial: int) -> None:
        if done is not None and started is not None and best_time is not None:
            done(Improved(start, started, best, best_time, trial))

    space, draws = space_of(mesh), random.Random(seed)  # noqa: S311 - no secret
    start = map_flows(mesh, flows, time_limit=_SEARCH)
    order = sorted(flows, key=lambda flow: (flow not in space.hops, space.distance(*flow)))
    started = time(start)
    best, best_time = start, started
    report(1)
    # The search starts from the greedy placement, which may be slower than the initial mapping.
    at = completed(mesh, flows, place(space, flows), "greedy", fill=True)
    at_time = time(at)
    report(2)
    for trial in range(2, trials):
        changed = _moved(order, at, draws)
        chosen = place_in_order(space, Counter(flows), changed)
        mapping = completed(mesh, flows, chosen, "greedy", fill=trial % 4 != 0)
        took = time(mapping)
        if took is not None and (at_time is None or took.ps <= at_time.ps):
            order, at, at_time = changed, mapping, took
        if at_time is not None and (best_time is None or at_time.ps < best_time.ps):
            best, best_time = at, at_time
        report(trial + 1)
    if started is None or best_time is None:
        message = f"some flow of {schedule.name} has no path on {mesh.notation}"
        raise BypassError(message, kind="no_path")
    return Improved(start, started, best, best_time, max(trials, 2))


def completion(
    mapping: Mapping,
    schedule: Schedule,
    *,
    size: str,
    rate: str,
    latency: str,
    verify: bool = True,
) -> Time | None:
    """Returns the completion time on a mapping; None if a flow has no path."""
    if mapping.unplaced:
        return None
    routes = mapping.routes(mapping.configuration.topology(rate=rate, latency=latency))
    platform = Platform(
        name="bypass",
        model=PipeliningPostal(alpha_p="1 ns", alpha_r="0 ns"),
        routes=routes,
        contention=Packets(size="256 B", buffer="8 KiB"),
    )
    return Time(ps=simulate(schedule, platform, size=size, verify=verify).completion_ps)


def _moved(order: list[Flow], best: Mapping, draws: random.Random) -> list[Flow]:
    """Moves one flow forward, half of the time from the most loaded links, and swaps two."""
    changed = list(order)
    most = best.most_loaded
    crowded = {hop for hop, load in best.loads.items() if load / best.links[hop] == most}
    slow = [flow for flow in order if crowded & set(hops_of(best.paths.get(flow, ())))]
    first = draws.choice(slow if slow and draws.random() < 0.5 else order)
    changed.remove(first)
    changed.insert(draws.randrange(max(1, len(order) // 2)), first)
    one, other = draws.randrange(len(order)), draws.randrange(len(order))
    changed[one], changed[other] = changed[other], changed[one]
    return changed
