"""The largest load that a mesh accepts, found with few runs.

A curve needs a run at each load, a threshold only runs at the loads around it. The search bisects
the loads of a curve, then the intervals of `tutti.networks.mesh.saturation`. It runs further seeds
of a load only if the mesh accepts it under the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.networks.loads import measure_all, parts
from tutti.networks.mesh import MeshRun, at_load
from tutti.networks.mesh.traffic import case_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti import _core
    from tutti.networks.flit.results import Estimate
    from tutti.networks.mesh import ReplicationPlan, SmartMesh, Traffic

LOWEST = 0.02
"""The fraction of the largest load that counts as zero load, as in searches for saturation."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The saturation of a mesh by throughput; loads are rates of the traffic.

    Attributes:
        zero_load: Latency at the lowest load, in cycles.
        by_throughput: The largest load found of which at least 97 % is accepted.
        accepted: Accepted messages per cycle at that load; None if no load is accepted.
        most: The largest load of the search.
        runs: Runs of all seeds, by ascending load.
    """

    zero_load: Estimate
    by_throughput: float
    accepted: Estimate | None
    most: float
    runs: tuple[MeshRun, ...]


@dataclass
class _Runs:
    """Runs of a mesh under scaled traffic; one thread, so that several searches run at once."""

    mesh: SmartMesh
    traffic: Traffic
    plan: ReplicationPlan
    complete: dict[float, MeshRun] = field(default_factory=dict)
    """Runs of all seeds, by load."""
    refused: set[float] = field(default_factory=set)
    """Loads that the mesh does not accept under the first seed."""

    def accepts(self, load: float) -> bool:
        """Returns whether the mesh accepts a load under every seed."""
        if load in self.refused:
            return False
        return self.run(load, stops=True) is not None and self.complete[load].is_stable

    def run(self, load: float, *, stops: bool = False) -> MeshRun | None:
        """Returns the run of a load; None if `stops` and the first seed is not stable."""
        if load not in self.complete:
            seeds = range(self.plan.seed, self.plan.seed + self.plan.seeds)
            results = self._results(load, seeds[:1])
            if stops and results[0].ending != "stable":
                self.refused.add(load)
                return None
            results += self._results(load, seeds[1:])
            supply = at_load(self.traffic, load)
            self.complete[load] = MeshRun.of_core(self.mesh, supply, self.plan, results)
        return self.complete[load]

    def _results(self, load: float, seeds: Iterable[int]) -> list[_core.SmartResult]:
        supply = at_load(self.traffic, load)
        cases = [[case_of(self.mesh, supply, self.plan, seed=seed)] for seed in seeds]
        return measure_all(cases, lambda _, results: results[0], threads=1, done=None)


def threshold(
    mesh: SmartMesh,
    traffic: Traffic,
    plan: ReplicationPlan,
    *,
    tolerance: float,
    most: float,
    grid: Sequence[float] = (),
    known: Mapping[float, MeshRun] | None = None,
) -> Threshold:
    """Searches for the largest load that a mesh accepts.

    The result is that of `tutti.networks.mesh.saturation` after runs at all loads of `grid`, if the
    mesh accepts every load below one that it accepts.

    Args:
        mesh: The mesh.
        traffic: The traffic.
        plan: The phases and seeds of each run.
        tolerance: The largest width of the final interval, as a fraction of `most`.
        most: The largest load to run.
        grid: Loads that divide the first interval.
        known: Earlier runs by load.
    """
    runs = _Runs(mesh, traffic, plan, dict(known or {}))
    lowest = LOWEST * most
    points = sorted({lowest, most, *(load for load in grid if load <= most)})
    low, high = _bisected(runs, 0.0, points, None)
    while high is not None and high - low > tolerance * most:
        low, high = _bisected(runs, low, parts(low, high), high)
    zero = runs.run(lowest)
    accepted = runs.run(low).accepted if low > 0 else None  # type: ignore[union-attr] # it ran
    return Threshold(
        zero_load=zero.latency,  # type: ignore[union-attr] # it ran
        by_throughput=low,
        accepted=accepted,
        most=most,
        runs=tuple(runs.complete[load] for load in sorted(runs.complete)),
    )


def _bisected(
    runs: _Runs, low: float, points: Sequence[float], high: float | None
) -> tuple[float, float | None]:
    """Returns the neighbours among `low`, `points` and `high` between which acceptance ends."""
    first, last = 0, len(points)
    while first < last:
        middle = (first + last) // 2
        if runs.accepts(points[middle]):
            first = middle + 1
        else:
            last = middle
    return (points[first - 1] if first else low), (points[first] if first < len(points) else high)
