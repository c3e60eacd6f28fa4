"""Better configurations than the mapping: a local search for the shortest completion time.

Flows with links of their own are a means. Which ones have them when not all can, and what is
doubled, decides how long a collective takes; so each trial places flows in another order at a short
look, and is run. A trial moves one flow to the front, from the most loaded links or any, and swaps
two others; what is faster is kept. Same seed, same result.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.bypass.flows import flows_of
from tutti.bypass.greedy import hops_of, place, place_in_order
from tutti.bypass.mapping import completed, map_flows, space_of
from tutti.errors import BypassError
from tutti.platform import Packets, PipeliningPostal, Platform
from tutti.simulate import simulate
from tutti.units import Time

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.bypass.flows import Flow
    from tutti.bypass.mapping import Mapping
    from tutti.bypass.network import BypassMesh
    from tutti.schedule import Schedule


_SEARCH = "5 s"
"""For the mapping that is the start, in the solver's own count of its work."""


@dataclass(frozen=True)
class Improved:
    """What the search has found, beside where it started."""

    start: Mapping
    start_time: Time
    """How long the schedule takes with the mapping of its flows."""
    best: Mapping
    best_time: Time
    trials: int
    """Configurations that were run, the start among them."""


def improve(
    mesh: BypassMesh,
    schedule: Schedule,
    *,
    size: str = "64 KiB",
    rate: str = "68 GB/s",
    latency: str = "12 ns",
    trials: int = 200,
    seed: int = 0,
    done: Callable[[int, int], None] | None = None,
    verify: bool = True,
) -> Improved:
    """The configuration on which a schedule takes the least time, of those that were tried.

    Args:
        mesh: what is built.
        schedule: what runs, or one phase of it.
        size: of its payload.
        rate: of every link.
        latency: of every link.
        trials: how many configurations to run.
        seed: of everything that is random.
        done: told how many of how many trials are done.
        verify: whether to verify the schedule first, once.

    Raises:
        VerificationError: the schedule does not do what it is meant to do.
        BypassError: no configuration was found on which every flow has a way.
        UnitError: a value without a unit.
    """
    flows = flows_of(schedule)

    def time(mapping: Mapping) -> Time | None:
        return completion(mapping, schedule, size=size, rate=rate, latency=latency, verify=verify)

    space, draws = space_of(mesh), random.Random(seed)  # noqa: S311 - no secret
    start = map_flows(mesh, flows, time_limit=_SEARCH)
    order = sorted(flows, key=lambda flow: (flow not in space.hops, space.distance(*flow)))
    started = time(start)
    best, best_time = start, started
    # The search goes from what a short look places, which may be slower than the start for a while.
    at = completed(mesh, flows, place(space, flows), "greedy", fill=True)
    at_time = time(at)
    for trial in range(2, trials):
        changed = _moved(order, at, draws)
        chosen = place_in_order(space, Counter(flows), changed)
        mapping = completed(mesh, flows, chosen, "greedy", fill=trial % 4 != 0)
        took = time(mapping)
        if took is not None and (at_time is None or took.ps <= at_time.ps):
            order, at, at_time = changed, mapping, took
        if at_time is not None and (best_time is None or at_time.ps < best_time.ps):
            best, best_time = at, at_time
        if done is not None:
            done(trial + 1, trials)
    if started is None or best_time is None:
        message = f"some flow of {schedule.name} has no way on {mesh.notation}"
        raise BypassError(message, kind="no_way")
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
    """How long the schedule takes over these links and ways; None where a flow has no way."""
    if mapping.unplaced:
        return None
    routes = mapping.routes(mapping.configuration.topology(rate=rate, latency=latency))
    platform = Platform(
        name="bypass",
        model=PipeliningPostal(alpha_p="1 ns", alpha_r="0 ns"),
        routes=routes,
        packets=Packets(size="256 B", buffer="8 KiB"),
    )
    return Time(ps=simulate(schedule, platform, size=size, verify=verify).completion_ps)


def _moved(order: list[Flow], best: Mapping, draws: random.Random) -> list[Flow]:
    """One flow to the front, of those on the most loaded links at every other time, and a swap."""
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
