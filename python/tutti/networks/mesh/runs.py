"""Runs of single-cycle multi-hop meshes: one, several in parallel, and the saturation load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.networks.errors import NocError
from tutti.networks.loads import Search, measure_all, scaled
from tutti.networks.mesh.results import MeshRun
from tutti.networks.mesh.traffic import ReplicationPlan, Traffic, case_of, ideal
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti import _core
    from tutti.networks.flit.results import Estimate
    from tutti.networks.mesh.mesh import SmartMesh

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
    supplies = [as_tuple(traffic)]
    return _measured(mesh, supplies, plan or ReplicationPlan(), None, threads=threads)[0]


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
        runs: All runs, by ascending load.
    """

    zero_load: Estimate
    by_latency: float
    by_throughput: float
    accepted: Estimate | None
    peak: float
    most: float
    deadlocks: float | None
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
    limit = largest_load(mesh, as_tuple(traffic)[0]) if most is None else most

    def measure(loads: Sequence[float]) -> list[MeshRun]:
        return sweep(mesh, traffic, loads, plan, threads=threads, done=done)

    search = Search(measure, known, most=limit, tolerance=tolerance * limit)
    lowest = limit * ZERO_LOAD
    search.add([lowest, limit])
    zero = search.runs[lowest].latency

    def accepts(run: MeshRun) -> bool:
        return run.is_stable

    def is_fast(run: MeshRun) -> bool:
        return run.is_stable and run.latency.mean <= _SLOWER * zero.mean

    search.narrow(accepts)
    by_latency, _ = search.narrow(is_fast)
    low, _ = search.bracket(accepts)
    return Saturation(
        zero_load=zero,
        by_latency=by_latency,
        by_throughput=low,
        accepted=search.runs[low].accepted if low > 0 else None,
        peak=max(run.accepted.mean for run in search.ordered),
        most=limit,
        deadlocks=next((run.load for run in search.ordered if run.ending == "deadlocked"), None),
        runs=search.ordered,
    )


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
