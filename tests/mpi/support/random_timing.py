"""Random schedules in which messages wait at their receivers: sends early, receives late.

Chunks travel along random trees, sometimes through a rank that only forwards them, from scratch
that is reused immediately after a send. The order of sends and receives is random, among the orders
that need only buffers; an MPI library without buffers would deadlock.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from random_schedules import runs_of

from tutti.schedules.builder import ScheduleBuilder

if TYPE_CHECKING:
    from random import Random

    from tutti.schedules.ir import Schedule

_EAGER = 0.75
"""The probability of a send if both a send and a receive are possible."""


@dataclass
class _Message:
    source: int
    target: int
    chunks: tuple[int, int]
    is_folded: bool = False
    after: list[_Message] = field(default_factory=list)
    """Messages that the source must receive first."""
    relayed: _Message | None = None
    """The message by which the target forwards it without keeping a copy."""
    slot: int = 0
    """The slot at the source."""
    is_there: bool = False


@dataclass
class _Timing:
    builder: ScheduleBuilder
    ranks: int
    random: Random
    messages: list[_Message] = field(default_factory=list)

    # --- what is sent -----------------------------------------------------------------------------

    def reduce(self, chunks: tuple[int, int], root: int) -> list[_Message]:
        """Adds messages up a random tree; returns those that the root receives."""
        order = self._order(root)
        into: dict[int, list[_Message]] = defaultdict(list)
        for place in range(self.ranks - 1, 0, -1):
            child, parent = order[place], order[self.random.randrange(place)]
            sent = _Message(child, parent, chunks, is_folded=True, after=into[child])
            into[parent].append(self._send(sent))
        return into[root]

    def broadcast(self, chunks: tuple[int, int], root: int, after: list[_Message]) -> None:
        """Adds messages down a random tree."""
        order = self._order(root)
        into = {root: after}
        for place in range(1, self.ranks):
            child, parent = order[place], order[self.random.randrange(place)]
            into[child] = [self._send(_Message(parent, child, chunks, after=into[parent]))]

    def _order(self, root: int) -> list[int]:
        others = [rank for rank in range(self.ranks) if rank != root]
        self.random.shuffle(others)
        return [root, *others]

    def _send(self, message: _Message) -> _Message:
        """Adds the message, directly or through another rank; returns the last hop."""
        between = [r for r in range(self.ranks) if r not in {message.source, message.target}]
        if between and self.random.random() < 0.5:
            over, target = self.random.choice(between), message.target
            last = _Message(over, target, message.chunks, message.is_folded, after=[message])
            message.target, message.is_folded, message.relayed = over, False, last
            self.messages += [message, last]
            return last
        self.messages.append(message)
        return message

    # --- when -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Executes sends and receives one by one."""
        unsent = list(self.messages)
        flying: dict[tuple[int, int], deque[_Message]] = defaultdict(deque)
        busy: set[tuple[int, int, int]] = set()
        while unsent or any(flying.values()):
            ready = [m for m in unsent if all(earlier.is_there for earlier in m.after)]
            arrived = [queue for queue in flying.values() if queue]
            if ready and (not arrived or self.random.random() < _EAGER):
                message = self.random.choice(ready)
                unsent.remove(message)
                flying[message.source, message.target].append(message)
                program = self.builder.rank(message.source)
                program.send(message.target, chunks=message.chunks, slot=message.slot)
                busy -= self._places(message.source, message.slot, message.chunks)
            else:
                self._receive(self.random.choice(arrived).popleft(), busy)

    def _receive(self, message: _Message, busy: set[tuple[int, int, int]]) -> None:
        rank, chunks = message.target, message.chunks
        program = self.builder.rank(rank)
        free = [s for s in range(1, 24) if not busy & self._places(rank, s, chunks)]
        slot = self.random.choice(free[:3])
        message.is_there = True
        if message.relayed is not None:
            message.relayed.slot = slot
            busy |= self._places(rank, slot, chunks)
            program.recv(message.source, chunks=chunks, slot=slot)
        elif message.is_folded:
            program.recv(message.source, chunks=chunks, slot=slot)
            program.reduce(0, self.random.choice([[0, slot], [slot, 0]]), chunks=chunks)
        else:
            program.recv(message.source, chunks=chunks)

    def _places(self, rank: int, slot: int, chunks: tuple[int, int]) -> set[tuple[int, int, int]]:
        return {(rank, slot, chunk) for chunk in range(*chunks)} if slot else set()


def badly_timed(collective: str, ranks: int, random: Random) -> Schedule:
    """Returns a random schedule of a collective with root 0, not verified yet."""
    sharded = collective in {"reduce_scatter", "all_gather"}
    chunks = ranks * random.randint(1, 3) if sharded else 2 * random.randint(2, 6)
    builder = ScheduleBuilder(collective, ranks=ranks, chunks=chunks, name="badly_timed")
    timing = _Timing(builder, ranks, random)
    for run in runs_of(chunks, chunks // ranks if sharded else 2, random):
        owner = run[0] // (chunks // ranks) if sharded else 0
        if collective == "all_reduce":
            owner = random.randrange(ranks)
        reduces = collective in {"all_reduce", "reduce_scatter", "reduce"}
        into = timing.reduce(run, owner) if reduces else []
        if collective in {"all_reduce", "broadcast", "all_gather"}:
            timing.broadcast(run, owner, into)
    timing.run()
    return builder.build()
