"""The ops of a rank, as the numbers of a plan file: see docs/reference/plan-format.md."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from tutti.mpi.errors import PlanError
from tutti.mpi.relative import ABSOLUTE, FORMS, placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLD, COPY, KINDS = range(3)
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


# --- as bytes -------------------------------------------------------------------------------------


def encoded(steps: Sequence[PlannedStep]) -> bytes:
    """Encodes the steps of one rank, with absolute peers and chunks."""
    return code_of([encoded_step(_numbers(step)) for step in steps])


def encoded_step(numbers: Iterable[int]) -> bytes:
    """Encodes the numbers of a step, behind their size."""
    data = leb128(numbers)
    return leb128([len(data)]) + data


def code_of(steps: Sequence[bytes]) -> bytes:
    """Returns the code of a rank with these steps."""
    return b"".join([leb128([len(steps)]), *steps])


def split(code: bytes, block: int) -> Iterator[bytes]:
    """Splits code into parts that other code may have, too.

    These are the number of steps, and each step. A step of more than `block` bytes is cut into
    blocks, counted from its end: steps that differ in their first ops have equal ends. Invalid code
    is split anywhere.
    """
    start, end = 0, _number_at(code, 0)[1]
    while start < len(code):
        end = min(end, len(code))
        cuts = [start, *range(start + (end - start) % block, end, block), end]
        yield from (code[a:b] for a, b in pairwise(cuts) if a < b)
        start = end
        size, end = _number_at(code, start)
        end += size


def numbers(code: bytes) -> list[int] | None:
    """Returns the numbers of code; None if it has invalid ones."""
    found = []
    at = 0
    while at < len(code):
        number, end = _number_at(code, at)
        if code[end - 1] > 0x7F or number > _LARGEST:
            return None
        found.append(number)
        at = end
    return found


def leb128(numbers: Iterable[int]) -> bytes:
    """Encodes numbers, seven bits to a byte."""
    data = bytearray()
    for number in numbers:
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7  # noqa: PLW2901 - the remaining bits
        data.append(number)
    return bytes(data)


def _number_at(code: bytes, at: int) -> tuple[int, int]:
    """Returns a number of code, and where it ends; an unterminated one ends somewhere."""
    number = 0
    for place in range(at, min(at + _MOST_BYTES, len(code))):
        number |= (code[place] & 0x7F) << 7 * (place - at)
        if code[place] < 0x80:
            return number, place + 1
    return number, min(at + _MOST_BYTES, len(code))


def _numbers(step: PlannedStep) -> Iterator[int]:
    yield from (len(step.sends), len(step.receives), len(step.local))
    for send, delay in zip_longest(step.sends, step.delays):
        yield from (ABSOLUTE, *send) if delay is None else (ABSOLUTE, *send, delay)
    for receive in step.receives:
        yield from (ABSOLUTE, *receive)
    for op in step.local:
        if isinstance(op, Copy):
            yield from (COPY, *op)
        else:
            yield from (FOLD, op.into, op.first, op.chunks, len(op.operands), *op.operands)


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
    end = numbers.step_end()
    sends, receives, local = numbers.count(), numbers.count(), numbers.count()
    sent = [(numbers.message(), numbers.delay(left)) for _ in range(sends)]
    step = PlannedStep(
        tuple(send for send, _ in sent),
        tuple(numbers.message() for _ in range(receives)),
        tuple(numbers.local() for _ in range(local)),
        tuple(delay for _, delay in sent if delay is not None),
    )
    numbers.check_end(end)
    return step


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

    def step_end(self) -> int:
        """Reads the size of a step; returns where the step ends."""
        size = self.count()
        return self._at + size

    def check_end(self, end: int) -> None:
        if self._at != end:
            raise self.wrong("has a step of another size")

    def run(self, form: int) -> tuple[int, int]:
        """Reads chunks, the first of which has a form."""
        first = self.chunk(form)
        chunks = self.take()
        if chunks == 0 or first + chunks > self._bounds.chunks:
            raise self.wrong(f"names {chunks} chunks from {first} on, of {self._bounds.chunks}")
        return first, chunks

    def chunk(self, form: int) -> int:
        number, bounds = self.take(), self._bounds
        if form == ABSOLUTE:
            return number
        if bounds.chunks % bounds.ranks or number >= bounds.chunks:
            raise self.wrong(f"names the relative chunk {number} of {bounds.chunks}")
        shard, rest = divmod(number, bounds.chunks // bounds.ranks)
        shard = placed(form, shard, bounds.rank, bounds.ranks)
        return shard * (bounds.chunks // bounds.ranks) + rest

    def message(self) -> Message:
        chunk_form, peer_form = divmod(self.below(FORMS * FORMS, "form"), FORMS)
        bounds = self._bounds
        peer = placed(peer_form, self.below(bounds.ranks, "rank"), bounds.rank, bounds.ranks)
        if peer >= bounds.ranks:
            raise self.wrong(f"names rank {peer} of {bounds.ranks}")
        if peer == bounds.rank:
            raise self.wrong("sends to itself, or receives from itself")
        slot = self.below(bounds.slots, "slot")
        return Message(peer, slot, *self.run(chunk_form))

    def delay(self, left: int) -> int | None:
        """Reads the delay of a send, if the schedule has delays: at most to the last step."""
        return self.below(left + 1, "step") if self._bounds.pending_sends else None

    def local(self) -> Fold | Copy:
        forms, kind = divmod(self.below(KINDS * FORMS * FORMS, "kind of op"), KINDS)
        return self.copy(forms) if kind == COPY else self.fold(forms)

    def copy(self, forms: int) -> Copy:
        to_form, form = divmod(forms, FORMS)
        slot = self.below(self._bounds.slots, "slot")
        into = self.below(self._bounds.slots, "slot")
        first, chunks = self.run(form)
        to = self.chunk(to_form)
        if to + chunks > self._bounds.chunks:
            raise self.wrong(f"copies {chunks} chunks to {to} on, of {self._bounds.chunks}")
        if to != first and not self._bounds.moves_chunks:
            raise self.wrong(f"copies chunk {first} to {to}, but the schedule moves no chunks")
        return Copy(slot, into, first, chunks, to)

    def fold(self, form: int) -> Fold:
        if form >= FORMS:
            raise self.wrong("has a fold with another form than of its chunks")
        slot = self.below(self._bounds.slots, "slot")
        first, chunks = self.run(form)
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
