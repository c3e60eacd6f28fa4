"""Expected behaviour of schedules for the checker in C: messages and orders of reduction.

It is derived from the schedules' ops, not from the plan file, so that an error in the conversion
cannot be hidden: the results of plan, reader and executor are compared with it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tutti import _core
    from tutti.schedules.ir import Schedule

COLLECTIVES = [
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
    "barrier",
]
REDUCTIONS = {"all_reduce", "reduce_scatter", "reduce"}
FOLD = -1

Tree = tuple[int, ...]
"""A reduction in postfix notation: ranks denote contributions, `FOLD` combines two operands."""
Sent = tuple[int, int, int]
"""The receiver, the first chunk, the number of chunks."""


def sends(schedule: Schedule, rank: int) -> list[Sent]:
    """Every message of a rank, in the schedule's order."""
    found = []
    for step in range(schedule.steps(rank)):
        for op in schedule.ops(rank, step):
            if op.kind in {"send", "multicast", "contribute"} and op.chunks is not None:
                first, end = op.chunks
                found += [(peer, first, end - first) for peer in op.peers]
    return found


class _Ranks:
    """Executes all ranks of a reduction on expression trees instead of numbers."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.slots: list[dict[tuple[int, int], Tree]] = [
            {(0, chunk): (rank,) for chunk in range(schedule.chunks)}
            for rank in range(schedule.ranks)
        ]
        self._in_flight: dict[tuple[int, int], deque[list[Tree | None]]] = defaultdict(deque)
        self._step = [0] * schedule.ranks
        self._has_sent = [False] * schedule.ranks

    def run(self) -> None:
        """Advances every rank as far as possible until all have finished."""
        ended = False
        while not ended:
            moved = [self._advance(rank) for rank in range(self.schedule.ranks)]
            ended = all(
                self._step[rank] == self.schedule.steps(rank) for rank in range(self.schedule.ranks)
            )
            assert ended or any(moved), f"{self.schedule} deadlocks"

    def _advance(self, rank: int) -> bool:
        moved = False
        while self._step[rank] < self.schedule.steps(rank):
            ops = self.schedule.ops(rank, self._step[rank])
            if not self._has_sent[rank]:
                self._send(rank, ops)
                self._has_sent[rank] = moved = True
            if not self._receive(rank, ops):
                return moved
            for op in ops:
                self._locally(rank, op)
            self._step[rank] += 1
            self._has_sent[rank], moved = False, True
        return moved

    def _send(self, rank: int, ops: list[_core.Op]) -> None:
        for op in ops:
            if op.kind in {"send", "multicast", "contribute"}:
                values = [self.slots[rank].get((op.slot or 0, c)) for c in _chunks(op)]
                for peer in op.peers:
                    self._in_flight[rank, peer].append(values)

    def _receive(self, rank: int, ops: list[_core.Op]) -> bool:
        expected = [(op, peer, slot) for op in ops for peer, slot in _received(op)]
        needed: dict[int, int] = defaultdict(int)
        for _, peer, _ in expected:
            needed[peer] += 1
        if any(len(self._in_flight[peer, rank]) < count for peer, count in needed.items()):
            return False
        for op, peer, slot in expected:
            self._put(rank, slot, _chunks(op), self._in_flight[peer, rank].popleft())
        return True

    def _put(self, rank: int, slot: int, chunks: Iterable[int], values: list[Tree | None]) -> None:
        for chunk, value in zip(chunks, values, strict=True):
            if value is None:
                self.slots[rank].pop((slot, chunk), None)
            else:
                self.slots[rank][slot, chunk] = value

    def _locally(self, rank: int, op: _core.Op) -> None:
        slots, chunks = self.slots[rank], _chunks(op)
        if op.kind == "copy":
            values = [slots.get((op.slot or 0, c)) for c in chunks]
            to = op.to or 0
            self._put(rank, op.into or 0, range(to, to + len(values)), values)
        elif op.kind in {"reduce", "combine"}:
            first, *others = op.operands or []
            for chunk in chunks:
                tree = slots[first, chunk]
                for other in others:
                    tree = (*tree, *slots[other, chunk], FOLD)
                slots[op.slot or 0, chunk] = tree


def _chunks(op: _core.Op) -> range:
    assert op.chunks is not None
    return range(*op.chunks)


def _received(op: _core.Op) -> Iterator[tuple[int, int]]:
    """Returns the sender, and the slot that receives."""
    if op.kind == "recv":
        yield from ((peer, op.slot or 0) for peer in op.peers)
    elif op.kind == "combine":
        pairs = zip(op.sources or [], op.operands or [], strict=True)
        yield from ((peer, slot) for peer, slot in pairs if peer is not None)


def folds(schedule: Schedule) -> list[list[Tree | None]]:
    """Returns the reduction tree of every rank and chunk of the result slot.

    A rank whose result is not a reduction over all ranks has None instead of a tree.
    """
    ranks = _Ranks(schedule)
    ranks.run()
    return [
        [_complete(slots.get((schedule.result, chunk)), schedule.ranks)
         for chunk in range(schedule.chunks)]
        for slots in ranks.slots
    ]  # fmt: skip


def _complete(tree: Tree | None, ranks: int) -> Tree | None:
    leaves = sorted(token for token in tree or () if token != FOLD)
    return tree if leaves == list(range(ranks)) else None


def counts(schedule: Schedule, elements: int, unit: int) -> list[list[tuple[int, int]]]:
    """Messages and bytes between all pairs of ranks, for `elements` elements of `unit` bytes."""
    ends = [chunk * elements // schedule.chunks for chunk in range(schedule.chunks + 1)]
    matrix = [[(0, 0)] * schedule.ranks for _ in range(schedule.ranks)]
    for rank in range(schedule.ranks):
        for peer, first, chunks in sends(schedule, rank):
            messages, size = matrix[rank][peer]
            more = unit * (ends[first + chunks] - ends[first])
            matrix[rank][peer] = (messages + 1, size + more)
    return matrix


def write(schedules: Sequence[Schedule], path: Path) -> Path:
    """Writes the file that `check` reads: at most one schedule per collective and rank count."""
    parts = [str(len(schedules))]
    for schedule in schedules:
        parts.append(_head(schedule))
        for rank in range(schedule.ranks):
            sent = sends(schedule, rank)
            parts.append(" ".join([str(len(sent)), *(f"{p} {f} {n}" for p, f, n in sent)]))
        parts += _trees(schedule)
    path.write_text("\n".join(parts) + "\n")
    return path


def _head(schedule: Schedule) -> str:
    collective = COLLECTIVES.index(schedule.collective)
    in_order = schedule.verify().rank_order
    same, same_order = _alike(schedule)
    flags = f"{int(schedule.moves_chunks)} {int(in_order)} {int(same)} {int(same_order)}"
    name = schedule.name.replace(" ", "_")
    return f"{collective} {schedule.ranks} {schedule.chunks} {flags} {name}"


def _alike(schedule: Schedule) -> tuple[bool, bool]:
    """Whether all ranks combine in equal trees: up to exchanged operands, and exactly."""
    if schedule.collective != "all_reduce":
        return True, True
    results = folds(schedule)
    unordered = [[_unordered(tree) for tree in trees] for trees in results]
    return (
        all(trees == unordered[0] for trees in unordered),
        all(trees == results[0] for trees in results),
    )


def _unordered(tree: Tree | None) -> object:
    """Returns the tree as nested sets, in which operands have no order."""
    stack: list[object] = []
    for token in tree or ():
        if token == FOLD:
            right, left = stack.pop(), stack.pop()
            stack.append(frozenset([left, right]))
        else:
            stack.append(token)
    return stack[0] if stack else None


def _trees(schedule: Schedule) -> list[str]:
    if schedule.collective not in REDUCTIONS:
        return ["0"]
    results = folds(schedule)
    numbers: dict[Tree, int] = {}
    for trees in results:
        for tree in trees:
            if tree is not None:
                numbers.setdefault(tree, len(numbers))
    lines = [str(len(numbers))]
    lines += [" ".join(map(str, [len(tree), *tree])) for tree in numbers]
    lines += [" ".join("-1" if t is None else str(numbers[t]) for t in trees) for trees in results]
    return lines
