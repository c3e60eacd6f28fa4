"""Broadcast and reduce of NCCL with a chain per channel, such that all network adapters are used.

The chain of a channel is its ring, from the root to the rank before it. A rank forwards a piece
while it receives the next.
"""

from __future__ import annotations

from functools import lru_cache

from tutti import _core
from tutti.schedules.ir import Schedule


@lru_cache(maxsize=64)  # A schedule is small; several sizes share its verification.
def chains(collective: str, rings: tuple[tuple[int, ...], ...], pieces: int, root: int) -> Schedule:
    """Returns a broadcast or a reduce along rings, which share the payload equally.

    Args:
        collective: broadcast or reduce.
        rings: The ranks in the order of each ring. Chunk c is in ring c modulo their number.
        pieces: The pieces of a ring's share.
        root: The root.
    """
    step = 1 if collective == "broadcast" else -1
    lines = []
    for ring in rings:
        first = ring.index(root)
        lines.append([*ring[first:], *ring[:first]][::step])
    return Schedule(_core.Schedule.chains(collective, root, lines, pieces))
