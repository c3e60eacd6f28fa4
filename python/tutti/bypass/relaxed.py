"""An upper bound of the number of dedicated flows, by linear relaxation.

Flows may be split over any paths in any fractions, so no selection of paths exceeds the bound.
Flows with a common end form one commodity, which does not change the optimum, because it can be
decomposed again.
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
"""The most unknowns; larger programs take minutes."""


def limits(space: Space) -> Iterator[tuple[list[Hop], int]]:
    """Yields sets of hops and the capacity that each set shares."""
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


def relaxed_bound(space: Space, requested: Counter[Flow], limit: float) -> int:
    """Returns the bound, or the number of flows if the relaxation is too large or too slow.

    Args:
        space: The resources of the mesh.
        requested: Links requested by each pair.
        limit: Limit in deterministic time, about seconds.
    """
    from ortools.linear_solver import pywraplp

    turned = len({source for source, _ in requested}) < len({end for _, end in requested})
    ends = sorted({flow[0] if turned else flow[1] for flow in requested})
    bound = sum(requested.values())
    if len(ends) * len(space.hops) > _MOST_SHARES:
        return bound
    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    accepted = {flow: solver.NumVar(0, count, "") for flow, count in requested.items()}
    shares: dict[Hop, list[Any]] = {hop: [] for hop in space.hops}
    for end in ends:
        here = {
            b if turned else a: x for (a, b), x in accepted.items() if (a if turned else b) == end
        }
        _commodity(solver, space, here, (end, turned), shares)
    for hops, most in limits(space):
        row = solver.Constraint(-solver.infinity(), most)
        for share in (share for hop in hops for share in shares[hop]):
            row.SetCoefficient(share, 1)
    for flow in accepted.values():
        solver.Objective().SetCoefficient(flow, 1)
    solver.Objective().SetMaximization()
    solver.SetSolverSpecificParametersAsString(f"max_deterministic_time: {limit}")
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return bound
    return min(bound, math.floor(float(solver.Objective().Value()) + 1e-6))


def _commodity(
    solver: Any,  # noqa: ANN401 - has no types
    space: Space,
    accepted: dict[int, Any],
    end: tuple[int, bool],
    shares: dict[Hop, list[Any]],
) -> None:
    """Adds flow conservation at every node except the common end."""
    node, turned = end
    rows = [solver.Constraint(0, 0) for _ in range(space.nodes)]
    for hop in space.hops:
        if hop[1 if turned else 0] != node:
            share = solver.NumVar(0, solver.infinity(), "")
            shares[hop].append(share)
            rows[hop[0]].SetCoefficient(share, -1 if turned else 1)
            rows[hop[1]].SetCoefficient(share, 1 if turned else -1)
    for other, flow in accepted.items():
        rows[other].SetCoefficient(flow, -1)
    rows[node].SetBounds(-solver.infinity(), solver.infinity())
