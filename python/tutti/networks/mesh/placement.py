"""Loads placed by the ideal throughput: saturation of a mesh in few runs on one core.

`saturation` divides the interval of all loads by two criteria, in parallel. Here, a search of one
design among many starts near the load at which meshes saturate, and bisects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.networks.loads import Search
from tutti.networks.mesh.runs import ZERO_LOAD, accepts, at_zero_load, largest_load, sweep
from tutti.networks.mesh.traffic import ideal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh.mesh import SmartMesh
    from tutti.networks.mesh.results import MeshRun
    from tutti.networks.mesh.traffic import ReplicationPlan, Traffic

_STARTS = (0.5, 0.8, 1.0)
"""The shares of the ideal load at which a search starts, until one is not stable."""
_TOLERANCE = 0.02
"""The default tolerance of the saturation load, as a share of the ideal load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMesh:
    """The saturation load and the zero-load latency of a mesh, in rates of the first traffic.

    Attributes:
        saturation: The largest load found of which at least 97 % is accepted.
        unstable: The smallest load found that is not; `None` if the mesh accepts all loads.
        too_short: Why it is unknown whether `unstable` is accepted: the window is too short to
            decide; else empty.
        zero_load: The run at 2 % of the largest load, or the lowest multiple with messages.
        capacity: The ideal load; `None` if it is unknown.
        tolerance: The tolerance of the saturation load.
        runs: Number of runs.
    """

    saturation: float
    unstable: float | None
    too_short: str
    zero_load: MeshRun
    capacity: float | None
    tolerance: float
    runs: int


def placed(
    mesh: SmartMesh,
    traffic: Sequence[Traffic],
    plan: ReplicationPlan,
    tolerance: float | None = None,
) -> PlacedMesh:
    """Searches for the saturation load from loads near it, on one core.

    Args:
        mesh: The mesh.
        traffic: Traffic of one kind or several; the rates keep their proportions to the first.
        plan: The phases and seeds of each run.
        tolerance: Tolerance in the unit of the first rate; None for 2 % of the ideal load.

    Raises:
        NocError: The traffic does not fit the mesh, or the tolerance is invalid.
        TrafficError: The traffic is invalid.
    """
    bound = ideal(mesh, traffic[0])
    most = largest_load(mesh, traffic[0])
    best = bound.load if bound else most
    width = tolerance or _TOLERANCE * best

    def measure(loads: Sequence[float]) -> list[MeshRun]:
        return sweep(mesh, traffic, loads, plan, threads=1)

    search = Search(measure, (), most=most, tolerance=width, divisions=2)
    lowest = ZERO_LOAD * most
    search.add([lowest])
    is_low = accepts(search.runs[lowest]) or search.runs[lowest].ending == "undecided"
    for share in _STARTS if is_low else ():
        load = min(share * best, most)
        search.add([load])
        if not accepts(search.runs[load]):
            break
    else:
        search.add([most])
    zero_load = at_zero_load(search, most)
    low, high = search.narrow(accepts)
    return PlacedMesh(
        saturation=low,
        unstable=high,
        too_short=search.runs[high].too_short if high is not None else "",
        zero_load=zero_load,
        capacity=bound.load if bound and math.isfinite(bound.load) else None,
        tolerance=width,
        runs=len(search.runs),
    )
