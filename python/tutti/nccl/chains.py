"""Broadcast and reduce of NCCL with a chain per channel, such that all network adapters are used.

The chain of a channel is its ring, from the root to the rank before it. A rank forwards a piece
while it receives the next.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tutti.schedules.builder import ScheduleBuilder

if TYPE_CHECKING:
    from tutti.schedules.builder import RankProgram
    from tutti.schedules.ir import Schedule


@lru_cache(maxsize=4)
def chains(collective: str, rings: tuple[tuple[int, ...], ...], pieces: int, root: int) -> Schedule:
    """Returns a broadcast or a reduce along rings, which share the payload equally.

    Args:
        collective: broadcast or reduce.
        rings: The ranks in the order of each ring. Chunk c is in ring c modulo their number.
        pieces: The pieces of a ring's share.
        root: The root.
    """
    ranks, count = len(rings[0]), len(rings)
    name = f"chains:{count},{pieces}"
    builder = ScheduleBuilder(collective, ranks=ranks, chunks=pieces * count, root=root, name=name)
    step = 1 if collective == "broadcast" else -1
    lines = []
    for ring in rings:
        first = ring.index(root)
        lines.append([*ring[first:], *ring[:first]][::step])
    places = [{rank: at for at, rank in enumerate(line)} for line in lines]
    for rank in range(ranks):
        member = _Member(builder.rank(rank), lines, [place[rank] for place in places], pieces)
        for beat in range(pieces + ranks - 1):
            member.add(beat, folds=collective == "reduce")
    return builder.build()


class _Member:
    """A rank of chains. The rank at place k of a chain sends piece p in step k + p."""

    def __init__(
        self, program: RankProgram, lines: list[list[int]], places: list[int], pieces: int
    ) -> None:
        self._program, self._pieces = program, pieces
        self._sends: list[tuple[int, int, int]] = []
        self._receives: list[tuple[int, int, int]] = []
        for index, (line, at) in enumerate(zip(lines, places, strict=True)):
            if at + 1 < len(line):
                self._sends.append((index, line[at + 1], at))
            if at:
                self._receives.append((index, line[at - 1], at - 1))
        self._count = len(lines)

    def add(self, beat: int, *, folds: bool) -> None:
        """Adds a step: sends pieces, receives the next, and folds these in a reduce."""
        program, received = self._program, []
        program.step(f"step {beat}")
        for index, peer, at in self._sends:
            if 0 <= beat - at < self._pieces:
                program.send(peer, chunk=(beat - at) * self._count + index)
        for index, peer, at in self._receives:
            if 0 <= beat - at < self._pieces:
                received.append((beat - at) * self._count + index)
                program.recv(peer, chunk=received[-1], slot=int(folds))
        if folds:
            for chunk in received:
                program.reduce(0, [0, 1], chunk=chunk)
