"""The meshes of section V, their traffic, and their cached measurements."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tutti.base.progress import watched
from tutti.networks import mesh as smart
from tutti.networks.mesh import ReplicationPlan, SmartMesh, Traffic
from tutti_papers.smart.thresholds import Threshold, threshold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.networks.mesh import MeshRun, Saturation

VCS = 6
"""VCs per message class and broadcast stage. The paper does not state them."""
CREDIT_DELAY, FAN_OUT_CREDIT_DELAY = 8, 6
"""Credit delay in cycles, and that of broadcasts with SMART-FanOut. The paper states neither.
Section III-B.2 gives VCs of broadcasts on-off signals on dedicated wires, and other VCs those of
the nearest neighbour. With equal delays the throughput of shared trees equals that of the baseline
for every delay, so one of the two differs. `table 2` has other delays."""

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
"""Traffic by experiment; runs replace the rate."""

SHOWN = {
    CORNERS: (BASELINE, GREEDY, *(COMPLETE.format(interval) for interval in INTERVALS)),
    ALL: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(6)),
    SOME: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    HALF: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    TO_ONE: (BASELINE, IN_LOCAL, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL),
}
"""The designs in each part of the figures; `half` is an alternative definition of multicasts."""


@dataclass(frozen=True, kw_only=True)
class Reductions:
    """A reading of what the text leaves open about reductions.

    Attributes:
        settings: Settings of the mesh that differ.
        outstanding: Maximum reductions in flight; None for no limit.
        why: The statement of the text that supports it.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    outstanding: int | None = None
    why: str


_EJECT = (
    "M-to-1 latency is the time to receive the ACKs (section V-B): a cycle after the port is won"
)
_MERGE = "buffered ACKs poll incoming path requests while they arbitrate (section IV-B)"
_OLDEST = "the oldest flit first, which the text neither states nor excludes"
_TABLE = "entries of a 64-entry table are reserved before the ACKs are injected (section V-B)"
REDUCTIONS: Mapping[str, Reductions] = {
    "footnote 13": Reductions(why="ACKs that land together merge (footnote 13)"),
    "received": Reductions(settings={"eject_cost": 1}, why=_EJECT),
    "polled": Reductions(
        settings={"merge": "buffered", "eject_cost": 1}, why=f"{_MERGE}; {_EJECT}"
    ),
    "oldest": Reductions(settings={"arbiter": "oldest"}, why=_OLDEST),
    "polled, oldest": Reductions(
        settings={"merge": "buffered", "eject_cost": 1, "arbiter": "oldest"},
        why=f"{_MERGE}; {_EJECT}; {_OLDEST}",
    ),
    "reserved": Reductions(outstanding=64, why=_TABLE),
    "polled, reserved": Reductions(
        settings={"merge": "buffered", "eject_cost": 1},
        outstanding=64,
        why=f"{_MERGE}; {_EJECT}; {_TABLE}",
    ),
}
"""Readings of reductions by name."""
DEFAULT = "polled"
"""The reading of reductions of the figures and of table 1. Section IV-B describes the mechanism;
footnote 13, on the number of flows in a router, contradicts it."""

POINTS = (LOW, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
"""Loads of curves as fractions of the ideal load; the saturation search adds loads near it."""
STATED = {
    BASELINE: (LOW, MIDDLE),
    IN_LOCAL: (LOW, MIDDLE, BYPASS_END),
    IN_BYPASS: (LOW, BYPASS_END),
    IN_COMPLETE: (LOW, BYPASS_END, 1.0),
}
"""The loads of reductions for which section V-B states values, by design."""
TOLERANCE = 0.02
"""Width of the final interval of a search for saturation, as a fraction of the largest load."""


def mesh(name: str, **changed: Any) -> SmartMesh:  # noqa: ANN401 - any setting of a mesh
    """Returns the mesh of a design, 8 x 8 with at most 8 hops per cycle."""
    settings = {"vcs": VCS, "credit_delay": credit_delay(name), **_SETTINGS[name], **changed}
    return SmartMesh(**settings)


def credit_delay(
    name: str, *, plain: int = CREDIT_DELAY, fan_out: int = FAN_OUT_CREDIT_DELAY
) -> int:
    """Returns the credit delay of a design: `fan_out` for SMART-FanOut, else `plain`.

    Designs of SMART-FanIn have `plain`, also where broadcasts share the mesh with their ACKs.
    """
    return fan_out if name.startswith("SFO") else plain


def largest(experiment: str) -> float:
    """Returns the maximum load of a figure: the ideal load; one per cycle for reductions."""
    return 1.0 if experiment == TO_ONE else ideal_load(experiment)


def ideal_load(experiment: str) -> float:
    """Returns the injection rate at which some link or port is fully utilised on any mesh."""
    bound = smart.ideal(mesh(BASELINE), TRAFFIC[experiment])
    return bound.load if bound is not None else 1.0


@functools.cache
def curve(experiment: str, name: str) -> Saturation:
    """Returns latency over load and the saturation of a design.

    Args:
        experiment: The traffic; reductions have the default reading.
        name: The design.
    """
    top, plan, traffic, design = largest(experiment), PLAN, TRAFFIC[experiment], mesh(name)
    if experiment == TO_ONE:
        plan, (design, traffic) = MANY, _read_as(name, DEFAULT)
    known = smart.sweep(design, traffic, [top * part for part in POINTS], plan)
    # Loads slightly above the ideal show whether the mesh or the ideal bound limits throughput.
    most = top if experiment == TO_ONE else min(1.05 * top, 1.0)
    return smart.saturation(design, traffic, plan, tolerance=TOLERANCE, most=most, known=known)


@functools.cache
def reductions(name: str, reading: str) -> Saturation | Threshold:
    """Returns the saturation of a design under reductions, and runs at the loads of `STATED`.

    Args:
        name: The design.
        reading: A name of `REDUCTIONS`. That of the figures has a complete curve.
    """
    if reading == DEFAULT:
        return curve(TO_ONE, name)
    design, traffic = _read_as(name, reading)
    known = smart.sweep(design, traffic, STATED[name], MANY, threads=1)
    top = largest(TO_ONE)
    return threshold(
        design, traffic, MANY, tolerance=TOLERANCE, most=top, grid=[top * part for part in POINTS],
        known={run.load: run for run in known},
    )  # fmt: skip


def _read_as(name: str, reading: str) -> tuple[SmartMesh, Traffic]:
    """Returns the mesh of a design, and reductions, under a reading of `REDUCTIONS`."""
    of = REDUCTIONS[reading]
    traffic = replace(TRAFFIC[TO_ONE], outstanding=of.outstanding)
    return replace(mesh(name), **of.settings), traffic


def curves(experiment: str, names: Sequence[str]) -> dict[str, Saturation]:
    """Returns the curves of several designs under the same traffic."""
    return {name: curve(experiment, name) for name in watched(experiment, names)}


def low(found: Saturation | Threshold, experiment: str) -> MeshRun:
    """Returns the run at low load."""
    return at(found, LOW * largest(experiment))


def at(found: Saturation | Threshold, load: float) -> MeshRun:
    """Returns the run at a load of the curve."""
    return next(run for run in found.runs if math.isclose(run.load, load))


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
