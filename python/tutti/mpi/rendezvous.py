"""Steps that an MPI can wait for, however large its messages are.

Above some size an MPI sends a message only once its receive has been posted. A rank that sends in
one step what others receive a step later than they send, as all of them do, would wait for ever.
Sends that stand in a step alone need no waiting of their own: they join the next step.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tutti.mpi.code import PlannedStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.mpi.code import Message

__all__ = ["joined", "needs_buffers"]


def joined(steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    """The same with every step of sends alone in the next one, unless that overwrites them.

    The order of messages between any two ranks stays as it is.
    """
    found: list[PlannedStep] = []
    for step in steps:
        before = found[-1] if found else None
        if before is not None and _waits_for_nothing(before) and not _overwrites(step, before):
            sends = before.sends + step.sends
            found[-1] = PlannedStep(sends, step.receives, step.local)
        else:
            found.append(step)
    return found


def _waits_for_nothing(step: PlannedStep) -> bool:
    return not step.receives and not step.local


def _overwrites(step: PlannedStep, before: PlannedStep) -> bool:
    return any(_overlap(new, old) for new in step.receives for old in before.sends)


def _overlap(one: Message, other: Message) -> bool:
    apart = one.first + one.chunks <= other.first or other.first + other.chunks <= one.first
    return one.slot == other.slot and not apart


def needs_buffers(programs: Sequence[Sequence[PlannedStep]]) -> bool:
    """Whether ranks wait for ever where a send ends with its receive, and steps one by one."""
    sent: Counter[tuple[int, int]] = Counter()
    expected: Counter[tuple[int, int]] = Counter()
    at = [-1] * len(programs)

    def enter(rank: int) -> None:
        at[rank] += 1
        if at[rank] < len(programs[rank]):
            step = programs[rank][at[rank]]
            sent.update((rank, message.peer) for message in step.sends)
            expected.update((message.peer, rank) for message in step.receives)

    def can_leave(rank: int) -> bool:
        step = programs[rank][at[rank]]
        gone = all(expected[rank, m.peer] >= sent[rank, m.peer] for m in step.sends)
        return gone and all(sent[m.peer, rank] >= expected[m.peer, rank] for m in step.receives)

    for rank in range(len(programs)):
        enter(rank)
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while at[rank] < len(steps) and can_leave(rank):
                enter(rank)
                moved = True
    return any(place < len(steps) for place, steps in zip(at, programs, strict=True))
