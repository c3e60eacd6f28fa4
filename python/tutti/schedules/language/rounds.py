"""Expresses a schedule as statements on chunks, round by round.

Steps of ranks that exchange messages are in the same round, so that a message is one statement. A
schedule without such rounds has separate statements for sends and receives.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.errors import ScheduleError
from tutti.schedules.language.trace import Location, Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tutti import _core
    from tutti.schedules.ir import Schedule

_NOWHERE = Location("", 0)


@dataclass
class Round:
    """The statements of one step of each rank.

    Attributes:
        name: The name of the steps, if all have the same; else empty.
        messages: Statements that read the values before the round.
        locals: Statements that follow them, in order.
    """

    name: str = ""
    messages: list[Statement] = field(default_factory=list)
    locals: list[Statement] = field(default_factory=list)


class _At(NamedTuple):
    """A step of a rank."""

    rank: int
    step: int


class _Place(NamedTuple):
    """An op of a step."""

    at: _At
    position: int


@dataclass(eq=False)
class _Transfer:
    """A message with both ends."""

    source: Region
    peer: int
    sent: _Place
    received: _Place | None = None
    target: Region | None = None

    @property
    def end(self) -> tuple[_Place, Region]:
        """The op and the chunks of the receive."""
        if self.received is None or self.target is None:
            message = f"rank {self.peer} never receives a message of rank {self.source.rank}"
            raise ScheduleError(message, kind="unmatched")
        return self.received, self.target


class _Messages:
    """The messages of a verified schedule: the k-th receive takes the k-th message of a pair."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps = {
            rank: [schedule.ops(rank, step) for step in range(schedule.steps(rank))]
            for rank in range(schedule.ranks)
        }
        self.by_send: dict[_Place, list[_Transfer]] = {}
        self.by_receive: dict[_Place, list[_Transfer | None]] = {}
        queues: dict[tuple[int, int], list[_Transfer]] = defaultdict(list)
        for place, op in self._ops():
            if op.kind in {"send", "multicast", "contribute"}:
                region = _region(place.at.rank, op)
                transfers = [_Transfer(region, peer, place) for peer in op.peers]
                self.by_send[place] = transfers
                for each in transfers:
                    queues[region.rank, each.peer].append(each)
        taken: dict[tuple[int, int], Iterator[_Transfer]] = {k: iter(q) for k, q in queues.items()}
        for place, op in self._ops():
            rank = place.at.rank
            if op.kind == "recv":
                sources: Sequence[int | None] = op.peers
                slots = [op.slot or 0]
            elif op.kind == "combine":
                sources, slots = op.sources or [], op.operands or []
            else:
                continue
            found: list[_Transfer | None] = []
            for source, slot in zip(sources, slots, strict=True):
                transfer = None if source is None else next(taken[source, rank])
                if transfer is not None:
                    transfer.received = place
                    transfer.target = _region(rank, op)._replace(buffer=slot)
                found.append(transfer)
            self.by_receive[place] = found

    @property
    def transfers(self) -> list[_Transfer]:
        """All messages."""
        return [each for sent in self.by_send.values() for each in sent]

    def _ops(self) -> Iterator[tuple[_Place, _core.Op]]:
        for rank, steps in self.steps.items():
            for step, ops in enumerate(steps):
                for position, op in enumerate(ops):
                    yield _Place(_At(rank, step), position), op


def rounds(schedule: Schedule, *, early: bool = False) -> list[Round] | None:
    """Returns the rounds of a verified schedule; None if steps overlap too much for rounds.

    A message is one statement, also with a reduction that alone uses what is received.

    Args:
        schedule: The schedule.
        early: Whether sends to such a reduction are separate statements, so that their order does
            not depend on that of the reductions.
    """
    messages = _Messages(schedule)
    levels = _levels(messages)
    if levels is None:
        return None
    members: dict[int, list[_At]] = defaultdict(list)
    for at, level in levels.items():
        members[level].append(at)
    writer = _Writer(messages, _last_uses(messages, schedule), early=early)
    return [
        writer.round(sorted(members[level]), _name(schedule, members[level]))
        for level in sorted(members)
    ]


def separate_ends(schedule: Schedule) -> list[Round]:
    """Returns a verified schedule with all sends and receives as separate statements.

    A statement starts each step of each rank, for programs with explicit steps.
    """
    messages = _Messages(schedule)
    writer = _Writer(messages, set(), early=True)
    halves = _half_levels(messages)
    last = max(halves.values(), default=-1)
    found = [Round() for _ in range(last + 1)]
    for (at, is_receiving), level in sorted(halves.items(), key=lambda item: (item[0][1], item[0])):
        if not is_receiving:
            name = schedule.step_name(*at)
            name = "" if name == f"step {at.step}" else name
            found[level].locals.append(Statement("step", _NOWHERE, rank=at.rank, name=name))
            found[level].locals += writer.sends(at)
    for (at, is_receiving), level in sorted(halves.items()):
        if is_receiving:
            found[level].locals += writer.receives(at)
    return found


def _name(schedule: Schedule, members: Iterable[_At]) -> str:
    """Returns the name that all steps have, unless it is the default."""
    names = {schedule.step_name(*at) for at in members}
    name = names.pop()
    return "" if names or name.startswith("step ") else name


def _levels(messages: _Messages) -> dict[_At, int] | None:
    """Returns the round of each step, the same for peers; None if there is none."""
    nodes = [_At(rank, step) for rank, ops in messages.steps.items() for step in range(len(ops))]
    leaders = {at: at for at in nodes}

    def leader(at: _At) -> _At:
        while leaders[at] != at:
            leaders[at] = at = leaders[leaders[at]]
        return at

    for each in messages.transfers:
        leaders[leader(each.sent.at)] = leader(each.end[0].at)
    before: dict[_At, set[_At]] = {leader(at): set() for at in nodes}
    for at in nodes:
        if at.step:
            before[leader(at)].add(leader(_At(at.rank, at.step - 1)))
    levels: dict[_At, int] = {}
    try:
        for at in TopologicalSorter(before).static_order():
            levels[at] = max((levels[each] + 1 for each in before[at]), default=0)
    except CycleError:
        return None
    return {at: levels[leader(at)] for at in nodes}


def _half_levels(messages: _Messages) -> dict[tuple[_At, bool], int]:
    """Returns an order of the sends (False) and the rest (True) of all steps."""
    before: dict[tuple[_At, bool], set[tuple[_At, bool]]] = {}
    for rank, steps in messages.steps.items():
        for step in range(len(steps)):
            at = _At(rank, step)
            before[at, False] = {(_At(rank, step - 1), True)} if step else set()
            before[at, True] = {(at, False)}
    for each in messages.transfers:
        before[each.end[0].at, True].add((each.sent.at, False))
    levels: dict[tuple[_At, bool], int] = {}
    for half in TopologicalSorter(before).static_order():
        levels[half] = max((levels[each] + 1 for each in before[half]), default=0)
    return levels


def _last_uses(messages: _Messages, schedule: Schedule) -> set[tuple[_At, int, int]]:
    """Returns the reads after which a value is not read again: step, position of op, operand.

    A position is that of a reduce; the value of each of its chunks is dead afterwards.
    """
    found = set()
    for rank, steps in messages.steps.items():
        live = {(schedule.result, chunk) for chunk in range(schedule.chunks)}
        for step in reversed(range(len(steps))):
            for position, op in reversed(list(enumerate(steps[step]))):
                written = set(_written(op))
                live -= written
                if op.kind == "reduce":
                    for index, slot in enumerate(op.operands or ()):
                        places = set(_slots(slot, op.chunks))
                        if places.isdisjoint(live) and places.isdisjoint(written):
                            found.add((_At(rank, step), position, index))
                live |= set(_read(op))
    return found


def _slots(slot: int | None, chunks: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    return ((slot or 0, chunk) for chunk in range(*(chunks or (0, 0))))


def _written(op: _core.Op) -> Iterator[tuple[int, int]]:
    """Returns the slots and chunks that an op writes."""
    if op.kind in {"recv", "reduce", "combine"}:
        yield from _slots(op.slot, op.chunks)
    if op.kind == "copy" and op.chunks is not None and op.to is not None:
        yield from _slots(op.into, (op.to, op.to + op.chunks[1] - op.chunks[0]))


def _read(op: _core.Op) -> Iterator[tuple[int, int]]:
    """Returns the slots and chunks that an op reads."""
    if op.kind in {"send", "multicast", "contribute", "copy"}:
        yield from _slots(op.slot, op.chunks)
    for slot in op.operands or ():
        yield from _slots(slot, op.chunks)


def _region(rank: int, op: _core.Op) -> Region:
    start, end = op.chunks or (0, 0)
    return Region(rank, op.slot or 0, start, end)


@dataclass(frozen=True)
class _Entry:
    """A statement of a round, with the ops that it stands for."""

    statement: Statement
    sends: tuple[_Place, ...] = ()
    receives: tuple[_Place, ...] = ()


class _Writer:
    """Writes the statements of rounds."""

    def __init__(
        self, messages: _Messages, last_uses: set[tuple[_At, int, int]], *, early: bool
    ) -> None:
        self._messages = messages
        self._last_uses = last_uses
        self._early = early
        self._sent: dict[_Transfer, Sent] = {}

    def round(self, members: Sequence[_At], name: str) -> Round:
        """Returns the round of some steps."""
        folds = [fold for at in members for fold in self._folds(at)]
        done = {place for fold in folds for place in fold.ops}
        folded = {transfer for fold in folds for transfer in fold.transfers}
        ops = [each for at in members for each in self._ops(at)]
        entries: list[_Entry] = []
        for place, op in ops:
            if place in self._messages.by_send:
                entries += self._send(op, place, folded)
        entries += [self._fold(fold) for fold in folds]
        received = [place for place, op in ops if op.kind == "recv" and place not in done]
        entries += [entry for place in received for entry in self._receive(place)]
        written = Round(name, [entry.statement for entry in _sorted(entries)])
        for place, op in ops:
            if op.kind in {"reduce", "copy", "compute", "sleep"} and place not in done:
                written.locals.append(_local(place.at.rank, op))
        return written

    def sends(self, at: _At) -> list[Statement]:
        """Returns the sends of a step, without their receives."""
        return [
            self._early_send(op, place).statement
            for place, op in self._ops(at)
            if place in self._messages.by_send
        ]

    def receives(self, at: _At) -> list[Statement]:
        """Returns the rest of a step."""
        found = []
        for place, op in self._ops(at):
            if op.kind == "recv":
                found += [entry.statement for entry in self._receive(place)]
            elif op.kind == "combine":
                operands = tuple(self._messages.by_receive[place])
                fold = _Fold(at.rank, op, (place,), operands, is_combine=True)
                found.append(self._fold(fold).statement)
            elif place not in self._messages.by_send:
                found.append(_local(at.rank, op))
        return found

    def _ops(self, at: _At) -> list[tuple[_Place, _core.Op]]:
        ops = self._messages.steps[at.rank][at.step]
        return [(_Place(at, position), op) for position, op in enumerate(ops)]

    def _folds(self, at: _At) -> Iterator[_Fold]:
        """Returns the combines of a step, and the reductions that are fused with receives."""
        received: dict[tuple[int, tuple[int, int]], _Place] = {}
        accessed: set[tuple[int, int]] = set()
        for place, op in self._ops(at):
            if op.kind == "recv":
                received[op.slot or 0, op.chunks or (0, 0)] = place
            elif op.kind == "combine":
                operands = tuple(self._messages.by_receive[place])
                yield _Fold(at.rank, op, (place,), operands, is_combine=True)
            elif op.kind in {"reduce", "copy"}:
                fold = self._fusable(place, op, received, accessed)
                if fold is not None:
                    accessed |= set(_written(op))
                    yield fold
                else:
                    accessed |= {*_read(op), *_written(op)}

    def _fusable(
        self,
        place: _Place,
        op: _core.Op,
        received: dict[tuple[int, tuple[int, int]], _Place],
        accessed: set[tuple[int, int]],
    ) -> _Fold | None:
        """Returns the fold of a reduction and its receives, if these are used only by it."""
        if op.kind != "reduce" or accessed & {*_read(op), *_written(op)}:
            return None
        operands: list[_Transfer | None] = []
        fused: list[_Place] = []
        for index, slot in enumerate(op.operands or ()):
            receive = received.get((slot, op.chunks or (0, 0)))
            if receive is None or (*place, index) not in self._last_uses:
                operands.append(None)
            else:
                operands.append(self._messages.by_receive[receive][0])
                fused.append(receive)
        unfused = {key for key, receive in received.items() if receive not in fused}
        used = {op.slot, *(s for s, o in zip(op.operands or (), operands, strict=True) if not o)}
        if any(slot in used and _overlap(chunks, op.chunks) for slot, chunks in unfused):
            return None
        if not fused or len(set(fused)) != len(fused):
            return None
        return _Fold(place.at.rank, op, (place, *fused), tuple(operands))

    def _send(self, op: _core.Op, place: _Place, folded: set[_Transfer]) -> Iterator[_Entry]:
        """Returns the statement of a send with its receives, unless a fold includes it."""
        sends = self._messages.by_send[place]
        targets = tuple(each.end[1] for each in sends)
        is_multicast = op.kind == "multicast"
        is_same = len({region._replace(rank=0) for region in targets}) == 1
        if sends[0] in folded and not is_multicast and not self._early:
            return
        if not is_same or folded.intersection(sends):
            yield self._early_send(op, place)
            return
        statement = Statement(
            "copy",
            _NOWHERE,
            targets=targets,
            operands=(sends[0].source,),
            multicast=is_multicast,
        )
        yield _Entry(statement, (place,), tuple(each.end[0] for each in sends))

    def _early_send(self, op: _core.Op, place: _Place) -> _Entry:
        sends = self._messages.by_send[place]
        sent = tuple(Sent(each.source, each.peer, _NOWHERE) for each in sends)
        self._sent.update(zip(sends, sent, strict=True))
        statement = Statement(
            "send",
            _NOWHERE,
            operands=(sends[0].source,),
            in_network=op.kind == "contribute",
            sent=sent,
            multicast=op.kind == "multicast",
        )
        return _Entry(statement, (place,))

    def _receive(self, place: _Place) -> Iterator[_Entry]:
        """Returns the statement of a receive, if its send is a separate statement."""
        transfer = self._messages.by_receive[place][0]
        if transfer is not None and transfer in self._sent:
            operands = (self._sent[transfer],)
            copy = Statement("copy", _NOWHERE, targets=(transfer.end[1],), operands=operands)
            yield _Entry(copy, receives=(place,))

    def _fold(self, fold: _Fold) -> _Entry:
        operands: list[Region | Sent] = []
        for slot, transfer in zip(fold.op.operands or (), fold.operands, strict=True):
            if transfer is None:
                operands.append(_region(fold.rank, fold.op)._replace(buffer=slot))
            else:
                operands.append(self._sent.get(transfer, transfer.source))
        statement = Statement(
            "fold",
            _NOWHERE,
            targets=(_region(fold.rank, fold.op),),
            operands=tuple(operands),
            in_network=fold.is_combine,
        )
        sends = tuple(each.sent for each in fold.transfers if each not in self._sent)
        return _Entry(statement, sends, tuple(each.end[0] for each in fold.transfers))


def _sorted(entries: Sequence[_Entry]) -> Sequence[_Entry]:
    """Returns statements in the order of the sends and receives of each rank, if there is one."""
    after: dict[int, set[int]] = defaultdict(set)
    for attribute in ("sends", "receives"):
        places = sorted(
            (place, index)
            for index, entry in enumerate(entries)
            for place in getattr(entry, attribute)
        )
        for (place, first), (following, second) in pairwise(places):
            if place.at == following.at and first != second:
                after[second].add(first)
    senders = {sent: index for index, e in enumerate(entries) for sent in e.statement.sent}
    for index, entry in enumerate(entries):
        after[index] |= {senders[o] for o in entry.statement.operands if o in senders}
    try:
        order = list(TopologicalSorter({i: after[i] for i in range(len(entries))}).static_order())
    except CycleError:
        return entries
    return [entries[index] for index in order]


@dataclass(frozen=True)
class _Fold:
    """A combine, or a reduction with the receives of operands; `operands` are their messages."""

    rank: int
    op: _core.Op
    ops: tuple[_Place, ...]
    operands: tuple[_Transfer | None, ...]
    is_combine: bool = False

    @property
    def transfers(self) -> list[_Transfer]:
        """The messages that it receives."""
        return [each for each in self.operands if each is not None]


def _overlap(first: tuple[int, int], second: tuple[int, int] | None) -> bool:
    return second is not None and first[0] < second[1] and second[0] < first[1]


def _local(rank: int, op: _core.Op) -> Statement:
    """Returns the statement of a local op."""
    if op.kind == "compute":
        return Statement("compute", _NOWHERE, duration_ps=op.duration_ps or 0, rank=rank)
    if op.kind == "sleep":
        return Statement("sleep", _NOWHERE, duration_ps=op.duration_ps or 0, rank=rank)
    region = _region(rank, op)
    if op.kind == "copy":
        start = op.to or 0
        target = Region(rank, op.into or 0, start, start + region.end - region.start)
        return Statement("copy", _NOWHERE, targets=(target,), operands=(region,))
    operands = tuple(region._replace(buffer=slot) for slot in op.operands or ())
    return Statement("fold", _NOWHERE, targets=(region,), operands=operands)
