"""The ops of a rank, as the numbers of a plan file: see docs/reference/plan-format.md.

A plan has sends, receives, folds and copies. Ops that a network could perform are lowered to these:
a multicast is a send to each peer, and a combine receives from all and folds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from tutti.mpi.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tutti._core import Op
    from tutti.schedules.ir import Schedule

_FOLD, _COPY = 0, 1
_LARGEST = 2**32 - 1
_MOST_BYTES = 5
"""Of a 32-bit number, seven bits to a byte."""


class Message(NamedTuple):
    """A send or a receive: the peer, and chunks of a slot."""

    peer: int
    slot: int
    first: int
    chunks: int


class Fold(NamedTuple):
    """Folds the operands' slots, left to right, into a slot."""

    into: int
    first: int
    chunks: int
    operands: tuple[int, ...]


class Copy(NamedTuple):
    """Copies chunks of a slot to another slot or index."""

    slot: int
    into: int
    first: int
    chunks: int
    to: int


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """The ops of a rank between two waits."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]
    local: tuple[Fold | Copy, ...]
    delays: tuple[int, ...] = ()
    """For each send, how many steps later it is waited for; empty: all in this step."""

    @property
    def writes_data(self) -> bool:
        """Whether an op writes to the data slot."""
        into = [*(recv.slot for recv in self.receives), *(op.into for op in self.local)]
        return 0 in into


# --- from a schedule ------------------------------------------------------------------------------


def lowered(schedule: Schedule, rank: int) -> list[PlannedStep]:
    """Returns the steps of one rank, in the ops of plans.

    Raises:
        PlanError: It contains a compute or sleep op.
    """
    return [
        _step(schedule, rank, step, schedule.ops(rank, step))
        for step in range(schedule.steps(rank))
    ]


def shifted(programs: Sequence[Sequence[PlannedStep]]) -> bool:
    """Whether messages are received as other chunks than they are sent from."""
    sent = defaultdict[tuple[int, int], list[int]](list)
    received = defaultdict[tuple[int, int], list[int]](list)
    for rank, steps in enumerate(programs):
        for step in steps:
            for message in step.sends:
                sent[rank, message.peer].append(message.first)
            for message in step.receives:
                received[message.peer, rank].append(message.first)
    return sent != received


def _step(schedule: Schedule, rank: int, step: int, ops: list[Op]) -> PlannedStep:
    sends: list[Message] = []
    receives: list[Message] = []
    local: list[Fold | Copy] = []
    for op in ops:
        if op.chunks is None:
            raise _foreign(schedule, rank, step, op)
        first, chunks = op.chunks[0], op.chunks[1] - op.chunks[0]
        slot = op.slot or 0
        if op.kind in {"send", "multicast", "contribute"}:
            sends += [Message(peer, slot, first, chunks) for peer in op.peers]
        elif op.kind == "recv":
            receives += [Message(peer, slot, first, chunks) for peer in op.peers]
        elif op.kind == "copy":
            local.append(Copy(slot, op.into or 0, first, chunks, op.to or 0))
        else:
            operands = op.operands or []
            if op.kind == "combine":
                given = zip(operands, op.sources or [], strict=True)
                receives += [Message(p, s, first, chunks) for s, p in given if p is not None]
            local.append(Fold(slot, first, chunks, tuple(operands)))
    return PlannedStep(tuple(sends), tuple(receives), tuple(local))


def _foreign(schedule: Schedule, rank: int, step: int, op: Op) -> PlanError:
    message = (
        f"{schedule.name}: {op.kind} op of rank {rank} at step {step}: expected only sends, "
        "receives, reductions and copies"
    )
    return PlanError(message, kind="op", fields={"rank": rank, "step": step, "op": op.kind})


# --- as bytes -------------------------------------------------------------------------------------


def encoded(steps: list[PlannedStep]) -> bytes:
    """Encodes the steps of one rank as bytes."""
    code = bytearray()
    for number in _numbers(steps):
        while number > 0x7F:
            code.append(number & 0x7F | 0x80)
            number >>= 7  # noqa: PLW2901 - the remaining bits
        code.append(number)
    return bytes(code)


def _numbers(steps: list[PlannedStep]) -> Iterator[int]:
    yield len(steps)
    for step in steps:
        yield from (len(step.sends), len(step.receives), len(step.local))
        for send, delay in zip_longest(step.sends, step.delays):
            yield from send if delay is None else (*send, delay)
        for receive in step.receives:
            yield from receive
        for op in step.local:
            if isinstance(op, Copy):
                yield from (_COPY, *op)
            else:
                yield from (_FOLD, op.into, op.first, op.chunks, len(op.operands), *op.operands)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the numbers of a rank's code, and its location for error messages."""

    rank: int
    ranks: int
    slots: int
    chunks: int
    place: str
    moves_chunks: bool = False
    pending_sends: bool = False


def decoded(code: bytes, bounds: Bounds) -> list[PlannedStep]:
    """Decodes the steps of one rank.

    Raises:
        PlanError: The bytes are not valid code of a rank of this schedule.
    """
    numbers = _Numbers(code, bounds)
    count = numbers.count()
    steps = [_decoded_step(numbers, left) for left in range(count, 0, -1)]
    numbers.end()
    return steps


def _decoded_step(numbers: _Numbers, left: int) -> PlannedStep:
    """Decodes one step; `left` counts the steps from this one on."""
    sends, receives, local = numbers.count(), numbers.count(), numbers.count()
    sent = [(numbers.message(), numbers.delay(left)) for _ in range(sends)]
    return PlannedStep(
        tuple(send for send, _ in sent),
        tuple(numbers.message() for _ in range(receives)),
        tuple(numbers.local() for _ in range(local)),
        tuple(delay for _, delay in sent if delay is not None),
    )


class _Numbers:
    """Reads and validates numbers."""

    def __init__(self, code: bytes, bounds: Bounds) -> None:
        self._code = code
        self._at = 0
        self._bounds = bounds

    def take(self) -> int:
        number = 0
        for place in range(_MOST_BYTES):
            if self._at == len(self._code):
                raise self.wrong("ends in the middle of an op")
            byte = self._code[self._at]
            self._at += 1
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        else:
            raise self.wrong("has an unterminated number")
        if number > _LARGEST:
            raise self.wrong(f"has the number {number}, of more than 32 bits")
        return number

    def below(self, limit: int, what: str) -> int:
        number = self.take()
        if number >= limit:
            raise self.wrong(f"names {what} {number} of {limit}")
        return number

    def count(self) -> int:
        """Reads the number of following entries, each of at least one byte."""
        number = self.take()
        if number > len(self._code) - self._at:
            raise self.wrong(f"announces {number} entries, more than there are bytes left")
        return number

    def run(self) -> tuple[int, int]:
        first = self.take()
        chunks = self.take()
        if chunks == 0 or first + chunks > self._bounds.chunks:
            raise self.wrong(f"names {chunks} chunks from {first} on, of {self._bounds.chunks}")
        return first, chunks

    def message(self) -> Message:
        peer = self.below(self._bounds.ranks, "rank")
        if peer == self._bounds.rank:
            raise self.wrong("sends to itself, or receives from itself")
        slot = self.below(self._bounds.slots, "slot")
        return Message(peer, slot, *self.run())

    def delay(self, left: int) -> int | None:
        """Reads the delay of a send, if the schedule has delays: at most to the last step."""
        return self.below(left + 1, "step") if self._bounds.pending_sends else None

    def local(self) -> Fold | Copy:
        kind = self.below(2, "kind of op")
        slot = self.below(self._bounds.slots, "slot")
        if kind == _COPY:
            into = self.below(self._bounds.slots, "slot")
            first, chunks = self.run()
            to = self.take()
            if to + chunks > self._bounds.chunks:
                raise self.wrong(f"copies {chunks} chunks to {to} on, of {self._bounds.chunks}")
            if to != first and not self._bounds.moves_chunks:
                raise self.wrong(f"copies chunk {first} to {to}, but the schedule moves no chunks")
            return Copy(slot, into, first, chunks, to)
        first, chunks = self.run()
        operands = self.count()
        if operands == 0:
            raise self.wrong("has a fold without operands")
        slots: Iterable[int] = (self.below(self._bounds.slots, "slot") for _ in range(operands))
        return Fold(slot, first, chunks, tuple(slots))

    def end(self) -> None:
        if self._at != len(self._code):
            raise self.wrong(f"has {len(self._code) - self._at} excess bytes")

    def wrong(self, problem: str) -> PlanError:
        bounds = self._bounds
        message = f"{bounds.place}, rank {bounds.rank}: its code {problem}"
        return PlanError(message, kind="corrupted", fields={"rank": bounds.rank, "at": self._at})
