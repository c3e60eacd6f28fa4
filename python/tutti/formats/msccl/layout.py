"""Buffers of a program as slots of a schedule.

All slots have the chunks of the payload, and a reduction works on equal positions. Scratch chunks
are therefore placed at the position of the chunks that they are reduced with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tutti.formats.msccl.program import ChunkRange, Held

if TYPE_CHECKING:
    from tutti.formats.msccl.program import Program, Ref

Run = tuple[int, int, int]
"""Chunks of a slot: slot, first chunk, count."""


class Layout:
    """Where the chunks of each buffer are.

    Attributes:
        result: The slot that holds the result.
        first_held: The first slot for temporaries.
    """

    def __init__(self, program: Program) -> None:
        """Places all scratch chunks that the program accesses."""
        self._chunks = program.chunks
        self._shard = program.shard()
        self._collective = program.collective
        self.result = 0 if program.in_place else 1
        self._scratch: list[dict[int, tuple[int, int]]] = [{} for _ in range(program.ranks)]
        self.first_held = self.result + 1
        links, wishes = _scratch_of(program)
        for rank in sorted(links):
            self._place(rank, links[rank], wishes[rank])

    def runs(self, rank: int, chunks: ChunkRange) -> list[Run]:
        """Returns the runs of slots that hold chunks of a buffer."""
        if chunks.buffer == "s":
            return self._scratch_runs(rank, chunks)
        shift = 0
        if self._collective == ("all_gather" if chunks.buffer == "i" else "reduce_scatter"):
            shift = rank * self._shard
        slot = self.result if chunks.buffer == "o" else 0
        return [(slot, chunks.index + shift, chunks.count)]

    def position(self, rank: int, chunks: ChunkRange) -> int:
        """Returns the position of the first chunk in its slot."""
        return self.runs(rank, ChunkRange(chunks.buffer, chunks.index, 1))[0][1]

    def cuts(self, rank: int, ref: Ref) -> set[int]:
        """Returns the offsets at which the runs of chunks end."""
        chunks = ref.like if isinstance(ref, Held) else ref
        at, found = 0, set()
        for _, _, count in self.runs(rank, chunks):
            at += count
            found.add(at)
        return found

    def _scratch_runs(self, rank: int, chunks: ChunkRange) -> list[Run]:
        places = self._scratch[rank]
        runs: list[Run] = []
        for index in range(chunks.index, chunks.end):
            slot, at = places[index]
            if runs and runs[-1][0] == slot and runs[-1][1] + runs[-1][2] == at:
                runs[-1] = (slot, runs[-1][1], runs[-1][2] + 1)
            else:
                runs.append((slot, at, 1))
        return runs

    def _place(self, rank: int, links: dict[int, bool], wishes: dict[int, ChunkRange]) -> None:
        """Places segments: runs of scratch chunks that ops access together."""
        used: list[list[bool]] = []
        places = self._scratch[rank]
        for start, count in _segments(links, self._chunks):
            wish = next((i for i in range(start, start + count) if i in wishes), None)
            at = start % self._chunks
            if wish is not None and (wishes[wish].buffer != "s" or wishes[wish].index in places):
                at = self.position(rank, wishes[wish]) - (wish - start)
            at = max(0, min(at, self._chunks - count))
            row = next((i for i, line in enumerate(used) if not any(line[at : at + count])), None)
            if row is None:
                row = len(used)
                used.append([False] * self._chunks)
            used[row][at : at + count] = [True] * count
            slot = self.result + 1 + row
            self.first_held = max(self.first_held, slot + 1)
            places.update({start + i: (slot, at + i) for i in range(count)})


def _segments(links: dict[int, bool], most: int) -> list[tuple[int, int]]:
    """Returns first chunk and count of each segment, of at most `most` chunks."""
    found: list[tuple[int, int]] = []
    for index in sorted(links):
        joined = found and found[-1][0] + found[-1][1] == index and links.get(index - 1)
        if joined and found[-1][1] < most:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((index, 1))
    return found


def _scratch_of(
    program: Program,
) -> tuple[dict[int, dict[int, bool]], dict[int, dict[int, ChunkRange]]]:
    """Returns the scratch chunks of each rank, and the chunks that they are reduced with.

    The value of a scratch chunk is whether an op also accesses the next one.
    """
    links: dict[int, dict[int, bool]] = defaultdict(dict)
    wishes: dict[int, dict[int, ChunkRange]] = defaultdict(dict)
    for event in program.events:
        for action in event.actions:
            refs = [*action.sources, *([action.into] if action.into is not None else [])]
            ranges = [ref.like if isinstance(ref, Held) else ref for ref in refs]
            for chunks in ranges:
                if chunks.buffer != "s":
                    continue
                known = links[action.rank]
                for index in range(chunks.index, chunks.end):
                    known[index] = known.get(index, False) or index + 1 < chunks.end
            if action.kind == "fold":
                _add_wishes(wishes[action.rank], ranges)
    return links, wishes


def _add_wishes(wishes: dict[int, ChunkRange], ranges: list[ChunkRange]) -> None:
    into = ranges[-1]
    for chunks in ranges[:-1]:
        if chunks.buffer == "s" and chunks != into:
            wishes.setdefault(chunks.index, into)
        elif into.buffer == "s":
            wishes.setdefault(into.index, chunks)
