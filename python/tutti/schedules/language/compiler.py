"""Compiles the statements of a program to the steps of every rank.

Each batch of statements gets a level, the first that its dependencies allow. The ops of a level are
one step of each rank. A message is sent and received at the same level, so that no rank waits for a
message that its peer sends later, with any buffering.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.ir import Schedule
from tutti.schedules.language.lowering import Combine, Lowered, Move, Reduce, Steps, Work, lower
from tutti.schedules.language.trace import Batch, Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti import _core
    from tutti.schedules.language.record import Record


def compile_program(
    record: Record,
    builder: _core.ScheduleBuilder,
    *,
    result: int,
    blocks: Sequence[int] | None,
    instances: int,
    pipelined: bool,
    explicit_steps: bool,
) -> Schedule:
    """Returns the schedule of a program, which is not verified yet.

    Args:
        record: The statements.
        builder: The empty schedule.
        result: The number of the result buffer.
        blocks: The relative sizes of the blocks of an all_to_all_v.
        instances: The number of parts of each chunk.
        pipelined: Whether statements without a channel use channel 0.
        explicit_steps: Whether statements are in the last step that their ranks have started.
    """
    levels = _Levels(record.chunks * instances, is_explicit=explicit_steps)
    messages: dict[Sent, list[Sent]] = {}
    for batch in record.batches:
        if batch.step is not None:
            levels.start_step(batch.step, batch.ranks)
            continue
        for part in _parts(batch, instances, messages, pipelined=pipelined):
            levels.add(part)
    builder.result(result)
    if blocks is not None:
        builder.blocks(list(blocks))
    levels.steps.build(builder, buffers=len(record.names))
    return Schedule(builder.build())


class _Part(NamedTuple):
    """Statements on one part of each chunk.

    Attributes:
        statements: The statements.
        connection: The number of the connections that they use for their channels.
    """

    statements: list[Statement]
    connection: int


def _parts(
    batch: Batch, instances: int, messages: dict[Sent, list[Sent]], *, pipelined: bool
) -> Iterator[_Part]:
    """Returns the batches of the parts of each chunk.

    An exchange whose ranges of chunks overlap in part remains one batch: its parts depend on each
    other.
    """
    statements = batch.statements
    if pipelined:
        statements = [replace(each, channel=each.channel or 0) for each in statements]
    if instances == 1:
        yield _Part(statements, 0)
        return
    parts = [
        [_part(s, index, instances, messages) for s in statements] for index in range(instances)
    ]
    if _aligned(statements):
        for index, part in enumerate(parts):
            yield _Part(part, 0 if pipelined else index)
    else:
        yield _Part([each for part in parts for each in part], 0)


def _part(
    statement: Statement, index: int, parts: int, messages: dict[Sent, list[Sent]]
) -> Statement:
    """Returns a statement on one part of each chunk; the first part does the work."""

    def part(of: Region | Sent) -> Region | Sent:
        return of.part(index, parts) if isinstance(of, Region) else messages[of][index]

    for each in statement.sent:
        source = each.source.part(index, parts)
        messages.setdefault(each, []).append(Sent(source, each.peer, each.location))
    return replace(
        statement,
        targets=tuple(region.part(index, parts) for region in statement.targets),
        operands=tuple(part(each) for each in statement.operands),
        sent=tuple(messages[each][index] for each in statement.sent),
        duration_ps=statement.duration_ps if index == 0 else 0,
    )


def _aligned(statements: Sequence[Statement]) -> bool:
    """Returns whether any two ranges of chunks are equal or disjoint."""
    ranges = defaultdict(set)
    for each in statements:
        for region in (*each.targets, *(o for o in each.operands if isinstance(o, Region))):
            ranges[region.rank, region.buffer].add((region.start, region.end))
    return all(
        first[1] <= second[0]
        for each in ranges.values()
        for first, second in pairwise(sorted(each))
    )


class _Levels:
    """Gives each batch the first level that its dependencies allow.

    Within a step sends read first, then receives write, then local ops read and write, in order.
    """

    def __init__(self, chunks: int, *, is_explicit: bool) -> None:
        self.steps = Steps()
        self._chunks = chunks
        self._is_explicit = is_explicit
        self._highest: dict[int, int] = defaultdict(lambda: -1)
        self._lowest: dict[int, int] = defaultdict(int)
        self._written: dict[tuple[int, int], list[int]] = defaultdict(self._none)
        self._accessed: dict[tuple[int, int], list[int]] = defaultdict(self._none)
        self._ordered: dict[tuple[object, ...], int] = defaultdict(lambda: -1)

    def start_step(self, name: str, ranks: Sequence[int]) -> None:
        """Places later ops of some ranks above all levels that these have."""
        first = 1 + max(self._highest[rank] for rank in ranks)
        for rank in ranks:
            self._lowest[rank] = max(first, self._lowest[rank])
            self.steps.names[rank] = name

    def add(self, part: _Part) -> None:
        """Adds a batch."""
        ops = lower(part.statements)
        channels = list(_channels(part))
        levels = self._required(ops)
        for rank, *channel in channels:
            levels[rank] = max(levels[rank], 1 + self._ordered[rank, *channel])
        if self._is_explicit:
            levels = {rank: max(level, self._highest[rank]) for rank, level in levels.items()}
        else:
            levels = dict.fromkeys(levels, max(levels.values(), default=0))
        self.steps.add(ops, levels)
        for rank, *channel in channels:
            self._ordered[rank, *channel] = levels[rank]
        self._note(ops, levels)

    def _none(self) -> list[int]:
        return [-1] * self._chunks

    def _required(self, ops: Lowered) -> dict[int, int]:
        """Returns the first level of each rank that the dependencies allow."""
        levels = {rank: self._lowest[rank] for rank in _ranks(ops)}

        def after(rank: int, *least: int) -> None:
            levels[rank] = max(levels[rank], *least)

        for send in ops.sends:
            rank = send.source.rank
            after(rank, 1 + _last(self._written, send.source))
            for message in send.messages:
                after(rank, self._ordered["sent", rank, message.peer])
        for target, message in _arrivals(ops):
            after(target.rank, 1 + _last(self._accessed, target), *self._arrival(message))
        for combine in ops.receives:
            if isinstance(combine, Combine):
                # A combine precedes the local ops of its step.
                reads = [1 + _last(self._written, region) for region in _reads(combine)]
                after(combine.target.rank, 1 + _last(self._accessed, combine.target), *reads)
        for op in ops.locals:
            if not isinstance(op, Work):
                reads = [_last(self._written, region) for region in _reads(op)]
                after(op.target.rank, _last(self._accessed, op.target), *reads)
        return levels

    def _arrival(self, message: Sent) -> tuple[int, int]:
        source = message.source.rank
        sent = -1 if self._is_explicit else self.steps.sent_level(message)
        return sent, self._ordered["received", source, message.peer]

    def _note(self, ops: Lowered, levels: dict[int, int]) -> None:
        """Notes what a batch accesses."""
        for rank, level in levels.items():
            self._highest[rank] = max(self._highest[rank], level)
        for send in ops.sends:
            level = levels[send.source.rank]
            _raise(self._accessed, send.source, level)
            for message in send.messages:
                self._ordered["sent", send.source.rank, message.peer] = level
        for target, message in _arrivals(ops):
            level = levels[target.rank]
            self._ordered["received", message.source.rank, message.peer] = level
            _raise(self._written, target, level)
            _raise(self._accessed, target, level)
        combines = [op for op in ops.receives if isinstance(op, Combine)]
        for op in (*combines, *ops.locals):
            level = levels[op.rank if isinstance(op, Work) else op.target.rank]
            for region in _reads(op):
                _raise(self._accessed, region, level)
            if not isinstance(op, Work):
                _raise(self._written, op.target, level)
                _raise(self._accessed, op.target, level)


def _last(levels: dict[tuple[int, int], list[int]], region: Region) -> int:
    """Returns the highest level of chunks; -1 for none and for temporary buffers."""
    if region.buffer < 0 or region.start == region.end:
        return -1
    return max(levels[region.rank, region.buffer][region.start : region.end])


def _raise(levels: dict[tuple[int, int], list[int]], region: Region, level: int) -> None:
    if region.buffer >= 0:
        found = levels[region.rank, region.buffer]
        for chunk in range(region.start, region.end):
            found[chunk] = max(found[chunk], level)


def _reads(op: Combine | Reduce | Move | Work) -> list[Region]:
    """Returns the chunks that a local op reads."""
    if isinstance(op, Work):
        return []
    if isinstance(op, Move):
        return [op.source]
    if isinstance(op, Combine):
        return [op.target._replace(buffer=buffer) for buffer, message in op.operands if not message]
    return [op.target._replace(buffer=buffer) for buffer in op.operands]


def _arrivals(ops: Lowered) -> Iterator[tuple[Region, Sent]]:
    """Returns the target and the message of every receive."""
    for op in ops.receives:
        if isinstance(op, Combine):
            yield from (
                (op.target._replace(buffer=buffer), message)
                for buffer, message in op.operands
                if message is not None
            )
        else:
            yield op.target, op.message


def _ranks(ops: Lowered) -> set[int]:
    """Returns the ranks of a batch."""
    found = {send.source.rank for send in ops.sends}
    found |= {receive.target.rank for receive in ops.receives}
    return found | {op.rank if isinstance(op, Work) else op.target.rank for op in ops.locals}


def _channels(part: _Part) -> Iterator[tuple[int, str, int, int]]:
    """Returns the channels that a batch uses: rank, direction, channel and connection."""
    for statement in part.statements:
        if statement.channel is None:
            continue
        key = (statement.channel, part.connection)
        for sent in statement.sent[:1]:
            yield (sent.source.rank, "out", *key)
        for operand in statement.operands:
            source = operand.source if isinstance(operand, Sent) else operand
            for target in statement.targets:
                if source.rank != target.rank:
                    yield (target.rank, "in", *key)
                    if not isinstance(operand, Sent):
                        yield (source.rank, "out", *key)
