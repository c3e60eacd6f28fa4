"""How many messages of a stage share a link: on a torus, and at the network interfaces of a node.

These are the loads of the flow model for the exchanges of one stage, in closed form.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.predict.stages import Partners, Stage

_UNIFORM = 1 / 8
"""Links of a ring of L nodes carry L / 8 of what a node sends to uniformly chosen nodes."""
_MEAN_SHIFT = 0.42
"""Mean load of a shift, over all distances, by the longest side."""


def negabinary_distance(step: int) -> int:
    """Returns the distance of partners in a step of a Bine butterfly: 1, 1, 3, 5, 11, ..."""
    return max(1, abs(1 - int((-2) ** (step + 1))) // 3)


def link_load(stage: Stage, sides: Sequence[int], shape: Sequence[int] | None = None) -> float:
    """Returns the messages of a stage on the most loaded link of a torus.

    Ranks are numbered along the first side first. Partners of Bine trees use the dimensions in
    turn.

    Args:
        stage: the stage.
        sides: the sides of the torus; one side means an uncongested network.
        shape: two sides that the job requested, if the torus has more dimensions. How it is folded
            is unknown, so the load is the geometric mean of both.
    """
    if shape is not None:
        return math.sqrt(link_load(stage, sides) * link_load(stage, shape))
    if len(sides) == 1 or stage.partners in {"neighbour", "root"}:
        return 1.0
    if stage.partners in {"all", "shift"}:
        return max(1.0, max(sides) * (_MEAN_SHIFT if stage.partners == "shift" else _UNIFORM))
    bits = [int(math.log2(side)) for side in sides]
    if stage.alternating:
        return max(1.0, negabinary_distance(_step_in_turn(stage.step, bits)) / 2)
    return _load_of_doubling(stage.step, bits)


def mean_hops(stage: Stage, sides: Sequence[int], shape: Sequence[int] | None = None) -> float:
    """Returns the hops of a message on a torus beyond the first.

    Args:
        stage: the stage.
        sides: the sides of the torus; one side means a network whose distance is not known.
        shape: two sides that the job requested, as in :func:`link_load`.
    """
    if shape is not None:
        return math.sqrt(mean_hops(stage, sides) * mean_hops(stage, shape))
    if len(sides) == 1 or stage.partners == "neighbour":
        return 0.0
    if stage.partners in {"all", "shift", "root"}:
        # Half of the ring at most, a quarter on average; the root waits for the farthest.
        share = 2 if stage.partners == "root" else 4
        return max(0.0, sum(side / share for side in sides) - 1)
    bits = [int(math.log2(side)) for side in sides]
    if stage.alternating:
        within = min(_step_in_turn(stage.step, bits), max(bits))
        return min(negabinary_distance(within), max(sides) / 2) - 1.0
    step = stage.step
    for count in bits:
        if step < count:
            return 2.0**step - 1
        step -= count
    return 0.0


def _step_in_turn(step: int, bits: Sequence[int]) -> int:
    """The step within its dimension, where dimensions take turns."""
    turns = sorted((within, side) for side, count in enumerate(bits) for within in range(count))
    return turns[min(step, len(turns) - 1)][0] if turns else 0


def _load_of_doubling(step: int, bits: Sequence[int]) -> float:
    """The load at distance 2^step: partners half a side apart use both directions."""
    for count in bits:
        if step < count:
            return max(1.0, 2.0**step if step < count - 1 else 2.0**step / 2)
        step -= count
    return 1.0


def node_load(stage: Stage, ranks_per_node: int) -> float | None:
    """Returns the messages of a stage that share the interface of a node.

    Args:
        stage: the stage.
        ranks_per_node: consecutive ranks on a node.

    Returns:
        The load; None if all partners are on the same node.
    """
    if ranks_per_node == 1 or stage.partners in {"neighbour", "root"}:
        return 1.0
    if stage.partners in {"all", "shift"}:
        return float(ranks_per_node)
    if stage.alternating:
        return float(max(1, min(negabinary_distance(stage.step), ranks_per_node)))
    distance = 2**stage.step
    if distance < ranks_per_node and ranks_per_node & (ranks_per_node - 1):
        return float(distance)  # Nodes start within pairs: so many of their ranks have one outside.
    return float(ranks_per_node) if distance >= ranks_per_node else None


def crossing(stage: Stage, groups: bytes) -> tuple[float, float]:
    """Returns how the messages of a stage use the links between groups of the network.

    Args:
        stage: the stage.
        groups: by rank, the group that its node is in: cells or cabinets of a dragonfly, islands.

    Returns:
        The share of messages between groups, and the messages between the busiest pair of groups.
    """
    return _crossing(stage.partners, stage.step, stage.alternating, groups)


@cache
def _crossing(
    partners: Partners, step: int, alternating: bool, groups: bytes
) -> tuple[float, float]:
    group = np.frombuffer(groups, dtype=np.uint8)
    ranks = len(group)
    if partners in {"all", "shift"}:
        members = np.bincount(group)
        largest = float(np.sort(members)[-2:].prod()) / ranks if len(members) > 1 else 0.0
        return 1 - float((members * (members - 1)).sum()) / (ranks * (ranks - 1)), largest
    if partners == "root":
        return float(np.mean(group[1:] != group[0])), 0.0
    rank = np.arange(ranks)
    if partners == "neighbour":
        other = (rank + 1) % ranks
    elif alternating:
        distance = negabinary_distance(step)
        other = np.where(rank % 2 == 0, rank + distance, rank - distance) % ranks
    else:
        other = rank ^ (1 << step)
        other = np.where(other < ranks, other, rank)
    away = group != group[other]
    pairs = np.bincount(group[away].astype(np.int64) * 256 + group[other][away])
    return float(np.mean(away)), float(pairs.max(initial=0))
