"""The meshes of section V, their traffic, and their cached measurements."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.base.progress import watched
from tutti.networks import mesh as smart
from tutti.networks.mesh import ReplicationPlan, SmartMesh, Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh import MeshRun, Saturation

VCS, CREDIT_DELAY = 6, 8
"""VCs per message class and broadcast stage, and the credit delay in cycles. The paper states
neither. Of the readings in `table 2`, these are within 15 % of most published values. They are the
same in every design and experiment."""

PLAN = ReplicationPlan(warmup=1_000, measure=4_000, drain=4_000, seeds=3)
"""Plan of every point of broadcasts and multicasts."""
MANY = replace(PLAN, seeds=5)
"""Plan of reductions, whose saturation varies more from seed to seed."""
SOME_SEEDS = replace(PLAN, seeds=2)
"""Plan of reductions near saturation, which takes long to show."""
FEW = replace(PLAN, measure=2_000, drain=2_000, seeds=2)
"""Plan of saturations in tables 2 and 3."""

LOW = 0.05
"""Low load as a fraction of the ideal load: 0.0125 broadcasts per corner and cycle. At this load
the published latencies of all intervals are consistent."""

MIDDLE = 0.35
"""A load of reductions per cycle below saturation: four fifths of the baseline's published 0.44."""
BYPASS_END = 0.8
"""The published saturation of SFI_Greedy with Prio=Bypass, and a load above all others'."""

INTERVALS = (3, 4, 6, 8, 10)
BASELINE, GREEDY, PRIVATE = "baseline", "SFO_Greedy, SVT", "SFO_Greedy, PVT"
COMPLETE = "SFO_Complete, BI={}"
IN_LOCAL, IN_BYPASS = "SFI_Greedy, Prio=Local", "SFI_Greedy, Prio=Bypass"
IN_COMPLETE, IN_COMPLETE_LOCAL = "SFI_Complete", "SFI_Complete, Prio=Local"
IN_BUFFERED = "SFI_Greedy, Prio=Bypass, merge=buffered, ejection cycle"
IN_COMPLETE_EJECT = "SFI_Complete, ejection cycle"

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
    IN_BUFFERED: {
        "design": "sfo_greedy", "fan_in": "greedy", "priority": "bypass", "merge": "buffered",
        "eject_cost": 1,
    },
    IN_COMPLETE_EJECT: {
        "design": "sfo_greedy", "fan_in": "complete", "priority": "bypass", "eject_cost": 1,
    },
}  # fmt: skip

CORNERS, ALL, SOME, HALF, TO_ONE = "corners", "all nodes", "multicast", "half", "63-to-1"
TRAFFIC = {
    CORNERS: Traffic(kind="broadcast", sources="corners", rate=0.01),
    ALL: Traffic(kind="broadcast", rate=0.01),
    SOME: Traffic(kind="multicast", rate=0.01),
    HALF: Traffic(kind="multicast", members="half", rate=0.01),
    TO_ONE: Traffic(kind="reduction", rate=0.1),
}
"""Traffic by experiment; runs replace the rate."""

SHOWN = {
    CORNERS: (BASELINE, GREEDY, *(COMPLETE.format(interval) for interval in INTERVALS)),
    ALL: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(6)),
    SOME: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    HALF: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    TO_ONE: (
        BASELINE,
        IN_LOCAL,
        IN_BYPASS,
        IN_BUFFERED,
        IN_COMPLETE,
        IN_COMPLETE_EJECT,
        IN_COMPLETE_LOCAL,
    ),
}
"""The designs in each part of the figures; `half` is an alternative definition of multicasts."""

POINTS = (LOW, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
"""Loads of curves as fractions of the ideal load; the saturation search adds loads near it."""


def mesh(name: str, **changed: Any) -> SmartMesh:  # noqa: ANN401 - any setting of a mesh
    """Returns the mesh of a design, 8 x 8 with at most 8 hops per cycle."""
    settings = {"vcs": VCS, "credit_delay": CREDIT_DELAY, **_SETTINGS[name], **changed}
    return SmartMesh(**settings)


def largest(experiment: str) -> float:
    """Returns the maximum load of a figure: the ideal load; one per cycle for reductions."""
    return 1.0 if experiment == TO_ONE else ideal_load(experiment)


def ideal_load(experiment: str) -> float:
    """Returns the injection rate at which some link or port is fully utilised on any mesh."""
    bound = smart.ideal(mesh(BASELINE), TRAFFIC[experiment])
    return bound.load if bound is not None else 1.0


@functools.cache
def curve(experiment: str, name: str) -> Saturation:
    """Returns latency over load and the saturation of a design."""
    top = largest(experiment)
    design, traffic = mesh(name), TRAFFIC[experiment]
    plan = MANY if experiment == TO_ONE else PLAN
    known = smart.sweep(design, traffic, [top * part for part in POINTS], plan)
    # Loads slightly above the ideal show whether the mesh or the ideal bound limits throughput.
    most = top if experiment == TO_ONE else min(1.05 * top, 1.0)
    return smart.saturation(design, traffic, plan, tolerance=0.02, most=most, known=known)


def curves(experiment: str, names: Sequence[str]) -> dict[str, Saturation]:
    """Returns the curves of several designs under the same traffic."""
    return {name: curve(experiment, name) for name in watched(experiment, names)}


def low(found: Saturation, experiment: str) -> MeshRun:
    """Returns the run at low load."""
    return at(found, LOW * largest(experiment))


def at(found: Saturation, load: float) -> MeshRun:
    """Returns the run at a load of the curve."""
    return min(found.runs, key=lambda run: abs(run.load - load))


def latency(experiment: str, name: str) -> float:
    """Returns the mean latency at low load, in cycles."""
    return low(curve(experiment, name), experiment).latency.mean


def throughput(experiment: str, name: str) -> float:
    """Returns accepted messages per cycle at the maximum load of which 97 % is accepted."""
    accepted = curve(experiment, name).accepted
    return 0.0 if accepted is None else accepted.mean


def by_latency(experiment: str, name: str) -> float:
    """Returns the rate at which latency is three times the zero-load latency."""
    return curve(experiment, name).by_latency
