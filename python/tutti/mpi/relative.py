"""Peers and chunks relative to a rank, which makes the code of many ranks equal.

A relative peer is added to the rank, modulo the number of ranks, or combined with it by exclusive
or. If all ranks have equally many chunks, the shard of a relative chunk is relative like a peer.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.ir import Schedule

ABSOLUTE, ADDED, EXCLUSIVE_OR = range(3)
FORMS: Final = 3

_MOST_CHUNKS: Final = 1 << 16
"""Schedules with more chunks have absolute ones: each rank needs a table of its relative ones."""


def placed(form: int, value: int, rank: int, ranks: int) -> int:
    """Returns the peer, or shard, of a relative number for a rank; too large if it is invalid."""
    if form == ADDED:
        return (value + rank) % ranks
    return value ^ rank if form == EXCLUSIVE_OR else value


def relative(form: int, rank: int, ranks: int, each: int) -> Sequence[int]:
    """Returns the relative numbers of all chunks for a rank, of `each` chunks per shard."""
    chunks, own = ranks * each, rank * each
    if form == ADDED:
        return [*range(chunks - own, chunks), *range(chunks - own)]
    if form == EXCLUSIVE_OR:
        return [(shard ^ rank) * each + chunk for shard in range(ranks) for chunk in range(each)]
    return range(chunks)


class Frame(NamedTuple):
    """The numbers of one rank.

    Attributes:
        peers: The number of each peer.
        chunks: For each form, the number of each chunk.
        forms: For each slot, the number of the forms of a message.
        slots: For each slot, the form of its chunks.
    """

    peers: Sequence[int]
    chunks: Sequence[Sequence[int]]
    forms: Sequence[int]
    slots: Sequence[int]


class Relations:
    """How the numbers of a schedule depend on the rank: its peers, and the chunks of each slot."""

    def __init__(self, ranks: int, chunks: int, peers: int, slots: Sequence[int]) -> None:
        """Prepares frames.

        Args:
            ranks: Number of ranks.
            chunks: Number of chunks.
            peers: The form of peers.
            slots: For each slot, the form of its chunks.
        """
        self._ranks, self._chunks, self._peers, self._slots = ranks, chunks, peers, slots
        self._forms = [peers + FORMS * form for form in slots]
        self._used = sorted({*slots} - {ABSOLUTE})

    @classmethod
    def absolute(cls, schedule: Schedule) -> Self:
        """Returns relations in which no number is relative."""
        return cls(schedule.ranks, schedule.chunks, ABSOLUTE, [ABSOLUTE] * schedule.slots)

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """Returns the forms in which the code of three ranks agrees most."""
        ranks, chunks = schedule.ranks, schedule.chunks
        forms = [ABSOLUTE, ADDED] + [EXCLUSIVE_OR] * (ranks & (ranks - 1) == 0)
        samples = sorted({1, ranks // 3, 2 * ranks // 3})
        numbers = [_numbers(schedule, rank) for rank in samples]
        peers = _form(forms, samples, [found["peers"] for found in numbers], ranks, 1)
        slots = [ABSOLUTE] * schedule.slots
        if chunks % ranks == 0 and chunks <= _MOST_CHUNKS:
            for slot in {slot for found in numbers for slot in found if isinstance(slot, int)}:
                values = [found[slot] for found in numbers]
                slots[slot] = _form(forms, samples, values, ranks, chunks // ranks)
        return cls(ranks, chunks, peers, slots)

    def frame(self, rank: int) -> Frame:
        """Returns the numbers of a rank."""
        each = self._chunks // self._ranks
        chunks: list[Sequence[int]] = [range(self._chunks)] * FORMS
        for form in self._used:
            chunks[form] = relative(form, rank, self._ranks, each)
        peers = relative(self._peers, rank, self._ranks, 1)
        return Frame(peers, chunks, self._forms, self._slots)

    def meanings(self, rank: int) -> list[int]:
        """Returns the ranks that numbers of peers mean for a rank, then the chunks of each form."""
        ranks, each = self._ranks, self._chunks // self._ranks
        opposite = {ADDED: -rank % ranks, EXCLUSIVE_OR: rank, ABSOLUTE: rank}
        found = [*relative(self._peers, opposite[self._peers], ranks, 1)]
        for form in self._used:
            found += relative(form, opposite[form], ranks, each)
        return found

    def place(self, form: int, chunk: int) -> int:
        """Returns the place of a relative chunk in `meanings`."""
        return self._ranks + self._used.index(form) * self._chunks + chunk


def _numbers(schedule: Schedule, rank: int) -> dict[str | int, list[int]]:
    """Returns the peers of a rank, and the first chunks of its ops by slot, in order."""
    found = defaultdict[str | int, list[int]](list)
    for step in range(schedule.steps(rank)):
        for op in schedule.ops(rank, step):
            found["peers"] += op.peers
            if op.chunks is not None and op.slot is not None:
                found[op.slot].append(op.chunks[0])
            if op.into is not None and op.to is not None:
                found[op.into].append(op.to)
    return found


def _form(
    forms: Sequence[int], ranks: Sequence[int], values: Sequence[list[int]], total: int, each: int
) -> int:
    """Returns the form in which the values of some ranks agree most, counted from both ends."""

    def agreement(form: int) -> int:
        tables = [relative(form, rank, total, each) for rank in ranks]
        numbers = [[table[v] for v in mine] for table, mine in zip(tables, values, strict=True)]
        return sum(
            sum(map(eq, one, other)) + sum(map(eq, reversed(one), reversed(other)))
            for one, other in combinations(numbers, 2)
        )

    return max(forms, key=agreement)
