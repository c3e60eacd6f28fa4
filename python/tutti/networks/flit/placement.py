"""Loads placed by the ideal capacity: zero-load latency and saturation in few runs on one core.

`saturation` divides the interval of all loads, in parallel. Here, a search of one design among many
starts near the load at which networks of routers saturate, and bisects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.networks.flit.capacity import capacity
from tutti.networks.flit.runs import at_load, run, saturation
from tutti.networks.flit.settings import mean_flits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.flit.capacity import Capacity
    from tutti.networks.flit.network import Network
    from tutti.networks.flit.results import NocRun
    from tutti.networks.flit.runs import Saturation
    from tutti.networks.flit.settings import MeasurementPlan, Traffic

_ZERO = 0.001
"""The share of the ideal capacity that counts as zero load: packets hardly ever meet."""
_PACKETS = 6_000
"""Packets of a run at zero load, whose empty cycles take little time."""
_WINDOWS = (2_000, 4_000_000)
"""The shortest and the longest window at zero load, in cycles."""
_STARTS = (0.7, 0.9, 1.0)
"""The shares of the ideal capacity at which a search starts, until one is not stable."""
_TOLERANCE = 0.02
"""The default tolerance of the saturation load, as a share of the ideal capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The saturation load and the zero-load latency of a network.

    Attributes:
        saturation: The saturation load.
        zero_load: The run at 0.1 % of the ideal capacity, for the latency without contention.
        ideal: The ideal capacity; `None` if it is unknown.
        tolerance: The tolerance of the saturation load, in flits per node and cycle.
    """

    saturation: Saturation
    zero_load: NocRun
    ideal: Capacity | None
    tolerance: float


def placed(
    network: Network,
    traffic: Sequence[Traffic],
    plan: MeasurementPlan,
    tolerance: float | None = None,
) -> Placed:
    """Searches for the saturation load from loads near it, on one core.

    Args:
        network: The network.
        traffic: Traffic of one class or several; the rates keep their proportions.
        plan: The phases of each run.
        tolerance: Tolerance in flits per node and cycle; None for 2 % of the ideal capacity.

    Raises:
        NocError: The network or the tolerance is invalid, or the traffic does not fit the network.
        TrafficError: The traffic is invalid.
    """
    ideal = capacity(network, tuple(traffic))
    most = ideal.load if ideal else 1.0
    width = tolerance or _TOLERANCE * most
    zero_load = _at_zero_load(network, at_load(traffic, _ZERO * most), plan)
    known = [zero_load]
    for share in _STARTS if zero_load.ending in {"stable", "empty"} else ():
        known.append(run(network, at_load(traffic, share * most), plan))
        if known[-1].ending not in {"stable", "empty"}:
            break
    found = saturation(
        network, traffic, plan, tolerance=width, most=max(1.0, most), known=known, divisions=2,
        threads=1,
    )  # fmt: skip
    return Placed(saturation=found, zero_load=zero_load, ideal=ideal, tolerance=width)


def _at_zero_load(network: Network, traffic: tuple[Traffic, ...], plan: MeasurementPlan) -> NocRun:
    """Returns a run at a low load, with a window for enough packets."""
    packets = sum(each.rate / mean_flits(each.packet) for each in traffic)
    low, high = _WINDOWS
    cycles = min(max(round(_PACKETS / (packets * network.topology.ranks)), low), high)
    return run(network, traffic, replace(plan, measure=cycles, sample=0))
