"""Dependencies of a Chakra file as a graph: missing nodes, cycles, and the order of streams.

A GPU stream executes its kernels in the order of their launches. Traces of PyTorch have kernels
that depend on their launcher only (mlcommons/chakra#215), so that a simulator may start them in any
order. Recorded start times show the order: each operation precedes the next one of its stream if
it ended before that started.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tutti.formats.chakra.nodes import Nodes

_CYCLE_SHOWN = 9


@dataclass(frozen=True)
class Graph:
    """Dependencies by node index: edge i is from `parents[i]` to `children[i]`.

    Attributes:
        count: The number of nodes.
        parents: The nodes depended on, int64.
        children: The dependent nodes, int64, ascending.
    """

    count: int
    parents: NDArray[np.int64]
    children: NDArray[np.int64]

    @property
    def first(self) -> NDArray[np.int64]:
        """The first edge of each node, and the number of edges."""
        return np.searchsorted(self.children, np.arange(self.count + 1)).astype(np.int64)

    def with_edges(self, parents: NDArray[np.int64], children: NDArray[np.int64]) -> Graph:
        """Returns the graph with further edges, behind the others of their nodes."""
        given = np.concatenate((self.children, children))
        order = np.argsort(given, kind="stable")
        return Graph(self.count, np.concatenate((self.parents, parents))[order], given[order])


@dataclass(frozen=True)
class StreamOrder:
    """Neighbours of a stream without a path between them.

    Attributes:
        before: The earlier operation of each pair.
        after: The later operation of each pair.
        overlapping: Pairs whose recorded intervals overlap, so that they have no order.
        unchecked: Pairs beyond the limit of the search for paths.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    overlapping: int
    unchecked: int


def _graph(
    nodes: Nodes, rank: int, *, repair: bool = False, control: bool = True
) -> tuple[Graph, int]:
    """Returns the dependencies of a rank, without repetitions, and how many were removed.

    Args:
        nodes: The nodes.
        rank: The rank, for errors.
        repair: Whether dependencies on missing nodes are removed.
        control: Whether control dependencies count; those of data always do.

    Raises:
        TraceError: Two nodes have the same number, or a dependency is missing.
    """
    ids, count = nodes.ids, len(nodes)
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(same):
        at = int(order[same[0] + 1])
        message = f"{nodes.place(at, rank)}: another node has the same number"
        raise TraceError(message, kind="same_number", fields={"node": int(ids[at])})
    children = np.repeat(np.arange(count), nodes.counts)
    given = nodes.parents
    if not control:
        first = np.cumsum(nodes.counts) - nodes.counts
        of_data = np.arange(len(given)) - first[children] < nodes.data[children]
        given, children = given[of_data], children[of_data]
    found = np.minimum(np.searchsorted(ordered, given), max(count - 1, 0))
    present = ordered[found] == given if count else np.ones(0, bool)
    missing = np.flatnonzero(~present)
    if len(missing) and not repair:
        at, lost = int(children[missing[0]]), int(given[missing[0]])
        message = f"{nodes.place(at, rank)}: depends on node {lost}, which is missing"
        more = f" ({len(missing):,} such dependencies): expected a node of the file, or --repair"
        raise TraceError(message + more, kind="missing_node", fields={"node": lost})
    children, parents = children[present], order[found[present]]
    keys = children * count + parents
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    kept = np.ones(len(keys), bool)
    kept[order[1:][keys[1:] == keys[:-1]]] = False
    return Graph(count, parents[kept], children[kept]), len(missing)


def acyclic(nodes: Nodes, rank: int, *, repair: bool) -> tuple[Graph, NDArray[np.int64], list[int]]:
    """Returns the graph of a rank, the position of each node, and numbers of repairs.

    PyTorch traces have control dependencies on the caller of an operation, which may contradict
    those of data. The feeder of mlcommons/chakra 1.0.0 ignores them, that of ASTRA-sim does not.

    Returns:
        The graph, topological positions, and how many dependencies on missing nodes and how many
        control dependencies were removed.

    Raises:
        TraceError: Two nodes have the same number, a dependency is missing, or dependencies form a
            cycle.
    """
    graph, lost = _graph(nodes, rank, repair=repair)
    try:
        return graph, positions(graph, nodes, rank), [lost, 0]
    except TraceError as error:
        cycle = error
    graph, lost = _graph(nodes, rank, repair=True, control=False)
    try:
        found = positions(graph, nodes, rank)
    except TraceError:
        raise cycle from None
    if not repair:
        message = str(cycle).partition("\n")[0]
        message += ": control dependencies close it: expected --repair, which removes them"
        raise TraceError(message, kind="cyclic_dependency")
    return graph, found, [lost, int((nodes.counts - nodes.data).sum())]


def positions(graph: Graph, nodes: Nodes, rank: int, *, hint: str = "") -> NDArray[np.int64]:
    """Returns positions in a topological order that follows recorded start times.

    Raises:
        TraceError: Dependencies form a cycle; `hint` ends the message.
    """
    order = np.lexsort((np.arange(graph.count), nodes.starts))
    found = np.empty(graph.count, np.int64)
    found[order] = np.arange(graph.count)
    if not (found[graph.parents] < found[graph.children]).all():
        order = _sorted(graph, found, nodes, rank, hint)
        found[order] = np.arange(graph.count)
    return found


def _sorted(
    graph: Graph, priority: NDArray[np.int64], nodes: Nodes, rank: int, hint: str
) -> NDArray[np.int64]:
    """Returns the nodes in topological order, those of lowest priority number first."""
    by_parent = np.argsort(graph.parents, kind="stable")
    children = graph.children[by_parent].tolist()
    first = np.searchsorted(graph.parents[by_parent], np.arange(graph.count + 1)).tolist()
    waits = np.bincount(graph.children, minlength=graph.count).tolist()
    keys = priority.tolist()
    ready = [(keys[node], node) for node, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        node = heapq.heappop(ready)[1]
        found.append(node)
        for child in children[first[node] : first[node + 1]]:
            waits[child] -= 1
            if not waits[child]:
                heapq.heappush(ready, (keys[child], child))
    if len(found) < graph.count:
        raise _cyclic(graph, waits, nodes, rank, hint)
    return np.array(found, np.int64)


def _cyclic(graph: Graph, waits: list[int], nodes: Nodes, rank: int, hint: str) -> TraceError:
    """Returns the error of a cycle among the nodes that wait for others."""
    first = graph.first
    node = next(node for node, count in enumerate(waits) if count)
    path: dict[int, int] = {}
    while node not in path:
        path[node] = len(path)
        parents = graph.parents[first[node] : first[node + 1]].tolist()
        node = next(parent for parent in parents if waits[parent])
    cycle = [*list(path)[path[node] :], node][::-1]
    shown = " -> ".join(str(nodes.ids[one]) for one in cycle[:_CYCLE_SHOWN])
    shown += f" -> ... ({len(cycle) - 1:,} nodes)" if len(cycle) > _CYCLE_SHOWN else ""
    message = f"{nodes.place(cycle[0], rank)}: dependencies form a cycle: {shown}{hint}"
    return TraceError(message, kind="cyclic_dependency")


def stream_order(
    graph: Graph, nodes: Nodes, streams: NDArray[np.int64], at: NDArray[np.int64]
) -> StreamOrder:
    """Returns the neighbours of each stream without a path between them.

    Args:
        graph: The dependencies.
        nodes: The nodes.
        streams: The recorded stream of each node; negative for nodes without one.
        at: The topological position of each node.
    """
    chosen = np.flatnonzero(streams >= 0)
    keys = (at[chosen], nodes.starts[chosen], streams[chosen])
    chosen = chosen[np.lexsort(keys)]
    before, after = chosen[:-1], chosen[1:]
    same = streams[before] == streams[after]
    before, after = before[same], after[same]
    ordered = nodes.starts[before] + nodes.durations[before] <= nodes.starts[after]
    overlapping = int((~ordered).sum())
    before, after = before[ordered], after[ordered]
    direct = _has(graph, before, after)
    before, after = before[~direct], after[~direct]
    has_child = np.bincount(graph.parents, minlength=graph.count) > 0
    has_parent = np.bincount(graph.children, minlength=graph.count) > 0
    possible = np.flatnonzero(has_child[before] & has_parent[after])
    linked, unchecked = _with_path(graph, before[possible], after[possible], at)
    kept = np.ones(len(before), bool)
    kept[possible[linked]] = False
    return StreamOrder(before[kept], after[kept], overlapping, unchecked)


def _has(
    graph: Graph, parents: NDArray[np.int64], children: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Returns which of these pairs are edges."""
    edges = np.sort(graph.children * graph.count + graph.parents)
    given = children * graph.count + parents
    if not len(edges):
        return np.zeros(len(given), bool)
    found: NDArray[np.bool_] = (
        edges[np.minimum(np.searchsorted(edges, given), len(edges) - 1)] == given
    )
    return found


def _with_path(
    graph: Graph, before: NDArray[np.int64], after: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Returns which pairs have a path, and how many were not checked: these count as linked.

    A search goes back from the later node, no further than the position of the earlier one. Nodes
    between neighbours of a stream are few if positions follow start times.
    """
    if not len(before):
        return np.empty(0, np.int64), 0
    first, parents, place = graph.first.tolist(), graph.parents.tolist(), at.tolist()
    budget = 8 * (graph.count + len(parents)) + (1 << 20)
    linked: list[int] = []
    for pair, (source, target) in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
        if budget <= 0:
            return np.array([*linked, *range(pair, len(before))]), len(before) - pair
        visited, ahead = {target}, [target]
        while ahead and source not in visited:
            node = ahead.pop()
            budget -= 1
            for parent in parents[first[node] : first[node + 1]]:
                if place[parent] >= place[source] and parent not in visited:
                    visited.add(parent)
                    ahead.append(parent)
        if source in visited:
            linked.append(pair)
    return np.array(linked, np.int64), 0
