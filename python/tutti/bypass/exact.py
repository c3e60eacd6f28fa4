"""The most flows that can have links of their own, by constraint programming (CP-SAT of OR-Tools).

A flow takes a way: a chain of hops from its source to its destination, each hop on links that no
other flow uses. The solver chooses among the ways of few hops and small detours, more of them from
round to round, and a linear relaxation over all ways there are says how many flows no choice at all
can exceed. Where the two meet, the choice is proved best.

What depends on time would differ from machine to machine: the limit is the solvers' own count of
their work, which they call deterministic time and which is about a second for a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tutti.bypass.relaxed import limits, relaxed_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

Way = tuple[int, ...]
"""The nodes of a way, ends included."""

_ROUNDS = ((2, 0), (2, 2), (3, 2), (4, 2), (4, 4))
"""Hops and segments of detour that ways of a round have at most."""
_MOST_WAYS = 20_000
"""In one round: more take long to search, and have found nothing better."""


@dataclass(frozen=True)
class Chosen:
    """What the solver has found."""

    ways: dict[Flow, Way]
    """Of the flows that have links of their own."""
    links: dict[Flow, int]
    """How many of its own each of these has on every hop of its way."""
    bound: int
    """No choice gives links of their own to more flows, counted as often as they are asked for."""

    @property
    def dedicated(self) -> int:
        """Flows with links of their own, counted as often as they are asked for."""
        return sum(self.links.values())


def choose(space: Space, flows: Sequence[Flow], *, limit: float = 20.0) -> Chosen:
    """The choice with the most flows on links of their own, then the fewest hops.

    Args:
        space: what there is room for.
        flows: source and destination; repeated pairs ask for that many links side by side.
        limit: in units of deterministic time, about seconds.
    """
    wanted = Counter(flows)
    bound = most(wanted)
    best, left, relaxed = Chosen({}, {}, bound), limit, False
    last: list[tuple[Flow, Way]] = []
    for hops, detour in _ROUNDS:
        ways = [(f, w) for f in wanted for w in ways_between(space, f, hops, detour)]
        if len(ways) > _MOST_WAYS or left <= 0:
            break
        if ways == last:
            continue
        last = ways
        found, took = _pack(space, wanted, ways, best, left)
        left -= took
        best = found if found.dedicated > best.dedicated else best
        if best.dedicated < best.bound and not relaxed:
            bound, relaxed = min(bound, relaxed_bound(space, wanted, limit)), True
            best = Chosen(best.ways, best.links, bound)
        if best.dedicated >= best.bound:
            break
    return best


def most(wanted: Counter[Flow]) -> int:
    """A bound by counting: no node sends or receives more than it has ports."""
    out: Counter[int] = Counter()
    into: Counter[int] = Counter()
    for (source, destination), count in wanted.items():
        out[source] += count
        into[destination] += count
    return min(sum(min(count, 4) for count in side.values()) for side in (out, into))


def ways_between(space: Space, flow: Flow, hops: int, detour: int) -> Iterator[Way]:
    """Chains of at most so many hops, so many segments longer than the shortest."""
    source, destination = flow
    longest = space.distance(source, destination) + detour

    def onward(way: Way, length: int) -> Iterator[Way]:
        at = way[-1]
        if at == destination:
            yield way
            return
        left = hops - len(way)
        for to in space.leaving[at]:
            reach = length + space.distance(at, to)
            if to in way or reach + space.distance(to, destination) > longest:
                continue
            if to == destination or left > 1 or (left == 1 and (to, destination) in space.hops):
                yield from onward((*way, to), reach)

    return onward((source,), 0)


def _pack(
    space: Space, wanted: Counter[Flow], ways: list[tuple[Flow, Way]], best: Chosen, limit: float
) -> tuple[Chosen, float]:
    """The best choice among these ways, and the deterministic time that took."""
    from ortools.sat.python import cp_model

    model: Any = cp_model.CpModel()
    taken: dict[Hop, list[Any]] = defaultdict(list)
    links: list[Any] = []
    of_flow: dict[Flow, list[Any]] = defaultdict(list)
    for flow, way in ways:
        count = wanted[flow]
        chosen = model.new_bool_var("")
        link = chosen
        if count > 1:
            link = model.new_int_var(0, count, "")
            model.add(link <= count * chosen)
        links.append(link)
        of_flow[flow].append(chosen)
        for hop in pairwise(way):
            taken[hop].append(link)
        if flow in best.ways:
            model.add_hint(link, best.links[flow] if way == best.ways[flow] else 0)
    for chosen in of_flow.values():
        model.add_at_most_one(chosen)
    _fit(model, space, taken)
    total = sum(links)
    model.add(total <= best.bound)
    model.maximize(total)
    values, took = _solved(model, links, limit)
    if values is None:
        return best, took
    model.clear_hints()
    for link, value in zip(links, values, strict=True):
        model.add_hint(link, value)
    model.add(total == sum(values))
    model.minimize(sum(link * (len(way) - 1) for link, (_, way) in zip(links, ways, strict=True)))
    shorter, more = _solved(model, links, max(limit - took, 1.0))
    values, took = shorter or values, took + more
    chosen_ways = {f: w for (f, w), value in zip(ways, values, strict=True) if value}
    counts = {f: value for (f, _), value in zip(ways, values, strict=True) if value}
    return Chosen(chosen_ways, counts, best.bound), took


def _fit(model: Any, space: Space, taken: dict[Hop, list[Any]]) -> None:  # noqa: ANN401
    """What `Taken.fits` counts, as constraints."""
    for hops, most in limits(space):
        users = [link for hop in hops for link in taken.get(hop, ())]
        if users:
            model.add(sum(users) <= most)


def _solved(model: Any, unknowns: list[Any], limit: float) -> tuple[list[int] | None, float]:  # noqa: ANN401
    """The unknowns' values, None where none were found in time, and the deterministic time."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = limit
    status = solver.solve(model)
    took = float(solver.response_proto.deterministic_time)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, took
    return [solver.value(unknown) for unknown in unknowns], took
