"""The most flows with dedicated links, by constraint programming (CP-SAT of OR-Tools).

A flow takes a path, and no other flow uses the links of its hops. The solver selects among paths of
few hops and small detours, with more paths in each round. A linear relaxation over all paths bounds
the number of flows; a selection that reaches the bound is optimal.

The limit is the deterministic time of the solvers, about a second per second, so that every machine
finds the same result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tutti.bypass.bounds import cut_bound, hops_bound
from tutti.bypass.relaxed import limits, relaxed_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

NodePath = tuple[int, ...]
"""The nodes of a path, including both ends."""

_ROUNDS = ((2, 0), (2, 2), (3, 2), (4, 2), (4, 4))
"""The most hops and segments of detour of a path, by round."""
_SHORTEST = 3
"""Paths of so many hops are tried for fewer hops in total; longer ones have not helped."""
_SMALL = 16
"""The most nodes for which fewer hops are searched if every dedicated flow is placed. The search
has improved no result of larger meshes."""
_MAX_PATHS = 20_000
"""The most paths of a round. Rounds with more take long and have improved no result."""


@dataclass(frozen=True)
class Chosen:
    """A selection of dedicated paths."""

    paths: dict[Flow, NodePath]
    """The path of each dedicated flow."""
    links: dict[Flow, int]
    """The dedicated links per hop of each of these flows."""
    bound: int
    """An upper bound of `dedicated` over all selections."""

    @property
    def dedicated(self) -> int:
        """The number of flows with dedicated links; repeated flows count repeatedly."""
        return sum(self.links.values())

    @property
    def hops(self) -> int:
        """The hops of all dedicated flows; repeated flows count repeatedly."""
        return sum(self.links[flow] * (len(path) - 1) for flow, path in self.paths.items())

    @property
    def merit(self) -> tuple[int, int]:
        """More dedicated flows are better, then fewer hops."""
        return self.dedicated, -self.hops


def choose(
    space: Space, flows: Sequence[Flow], start: Chosen | None = None, *, limit: float = 20.0
) -> Chosen:
    """Returns the selection with the most dedicated flows, then the fewest hops.

    Args:
        space: The resources of the mesh.
        flows: Source and destination; repeated pairs request parallel links.
        start: A selection to improve.
        limit: Limit in deterministic time, about seconds.
    """
    requested = Counter(flows)
    bound = min(most(requested), cut_bound(space, requested))
    best, left, relaxed = Chosen({}, {}, bound), limit, False
    if start is not None:
        best = Chosen(start.paths, start.links, bound)
        shortest = space.nodes > _SMALL or best.hops <= hops_bound(space, flows)
        if best.dedicated >= bound and shortest:
            return best
    last: list[tuple[Flow, NodePath]] = []
    for hops, detour in _ROUNDS:
        paths = [(f, w) for f in requested for w in paths_between(space, f, hops, detour)]
        if len(paths) > _MAX_PATHS or left <= 0:
            break
        if paths == last:
            continue
        last = paths
        found, took = _pack(space, requested, paths, best, left)
        left -= took
        best = max(best, found, key=lambda one: one.merit)
        if best.dedicated < best.bound and not relaxed:
            bound, relaxed = min(bound, relaxed_bound(space, requested, limit)), True
            best = Chosen(best.paths, best.links, bound)
        shortest = hops >= _SHORTEST or best.hops <= hops_bound(space, flows)
        if best.dedicated >= best.bound and shortest:
            break
    return best


def most(requested: Counter[Flow]) -> int:
    """Returns a bound by counting: a node sends or receives on at most as many links as ports."""
    out: Counter[int] = Counter()
    into: Counter[int] = Counter()
    for (source, destination), count in requested.items():
        out[source] += count
        into[destination] += count
    return min(sum(min(count, 4) for count in side.values()) for side in (out, into))


def paths_between(space: Space, flow: Flow, hops: int, detour: int) -> Iterator[NodePath]:
    """Returns the paths with limited hops and segments of detour."""
    source, destination = flow
    longest = space.distance(source, destination) + detour

    def onward(path: NodePath, length: int) -> Iterator[NodePath]:
        at = path[-1]
        if at == destination:
            yield path
            return
        left = hops - len(path)
        for to in space.leaving[at]:
            reach = length + space.distance(at, to)
            if to in path or reach + space.distance(to, destination) > longest:
                continue
            if to == destination or left > 1 or (left == 1 and (to, destination) in space.hops):
                yield from onward((*path, to), reach)

    return onward((source,), 0)


def _links(
    model: Any,  # noqa: ANN401 - of OR-tools
    space: Space,
    requested: Counter[Flow],
    paths: list[tuple[Flow, NodePath]],
) -> list[Any]:
    """Returns the number of links of each path, at most one path per flow, as variables."""
    taken: dict[Hop, list[Any]] = defaultdict(list)
    links: list[Any] = []
    of_flow: dict[Flow, list[Any]] = defaultdict(list)
    for flow, path in paths:
        count = requested[flow]
        chosen = model.new_bool_var("")
        link = chosen
        if count > 1:
            link = model.new_int_var(0, count, "")
            model.add(link <= count * chosen)
        links.append(link)
        of_flow[flow].append(chosen)
        for hop in pairwise(path):
            taken[hop].append(link)
    for chosen in of_flow.values():
        model.add_at_most_one(chosen)
    _fit(model, space, taken)
    return links


def _pack(
    space: Space,
    requested: Counter[Flow],
    paths: list[tuple[Flow, NodePath]],
    best: Chosen,
    limit: float,
) -> tuple[Chosen, float]:
    """Returns the best selection among these paths, and the deterministic time spent."""
    from ortools.sat.python import cp_model

    model: Any = cp_model.CpModel()
    links = _links(model, space, requested, paths)
    for (flow, path), link in zip(paths, links, strict=True):
        if flow in best.paths:
            model.add_hint(link, best.links[flow] if path == best.paths[flow] else 0)
    total = sum(links)
    values, took = None, 0.0
    if best.dedicated < best.bound:
        model.add(total <= best.bound)
        model.maximize(total)
        values, took = _solved(model, links, limit)
        if values is None:
            return best, took
        model.clear_hints()
        for link, value in zip(links, values, strict=True):
            model.add_hint(link, value)
    model.add(total == (best.bound if values is None else sum(values)))
    model.minimize(
        sum(link * (len(path) - 1) for link, (_, path) in zip(links, paths, strict=True))
    )
    shorter, more = _solved(model, links, max(limit - took, 1.0))
    values, took = shorter or values, took + more
    if values is None:
        return best, took
    chosen_paths = {f: w for (f, w), value in zip(paths, values, strict=True) if value}
    counts = {f: value for (f, _), value in zip(paths, values, strict=True) if value}
    return Chosen(chosen_paths, counts, best.bound), took


def _fit(model: Any, space: Space, taken: dict[Hop, list[Any]]) -> None:  # noqa: ANN401
    """Adds the limits of `TakenHops.fits` as constraints."""
    for hops, most in limits(space):
        users = [link for hop in hops for link in taken.get(hop, ())]
        if users:
            model.add(sum(users) <= most)


def _solved(model: Any, unknowns: list[Any], limit: float) -> tuple[list[int] | None, float]:  # noqa: ANN401
    """Returns the values, None if none were found in time, and the deterministic time spent."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # By default CP-SAT catches SIGINT: it returns a worse solution and resets Python's handler.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = limit
    status = solver.solve(model)
    took = float(solver.response_proto.deterministic_time)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, took
    return [solver.value(unknown) for unknown in unknowns], took
