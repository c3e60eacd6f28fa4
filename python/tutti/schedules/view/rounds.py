"""The messages of a schedule by round, as if every message took the same time.

In each round, every rank that does not wait executes the sends of its next step. A step ends in the
round in which the last of its messages arrives.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

_SENDS = ("send", "multicast", "contribute")


@dataclass(slots=True)
class Message:
    """A message; `arrival` is the round in which it is received, None if that is later."""

    sent: int
    source: int
    destination: int
    op: str
    arrival: int | None = None


@dataclass(slots=True)
class Rounds:
    """The first rounds of a schedule.

    Attributes:
        names: The name of each round: that of the step which its first sending rank executes.
        messages: The messages sent in these rounds.
        complete: Whether there are no further rounds.
    """

    names: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    complete: bool = False


def rounds(schedule: Schedule, most: int) -> Rounds:
    """Returns the first `most` rounds of a schedule; a deadlock ends them."""
    found = Rounds()
    steps = [0] * schedule.ranks
    waits: list[list[int]] = [[] for _ in steps]
    flying: dict[tuple[int, int], deque[Message]] = defaultdict(deque)
    while len(found.names) < most:
        number, name = len(found.names), ""
        ready = [
            rank
            for rank, step in enumerate(steps)
            if not waits[rank] and step < schedule.steps(rank)
        ]
        for rank in ready:
            sent, waits[rank] = _step(schedule, rank, steps[rank], number)
            if sent and not name:
                name = schedule.step_name(rank, steps[rank])
            steps[rank] += 1
            found.messages += sent
            for message in sent:
                flying[rank, message.destination].append(message)
        received = [_receive(waits, rank, flying, number) for rank in range(schedule.ranks)]
        if not ready and not any(received):
            break
        found.names.append(name)
    found.complete = all(step == schedule.steps(rank) for rank, step in enumerate(steps))
    return found


def _step(schedule: Schedule, rank: int, step: int, number: int) -> tuple[list[Message], list[int]]:
    """Returns the messages that a step sends, and the sources of those that it receives."""
    ops = schedule.ops(rank, step)
    sent = [
        Message(number, rank, peer, str(op)) for op in ops if op.kind in _SENDS for peer in op.peers
    ]
    return sent, [peer for op in ops if op.kind in ("recv", "combine") for peer in op.peers]


def _receive(
    waits: list[list[int]], rank: int, flying: dict[tuple[int, int], deque[Message]], number: int
) -> bool:
    """Receives what has been sent; the k-th message of a source matches the k-th receive."""
    left = []
    for source in waits[rank]:
        if flying[source, rank]:
            flying[source, rank].popleft().arrival = number
        else:
            left.append(source)
    arrived = len(left) < len(waits[rank])
    waits[rank] = left
    return arrived
