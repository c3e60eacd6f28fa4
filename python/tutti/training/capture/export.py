"""Captured steps as traces of all ranks, for Chakra and other formats of traces.

Tasks are those that `tutti train run` simulates, with their times on the platform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.training.capture.grid import ranks_of
from tutti.training.errors import CaptureError
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import TimePerByte
    from tutti.training.capture.programs import CapturedWork, Task
    from tutti.training.capture.record import Role

__all__ = ["MOST_TASKS", "trace_of"]

MOST_TASKS = 5_000_000
"""The most tasks of all ranks: about 1 GB of Chakra files."""


def trace_of(work: CapturedWork, left: tuple[int, TimePerByte]) -> Trace:
    """Returns the trace of all ranks of a captured step.

    Args:
        work: The step, with the times of its operators.
        left: Operations per second and memory bandwidth that are left to compute.

    Raises:
        CaptureError: A rank has no captured role, or there are too many tasks.
    """
    tasks = [work.tasks(role, left) for role in work.step.roles]
    numbers = work.numbers()
    count = sum(len(tasks[number]) for number in numbers)
    if count > MOST_TASKS:
        message = f"{count:,} tasks of {len(numbers):,} ranks: expected up to {MOST_TASKS:,}"
        raise CaptureError(message, kind="roles", hint="capture the step of fewer ranks")
    calls: dict[CollectiveCall, int] = {}
    ranks = tuple(
        _operations(work, rank, work.step.roles[number], tasks[number], calls)
        for rank, number in enumerate(numbers)
    )
    return Trace(name=work.step.script, ranks=ranks, collectives=tuple(calls))


def _operations(
    work: CapturedWork,
    rank: int,
    role: Role,
    tasks: Sequence[Task],
    calls: dict[CollectiveCall, int],
) -> Operations:
    """Returns the operations of a rank; `calls` gets the collectives that are new."""
    import numpy as np

    streams: dict[int, int] = {}
    rows, dependencies, first = [], [], [0]
    for task in tasks:
        to, stream = task.exchange, streams.setdefault(task.stream, len(streams))
        dependencies += sorted(task.after)
        first.append(len(dependencies))
        if to is None:
            rows.append((Kind.COMPUTE, 0, task.time, -1, 0, stream))
        elif to.peer is not None:
            kind = Kind.SEND if to.collective == "send" else Kind.RECEIVE
            peer = (rank + to.peer - role.rank) % work.step.world_size
            rows.append((kind, max(to.bytes, 1), 0, peer, to.tag, stream))
        else:
            call = CollectiveCall(to.collective, _group(work, rank, role.groups[to.group].ranks))
            number = calls.setdefault(call, len(calls))
            rows.append((Kind.COLLECTIVE, max(to.bytes, 1), 0, number, 0, stream))
    kinds, sizes, durations, peers, tags, of = zip(*rows, strict=True) if rows else [()] * 6
    return Operations(
        kinds=np.array(kinds, np.uint8),
        sizes=np.array(sizes, np.int64),
        durations=np.array(durations, np.int64),
        peers=np.array(peers, np.int32),
        tags=np.array(tags, np.int64),
        streams=np.array(of, np.int32),
        first_dependency=np.array(first, np.int64),
        dependencies=np.array(dependencies, np.int64),
        on_start=np.zeros(len(dependencies), np.bool_),
        names=tuple(task.name for task in tasks),
    )


def _group(work: CapturedWork, rank: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """Returns the group of a rank in the dimensions of a group of a captured rank."""
    grid = work.grid
    mask = grid.mask(ranks)
    digits = [digit for place, digit in enumerate(grid.digits) if mask >> place & 1]
    first = rank - sum(rank // one.stride % one.nodes * one.stride for one in digits)
    return ranks_of(first, [(one.stride, one.nodes) for one in digits])
