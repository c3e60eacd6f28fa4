"""Routes of other simulators as output ports, for the routing `source_routed`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import mistake
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.topologies import Topology

_MOST_FLOWS: Final = 1 << 18
"""Routes of pairs that a file lists."""


def source_routed(
    graph: Topology, nodes: Sequence[int], path: Callable[[int, int], list[int]], *, source: str
) -> str:
    """Returns the routing that carries each route as output ports.

    Args:
        graph: Nodes `npu0`, ... with a link to a router each; routers `router0`, ...
        nodes: The router of each node.
        path: The routers from one to another, both included.
        source: The file, for errors.

    Raises:
        ConfigError: The graph has too many routes.
    """
    if len(nodes) ** 2 > _MOST_FLOWS:
        raise mistake(f"has {plural(len(nodes), 'node')}", source=source,
                      expected="at most 512 nodes with routes from a table")  # fmt: skip
    ports = _ports_of(graph)
    own = {node: ports[f"router{router}", f"npu{node}"] for node, router in enumerate(nodes)}
    steps: dict[tuple[int, int], str] = {}
    for start in sorted(set(nodes)):
        for end in sorted(set(nodes)):
            pairs = itertools.pairwise(path(start, end))
            steps[start, end] = "".join(f"{ports[f'router{a}', f'router{b}']}." for a, b in pairs)
    flows = (
        f"{a}-{b}={steps[start, end]}{own[b]}"
        for a, start in enumerate(nodes)
        for b, end in enumerate(nodes)
    )
    return "source_routed:" + ";".join(flows)


def _ports_of(graph: Topology) -> dict[tuple[str, str], int]:
    """Returns the output port of each link of a router: first links to routers, then nodes."""
    ports: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    links = [(link.source, link.target) for link in graph.links if "npu" not in link.source]
    order = [link for link in links if "npu" not in link[1]]
    order += sorted((link for link in links if "npu" in link[1]), key=lambda link: int(link[1][3:]))
    for source, target in order:
        ports[source, target] = counts.setdefault(source, 0)
        counts[source] += 1
    return ports
