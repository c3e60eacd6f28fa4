"""Flows onto a bypass mesh: which links are live, and which way each flow goes.

As many flows as possible get links of their own, by search (`exact`) or at a short look (`greedy`);
the others get what is left (`rest`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti.bypass import exact, greedy
from tutti.bypass.greedy import hops_of
from tutti.bypass.links import notation
from tutti.bypass.rest import Live
from tutti.bypass.space import Space, TakenHops
from tutti.errors import BypassError
from tutti.files.mistakes import did_you_mean
from tutti.units import Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.bypass.exact import Chosen
    from tutti.bypass.flows import Flow
    from tutti.bypass.network import BypassConfiguration, BypassMesh
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
    paths: dict[Flow, list[int]]
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
    def configuration(self) -> BypassConfiguration:
        """The live links, with their wires and ports."""
        taken = TakenHops(space_of(self.mesh), Counter(self.links).elements())
        return self.mesh.configure(notation(taken))

    @cached_property
    def loads(self) -> dict[Hop, int]:
        """How many flows go from one node to another on the live links between them."""
        loads: Counter[Hop] = Counter()
        for flow in self.flows:
            loads.update(hops_of(self.paths.get(flow, ())))
        return dict(sorted(loads.items()))

    @property
    def most_loaded(self) -> float:
        """The most flows per link."""
        return max((load / self.links[hop] for hop, load in self.loads.items()), default=0.0)

    @property
    def hops(self) -> int:
        """Of all flows together."""
        return sum(len(self.paths[flow]) - 1 for flow in self.flows if flow in self.paths)

    def routes(self, topology: Topology) -> Routes:
        """Routes over these ways, on what `configuration.topology` returned."""
        return self.configuration.routes(topology, paths=self.paths)


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
    chosen = greedy.place(space, flows)
    if method == "exact":
        found = exact.choose(space, flows, limit=limit)
        is_better = found.dedicated >= chosen.dedicated
        chosen = found if is_better else replace(chosen, bound=found.bound)
    return completed(mesh, flows, chosen, method, fill=fill)


def spread_flows(mesh: BypassMesh, flows: Sequence[Flow]) -> Mapping:
    """The mesh with wires beside the links in greatest demand; no flow has links to itself.

    Where many flows share, ports that dedicated flows hold are missed more than their links help.

    Raises:
        BypassError: a flow cannot be.
    """
    _check(mesh, flows, "greedy")
    nobody = exact.Chosen({}, {}, len(flows))
    return completed(mesh, flows, nobody, "greedy", fill=True)


def completed(
    mesh: BypassMesh, flows: Sequence[Flow], chosen: Chosen, method: Method, *, fill: bool
) -> Mapping:
    """The mapping in which these flows have links of their own, and the others whatever is left."""
    live = Live(space_of(mesh), flows, chosen)
    if fill:
        live.fill()
    left = Counter(chosen.links)
    dedicated, shared = [], []
    for flow in flows:
        if left[flow]:
            left[flow] -= 1
            dedicated.append(flow)
        elif flow in live.ways:
            shared.append(flow)
    lent = live.lent
    return Mapping(
        mesh=mesh,
        flows=tuple(flows),
        paths=live.ways,
        dedicated=tuple(dedicated),
        shared=tuple(shared),
        unplaced=tuple(flow for flow in flows if flow not in live.ways),
        lent=tuple(flow for flow in chosen.ways if lent & set(hops_of(chosen.ways[flow]))),
        bound=chosen.bound,
        method=method,
        links=dict(sorted(live.taken.hops.items())),
    )


def space_of(mesh: BypassMesh) -> Space:
    """What a mesh has room for."""
    return Space(mesh.side, mesh.wires, mesh.muxes)


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
