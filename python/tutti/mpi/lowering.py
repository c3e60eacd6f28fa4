"""Schedules as the code of their ranks.

A plan has sends, receives, folds and copies. Ops that a network could perform are lowered to these:
a multicast is a send to each peer, and a combine receives from all and folds.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tutti.mpi import code
from tutti.mpi.errors import PlanError
from tutti.mpi.relative import ADDED, EXCLUSIVE_OR, FORMS, Relations
from tutti.mpi.symmetry import SAMPLE, Prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti._core import Op
    from tutti.mpi.relative import Frame
    from tutti.schedules.ir import Schedule

_ATTRIBUTES = attrgetter("kind", "slot", "chunks", "peer")
_SENDS = {"send", "multicast", "contribute"}
_MESSAGE = 5
"""How many numbers a message has: forms, peer, slot, first chunk, chunks."""
_MANY = 16
"""Ranks from which on it pays to predict the text of ranks."""

_Array = np.ndarray[Any, np.dtype[np.int64]]


class Lowering:
    """Lowers all ranks of a schedule to code.

    Many ranks have millions of ops: these stay plain numbers, and equal steps are encoded once.

    Attributes:
        codes: The code of each rank; equal ones are one object.
        writes_data: Whether an op writes to the data slot.
    """

    def __init__(self, schedule: Schedule) -> None:
        """Lowers the ranks.

        Raises:
            PlanError: A rank has a compute or sleep op.
        """
        self._schedule = schedule
        self._numbers: dict[tuple[int, ...], int] = {}
        self._encoded: list[bytes] = []
        self._messages: tuple[list[list[int]], list[list[int]]] = ([], [])
        """The sends and the receives of each distinct step."""
        self.writes_data = False
        self._programs = self._all(Relations.of(schedule))
        codes: dict[bytes, bytes] = {}
        self.codes = tuple(
            codes.setdefault(one, one)
            for one in (
                code.code_of([self._encoded[step] for step in steps]) for steps in self._programs
            )
        )

    @property
    def moves_chunks(self) -> bool:
        """Whether chunks are copied or received as others than they were."""
        if self._schedule.moves_chunks or self._schedule.chunks == 1:
            return self._schedule.moves_chunks
        programs = [np.array(steps, np.int64) for steps in self._programs]
        ranks, chunks = self._schedule.ranks, self._schedule.chunks
        sent, received = (_expanded(table, programs, ranks, chunks) for table in self._messages)
        source, destination, chunk = sent
        in_order = _by_pair(source, destination, chunk, ranks)
        destination, source, chunk = received
        return not np.array_equal(in_order, _by_pair(source, destination, chunk, ranks))

    def _all(self, relations: Relations) -> list[list[int]]:
        """Returns the numbers of the steps of each rank."""

        def program(rank: int) -> list[int]:
            return self._program(rank, relations.frame(rank))

        ranks = range(self._schedule.ranks)
        sample = program(SAMPLE) if len(ranks) >= _MANY else None
        if sample is None or sample != program(len(ranks) // 2):
            return [program(rank) for rank in ranks]
        prediction = Prediction(self._schedule, relations)
        return [sample if prediction.fits(rank) else program(rank) for rank in ranks]

    def _program(self, rank: int, frame: Frame) -> list[int]:
        """Returns the numbers of the steps of a rank."""
        ops = self._schedule.ops
        steps = range(self._schedule.steps(rank))
        return [self._step(rank, step, ops(rank, step), frame) for step in steps]

    def _step(self, rank: int, step: int, ops: Sequence[Op], frame: Frame) -> int:
        peers, chunks, forms, slots = frame
        sends: list[int] = []
        receives: list[int] = []
        local: list[int] = []
        local_ops = 0
        for op, (kind, slot, run, peer) in zip(ops, map(_ATTRIBUTES, ops), strict=True):
            if run is None:
                raise self._foreign(rank, step, op)
            first, end = run
            number, count = chunks[slots[slot]][first], end - first
            if kind == "recv":
                receives += (forms[slot], peers[peer], slot, number, count)
            elif kind == "send":
                sends += (forms[slot], peers[peer], slot, number, count)
            elif kind in _SENDS:
                for to in op.peers:
                    sends += (forms[slot], peers[to], slot, number, count)
            elif kind == "copy":
                into = op.into or 0
                form = code.COPY + code.KINDS * (slots[slot] + FORMS * slots[into])
                local += (form, slot, into, number, count, chunks[slots[into]][op.to or 0])
                local_ops += 1
            else:
                if kind == "combine":
                    receives += _combined(op, frame)
                operands = op.operands or []
                form = code.FOLD + code.KINDS * slots[slot]
                local += (form, slot, number, count, len(operands), *operands)
                local_ops += 1
        counts = (len(sends) // _MESSAGE, len(receives) // _MESSAGE, local_ops)
        numbers = (*counts, *sends, *receives, *local)
        found = self._numbers.get(numbers)
        if found is not None:
            return found
        self._encoded.append(code.encoded_step(numbers))
        self._messages[0].append(sends)
        self._messages[1].append(receives)
        self.writes_data |= 0 in receives[2::_MESSAGE] or any(map(_writes_data, ops))
        return self._numbers.setdefault(numbers, len(self._numbers))

    def _foreign(self, rank: int, step: int, op: Op) -> PlanError:
        message = (
            f"{self._schedule.name}: {op.kind} op of rank {rank} at step {step}: expected only "
            "sends, receives, reductions and copies"
        )
        return PlanError(message, kind="op", fields={"rank": rank, "step": step, "op": op.kind})


def _combined(op: Op, frame: Frame) -> list[int]:
    """Returns the receives of a combine."""
    numbers: list[int] = []
    first, end = op.chunks or (0, 0)
    for peer, slot in zip(op.sources or [], op.operands or [], strict=True):
        if peer is not None:
            number = frame.chunks[frame.slots[slot]][first]
            numbers += (frame.forms[slot], frame.peers[peer], slot, number, end - first)
    return numbers


def _writes_data(op: Op) -> bool:
    """Whether a local op writes to the data slot."""
    return op.kind not in _SENDS and (op.into if op.kind == "copy" else op.slot) == 0


def _expanded(
    table: Sequence[list[int]], programs: Sequence[_Array], ranks: int, chunks: int
) -> tuple[_Array, _Array, _Array]:
    """Returns the rank, the peer and the first chunk of all messages of one side.

    Args:
        table: The numbers of the messages of each step.
        programs: The steps of each rank.
        ranks: Number of ranks.
        chunks: Number of chunks.
    """
    sizes = np.array([len(numbers) // _MESSAGE for numbers in table])
    starts = np.cumsum(sizes) - sizes
    steps = np.concatenate(programs)
    each = sizes[steps]
    places = np.arange(each.sum()) + np.repeat(starts[steps] - np.cumsum(each) + each, each)
    messages = np.array([number for numbers in table for number in numbers], np.int64)
    forms, peers, _, first, _ = messages.reshape(-1, _MESSAGE)[places].T
    rank = np.repeat(np.repeat(np.arange(ranks), [len(one) for one in programs]), each)
    shard, rest = np.divmod(first, max(chunks // ranks, 1))
    chunk = _placed(forms // FORMS, shard, rank, ranks) * max(chunks // ranks, 1) + rest
    return rank, _placed(forms % FORMS, peers, rank, ranks), chunk


def _placed(forms: _Array, values: _Array, rank: _Array, ranks: int) -> _Array:
    added = np.where(forms == ADDED, (values + rank) % ranks, values)
    return np.where(forms == EXCLUSIVE_OR, values ^ rank, added)


def _by_pair(source: _Array, destination: _Array, chunk: _Array, ranks: int) -> _Array:
    """Returns source, destination and chunk of messages, ordered by the first two."""
    pair = source * ranks + destination
    order = np.argsort(pair, kind="stable")
    return np.stack([pair[order], chunk[order]])
