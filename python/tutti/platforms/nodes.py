"""Nodes of a platform: how many ranks share one, and the same platform with another number.

The nodes of a calibrated platform are groups around one switch, `hierarchical:INNER:N/switch:M`:
the links of the first class are those within a node, the others lead to the switch between nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tutti.base.files.mistakes import mistake
from tutti.base.files.sourced import written
from tutti.base.units import Time

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.topologies import Routes

SWITCHED: Final = "switch"
"""Ranks of a node around a switch, whose links a message between nodes crosses, too."""
DIRECT: Final = "fully_connected"
"""Ranks of a node with a link to each other, which no message between nodes crosses."""
_NODES: Final = re.compile(rf"hierarchical:({SWITCHED}|{DIRECT}):(\d+)/switch:(\d+)")


def domain_of(routes: Routes) -> int:
    """Returns the number of first NPUs that reach each other at the rate of the first two."""
    ranks = routes.topology.ranks
    first = routes.pair(0, min(1, ranks - 1)).bottleneck
    slower = (at for at in range(2, ranks) if routes.pair(0, at).bottleneck != first)
    return next(slower, ranks)


def build_of(inner: str, per_node: int, nodes: int) -> str:
    """Returns the notation of a topology with nodes; one rank per node has no links within."""
    inside = f"hierarchical:{inner}:{per_node}/" if per_node > 1 else ""
    return f"{inside}switch:{nodes}"


def ranks_per_node(platform: RawPlatform) -> int | None:
    """Returns the number of ranks on a node of a platform; None if its file states none."""
    return platform.topology.ranks_per_node if platform.topology else None


def with_ranks_per_node(platform: RawPlatform, per_node: int, *, source: str) -> RawPlatform:
    """Returns a platform with the same nodes, and another number of ranks on each.

    Raises:
        ConfigError: The platform states another number, and its topology is not a group of nodes.
    """
    topology = platform.topology
    if topology is None or topology.ranks_per_node in {None, per_node}:
        return platform
    match = _NODES.fullmatch(topology.build or "")
    if match is None:
        raise mistake(
            f"platform {platform.name} has another number of ranks per node",
            source=source,
            value=f"{per_node:,}",
            expected=f"{topology.ranks_per_node:,}",
            hint="platforms of `tutti calibrate --ranks-per-node` have any number",
        )
    links = topology.links if per_node > 1 else [_between(topology.links[1], match[1])]
    changed: dict[str, Any] = {
        "build": build_of(match[1], per_node, int(match[3])),
        "links": links,
        "ranks_per_node": per_node,
    }
    return platform.model_copy(update={"topology": topology.model_copy(update=changed)})


def _between(link: Any, inner: str) -> Any:  # noqa: ANN401 - the table of the links
    """Returns the link from a rank to the switch between nodes, if each has a node for itself.

    A message then crosses two links, not the four of ranks with gateways.
    """
    if inner == SWITCHED:
        return link
    return link.model_copy(update={"latency": Time(ps=2 * written(link.latency).ps)})
