"""Ranks per node of a tuning: what a platform or a measurement does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.measured.tune.measure import SEVERAL_HOSTS
from tutti.platforms.nodes import ranks_per_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tutti.platforms.files.platform_file import RawPlatform


def check_full_nodes(counts: Iterable[int], per_node: int) -> None:
    """Rejects numbers of ranks that leave a node incomplete; fewer than one node have one.

    Raises:
        ConfigError: There is one.
    """
    for count in counts:
        if count > per_node and count % per_node:
            raise mistake(
                f"is not a multiple of {per_node:,} ranks per node",
                source="--ranks",
                value=f"{count:,}",
                expected="full nodes",
                hint="--ranks-per-node states those of the job",
            )


def platform_cautions(
    platform: RawPlatform, counts: Sequence[int], per_node: int | None
) -> Iterator[str]:
    """Yields what limits predictions on a platform.

    Args:
        platform: The platform.
        counts: The numbers of ranks.
        per_node: The ranks on each node; None if unknown.
    """
    calibration = platform.calibration
    if per_node is not None and ranks_per_node(platform) is None:
        yield (
            f"platform {platform.name} has no nodes: the model takes messages within a node and "
            "between nodes for alike; `tutti calibrate --ranks-per-node` makes one with nodes"
        )
    if calibration is None:
        return
    if calibration.hosts == 1 and (per_node is None or max(counts) > per_node):
        yield (
            f"platform {platform.name} was measured within one host: its times are not for ranks "
            "on several hosts"
        )
    each = min(per_node, max(counts)) if per_node is not None else None
    if each is not None and calibration.cores is not None and each > calibration.cores:
        yield (
            f"{each:,} ranks on a node of {calibration.cores:,} cores: the model has a core for "
            "each rank"
        )


def placement_cautions(
    conditions: Iterable[str], ranks: int, per_node: int | None
) -> Iterator[str]:
    """Yields a warning on measurements with another number of ranks per node.

    Args:
        conditions: As of :func:`tutti.measured.tune.measure.conditions_of`.
        ranks: The number of ranks measured.
        per_node: The ranks on each node that rules are for; None for any.
    """
    if per_node is None:
        return
    for text in conditions:
        match = SEVERAL_HOSTS.search(text)
        measured = -(-ranks // int(match[1])) if match else ranks
        if measured != min(per_node, ranks):
            yield (
                f"{ranks:,} ranks were measured with {measured:,} per node, not {per_node:,}: "
                "place them with --launcher-option"
            )
