"""Steps that do not deadlock under a rendezvous protocol.

Above the eager limit an MPI library sends a message only once its receive has been posted. If all
ranks send in one step what the others receive in a later step, they would deadlock. A step with
sends only does not have to wait for them: it is joined with the next step. Otherwise sends are
waited for in a later step of their rank, where that is safe:
docs/decisions/0010-sends-may-be-pending-beyond-their-step.md gives the reasons.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import count, repeat
from typing import TYPE_CHECKING

from tutti.mpi.code import PlannedStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.mpi.code import Message


def joined(steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    """Joins every step of sends only with the next one, unless that overwrites their chunks.

    The order of messages between any two ranks is unchanged.
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
    """Whether ranks deadlock if a send completes only with its receive.

    A send is waited for in the step given by its delay.
    """
    sent: Counter[tuple[int, int]] = Counter()
    expected: Counter[tuple[int, int]] = Counter()
    at = [-1] * len(programs)
    due: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    """By rank and step: the peer and number of each message that the step waits for."""

    def enter(rank: int) -> None:
        at[rank] += 1
        if at[rank] < len(programs[rank]):
            step = programs[rank][at[rank]]
            for message, delay in zip(step.sends, step.delays or repeat(0), strict=False):
                sent[rank, message.peer] += 1
                place = min(at[rank] + delay, len(programs[rank]))
                due[rank, place].append((message.peer, sent[rank, message.peer]))
            expected.update((message.peer, rank) for message in step.receives)

    def can_leave(rank: int) -> bool:
        gone = all(expected[rank, peer] >= number for peer, number in due[rank, at[rank]])
        if not gone or at[rank] == len(programs[rank]):
            return gone
        step = programs[rank][at[rank]]
        return all(sent[m.peer, rank] >= expected[m.peer, rank] for m in step.receives)

    for rank in range(len(programs)):
        enter(rank)
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while at[rank] <= len(steps) and can_leave(rank):
                enter(rank)
                moved = True
    return any(place <= len(steps) for place, steps in zip(at, programs, strict=True))


def deferred(programs: Sequence[Sequence[PlannedStep]]) -> list[list[PlannedStep]]:
    """Returns the programs with minimal delays that prevent a deadlock.

    Rounds are counted as if sends were never waited for: a step starts in the round in which the
    previous one ended, and ends a round after it and all sends that it receives have started. A
    send with a receive that starts in some round is waited for in the first step that ends later,
    or after all steps. Every wait then depends on an earlier round only.

    Args:
        programs: Of all ranks, of a schedule that completes if sends are buffered.
    """
    sent, received = _steps_of_messages(programs)
    ends = _rounds(programs, sent)
    found = []
    for rank, steps in enumerate(programs):
        numbers: dict[int, count[int]] = defaultdict(count)
        deferring = []
        for place, step in enumerate(steps):
            delays = []
            for send in step.sends:
                begins = received[rank, send.peer][next(numbers[send.peer])]
                round_ = ends[send.peer][begins - 1] if begins else 0
                delays.append(max(bisect_right(ends[rank], round_), place) - place)
            deferring.append(replace(step, delays=tuple(delays)))
        found.append(deferring)
    return found


_Places = dict[tuple[int, int], list[int]]
"""From one rank to another, the steps of their messages in order."""


def _steps_of_messages(programs: Sequence[Sequence[PlannedStep]]) -> tuple[_Places, _Places]:
    """Returns the steps in which messages are sent, and those in which they are received."""
    sent: _Places = defaultdict(list)
    received: _Places = defaultdict(list)
    for rank, steps in enumerate(programs):
        for place, step in enumerate(steps):
            for message in step.sends:
                sent[rank, message.peer].append(place)
            for message in step.receives:
                received[message.peer, rank].append(place)
    return sent, received


def _rounds(programs: Sequence[Sequence[PlannedStep]], sent: _Places) -> list[list[int]]:
    """Returns the rounds in which the steps of each rank end."""
    ends: list[list[int]] = [[] for _ in programs]
    taken: Counter[tuple[int, int]] = Counter()

    def end_step(rank: int, step: PlannedStep) -> bool:
        """Ends the step, if all sends that it receives have started."""
        needed = Counter((message.peer, rank) for message in step.receives)
        started = [ends[rank][-1] if ends[rank] else 0]
        for (peer, _), messages in needed.items():
            last = sent[peer, rank][taken[peer, rank] + messages - 1]
            if last > len(ends[peer]):
                return False
            started.append(ends[peer][last - 1] if last else 0)
        taken.update(needed)
        ends[rank].append(max(started) + 1)
        return True

    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while len(ends[rank]) < len(steps) and end_step(rank, steps[len(ends[rank])]):
                moved = True
    return ends
