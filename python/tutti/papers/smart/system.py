"""The meshes of section V, their traffic, and what was measured of them, each once."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.noc import smart
from tutti.noc.smart import ReplicationPlan, SmartMesh, Traffic
from tutti.papers import watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc.smart import Run, Saturation

VCS, CREDIT_DELAY = 6, 8
"""Per message class and stage of a broadcast, and in cycles: the paper gives neither. Chosen once,
so that the baseline saturates where it is published to under broadcasts and under reductions
(`table 2`), and the same in every design and experiment."""

PLAN = ReplicationPlan(warmup=1_000, measure=4_000, drain=4_000, seeds=5)
"""Of every point."""
FEW = replace(PLAN, seeds=2)
"""Of sensitivities."""

LOW = 0.05
"""The part of the ideal load that is called low: 0.0125 broadcasts per corner and cycle, at which
the published latencies of all intervals fit together."""

INTERVALS = (3, 4, 6, 8, 10)
BASELINE, GREEDY, PRIVATE = "baseline", "SFO_Greedy, SVT", "SFO_Greedy, PVT"
COMPLETE = "SFO_Complete, BI={}"
IN_LOCAL, IN_BYPASS = "SFI_Greedy, Prio=Local", "SFI_Greedy, Prio=Bypass"
IN_COMPLETE, IN_COMPLETE_LOCAL = "SFI_Complete", "SFI_Complete, Prio=Local"

_SETTINGS: dict[str, dict[str, Any]] = {
    BASELINE: {"design": "baseline_collective"},
    GREEDY: {"design": "sfo_greedy"},
    PRIVATE: {"design": "sfo_greedy_pvt"},
    **{
        COMPLETE.format(interval): {"design": "sfo_complete", "fan_out": f"complete:{interval}"}
        for interval in INTERVALS
    },
    IN_LOCAL: {"design": "sfo_greedy", "fan_in": "greedy"},
    IN_BYPASS: {"design": "sfo_greedy", "fan_in": "greedy", "priority": "bypass"},
    IN_COMPLETE: {"design": "sfo_greedy", "fan_in": "complete", "priority": "bypass"},
    IN_COMPLETE_LOCAL: {"design": "sfo_greedy", "fan_in": "complete"},
}

CORNERS, ALL, SOME, HALF, TO_ONE = "corners", "all nodes", "multicast", "half", "63-to-1"
TRAFFIC = {
    CORNERS: Traffic(kind="broadcast", sources="corners", rate=0.01),
    ALL: Traffic(kind="broadcast", rate=0.01),
    SOME: Traffic(kind="multicast", rate=0.01),
    HALF: Traffic(kind="multicast", members="half", rate=0.01),
    TO_ONE: Traffic(kind="reduction", rate=0.1),
}
"""By the name of the experiment; rates are replaced."""

_POINTS = (LOW, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
"""Loads of curves, as parts of the ideal load; the search for saturation adds those around it."""


def mesh(name: str, **changed: Any) -> SmartMesh:  # noqa: ANN401 - any setting of a mesh
    """The mesh of a design, 8 x 8 with at most 8 hops per cycle."""
    settings = {"vcs": VCS, "credit_delay": CREDIT_DELAY, **_SETTINGS[name], **changed}
    return SmartMesh(**settings)


def largest(experiment: str) -> float:
    """Up to which load a figure goes: the ideal one; of reductions one per cycle, as the paper."""
    return 1.0 if experiment == TO_ONE else ideal_load(experiment)


def ideal_load(experiment: str) -> float:
    """The rate at which a link or port is always busy on any mesh."""
    bound = smart.ideal(mesh(BASELINE), TRAFFIC[experiment])
    return bound.load if bound is not None else 1.0


@functools.cache
def curve(experiment: str, name: str) -> Saturation:
    """Latency against load, and where it saturates."""
    top = largest(experiment)
    made, traffic = mesh(name), TRAFFIC[experiment]
    known = smart.sweep(made, traffic, [top * part for part in _POINTS], PLAN)
    # Loads slightly above the ideal tell where it is not the mesh that binds.
    most = top if experiment == TO_ONE else min(1.05 * top, 1.0)
    return smart.saturation(made, traffic, PLAN, tolerance=0.02, most=most, known=known)


def curves(experiment: str, names: Sequence[str]) -> dict[str, Saturation]:
    """Several designs under the same traffic."""
    return {name: curve(experiment, name) for name in watched(experiment, names)}


def low(found: Saturation, experiment: str) -> Run:
    """The run at low load."""
    wanted = LOW * largest(experiment)
    return min(found.runs, key=lambda run: abs(run.load - wanted))


def latency(experiment: str, name: str) -> float:
    """At low load."""
    return low(curve(experiment, name), experiment).latency.mean


def throughput(experiment: str, name: str) -> float:
    """Messages per cycle accepted at the largest load of which 97 % is accepted."""
    accepted = curve(experiment, name).accepted
    return 0.0 if accepted is None else accepted.mean


def by_latency(experiment: str, name: str) -> float:
    """The rate at which messages take three times as long as at next to no load."""
    return curve(experiment, name).by_latency


def last_stable(found: Saturation) -> Run:
    """The run at the largest load that is called unsaturated by both criteria."""
    return max(
        (run for run in found.runs if run.load <= found.by_latency), key=lambda run: run.load
    )
