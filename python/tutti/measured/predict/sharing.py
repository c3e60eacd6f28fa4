"""How many messages of a stage share the interfaces of a node, or links between groups."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tutti.measured.predict.torus import negabinary_distance

if TYPE_CHECKING:
    from tutti.measured.predict.stages import Partners, Stage


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
