r"""Measurement plans of traces: a trace is measured from cycle 0 until its last packet arrives.

Examples:
    >>> plan = plan_of_trace("cycle,source,destination,flits\n0,0,5,4\n90,1,6,4\n")
    >>> plan.warmup, plan.measure
    (0, 91)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.networks.flit.settings import MeasurementPlan

if TYPE_CHECKING:
    from collections.abc import Collection

_DRAIN = 20_000
"""Cycles after the last packet of a trace, in addition to one for each of its flits."""
_MOST_CYCLES = 1 << 40
_SAMPLE = 100
_MOST_SAMPLES = 10_000
"""Cycles between samples of the buffers, and how many samples a long trace has."""


def phases_of(last: int, flits: int) -> dict[str, int]:
    """Returns the phases in which all packets of a trace are created and have time to arrive.

    Args:
        last: The cycle of the last packet.
        flits: The flits of all packets.

    Returns:
        Warm-up, window, drain and sampling interval in cycles; the window has a cycle for each
        batch at least.
    """
    return {
        "warmup": 0,
        "measure": min(max(last + 1, MeasurementPlan().batches), _MOST_CYCLES),
        "drain": min(_DRAIN + flits, _MOST_CYCLES),
        "sample": max(_SAMPLE, last // _MOST_SAMPLES),
    }


def plan_of_trace(
    text: str, plan: MeasurementPlan | None = None, given: Collection[str] = ()
) -> MeasurementPlan:
    """Returns the measurement plan of a trace.

    Args:
        text: The trace. Invalid lines are ignored, since the core refuses them with their number.
        plan: Values of keys that the trace does not set.
        given: Keys of `plan` that replace those of the trace.
    """
    phases = phases_of(*_extent(text))
    if {"warmup", "measure"} & set(given):
        phases = {key: phases[key] for key in ("drain", "sample")}
    kept = plan or MeasurementPlan()
    for key, value in phases.items():
        kept = kept if key in given else replace(kept, **{key: value})  # type: ignore[arg-type]
    return kept


def _extent(text: str) -> tuple[int, int]:
    """Returns the cycle of the last packet, and the flits of all packets."""
    last = flits = 0
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",", 4)]
        if len(parts) < 4 or not (parts[0].isdecimal() and parts[3].isdecimal()):
            continue
        if max(len(parts[0]), len(parts[3])) <= len(str(_MOST_CYCLES)):
            last, flits = max(last, int(parts[0])), flits + int(parts[3])
    return last, flits
