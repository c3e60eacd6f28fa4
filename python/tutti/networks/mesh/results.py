"""Results of runs of single-cycle multi-hop meshes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from tutti import _core
from tutti.networks.flit.results import QUANTILES, Estimate
from tutti.networks.loads import too_short
from tutti.view.quantity import counted, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh.mesh import SmartMesh
    from tutti.networks.mesh.traffic import ReplicationPlan, Traffic

Ending = Literal["stable", "saturated", "undecided", "deadlocked", "empty"]

_ENDINGS: tuple[Ending, ...] = ("stable", "undecided", "saturated", "deadlocked")
"""The states of a seed, the worst last."""


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of independent runs with its 95 % CI half-width; NaN values are ignored."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Estimate(math.nan, math.nan)
    return Estimate(fmean(known), _core.half_width(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshMeasurement:
    """Measured values of one traffic, over all seeds; times in cycles.

    Attributes:
        messages: Completed messages that were created in the windows.
        offered: Messages created in a window, per cycle, by all sources.
        accepted: Messages delivered in a window, per cycle, in proportion to their parts.
        parts: Destinations of a multicast, responses of a reduction, flits of a unicast.
        latency: From creation to the last delivery or response, including source queueing.
        latency_extremes: The lowest and the highest latency.
        quantiles: The 50th, 90th, 99th and 99.9th percentile of latency.
        part_latency: From creation to each delivery.
        arrivals: Packets that arrive per message; for a reduction the aggregation ratio.
        active: Messages in flight.
    """

    messages: int
    offered: Estimate
    accepted: Estimate
    parts: Estimate
    latency: Estimate
    latency_extremes: tuple[int, int]
    quantiles: dict[str, float]
    part_latency: Estimate
    arrivals: Estimate
    active: Estimate

    @property
    def share(self) -> float:
        """The ratio of accepted to offered messages."""
        return self.accepted.mean / self.offered.mean if self.offered.mean else math.nan

    @classmethod
    def of_core(cls, seeds: list[_core.SmartLoadResult]) -> MeshMeasurement:
        """Combines the core's results of one traffic over all seeds."""
        ended = [each for each in seeds if each.messages]
        extremes = [each.latency_extremes for each in ended] or [(0, 0)]
        return cls(
            messages=sum(each.messages for each in seeds),
            offered=estimate([each.offered for each in seeds]),
            accepted=estimate([each.accepted for each in seeds]),
            parts=estimate([each.parts for each in seeds]),
            latency=estimate([each.latency for each in seeds]),
            latency_extremes=(min(a for a, _ in extremes), max(b for _, b in extremes)),
            quantiles={
                name: fmean(each.quantiles[index] for each in ended) if ended else math.nan
                for index, name in enumerate(QUANTILES)
            },
            part_latency=estimate([each.part_latency for each in seeds]),
            arrivals=estimate([each.arrivals for each in seeds]),
            active=estimate([each.active for each in seeds]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MeshRun:
    """The result of a run of a mesh, over all seeds.

    Attributes:
        mesh: The mesh.
        traffic: The traffic.
        plan: The phases and seeds of the run.
        load: The rate of the first traffic.
        ending: The worst state of all seeds: `stable`; `undecided`: less than 97 % of the offered
            load was accepted, but not less than chance explains in such a short window;
            `saturated`: less than that was accepted, or messages did not complete in time; or
            `deadlocked`. `empty`: no message was created in the windows.
        long_enough: If undecided, the cycles of a window that decides; else `None`.
        cycles: Simulated cycles of all seeds, with warm-up and drain.
        loads: Measured values of each traffic.
        table_entries: Aggregation table entries in use, per router.
        buffered_flows: Distinct flows with a buffered response, per router.
        stay: Cycles that a response stays in a buffer; merged responses count once.
        counts: Event counts of the windows, summed over seeds; names as in the core.
    """

    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    plan: ReplicationPlan
    load: float
    ending: Ending
    long_enough: int | None
    cycles: int
    loads: tuple[MeshMeasurement, ...]
    table_entries: Estimate
    buffered_flows: Estimate
    stay: Estimate
    counts: dict[str, Any] = field(repr=False)

    @property
    def is_stable(self) -> bool:
        """Whether all seeds were stable."""
        return self.ending == "stable"

    @property
    def too_short(self) -> str:
        """If undecided, the messages of the windows and how long they have to be; else empty."""
        messages = plural(sum(load.messages for load in self.loads), "message")
        return too_short(f"{messages} of {plural(self.plan.seeds, 'seed')}", self.long_enough)

    @property
    def latency(self) -> Estimate:
        """Latency of the first traffic."""
        return self.loads[0].latency

    @property
    def accepted(self) -> Estimate:
        """Accepted throughput of the first traffic, in messages per cycle."""
        return self.loads[0].accepted

    @classmethod
    def of_core(
        cls,
        mesh: SmartMesh,
        traffic: tuple[Traffic, ...],
        plan: ReplicationPlan,
        seeds: list[_core.SmartResult],
    ) -> MeshRun:
        """Combines the core's results of all seeds."""
        every = zip(*(each.loads for each in seeds), strict=True)
        loads = tuple(MeshMeasurement.of_core(list(each)) for each in every)
        ending = max((each.ending for each in seeds), key=_ENDINGS.index)
        long_enough = max((each.long_enough or 0 for each in seeds), default=0)
        is_empty = ending == "stable" and not any(load.messages for load in loads)
        return cls(
            mesh=mesh,
            traffic=traffic,
            plan=plan,
            load=traffic[0].rate,
            ending="empty" if is_empty else ending,
            long_enough=long_enough if ending == "undecided" else None,
            cycles=sum(each.cycles for each in seeds),
            loads=loads,
            table_entries=estimate([each.table_entries for each in seeds]),
            buffered_flows=estimate([each.buffered_flows for each in seeds]),
            stay=estimate([each.stay for each in seeds]),
            counts=_summed([each.counts for each in seeds]),
        )

    def __repr__(self) -> str:
        latency = counted(f"{self.latency.mean:.4g}", "cycle")
        found = f"latency {latency}" if self.is_stable else self.ending
        return f"<Run {self.mesh.design}, {self.traffic[0].kind} {self.load:g}: {found}>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: mesh, traffic, state and latency."""
        from tutti.networks.mesh.view.run import run_view
        from tutti.view.notebook import view_html

        return view_html(run_view(self))


def _summed(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the sums of counts; lists are added element by element."""

    def of(name: str) -> Any:  # noqa: ANN401 - a number, or a list of them
        values = [one[name] for one in counts]
        if isinstance(values[0], list):
            return [sum(each) for each in zip(*values, strict=True)]
        return sum(values)

    return {name: of(name) for name in counts[0]}
