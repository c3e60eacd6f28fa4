"""Random schedules that are right by construction: chunks that travel along random trees.

Every chunk has separate trees: messages of different chunks arrive in any order, folds are nested
arbitrarily and operands come from either side. This covers cases that no algorithm generates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.schedules.builder import ScheduleBuilder

if TYPE_CHECKING:
    from random import Random

    from tutti.schedules.ir import Schedule

COLLECTIVES = ("all_reduce", "reduce_scatter", "reduce", "broadcast", "all_gather")
_SCRATCH = 3


@dataclass
class _Trees:
    builder: ScheduleBuilder
    ranks: int
    random: Random

    def _order(self, root: int) -> list[int]:
        """All ranks, the root first; each has a parent before it."""
        others = [rank for rank in range(self.ranks) if rank != root]
        self.random.shuffle(others)
        return [root, *others]

    def reduce(self, chunks: tuple[int, int], root: int) -> None:
        """Sends chunks up a random tree; each parent combines them on receipt."""
        order = self._order(root)
        for place in range(self.ranks - 1, 0, -1):
            child, parent = order[place], order[self.random.randrange(place)]
            slot = self.random.randint(1, _SCRATCH)
            operands = self.random.choice([[0, slot], [slot, 0]])
            self.builder.rank(child).send(parent, chunks=chunks)
            self.builder.rank(parent).recv(child, chunks=chunks, slot=slot)
            self.builder.rank(parent).reduce(0, operands, chunks=chunks)

    def broadcast(self, chunks: tuple[int, int], root: int) -> None:
        """Sends chunks down a random tree, sometimes through scratch."""
        order = self._order(root)
        for place in range(1, self.ranks):
            child, parent = order[place], order[self.random.randrange(place)]
            self.builder.rank(parent).send(child, chunks=chunks)
            if self.random.random() < 0.3:
                self.builder.rank(child).recv(parent, chunks=chunks, slot=1)
                self.builder.rank(child).copy(1, 0, chunks=chunks)
            else:
                self.builder.rank(child).recv(parent, chunks=chunks)


def random_schedule(collective: str, ranks: int, random: Random) -> Schedule:
    """Returns a random schedule of a collective with root 0, not verified yet."""
    sharded = collective in {"reduce_scatter", "all_gather"}
    chunks = ranks * random.randint(1, 3) if sharded else random.randint(1, 7)
    builder = ScheduleBuilder(collective, ranks=ranks, chunks=chunks, name="random")
    trees = _Trees(builder, ranks, random)
    runs = runs_of(chunks, chunks // ranks if sharded else chunks, random)
    random.shuffle(runs)
    for run in runs:
        owner = run[0] // (chunks // ranks) if sharded else 0
        if collective == "all_reduce":
            owner = random.randrange(ranks)
        if collective in {"all_reduce", "reduce_scatter", "reduce"}:
            trees.reduce(run, owner)
        if collective in {"all_reduce", "broadcast", "all_gather"}:
            trees.broadcast(run, owner)
    return builder.build()


def runs_of(chunks: int, shard: int, random: Random) -> list[tuple[int, int]]:
    """All chunks in runs of random lengths, none across the end of a shard."""
    runs = []
    first = 0
    while first < chunks:
        end = min(first + random.randint(1, shard), (first // shard + 1) * shard)
        runs.append((first, end))
        first = end
    return runs
