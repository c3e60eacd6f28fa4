"""Runs of single-cycle multi-hop meshes: one, several in parallel, and the saturation load."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti.networks.errors import NocError
from tutti.networks.mesh.results import Run
from tutti.networks.mesh.traffic import ReplicationPlan, Traffic, case_of, ideal
from tutti.networks.saturation_search import bracket, measure_all, narrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.networks.flit.results import Estimate
    from tutti.networks.mesh.mesh import SmartMesh

_ZERO_LOAD = 0.02
"""The fraction of the largest load that counts as zero load."""

_SLOWER = 3.0
"""A mesh is saturated by latency above this multiple of the zero-load latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mesh, its traffic and the plan of a run.

    Attributes:
        mesh: The mesh.
        traffic: Concurrent traffic.
        plan: The phases and seeds of the run.
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
        traffic: Traffic of one kind, or several concurrent kinds.
        plan: The phases and seeds of the run; default ``ReplicationPlan()``.
        threads: Number of threads; 0 for one per core. The result does not depend on it.

    Raises:
        NocError: The traffic does not fit the mesh.
        TrafficError: The traffic is invalid.
    """
    case = Case(mesh=mesh, traffic=as_tuple(traffic), plan=plan or ReplicationPlan())
    return run_all([case], threads=threads)[0]


def check(mesh: SmartMesh, traffic: Sequence[Traffic], plan: ReplicationPlan) -> None:
    """Validates a run without running it.

    Raises:
        NocError: The traffic does not fit the mesh.
        TrafficError: The traffic is invalid.
    """
    if not traffic:
        message = "missing traffic: expected traffic of one kind or more"
        raise NocError(message, kind="clash")
    case_of(mesh, traffic, plan, seed=plan.seed)


def run_all(
    cases: Sequence[Case], *, threads: int = 0, done: Callable[[Run], object] | None = None
) -> list[Run]:
    """Runs many cases in parallel on all cores, each seed separately.

    Args:
        cases: The cases.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        done: Called with each run as soon as it finishes, in no particular order.

    Returns:
        The runs, in the order of the cases.

    Raises:
        NocError: The traffic does not fit a mesh.
        TrafficError: The traffic is invalid.
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
    """Runs the same traffic at several loads, in parallel on all cores.

    Args:
        mesh: The mesh.
        traffic: Traffic of one kind, or several kinds; the rates keep their proportions.
        loads: Rates of the first traffic.
        plan: The phases and seeds of each run.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        done: Called with each run as soon as it finishes, in no particular order.

    Returns:
        The runs, in the order of the loads.

    Raises:
        NocError: The traffic does not fit the mesh, or the first traffic has no rate to scale.
        TrafficError: The traffic or a load is invalid.
    """
    used = plan or ReplicationPlan()
    cases = [Case(mesh=mesh, traffic=at_load(traffic, load), plan=used) for load in loads]
    return run_all(cases, threads=threads, done=done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The saturation loads of a mesh by two criteria; loads are rates of the first traffic.

    Attributes:
        zero_load: Zero-load latency, in cycles.
        by_latency: The largest load found with a mean latency of at most three times `zero_load`.
        by_throughput: The largest load found of which at least 97 % is accepted.
        accepted: Accepted messages per cycle at `by_throughput`; `None` if no load is accepted.
        peak: The highest accepted throughput at any load, in messages per cycle.
        most: The largest load of the search; a mesh that accepts it does not saturate.
        deadlocks: The smallest load found that deadlocks; `None` if no load does.
        runs: All runs, by ascending load.
    """

    zero_load: Estimate
    by_latency: float
    by_throughput: float
    accepted: Estimate | None
    peak: float
    most: float
    deadlocks: float | None
    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        loads = f"{self.by_latency:g} by latency, {self.by_throughput:g} by throughput"
        return f"<Saturation {self.runs[0].mesh.design}: {loads}, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: the saturation loads, and latency against load."""
        from tutti.networks.mesh.view.load import load_view
        from tutti.view.notebook import view_html

        return view_html(load_view(self.runs, self))


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
    """Searches for the saturation loads of a mesh.

    For each criterion, the search divides the interval between a load that meets it and one that
    does not into quarters until it is within the tolerance. It does not look for loads that meet
    the criterion above one that does not.

    Args:
        mesh: The mesh.
        traffic: Traffic of one kind, or several kinds; the rates keep their proportions.
        plan: The phases and seeds of each run.
        tolerance: The largest width of the final interval, as a fraction of `most`.
        most: The largest load to run; default 1.1 times the ideal load of the first traffic, or 1
            if its pattern has no bound. A source sends at most one message per cycle.
        known: Earlier runs of the same mesh and traffic.
        threads: Number of threads; 0 for one per core. The result does not depend on it.
        done: Called with each run as soon as it finishes.

    Raises:
        NocError: The traffic does not fit the mesh, or the tolerance is invalid.
        TrafficError: The traffic is invalid.
    """
    every = as_tuple(traffic)
    limit = _limit(mesh, every[0], most, tolerance)
    found = {one.load: one for one in known if one.load <= limit}

    def add(loads: Sequence[float]) -> None:
        new = [load for load in loads if load not in found]
        runs = sweep(mesh, every, new, plan, threads=threads, done=done)
        found.update(zip(new, runs, strict=True))

    lowest = limit * _ZERO_LOAD
    add([lowest, limit])
    zero = found[lowest].latency

    def accepts(one: Run) -> bool:
        return one.is_stable

    def is_fast(one: Run) -> bool:
        return one.is_stable and one.latency.mean <= _SLOWER * zero.mean

    narrow(found, accepts, add, tolerance * limit)
    by_latency, _ = narrow(found, is_fast, add, tolerance * limit)
    low, _ = bracket(found, accepts)
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
    """Returns traffic scaled to a rate of the first kind; the others keep their proportions to it.

    Raises:
        NocError: The first of several kinds has no rate above 0 to scale.
    """
    every = as_tuple(traffic)
    if len(every) > 1 and not every[0].rate > 0:
        message = "the first of several kinds of traffic has no rate to scale"
        raise NocError(message, kind="search", hint="give it a rate above 0")
    return tuple(
        replace(one, rate=load if index == 0 else one.rate * load / every[0].rate)
        for index, one in enumerate(every)
    )


def as_tuple(traffic: Traffic | Sequence[Traffic]) -> tuple[Traffic, ...]:
    """Returns traffic of one kind or several as a tuple."""
    return (traffic,) if isinstance(traffic, Traffic) else tuple(traffic)
