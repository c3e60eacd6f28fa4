"""Distributes the ops of a schedule over thread blocks.

A thread block sends to one GPU, receives from one GPU, or has only local ops. A local op follows
the receive of its operands in the same thread block; other dependencies name a thread block and a
step. All follow from the chunks that ops read and write, in the order of the schedule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.formats.msccl.program import ChunkRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti._core import Op
    from tutti.base.errors import ConfigError
    from tutti.schedules.ir import Schedule

COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "all_to_all": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
"""The names of collectives in files."""

_PEERS_PER_CHANNEL = 32  # MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL of ROCm/rccl 0cbce2a
_MOST_OPS = 1 << 18


@dataclass(slots=True)
class Step:
    """An op of a thread block.

    Attributes:
        kind: ``s``, ``r``, ``cpy`` or ``re``.
        source: What it reads; for ``r`` the chunks of the sender.
        into: What it writes; for ``s`` the chunks of the receiver.
        after: The last step of other thread blocks that must precede it.
        awaited: Whether another thread block waits for it.
        reused: Whether the receiver accessed the chunks of a message before.
    """

    kind: str
    source: ChunkRange
    into: ChunkRange
    after: dict[int, int] = field(default_factory=dict)
    awaited: bool = False
    reused: bool = False


@dataclass(slots=True)
class Block:
    """A thread block with its peers, -1 for none."""

    send: int
    recv: int
    channel: int
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Blocks:
    """The thread blocks of all ranks.

    Attributes:
        chunks: The number of chunks of the payload.
        in_place: Whether the result is in the memory of the input.
        sizes: The chunks of the input, output and scratch of a rank.
        ranks: The thread blocks of each rank.
        losses: What the thread blocks do not represent.
    """

    chunks: int
    in_place: bool
    sizes: dict[str, int]
    ranks: list[list[Block]]
    losses: list[str]


def assigned(schedule: Schedule, *, channels: int = 1, most: int = 1 << 30) -> Blocks:
    """Distributes the ops of a schedule over thread blocks.

    Args:
        schedule: The schedule.
        channels: Over how many channels the messages of two ranks are distributed.
        most: The maximum number of chunks of a step; larger messages are divided.

    Raises:
        ConfigError: The collective has no counterpart, or the schedule is too large.
    """
    return _Assignment(schedule, channels, most).run()


def refused(schedule: Schedule, problem: str, expected: str) -> ConfigError:
    """Returns the error of a schedule that a format cannot represent."""
    return mistake(problem, source=schedule.name, expected=expected)


@dataclass(slots=True)
class _Local:
    """A local op or one side of a message, in the order of a rank."""

    kind: str
    peer: int
    slot: int
    start: int
    count: int
    into: int = -1
    to: int = -1
    message: int = -1


class _Assignment:
    def __init__(self, schedule: Schedule, channels: int, most: int) -> None:
        if schedule.collective not in COLLECTIVES:
            problem = f"{schedule.collective} has no counterpart in this format"
            raise refused(schedule, problem, f"one of {', '.join(COLLECTIVES)}")
        self._schedule, self._channels, self._most = schedule, channels, most
        self._losses: dict[str, None] = {}
        self._ops = [list(self._expanded(rank)) for rank in range(schedule.ranks)]
        self._unit = self._common_unit()
        self._chunks = schedule.chunks // self._unit
        self._shard = self._chunks // schedule.ranks
        self._cuts: dict[tuple[int, int, int], list[int]] = {}

    def run(self) -> Blocks:
        """Returns the thread blocks."""
        places = self._message_places()
        ranks = [
            _Rank(self, rank, places).run(self._ops[rank]) for rank in range(self._schedule.ranks)
        ]
        in_place = self._schedule.result == 0
        sharded = self._schedule.collective
        sizes = {
            "i": self._shard if sharded == "all_gather" else self._chunks,
            "o": self._shard if sharded == "reduce_scatter" else self._chunks,
            "s": 0,
        }
        for block in (block for blocks in ranks for block in blocks):
            for step in block.steps:
                for side in (step.source, step.into):
                    if side.buffer == "s":
                        sizes["s"] = max(sizes["s"], side.end)
        return Blocks(self._chunks, in_place, sizes, ranks, list(self._losses))

    # --- ops ---

    def _expanded(self, rank: int) -> Iterator[_Local]:
        """Yields the ops of a rank as sends, receives, copies and reductions of two operands."""
        total = 0
        for step in range(self._schedule.steps(rank)):
            for op in self._schedule.ops(rank, step):
                for local in self._parts(op):
                    total += 1
                    if total > _MOST_OPS:
                        problem = f"rank {rank} has more than {_MOST_OPS:,} ops"
                        raise refused(self._schedule, problem, "a smaller schedule")
                    if local.count:
                        yield local

    def _parts(self, op: Op) -> Iterator[_Local]:
        if op.kind in {"compute", "sleep"}:
            self._losses[f"{op.kind} ops are omitted"] = None
            return
        start, end = op.chunks or (0, 0)
        count = end - start
        if op.kind in {"send", "contribute", "multicast"}:
            if op.kind != "send":
                self._losses["ops that a network forks or combines become sends and receives"] = (
                    None
                )
            for peer in op.peers if op.kind == "multicast" else [op.peer]:
                yield _Local("s", _known(peer), _known(op.slot), start, count)
        elif op.kind == "recv":
            yield _Local("r", _known(op.peer), _known(op.slot), start, count)
        elif op.kind == "copy":
            into, to = _known(op.into), _known(op.to)
            yield _Local("cpy", -1, _known(op.slot), start, count, into, to)
        else:
            for slot, source in zip(op.operands or [], op.sources or [], strict=False):
                if source is not None:
                    yield _Local("r", source, slot, start, count)
            yield from self._folds(op, start, count)

    def _folds(self, op: Op, start: int, count: int) -> Iterator[_Local]:
        into, operands = _known(op.slot if op.into is None else op.into), list(op.operands or [])
        if into in operands:
            if operands.index(into) > 1:
                self._losses["reductions start with the operand that they overwrite"] = None
            operands.remove(into)
        elif operands:
            yield _Local("cpy", -1, operands.pop(0), start, count, into, start)
        for slot in operands:
            yield _Local("re", -1, slot, start, count, into, start)

    def _common_unit(self) -> int:
        """Returns the largest unit of which all ranges are multiples."""
        unit = self._schedule.chunks
        if self._schedule.collective in {"all_gather", "reduce_scatter", "all_to_all"}:
            unit //= self._schedule.ranks
        for op in (op for ops in self._ops for op in ops):
            unit = gcd(unit, op.start, op.count, max(op.to, 0))
        for op in (op for ops in self._ops for op in ops):
            op.start, op.count = op.start // unit, op.count // unit
            op.to = op.to // unit if op.to > 0 else op.to
        return unit

    # --- chunks of buffers ---

    def place(self, rank: int, slot: int, at: int) -> tuple[str, int]:
        """Returns buffer and index of a chunk of a slot."""
        result, first = self._schedule.result, rank * self._shard
        mine = first <= at < first + self._shard
        gathers = self._schedule.collective == "all_gather"
        if slot == result and (result or gathers):
            if self._schedule.collective != "reduce_scatter":
                return "o", at
            if mine:
                return "o", at - first
        elif slot == 0:
            if not gathers:
                return "i", at
            if mine:
                return "i", at - first
        return "s", self._scratch(slot) * self._chunks + at

    def _scratch(self, slot: int) -> int:
        """Returns the number of the scratch region of a slot; partial slots have one."""
        result = self._schedule.result
        if not result:
            return slot - 1
        partial = {"all_gather": 0, "reduce_scatter": result}.get(self._schedule.collective)
        others = [each for each in range(slot) if each == partial or each not in {0, result}]
        return len(others)

    def pieces(self, rank: int, slot: int, start: int, count: int) -> list[ChunkRange]:
        """Returns the ranges of buffers that hold chunks of a slot."""
        found: list[ChunkRange] = []
        for at in range(start, start + count):
            buffer, index = self.place(rank, slot, at)
            if found and found[-1].buffer == buffer and found[-1].end == index:
                found[-1] = ChunkRange(buffer, found[-1].index, found[-1].count + 1)
            else:
                found.append(ChunkRange(buffer, index, 1))
        return found

    def cut(self, *sides: list[ChunkRange]) -> Iterator[tuple[ChunkRange, ...]]:
        """Yields ranges of equal size of all sides, of at most `most` chunks."""
        ends: set[int] = set()
        for ranges in sides:
            at = 0
            for each in ranges:
                at += each.count
                ends.add(at)
        start = 0
        for end in sorted(ends):
            while start < end:
                stop = min(end, start + self._most)
                yield tuple(_part(ranges, start, stop) for ranges in sides)
                start = stop

    # --- messages ---

    def _message_places(
        self,
    ) -> dict[tuple[int, int], list[tuple[list[ChunkRange], list[ChunkRange]]]]:
        """Returns the chunks of sender and receiver of each message of a pair, in order."""
        sides: dict[str, dict[tuple[int, int], list[list[ChunkRange]]]] = {
            "s": defaultdict(list),
            "r": defaultdict(list),
        }
        for rank, ops in enumerate(self._ops):
            for op in ops:
                if op.kind in sides:
                    pair = (rank, op.peer) if op.kind == "s" else (op.peer, rank)
                    known = sides[op.kind][pair]
                    op.message = len(known)
                    known.append(self.pieces(rank, op.slot, op.start, op.count))
        if {pair: len(each) for pair, each in sides["s"].items()} != {
            pair: len(each) for pair, each in sides["r"].items()
        }:
            raise refused(self._schedule, "sends and receives do not match", "a verified schedule")
        return {
            pair: list(zip(sent, sides["r"][pair], strict=True))
            for pair, sent in sides["s"].items()
        }

    def channel(self, sender: int, receiver: int, number: int) -> int:
        """Returns the channel of a message; peers beyond the limit of a channel use another."""
        distance = (receiver - sender) % self._schedule.ranks - 1
        group = distance // _PEERS_PER_CHANNEL
        return group * self._channels + number % self._channels


def _known(value: int | None) -> int:
    """Returns a value that all ops of a kind have."""
    return -1 if value is None else value


def _part(ranges: list[ChunkRange], start: int, stop: int) -> ChunkRange:
    """Returns the part of adjacent ranges from one offset to another."""
    at = 0
    for each in ranges:
        if start < at + each.count:
            return ChunkRange(each.buffer, each.index + start - at, stop - start)
        at += each.count
    return ChunkRange("s", 0, 0)


class _Rank:
    """The thread blocks of a rank."""

    def __init__(
        self,
        assignment: _Assignment,
        rank: int,
        places: dict[tuple[int, int], list[tuple[list[ChunkRange], list[ChunkRange]]]],
    ) -> None:
        self._assignment, self._rank, self._places = assignment, rank, places
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._order: list[Block] = []
        self._writers: dict[tuple[str, int], tuple[int, int]] = {}
        self._readers: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        self._waited: dict[int, dict[int, int]] = defaultdict(dict)

    def run(self, ops: list[_Local]) -> list[Block]:
        """Adds all ops, and returns the thread blocks in the order of their peers."""
        for op in ops:
            if op.kind in {"s", "r"}:
                self._add_message(op)
            else:
                self._add_local(op)
        return self._sorted()

    def _add_message(self, op: _Local) -> None:
        assignment = self._assignment
        pair = (self._rank, op.peer) if op.kind == "s" else (op.peer, self._rank)
        sent, received = self._places[pair][op.message]
        channel = assignment.channel(*pair, op.message)
        key = (op.peer, -1, channel) if op.kind == "s" else (-1, op.peer, channel)
        for source, into in assignment.cut(sent, received):
            step = Step(op.kind, source, into)
            self._add(self._block(key), step)

    def _add_local(self, op: _Local) -> None:
        assignment = self._assignment
        sources = assignment.pieces(self._rank, op.slot, op.start, op.count)
        places = assignment.pieces(self._rank, op.into, op.to, op.count)
        for source, into in assignment.cut(sources, places):
            if source != into:
                self._add(self._local_block(source, into), Step(op.kind, source, into))

    def _local_block(self, source: ChunkRange, into: ChunkRange) -> int:
        """Returns the thread block that wrote an operand last, unless it sends."""
        writers = [self._writers.get((side.buffer, side.index)) for side in (source, into)]
        for writer in writers:
            if writer is not None and self._order[writer[0]].send < 0:
                return writer[0]
        return self._block((-1, -1, 0))

    def _block(self, key: tuple[int, int, int]) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._order)
            self._order.append(Block(*key))
        return self._numbers[key]

    def _add(self, block: int, step: Step) -> None:
        """Adds a step with its dependencies on other thread blocks."""
        reads = [step.source] if step.kind != "r" else []
        writes = [step.into] if step.kind != "s" else []
        if step.kind == "re":
            reads.append(step.into)
        number = len(self._order[block].steps)
        after: dict[int, int] = {}
        for cell in _cells(reads + writes):
            if cell in self._writers:
                other, at = self._writers[cell]
                after[other] = max(after.get(other, -1), at)
        for cell in _cells(writes):
            for other, at in self._readers[cell].items():
                after[other] = max(after.get(other, -1), at)
            step.reused |= cell in self._writers or bool(self._readers[cell])
        waited = self._waited[block]
        step.after = {
            other: at
            for other, at in sorted(after.items())
            if other != block and at > waited.get(other, -1)
        }
        waited.update(step.after)
        self._order[block].steps.append(step)
        for cell in _cells(reads):
            self._readers[cell][block] = number
        for cell in _cells(writes):
            self._writers[cell] = (block, number)
            self._readers[cell].clear()

    def _sorted(self) -> list[Block]:
        """Returns the thread blocks by their peers, with dependencies renumbered."""
        order = sorted(
            range(len(self._order)),
            key=lambda at: (
                self._order[at].send,
                self._order[at].recv,
                self._order[at].channel,
            ),
        )
        numbers = {old: new for new, old in enumerate(order)}
        for block in self._order:
            for step in block.steps:
                for other, at in step.after.items():
                    self._order[other].steps[at].awaited = True
                step.after = {numbers[other]: at for other, at in sorted(step.after.items())}
        return [self._order[at] for at in order]


def _cells(ranges: list[ChunkRange]) -> Iterator[tuple[str, int]]:
    for each in ranges:
        for index in range(each.index, each.end):
            yield each.buffer, index
