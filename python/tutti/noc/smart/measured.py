"""What was measured of a mesh of several hops per cycle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from tutti import _core
from tutti.noc.measured import QUANTILES, Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc.smart.mesh import SmartMesh
    from tutti.noc.smart.traffic import ReplicationPlan, Traffic

Ending = Literal["stable", "saturated", "deadlocked"]

_ENDINGS: tuple[Ending, ...] = ("stable", "saturated", "deadlocked")


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent runs, with its interval; runs with no value are left out."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Estimate(math.nan, math.nan)
    return Estimate(fmean(known), _core.half_width(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of one traffic, over all seeds; times in cycles.

    Attributes:
        messages: Created in the windows, and ended.
        offered: Messages created in a window, per cycle, by all sources.
        accepted: Messages that ended in it, per cycle, counted by their parts.
        parts: Destinations of a multicast, answers of a reduction, flits of a unicast.
        latency: From creation to the last delivery or answer; waiting at the source included.
        latency_extremes: The least and the most.
        quantiles: For 50, 90, 99 and 99.9 per cent of the messages: they took no longer.
        part_latency: From creation to each delivery.
        arrivals: Packets that arrived for a message: of a reduction the aggregation ratio.
        active: Messages under way.
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
        """What was accepted, as a part of what was offered."""
        return self.accepted.mean / self.offered.mean if self.offered.mean else math.nan

    @classmethod
    def of_core(cls, seeds: list[dict[str, Any]]) -> Measured:
        """Of the same traffic with several seeds, as the core gives it."""
        of = {
            name: estimate([one[name] for one in seeds])
            for name in (
                "offered",
                "accepted",
                "parts",
                "latency",
                "part_latency",
                "arrivals",
                "active",
            )
        }
        ended = [one for one in seeds if one["messages"]]
        extremes = [one["latency_extremes"] for one in ended] or [(0, 0)]
        return cls(
            messages=sum(one["messages"] for one in seeds),
            latency_extremes=(min(a for a, _ in extremes), max(b for _, b in extremes)),
            quantiles={
                name: fmean(one["quantiles"][place] for one in ended) if ended else math.nan
                for place, name in enumerate(QUANTILES)
            },
            **of,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A mesh under traffic, with all seeds.

    Attributes:
        mesh: What was run.
        traffic: What ran on it.
        plan: For how long.
        load: The rate of the first traffic.
        ending: The worst of all seeds: `stable`; `saturated`, where less than 97 % of what was
            offered was accepted, or not all ended in time; `deadlocked`, where nothing moved.
        cycles: Of all seeds together, warm-up and drain included.
        loads: Of each traffic.
        table_entries: Entries of tables of reductions in use, per router.
        buffered_flows: Distinct flows with an answer in a buffer, per router.
        stay: Cycles that an answer stays where it is buffered; those that merge there are one.
        counts: What happened in the windows, all seeds together; names as in the core.
    """

    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    plan: ReplicationPlan
    load: float
    ending: Ending
    cycles: int
    loads: tuple[Measured, ...]
    table_entries: Estimate
    buffered_flows: Estimate
    stay: Estimate
    counts: dict[str, Any] = field(repr=False)

    @property
    def is_stable(self) -> bool:
        """Whether it was with all seeds."""
        return self.ending == "stable"

    @property
    def latency(self) -> Estimate:
        """Of the first traffic."""
        return self.loads[0].latency

    @property
    def accepted(self) -> Estimate:
        """Of the first traffic, messages per cycle."""
        return self.loads[0].accepted

    @classmethod
    def of_core(
        cls,
        mesh: SmartMesh,
        traffic: tuple[Traffic, ...],
        plan: ReplicationPlan,
        seeds: list[dict[str, Any]],
    ) -> Run:
        """Of all seeds, as the core gives it."""
        every = zip(*(one["loads"] for one in seeds), strict=True)
        return cls(
            mesh=mesh,
            traffic=traffic,
            plan=plan,
            load=traffic[0].rate,
            ending=max((one["ending"] for one in seeds), key=_ENDINGS.index),
            cycles=sum(one["cycles"] for one in seeds),
            loads=tuple(Measured.of_core(list(one)) for one in every),
            table_entries=estimate([one["table_entries"] for one in seeds]),
            buffered_flows=estimate([one["buffered_flows"] for one in seeds]),
            stay=estimate([one["stay"] for one in seeds]),
            counts=_summed([one["counts"] for one in seeds]),
        )

    def __repr__(self) -> str:
        found = f"latency {self.latency.mean:.4g} cycles" if self.is_stable else self.ending
        return f"<Run {self.mesh.design}, {self.traffic[0].kind} {self.load:g}: {found}>"


def _summed(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """All together; lists place by place."""

    def of(name: str) -> Any:  # noqa: ANN401 - a number, or a list of them
        values = [one[name] for one in counts]
        if isinstance(values[0], list):
            return [sum(each) for each in zip(*values, strict=True)]
        return sum(values)

    return {name: of(name) for name in counts[0]}
