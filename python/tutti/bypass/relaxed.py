"""How many flows can have links of their own at most: a linear relaxation.

Flows may be split over any ways there are, however long, and in any fractions, so no choice of ways
exceeds it. Flows with a common end count as one commodity, which changes nothing: what reaches the
end can be taken apart again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

_MOST_SHARES = 100_000
"""Unknowns: more take minutes."""


def limits(space: Space) -> Iterator[tuple[list[Hop], int]]:
    """Hops of which there is room for so many together."""
    long: dict[object, list[Hop]] = defaultdict(list)
    every: dict[object, list[Hop]] = defaultdict(list)
    ports: dict[object, list[Hop]] = defaultdict(list)
    for hop, stretch in space.hops.items():
        group = space.group(stretch.line)
        ports["output", hop[0], group].append(hop)
        ports["input", hop[1], group].append(hop)
        for segment in range(stretch.first, stretch.end):
            every[stretch.line, segment].append(hop)
            if stretch.span > 1:
                long[stretch.line, segment].append(hop)
    for hops in ports.values():
        yield hops, space.ports
    for hops in every.values():
        yield hops, space.wires + 1
    for hops in long.values():
        yield hops, space.wires


def relaxed_bound(space: Space, wanted: Counter[Flow], limit: float) -> int:
    """The bound; the number of flows where the relaxation is too large or takes too long.

    Args:
        space: what there is room for.
        wanted: how many links each pair asks for.
        limit: in the solver's units of deterministic time, about seconds.
    """
    from ortools.linear_solver import pywraplp

    turned = len({source for source, _ in wanted}) < len({end for _, end in wanted})
    ends = sorted({flow[0] if turned else flow[1] for flow in wanted})
    bound = sum(wanted.values())
    if len(ends) * len(space.hops) > _MOST_SHARES:
        return bound
    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    asked = {flow: solver.NumVar(0, count, "") for flow, count in wanted.items()}
    shares: dict[Hop, list[Any]] = {hop: [] for hop in space.hops}
    for end in ends:
        here = {b if turned else a: x for (a, b), x in asked.items() if (a if turned else b) == end}
        _commodity(solver, space, here, (end, turned), shares)
    for hops, most in limits(space):
        row = solver.Constraint(-solver.infinity(), most)
        for share in (share for hop in hops for share in shares[hop]):
            row.SetCoefficient(share, 1)
    for flow in asked.values():
        solver.Objective().SetCoefficient(flow, 1)
    solver.Objective().SetMaximization()
    solver.SetSolverSpecificParametersAsString(f"max_deterministic_time: {limit}")
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return bound
    return min(bound, math.floor(float(solver.Objective().Value()) + 1e-6))


def _commodity(
    solver: Any,  # noqa: ANN401 - has no types
    space: Space,
    asked: dict[int, Any],
    end: tuple[int, bool],
    shares: dict[Hop, list[Any]],
) -> None:
    """What leaves a node is what arrives and what is asked for there, but for the common end."""
    node, turned = end
    rows = [solver.Constraint(0, 0) for _ in range(space.nodes)]
    for hop in space.hops:
        if hop[1 if turned else 0] != node:
            share = solver.NumVar(0, solver.infinity(), "")
            shares[hop].append(share)
            rows[hop[0]].SetCoefficient(share, -1 if turned else 1)
            rows[hop[1]].SetCoefficient(share, 1 if turned else -1)
    for other, flow in asked.items():
        rows[other].SetCoefficient(flow, -1)
    rows[node].SetBounds(-solver.infinity(), solver.infinity())
