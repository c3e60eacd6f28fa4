"""Lowers a batch of statements to the ops of ranks, and groups ops into steps."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.language.trace import Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti import _core


class Send(NamedTuple):
    """A send of chunks, a multicast or a contribution."""

    source: Region
    messages: tuple[Sent, ...]
    kind: str = "send"


class Receive(NamedTuple):
    """A receive of a message. A negative buffer is temporary."""

    target: Region
    message: Sent


class Combine(NamedTuple):
    """A receive of contributions, and their reduction with chunks of the rank."""

    target: Region
    operands: tuple[tuple[int, Sent | None], ...]


class Reduce(NamedTuple):
    """A reduction of buffers of the rank."""

    target: Region
    operands: tuple[int, ...]


class Move(NamedTuple):
    """A copy within the rank."""

    source: Region
    target: Region


class Work(NamedTuple):
    """Work of the application, or idle time."""

    rank: int
    kind: str
    duration_ps: int


@dataclass
class Lowered:
    """The ops of a batch, which fit one step of each rank.

    Attributes:
        sends: The sends.
        receives: The receives that follow them, and combines.
        locals: The local ops that follow these.
    """

    sends: list[Send] = field(default_factory=list)
    receives: list[Receive | Combine] = field(default_factory=list)
    locals: list[Reduce | Move | Work] = field(default_factory=list)


def lower(statements: Sequence[Statement]) -> Lowered:
    """Returns the ops of statements that read the values before all of them."""
    return _Lowering(statements).run()


class _Lowering:
    """Lowers one batch.

    A write that another statement of the batch must not see goes to a temporary buffer, and is
    copied to its place at the end.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._ops = Lowered()
        self._deferred: list[Move] = []
        self._temporaries = 0
        self._readers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
        self._sent: set[tuple[int, int, int]] = set()
        if len(statements) > 1:
            self._note_reads()

    def run(self) -> Lowered:
        for index, statement in enumerate(self._statements):
            if statement.kind == "fold":
                self._fold(index, statement)
            elif statement.kind == "copy":
                self._copy(index, statement)
            elif statement.kind == "send":
                kind = _send_kind(statement)
                self._ops.sends.append(Send(statement.sent[0].source, statement.sent, kind))
            else:
                work = Work(statement.rank, statement.kind, statement.duration_ps)
                self._ops.locals.append(work)
        self._ops.locals += self._deferred
        return self._ops

    def _note_reads(self) -> None:
        for index, statement in enumerate(self._statements):
            local = statement.targets[0].rank if statement.targets else None
            for region in statement.operands:
                if not isinstance(region, Region):
                    continue
                is_local = region.rank == local and len(statement.targets) == 1
                for place in _places(region):
                    if is_local:
                        self._readers[place].add(index)
                    else:
                        self._sent.add(place)

    def _copy(self, index: int, statement: Statement) -> None:
        source = statement.operands[0]
        if isinstance(source, Sent):
            self._receive(index, statement.targets[0], source)
            return
        if len(statement.targets) == 1 and statement.targets[0].rank == source.rank:
            target = statement.targets[0]
            overlaps = target.buffer == source.buffer and _overlap(source, target)
            at = self._temporary(target) if overlaps else self._local_target(index, target)
            self._ops.locals.append(Move(source, at))
            if overlaps:
                self._deferred.append(Move(at, target))
            return
        messages = tuple(Sent(source, each.rank, statement.location) for each in statement.targets)
        self._ops.sends.append(Send(source, messages, _send_kind(statement)))
        for target, message in zip(statement.targets, messages, strict=True):
            self._receive(index, target, message)

    def _receive(self, index: int, target: Region, message: Sent) -> None:
        is_read = any(
            place in self._sent or self._readers.get(place, set()) - {index}
            for place in _places(target)
        )
        at = self._temporary(target) if is_read else target
        self._ops.receives.append(Receive(at, message))
        if is_read:
            self._deferred.append(Move(at, target))

    def _fold(self, index: int, statement: Statement) -> None:
        target = statement.targets[0]
        operands: list[tuple[int, Sent | None]] = []
        for operand in statement.operands:
            if isinstance(operand, Region) and operand.rank == target.rank:
                operands.append((self._aligned(operand, target), None))
                continue
            message = operand
            if isinstance(message, Region):
                message = Sent(message, target.rank, statement.location)
                self._ops.sends.append(Send(message.source, (message,), _send_kind(statement)))
            at = self._temporary(target)
            operands.append((at.buffer, message))
            if not statement.in_network:
                self._ops.receives.append(Receive(at, message))
        into = self._local_target(index, target)
        if statement.in_network and any(message for _, message in operands):
            self._ops.receives.append(Combine(into, tuple(operands)))
        else:
            self._ops.locals.append(Reduce(into, tuple(buffer for buffer, _ in operands)))

    def _aligned(self, operand: Region, target: Region) -> int:
        """Returns a buffer with a local operand at the chunks of the target."""
        if operand.start == target.start:
            return operand.buffer
        at = self._temporary(target)
        self._ops.locals.append(Move(operand, at))
        return at.buffer

    def _local_target(self, index: int, target: Region) -> Region:
        """Returns where a local op writes: its target, unless another op must read that first."""
        if not any(self._readers.get(place, set()) - {index} for place in _places(target)):
            return target
        at = self._temporary(target)
        self._deferred.append(Move(at, target))
        return at

    def _temporary(self, target: Region) -> Region:
        self._temporaries += 1
        return target._replace(buffer=-self._temporaries)


def _send_kind(statement: Statement) -> str:
    if statement.multicast:
        return "multicast"
    return "contribute" if statement.in_network else "send"


def _places(region: Region) -> Iterable[tuple[int, int, int]]:
    return ((region.rank, region.buffer, chunk) for chunk in range(region.start, region.end))


def _overlap(first: Region, second: Region) -> bool:
    return first.start < second.end and second.start < first.end


@dataclass
class _Step:
    """A step of a rank."""

    name: str
    sends: list[Send] = field(default_factory=list)
    receives: list[Receive | Combine] = field(default_factory=list)
    locals: list[Reduce | Move | Work] = field(default_factory=list)
    temporaries: list[tuple[int, int, int]] = field(default_factory=list)

    def temporary(self, start: int, end: int) -> int:
        """Returns the first temporary buffer whose chunks from `start` to `end` are unused."""
        index = 0
        used = [t for t in self.temporaries if t[1] < end and start < t[2]]
        while any(index == each for each, _, _ in used):
            index += 1
        self.temporaries.append((index, start, end))
        return index


class Steps:
    """The steps of all ranks, by level."""

    def __init__(self) -> None:
        """Starts without steps."""
        self.names: dict[int, str] = {}
        self._steps: dict[int, dict[int, _Step]] = defaultdict(dict)
        self._sent_at: dict[Sent, int] = {}

    def add(self, ops: Lowered, levels: dict[int, int]) -> None:
        """Adds the ops of a batch at the level of each rank."""
        temporaries: dict[int, int] = {}

        def placed(region: Region) -> Region:
            buffer = region.buffer
            if buffer >= 0:
                return region
            if buffer not in temporaries:
                found = self._step(region.rank, levels).temporary(region.start, region.end)
                temporaries[buffer] = -1 - found
            return region._replace(buffer=temporaries[buffer])

        for send in ops.sends:
            rank = send.source.rank
            self._sent_at.update(dict.fromkeys(send.messages, levels[rank]))
            self._step(rank, levels).sends.append(send)
        for op in ops.receives:
            self._step(op.target.rank, levels).receives.append(_placed_receive(op, placed))
        for local in ops.locals:
            rank = local.rank if isinstance(local, Work) else local.target.rank
            self._step(rank, levels).locals.append(_placed_local(local, placed))

    def sent_level(self, message: Sent) -> int:
        """Returns the level of a message; -1 if it is not sent yet."""
        return self._sent_at.get(message, -1)

    def build(self, builder: _core.ScheduleBuilder, *, buffers: int) -> None:
        """Adds all ops to a builder."""

        def slot(buffer: int) -> int:
            return buffer if buffer >= 0 else buffers - 1 - buffer

        for rank, steps in sorted(self._steps.items()):
            for _, step in sorted(steps.items()):
                builder.step(rank, step.name)
                for send in step.sends:
                    _send(builder, send)
                for receive in step.receives:
                    _receive(builder, receive, slot)
                for op in step.locals:
                    _local(builder, op, slot)

    def _step(self, rank: int, levels: dict[int, int]) -> _Step:
        steps, level = self._steps[rank], levels[rank]
        if level not in steps:
            steps[level] = _Step(self.names.get(rank, ""))
        return steps[level]


def _placed_receive(op: Receive | Combine, placed: Callable[[Region], Region]) -> Receive | Combine:
    target = op.target
    if isinstance(op, Receive):
        return Receive(placed(target), op.message)
    operands = tuple(
        (placed(target._replace(buffer=buffer)).buffer, message) for buffer, message in op.operands
    )
    return Combine(placed(target), operands)


def _placed_local(
    op: Reduce | Move | Work, placed: Callable[[Region], Region]
) -> Reduce | Move | Work:
    if isinstance(op, Work):
        return op
    if isinstance(op, Move):
        return Move(placed(op.source), placed(op.target))
    operands = tuple(placed(op.target._replace(buffer=buffer)).buffer for buffer in op.operands)
    return Reduce(placed(op.target), operands)


def _send(builder: _core.ScheduleBuilder, send: Send) -> None:
    rank, slot, start, end = send.source
    peers = [message.peer for message in send.messages]
    if send.kind == "multicast":
        builder.multicast(rank, peers, slot, (start, end))
    elif send.kind == "contribute":
        builder.contribute(rank, peers[0], slot, (start, end))
    else:
        builder.send(rank, peers[0], slot, (start, end))


def _receive(
    builder: _core.ScheduleBuilder, op: Receive | Combine, slot: Callable[[int], int]
) -> None:
    rank, buffer, start, end = op.target
    if isinstance(op, Receive):
        builder.recv(rank, op.message.source.rank, slot(buffer), (start, end))
        return
    operands = [
        (slot(number), None if message is None else message.source.rank)
        for number, message in op.operands
    ]
    builder.combine(rank, slot(buffer), operands, (start, end))


def _local(
    builder: _core.ScheduleBuilder, op: Reduce | Move | Work, slot: Callable[[int], int]
) -> None:
    if isinstance(op, Work):
        add = builder.compute if op.kind == "compute" else builder.sleep
        add(op.rank, op.duration_ps)
        return
    rank, buffer, start, end = op.target
    if isinstance(op, Reduce):
        builder.reduce(rank, slot(buffer), [slot(each) for each in op.operands], (start, end))
    else:
        source = op.source
        builder.copy(rank, slot(source.buffer), (source.start, source.end), slot(buffer), start)
