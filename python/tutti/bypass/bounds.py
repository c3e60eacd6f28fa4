"""Bounds of a mapping: dedicated flows, flows per link, and hops, for meshes of any size.

A cut is a set of nodes. At most as many dedicated flows enter it as links can enter.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Space

_PORTS = 4


def cuts(space: Space, flows: Iterable[Flow]) -> Iterator[tuple[list[Flow], int]]:
    """Yields the flows that cross a cut in one direction, and the links that can cross it.

    The cuts are those between neighbouring rows or columns, and each node.
    """
    flows = list(flows)
    for axis, (length, lines) in enumerate(
        ((space.rows, space.columns), (space.columns, space.rows))
    ):
        places = [(divmod(a, space.columns)[axis], divmod(b, space.columns)[axis])
                  for a, b in flows]  # fmt: skip
        for at in range(1, length):
            for crossed in ((True, False), (False, True)):
                crossing = [
                    flow
                    for flow, (start, end) in zip(flows, places, strict=True)
                    if (start < at, end < at) == crossed
                ]
                yield crossing, lines * (space.wires + 1)
    for end in (0, 1):
        of_node: dict[int, list[Flow]] = {}
        for flow in flows:
            of_node.setdefault(flow[end], []).append(flow)
        for some in of_node.values():
            yield some, _PORTS


def load_bound(space: Space, flows: Sequence[Flow]) -> float:
    """Returns a lower bound of the flows per link of the most loaded links."""
    return max((len(some) / links for some, links in cuts(space, flows) if some), default=0.0)


def hops_bound(space: Space, flows: Iterable[Flow]) -> int:
    """Returns a lower bound of the total hops.

    A flow takes one hop along a line, or two with a turn. Of the flows of several segments along a
    line, those that do not fit its wires as one piece each take one more.
    """
    flows = list(flows)
    pieces = defaultdict(set)
    for flow in flows:
        if flow in space.hops and space.hops[flow].span > 1:
            stretch = space.hops[flow]
            pieces[stretch.line].add((stretch.end, stretch.first))
    cut = sum(len(some) - _packed(sorted(some), space.wires) for some in pieces.values())
    return sum(least_hops(space, flow) for flow in flows) + cut


def least_hops(space: Space, flow: Flow) -> int:
    """Returns the fewest hops of a flow: one along a line, two with a turn."""
    return 1 if flow in space.hops else 2


def _packed(pieces: Sequence[tuple[int, int]], wires: int) -> int:
    """Returns the most pieces that fit on wires, by interval scheduling.

    Args:
        pieces: End and first segment, sorted.
        wires: The number of wires.
    """
    ends = [0] * wires
    count = 0
    for end, first in pieces:
        free = [place for place in ends if place <= first]
        if free:
            ends[ends.index(max(free))] = end
            count += 1
    return count


def cut_bound(space: Space, requested: Counter[Flow]) -> int:
    """Returns an upper bound of the number of dedicated flows, by linear programming over cuts.

    All hops together use at most four outputs per node, and all paths at most the segments of the
    mesh and the wires.
    """
    from ortools.linear_solver import pywraplp

    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    accepted = {flow: solver.NumVar(0, count, "") for flow, count in requested.items()}

    def limit(weights: Iterable[tuple[Flow, int]], most: int) -> None:
        row = solver.Constraint(-solver.infinity(), most)
        for flow, weight in weights:
            row.SetCoefficient(accepted[flow], weight)

    for some, links in cuts(space, requested):
        if sum(requested[flow] for flow in some) > links:
            limit(((flow, 1) for flow in some), links)
    segments = space.mesh_links * (space.wires + 1)
    limit(((flow, least_hops(space, flow)) for flow in requested), _PORTS * space.nodes)
    limit(((flow, space.distance(*flow)) for flow in requested), segments)
    for variable in accepted.values():
        solver.Objective().SetCoefficient(variable, 1)
    solver.Objective().SetMaximization()
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return sum(requested.values())
    return math.floor(float(solver.Objective().Value()) + 1e-6)
