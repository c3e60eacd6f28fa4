"""Flows onto a bypass mesh: which links are live, and which way each flow goes.

First as many flows as possible get links of their own, by search (`exact`) or at a short look
(`greedy`). The rest go over mesh links at idle ports, spread as evenly as they can be, and only
where there is no such way over links that others have to themselves. What is left of wires and
ports then doubles the links in greatest demand, and gives idle ports their mesh links back.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti.bypass import exact, greedy
from tutti.bypass.greedy import hops_of
from tutti.bypass.links import notation
from tutti.bypass.network import BypassMesh, Configuration
from tutti.bypass.space import Space, Taken
from tutti.config.mistakes import did_you_mean
from tutti.errors import BypassError
from tutti.units import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.bypass.exact import Chosen
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop
    from tutti.topology import Routes, Topology

Method = Literal["auto", "exact", "greedy"]

METHODS: tuple[Method, ...] = ("auto", "exact", "greedy")

_MOST_SIDE = 8
"""Of a mesh that `auto` searches; larger ones are mapped at a short look."""


@dataclass(frozen=True)
class Mapping:
    """Where flows go, and the configuration that they go over."""

    mesh: BypassMesh
    flows: tuple[Flow, ...]
    """Source and destination of each, as they were asked for."""
    ways: dict[Flow, list[int]]
    """The nodes that each pair's messages pass, ends included."""
    dedicated: tuple[Flow, ...]
    """Flows with links that no other dedicated flow goes over; a pair as often as it has them."""
    shared: tuple[Flow, ...]
    """Flows that go over links which others go over, too."""
    unplaced: tuple[Flow, ...]
    """Flows without any way."""
    lent: tuple[Flow, ...]
    """Dedicated flows whose links shared ones go over, where these have no other way."""
    bound: int
    """No configuration has links of their own for more flows."""
    method: Method
    """`exact` or `greedy`: how the dedicated flows were found."""
    links: dict[Hop, int] = field(repr=False)
    """How many live links lead from one node to another."""

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no configuration has links of their own for more flows."""
        return len(self.dedicated) == self.bound

    @cached_property
    def configuration(self) -> Configuration:
        """The live links, with their wires and ports."""
        return self.mesh.configure(notation(Taken(space_of(self.mesh), _each(self.links))))

    @cached_property
    def loads(self) -> dict[Hop, int]:
        """How many flows go from one node to another on the live links between them."""
        loads: Counter[Hop] = Counter()
        for flow in self.flows:
            loads.update(hops_of(self.ways.get(flow, ())))
        return dict(sorted(loads.items()))

    @property
    def most_loaded(self) -> float:
        """The most flows per link."""
        return max((load / self.links[hop] for hop, load in self.loads.items()), default=0.0)

    @property
    def hops(self) -> int:
        """Of all flows together."""
        return sum(len(self.ways[flow]) - 1 for flow in self.flows if flow in self.ways)

    def routes(self, topology: Topology) -> Routes:
        """Routes over these ways, on what `configuration.topology` returned."""
        return self.configuration.routes(topology, ways=self.ways)


def map_flows(
    mesh: BypassMesh,
    flows: Sequence[Flow],
    method: Method = "auto",
    time_limit: str | Time = "20 s",
    *,
    fill: bool = True,
) -> Mapping:
    """The configuration of a mesh with links of their own for the most flows.

    Args:
        mesh: what is built.
        flows: source and destination of each; a pair that is there several times asks for that many
            links side by side.
        method: ``exact`` searches, and says how close to the best it is; ``greedy`` looks once;
            ``auto`` searches up to 8 x 8 nodes.
        time_limit: for a search, in the solver's own count of its work, which is about as long on
            the clock and the same on every machine.
        fill: whether idle wires and ports double the links in greatest demand, and then get their
            mesh links back.

    Raises:
        BypassError: a flow cannot be, or there is no such method.
        UnitError: a time without a unit.
    """
    _check(mesh, flows, method)
    space = space_of(mesh)
    if method == "auto":
        method = "exact" if mesh.side <= _MOST_SIDE else "greedy"
    limit = Time.of_any(time_limit).ps / 1e12
    if method == "exact":
        chosen = exact.choose(space, flows, limit=limit)
    else:
        chosen = greedy.place(space, flows)
    return completed(mesh, flows, chosen, method, fill=fill)


def completed(
    mesh: BypassMesh, flows: Sequence[Flow], chosen: Chosen, method: Method, *, fill: bool
) -> Mapping:
    """The mapping in which these flows have links of their own, and the others whatever is left."""
    own = Counter[tuple[int, int]]()
    for flow, way in chosen.ways.items():
        for hop in hops_of(way):
            own[hop] += chosen.links[flow]
    rest = [flow for flow in dict.fromkeys(flows) if flow not in chosen.ways]
    live = Taken(space_of(mesh), own.elements())
    demand = Counter(hop for flow in rest for hop in hops_of(live.space.xy(*flow)))
    _mesh_back(live, demand)
    ways = {flow: list(way) for flow, way in chosen.ways.items()}
    used: Counter[Hop] = Counter()
    for flow in rest:
        way = _free_way(live, own, used, flow)
        if way is not None:
            ways[flow] = way
            used.update(hops_of(way))
    for hop in list(live.hops):
        if not own[hop] and not used[hop]:
            live.give(hop)
    if fill:
        _double(live, flows, ways)
        _mesh_back(live, demand)
    return _mapping(mesh, flows, chosen, ways, live, used, method)


def space_of(mesh: BypassMesh) -> Space:
    """What a mesh has room for."""
    return Space(mesh.side, mesh.wires, mesh.muxes)


def _each(links: dict[Hop, int]) -> Iterable[Hop]:
    return Counter(links).elements()


def _mesh_back(live: Taken, demand: Counter[Hop]) -> None:
    """Every mesh link whose ports are idle, those in demand first."""
    hops = [hop for hop, stretch in live.space.hops.items() if stretch.span == 1]
    for hop in sorted(hops, key=lambda hop: (-demand[hop], hop)):
        if not live.hops[hop] and live.fits(hop):
            live.take(hop)


_HOP, _OTHERS, _OWNED = 4, 2, 1 << 20
"""What a hop costs, what each flow on its links adds, and what a link that another has to itself."""


def _free_way(
    live: Taken, own: Counter[Hop], used: Counter[Hop], flow: Flow
) -> list[int] | None:
    """The cheapest way over live links; among equals the first by its nodes."""
    source, destination = flow
    onward: dict[int, list[Hop]] = {}
    for hop in sorted(live.hops):
        onward.setdefault(hop[0], []).append(hop)
    waiting: list[tuple[int, list[int]]] = [(0, [source])]
    done: set[int] = set()
    while waiting:
        cost, way = heapq.heappop(waiting)
        at = way[-1]
        if at == destination:
            return way
        if at in done:
            continue
        done.add(at)
        for hop in onward.get(at, ()):
            if hop[1] not in done:
                price = _HOP + _OTHERS * used[hop]
                if own[hop] and used[hop] >= live.hops[hop] - own[hop]:
                    price += _OWNED
                heapq.heappush(waiting, (cost + price, [*way, hop[1]]))
    return None


def _double(live: Taken, flows: Sequence[Flow], ways: dict[Flow, list[int]]) -> None:
    """More links where the most flows are to one; then for whole ways, one more in each round."""
    loads: Counter[Hop] = Counter()
    for flow in flows:
        loads.update(hops_of(ways.get(flow, ())))
    crowded = [(-load / live.hops[hop], hop) for hop, load in loads.items()]
    heapq.heapify(crowded)
    while crowded and crowded[0][0] < -1:
        _, hop = heapq.heappop(crowded)
        if live.add([hop]):
            heapq.heappush(crowded, (-loads[hop] / live.hops[hop], hop))
    whole = [hops_of(way) for way in ways.values()]
    while whole:
        whole = [hops for hops in whole if live.add(hops)]


def _mapping(
    mesh: BypassMesh,
    flows: Sequence[Flow],
    chosen: Chosen,
    ways: dict[Flow, list[int]],
    live: Taken,
    used: Counter[Hop],
    method: Method,
) -> Mapping:
    left = Counter(chosen.links)
    dedicated, shared = [], []
    for flow in flows:
        if left[flow]:
            left[flow] -= 1
            dedicated.append(flow)
        elif flow in ways:
            shared.append(flow)
    own: Counter[Hop] = Counter()
    for flow, way in chosen.ways.items():
        for hop in hops_of(way):
            own[hop] += chosen.links[flow]
    ridden = {hop for hop in used if own[hop] and own[hop] + used[hop] > live.hops[hop]}
    return Mapping(
        mesh=mesh,
        flows=tuple(flows),
        ways=ways,
        dedicated=tuple(dedicated),
        shared=tuple(shared),
        unplaced=tuple(flow for flow in flows if flow not in ways),
        lent=tuple(flow for flow in chosen.ways if ridden & set(hops_of(chosen.ways[flow]))),
        bound=chosen.bound,
        method=method,
        links=dict(sorted(live.hops.items())),
    )


def _check(mesh: BypassMesh, flows: Sequence[Flow], method: str) -> None:
    if method not in METHODS:
        known = ", ".join(METHODS)
        message = f"there is no method `{method}`: expected one of {known}"
        hint = did_you_mean(method, METHODS) or None
        raise BypassError(message, kind="method", hint=hint, fields={"method": method})
    for flow in flows:
        for node in flow:
            if not 0 <= node < mesh.nodes:
                message = (
                    f"flow {flow[0]} -> {flow[1]}: there is no node {node}: "
                    f"{mesh.side}x{mesh.side} nodes have the numbers 0 to {mesh.nodes - 1}"
                )
                raise BypassError(message, kind="flow", fields={"flow": flow, "node": node})
        if flow[0] == flow[1]:
            message = f"flow {flow[0]} -> {flow[1]}: nobody sends to itself over a network"
            raise BypassError(message, kind="flow", fields={"flow": flow, "node": flow[0]})
