"""Runs of meshes of several hops per cycle: one, many at once, and where they saturate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti.errors import NocError
from tutti.noc.measuring import bracket, measure_all, narrow
from tutti.noc.smart.measured import Run
from tutti.noc.smart.traffic import ReplicationPlan, Traffic, case_of, ideal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.noc.measured import Estimate
    from tutti.noc.smart.mesh import SmartMesh

_ZERO_LOAD = 0.02
"""The part of the ideal load, or of the largest, that is next to none."""

_SLOWER = 3.0
"""A network is called saturated where messages take so many times as long as with next to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be run.

    Attributes:
        mesh: The mesh.
        traffic: What is sent, all at once.
        plan: For how long, and with how many seeds.
    """

    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    plan: ReplicationPlan


def run(
    mesh: SmartMesh,
    traffic: Traffic | Sequence[Traffic],
    plan: ReplicationPlan | None = None,
    *,
    threads: int = 0,
) -> Run:
    """Runs traffic on a mesh, once for each seed.

    Args:
        mesh: The mesh.
        traffic: Of one kind, or several at once.
        plan: For how long; ``ReplicationPlan()`` if it is left out.
        threads: How many; 0 is one per core. The result does not depend on it.

    Raises:
        NocError: Traffic does not fit the mesh.
        TrafficError: There is no such traffic.
    """
    case = Case(mesh=mesh, traffic=at_once(traffic), plan=plan or ReplicationPlan())
    return run_all([case], threads=threads)[0]


def check(mesh: SmartMesh, traffic: Sequence[Traffic], plan: ReplicationPlan) -> None:
    """Refuses what cannot be run, without running it.

    Raises:
        NocError: Traffic does not fit the mesh.
        TrafficError: There is no such traffic.
    """
    if not traffic:
        message = "nothing is sent: expected traffic of one kind or more"
        raise NocError(message, kind="clash")
    case_of(mesh, traffic, plan, seed=plan.seed)


def run_all(
    cases: Sequence[Case], *, threads: int = 0, done: Callable[[Run], object] | None = None
) -> list[Run]:
    """Runs many meshes at once on all cores, each seed by itself.

    Args:
        cases: What to run.
        threads: How many; 0 is one per core. The results do not depend on it.
        done: Told of each run as soon as it is there, in no particular order.

    Returns:
        The runs, in the order of the cases.

    Raises:
        NocError: Traffic does not fit a mesh.
        TrafficError: There is no such traffic.
    """
    groups = [
        [
            case_of(case.mesh, case.traffic, case.plan, seed=case.plan.seed + seed)
            for seed in range(case.plan.seeds)
        ]
        for case in cases
    ]

    def run_of(index: int, seeds: list[dict[str, Any]]) -> Run:
        case = cases[index]
        return Run.of_core(case.mesh, case.traffic, case.plan, seeds)

    return measure_all(groups, run_of, threads=threads, done=done)


def sweep(
    mesh: SmartMesh,
    traffic: Traffic | Sequence[Traffic],
    loads: Iterable[float],
    plan: ReplicationPlan | None = None,
    *,
    threads: int = 0,
    done: Callable[[Run], object] | None = None,
) -> list[Run]:
    """Runs the same traffic at several loads, at once on all cores.

    Args:
        mesh: The mesh.
        traffic: Of one kind, or several, whose rates keep their proportions.
        loads: Rates of the first.
        plan: For how long each, and with how many seeds.
        threads: How many; 0 is one per core. The results do not depend on it.
        done: Told of each run as soon as it is there, in no particular order.

    Returns:
        The runs, in the order of the loads.

    Raises:
        NocError: Traffic does not fit the mesh, or the first has no rate to scale.
        TrafficError: There is no such traffic, or a load that is none.
    """
    ask = plan or ReplicationPlan()
    cases = [Case(mesh=mesh, traffic=at_load(traffic, load), plan=ask) for load in loads]
    return run_all(cases, threads=threads, done=done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Where a mesh saturates, by two criteria; loads are rates of the first traffic.

    Attributes:
        zero_load: What a message takes where there is next to nothing else, in cycles.
        by_latency: The largest load found at which the mean latency is at most three times that.
        by_throughput: The largest load found at which at least 97 % of what is offered is accepted.
        accepted: What is accepted there, in messages per cycle; None if there is no such load.
        peak: The most that was accepted at any load, in messages per cycle.
        most: The largest load that was allowed; a mesh that takes it does not saturate.
        deadlocks: The smallest load found at which it deadlocks; None if it does at none.
        runs: Everything that was run, by ascending load.
    """

    zero_load: Estimate
    by_latency: float
    by_throughput: float
    accepted: Estimate | None
    peak: float
    most: float
    deadlocks: float | None
    runs: tuple[Run, ...]


def saturation(
    mesh: SmartMesh,
    traffic: Traffic | Sequence[Traffic],
    plan: ReplicationPlan | None = None,
    *,
    tolerance: float = 0.02,
    most: float | None = None,
    known: Sequence[Run] = (),
    threads: int = 0,
    done: Callable[[Run], object] | None = None,
) -> Saturation:
    """Where a mesh saturates.

    For each criterion the interval between a load at which it is met and one at which it is not is
    cut into quarters until it is narrow enough; where it should be met again above, that is not
    looked for.

    Args:
        mesh: The mesh.
        traffic: Of one kind, or several, whose rates keep their proportions.
        plan: For how long each run.
        tolerance: How wide an interval may stay, as a part of `most`.
        most: No load is larger. If left out, 1.1 times the ideal load of the first traffic, or for
            other patterns of unicasts 1; a source sends one message per cycle at most.
        known: Runs of the same mesh and traffic that have been made already.
        threads: How many; 0 is one per core. The result does not depend on it.
        done: Told of each run as soon as it is there.

    Raises:
        NocError: Traffic does not fit the mesh, or the tolerance is none.
        TrafficError: There is no such traffic.
    """
    every = at_once(traffic)
    limit = _limit(mesh, every[0], most, tolerance)
    found = {one.load: one for one in known if one.load <= limit}

    def add(loads: Sequence[float]) -> None:
        new = [load for load in loads if load not in found]
        runs = sweep(mesh, every, new, plan, threads=threads, done=done)
        found.update(zip(new, runs, strict=True))

    lowest = limit * _ZERO_LOAD
    add([lowest, limit])
    zero = found[lowest].latency

    def takes(one: Run) -> bool:
        return one.is_stable

    def is_fast(one: Run) -> bool:
        return one.is_stable and one.latency.mean <= _SLOWER * zero.mean

    narrow(found, takes, add, tolerance * limit)
    by_latency, _ = narrow(found, is_fast, add, tolerance * limit)
    low, _ = bracket(found, takes)
    return Saturation(
        zero_load=zero,
        by_latency=by_latency,
        by_throughput=low,
        accepted=found[low].accepted if low > 0 else None,
        peak=max((one.accepted.mean for one in found.values()), default=0.0),
        most=limit,
        deadlocks=min((one.load for one in found.values() if one.ending == "deadlocked"),
                      default=None),
        runs=tuple(found[load] for load in sorted(found)),
    )  # fmt: skip


def _limit(mesh: SmartMesh, traffic: Traffic, most: float | None, tolerance: float) -> float:
    """Returns the largest load of a search: `most`, or a load that no mesh accepts.

    Raises:
        NocError: The load or the tolerance is not above 0.
    """
    if most is None:
        bound = ideal(mesh, traffic)
        top = math.inf if traffic.kind == "reduction" else 1.0
        most = 1.0 if bound is None else min(1.1 * bound.load, top)
    if not (0 < tolerance < math.inf and 0 < most < math.inf):
        message = f"a search up to {most} with a tolerance of {tolerance}: expected both above 0"
        raise NocError(message, kind="search")
    return most


def at_load(traffic: Traffic | Sequence[Traffic], load: float) -> tuple[Traffic, ...]:
    """Traffic of which the first has that rate; the others keep their proportions to it.

    Raises:
        NocError: The first has no rate that could be scaled.
    """
    every = at_once(traffic)
    if len(every) > 1 and not every[0].rate > 0:
        message = "the first of several kinds of traffic has no rate that could be scaled"
        raise NocError(message, kind="search", hint="give it a rate above 0")
    return tuple(
        replace(one, rate=load if index == 0 else one.rate * load / every[0].rate)
        for index, one in enumerate(every)
    )


def at_once(traffic: Traffic | Sequence[Traffic]) -> tuple[Traffic, ...]:
    """Traffic of one kind or several, as several."""
    return (traffic,) if isinstance(traffic, Traffic) else tuple(traffic)
