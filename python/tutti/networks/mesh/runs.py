"""Runs of single-cycle multi-hop meshes: one, several in parallel, and the saturation load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.files.typed import refuse_arguments
from tutti.networks.errors import NocError
from tutti.networks.loads import Search, Threads, measure_all, scaled
from tutti.networks.mesh.mesh import SmartMesh
from tutti.networks.mesh.results import MeshRun
from tutti.networks.mesh.traffic import SEVERAL, ReplicationPlan, Traffic, case_of, ideal
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti import _core
    from tutti.networks.flit.results import Estimate

ZERO_LOAD = 0.02
"""The fraction of the largest load that counts as zero load."""

_SLOWER = 3.0
"""A mesh is saturated by latency above this multiple of the zero-load latency."""


def run(
    mesh: SmartMesh,
    traffic: Traffic | Sequence[Traffic],
    plan: ReplicationPlan | None = None,
    *,
    threads: int = 0,
) -> MeshRun:
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
    refuse_arguments("run", NocError, mesh=(mesh, SmartMesh), traffic=(traffic, SEVERAL),
                     plan=(plan, ReplicationPlan | None), threads=(threads, Threads))  # fmt: skip
    supplies = [as_tuple(traffic)]
    return _measured(mesh, supplies, plan or ReplicationPlan(), None, threads=threads)[0]


def check(mesh: SmartMesh, traffic: Sequence[Traffic], plan: ReplicationPlan) -> None:
    """Validates a run without running it.

    Raises:
        NocError: The traffic does not fit the mesh.
        TrafficError: The traffic is invalid.
    """
    refuse_arguments("check", NocError, mesh=(mesh, SmartMesh),
                     traffic=(traffic, tuple[Traffic, ...]),
                     plan=(plan, ReplicationPlan))  # fmt: skip
    if not traffic:
        message = "missing traffic: expected traffic of one kind or more"
        raise NocError(message, kind="clash")
    case_of(mesh, traffic, plan, seed=plan.seed)


def sweep(
    mesh: SmartMesh,
    traffic: Traffic | Sequence[Traffic],
    loads: Iterable[float],
    plan: ReplicationPlan | None = None,
    *,
    threads: int = 0,
    done: Callable[[MeshRun], object] | None = None,
) -> list[MeshRun]:
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
    refuse_arguments("sweep", NocError, mesh=(mesh, SmartMesh), traffic=(traffic, SEVERAL),
                     loads=(loads, Iterable), plan=(plan, ReplicationPlan | None),
                     threads=(threads, Threads), done=(done, Callable | None))  # fmt: skip
    supplies = [at_load(traffic, load) for load in loads]
    return _measured(mesh, supplies, plan or ReplicationPlan(), done, threads=threads)


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
        too_short: Why it is unknown whether the smallest load above `by_throughput` is accepted:
            the window is too short to decide; else empty.
        runs: All runs, by ascending load.
    """

    zero_load: Estimate
    by_latency: float
    by_throughput: float
    accepted: Estimate | None
    peak: float
    most: float
    deadlocks: float | None
    too_short: str
    runs: tuple[MeshRun, ...]

    def __repr__(self) -> str:
        loads = f"{self.by_latency:g} by latency, {self.by_throughput:g} by throughput"
        return f"<Saturation {self.runs[0].mesh.design}: {loads}, {plural(len(self.runs), 'run')}>"

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
    known: Sequence[MeshRun] = (),
    threads: int = 0,
    done: Callable[[MeshRun], object] | None = None,
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
    refuse_arguments("saturation", NocError, mesh=(mesh, SmartMesh), traffic=(traffic, SEVERAL),
                     plan=(plan, ReplicationPlan | None), tolerance=(tolerance, float),
                     most=(most, float | None), known=(known, tuple[MeshRun, ...]),
                     threads=(threads, Threads), done=(done, Callable | None))  # fmt: skip
    limit = largest_load(mesh, as_tuple(traffic)[0]) if most is None else most

    def measure(loads: Sequence[float]) -> list[MeshRun]:
        return sweep(mesh, traffic, loads, plan, threads=threads, done=done)

    search = Search(measure, known, most=limit, tolerance=tolerance * limit)
    search.add([limit * ZERO_LOAD, limit])
    zero = at_zero_load(search, limit).latency

    def is_fast(run: MeshRun) -> bool:
        return accepts(run) and not run.latency.mean > _SLOWER * zero.mean

    search.narrow(accepts)
    by_latency, _ = search.narrow(is_fast)
    low, high = search.bracket(accepts)
    return Saturation(
        zero_load=zero,
        by_latency=by_latency,
        by_throughput=low,
        accepted=search.runs[low].accepted if low > 0 else None,
        peak=max(run.accepted.mean for run in search.ordered),
        most=limit,
        deadlocks=next((run.load for run in search.ordered if run.ending == "deadlocked"), None),
        too_short=search.runs[high].too_short if high is not None else "",
        runs=search.ordered,
    )


def accepts(run: MeshRun) -> bool:
    """Returns whether a mesh accepts a load; a mesh without messages is not saturated."""
    return run.ending in {"stable", "empty"}


def at_zero_load(search: Search[MeshRun], most: float) -> MeshRun:
    """Returns the run at the lowest load with messages: 2 % of the largest, or a multiple of it.

    Args:
        search: The search, which has the run at 2 % of the largest load.
        most: The largest load.
    """
    load = most * ZERO_LOAD
    while search.runs[load].ending == "empty" and load < most:
        load = min(2 * load, most)
        search.add([load])
    return search.runs[load]


def largest_load(mesh: SmartMesh, traffic: Traffic) -> float:
    """Returns a load that no mesh accepts."""
    bound = ideal(mesh, traffic)
    top = math.inf if traffic.kind == "reduction" else 1.0
    return 1.0 if bound is None else min(1.1 * bound.load, top)


def at_load(traffic: Traffic | Sequence[Traffic], load: float) -> tuple[Traffic, ...]:
    """Returns traffic scaled to a rate of the first kind; the others keep their proportions to it.

    Args:
        traffic: Traffic of one kind or several.
        load: The rate of the first traffic.

    Raises:
        NocError: The first of several kinds has no rate above 0 to scale.
    """
    refuse_arguments("at_load", NocError, traffic=(traffic, SEVERAL), load=(load, float))
    every = as_tuple(traffic)
    return scaled(every, load, every[0].rate)


def as_tuple(traffic: Traffic | Sequence[Traffic]) -> tuple[Traffic, ...]:
    """Returns traffic of one kind or several as a tuple."""
    return (traffic,) if isinstance(traffic, Traffic) else tuple(traffic)


def _measured(
    mesh: SmartMesh,
    supplies: Sequence[tuple[Traffic, ...]],
    plan: ReplicationPlan,
    done: Callable[[MeshRun], object] | None,
    *,
    threads: int,
) -> list[MeshRun]:
    """Runs traffic on a mesh, each seed separately."""
    seeds = range(plan.seed, plan.seed + plan.seeds)
    groups = [[case_of(mesh, supply, plan, seed=seed) for seed in seeds] for supply in supplies]

    def run_of(index: int, results: list[_core.SmartResult]) -> MeshRun:
        return MeshRun.of_core(mesh, supplies[index], plan, results)

    return measure_all(groups, run_of, threads=threads, done=done)
