"""Who sends to whom: the flows of a schedule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

Flow = tuple[int, int]
"""Source and destination."""


def flows_of(schedule: Schedule, phase: int | None = None) -> list[Flow]:
    """The distinct pairs of ranks that a schedule sends on, by source and destination.

    Args:
        schedule: any; rank r is node r.
        phase: only what this phase of the schedule sends, counted from 0.

    Raises:
        ScheduleError: there is no such phase.
    """
    return sorted(shares_of(schedule, phase))


def shares_of(schedule: Schedule, phase: int | None = None) -> dict[Flow, float]:
    """The same with how many times the payload passes on each, such as 0.5 for half of it."""
    part = schedule if phase is None else schedule.phase(phase)
    chunks: Counter[Flow] = Counter()
    for rank in range(part.ranks):
        for step in range(part.steps(rank)):
            for op in part.ops(rank, step):
                if op.kind == "send" and op.peer is not None and op.chunks is not None:
                    first, end = op.chunks
                    chunks[rank, op.peer] += end - first
    return {flow: count / part.chunks for flow, count in chunks.items()}
