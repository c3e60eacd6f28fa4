"""Mapping of flows to a bypass mesh: the live links and the path of each flow.

As many flows as possible get dedicated links, with paths of the fewest hops: by constraint
programming (`exact`), by local search (`local`), or greedily (`greedy`). The others share links
(`rest`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti.base.files.mistakes import did_you_mean
from tutti.base.units import Time
from tutti.bypass import exact, greedy
from tutti.bypass.balanced import balanced
from tutti.bypass.bounds import cut_bound, hops_bound, load_bound
from tutti.bypass.ejection import improved
from tutti.bypass.errors import BypassError
from tutti.bypass.exact import Chosen
from tutti.bypass.greedy import hops_of
from tutti.bypass.links import notation
from tutti.bypass.rest import Live
from tutti.bypass.space import Space, TakenHops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.bypass.flows import Flow
    from tutti.bypass.network import BypassConfiguration, BypassMesh
    from tutti.bypass.space import Hop
    from tutti.topologies import Routes, Topology

Method = Literal["auto", "exact", "local", "greedy"]

METHODS: tuple[Method, ...] = ("auto", "exact", "local", "greedy")

_MOST_NODES = 64
"""The most nodes for which `auto` is exact."""
_TRIALS = 10_000
"""The paths that a local search tries in about a second."""


@dataclass(frozen=True)
class Mapping:
    """The paths of flows and the configuration for them."""

    mesh: BypassMesh
    flows: tuple[Flow, ...]
    """Source and destination of each flow, as requested."""
    paths: dict[Flow, list[int]]
    """The nodes on the path of each pair, including both ends."""
    dedicated: tuple[Flow, ...]
    """Flows whose links no other dedicated flow uses; a pair appears once per parallel link."""
    shared: tuple[Flow, ...]
    """Flows that share links."""
    unplaced: tuple[Flow, ...]
    """Flows without a path."""
    lent: tuple[Flow, ...]
    """Dedicated flows with links that shared flows also use, for lack of another path."""
    bound: int
    """An upper bound of the number of dedicated flows."""
    method: Method
    """The method that found the dedicated flows: `exact`, `local` or `greedy`."""
    links: dict[Hop, int] = field(repr=False)
    """The number of live links of each hop."""

    @property
    def optimal(self) -> bool:
        """Whether the number of dedicated flows is proved optimal."""
        return len(self.dedicated) == self.bound

    @cached_property
    def configuration(self) -> BypassConfiguration:
        """The live links with their wires and ports."""
        taken = TakenHops(space_of(self.mesh), Counter(self.links).elements())
        return self.mesh.configure(notation(taken))

    @cached_property
    def loads(self) -> dict[Hop, int]:
        """The number of flows on each hop."""
        loads: Counter[Hop] = Counter()
        for flow in self.flows:
            loads.update(hops_of(self.paths.get(flow, ())))
        return dict(sorted(loads.items()))

    @property
    def most_loaded(self) -> float:
        """The maximum number of flows per link."""
        return max((load / self.links[hop] for hop, load in self.loads.items()), default=0.0)

    @property
    def load_bound(self) -> float:
        """A lower bound of `most_loaded` over all mappings of these flows."""
        return load_bound(space_of(self.mesh), self.flows)

    @property
    def hops(self) -> int:
        """The total hops of all flows."""
        return sum(len(self.paths[flow]) - 1 for flow in self.flows if flow in self.paths)

    @property
    def hops_bound(self) -> int:
        """A lower bound of `hops` over all mappings that place the same flows."""
        return hops_bound(space_of(self.mesh), (one for one in self.flows if one in self.paths))

    def routes(self, topology: Topology) -> Routes:
        """Returns routes over these paths on the result of `configuration.topology`."""
        return self.configuration.routes(topology, paths=self.paths)


def map_flows(
    mesh: BypassMesh,
    flows: Sequence[Flow],
    method: Method = "auto",
    time_limit: str | Time = "20 s",
    *,
    fill: bool = True,
) -> Mapping:
    """Returns the configuration with the most dedicated flows, then the fewest hops.

    Args:
        mesh: The mesh.
        flows: Source and destination; repeated pairs request parallel links.
        method: ``exact``, ``local``, ``greedy``, or ``auto``: exact up to 8x8, local beyond.
        time_limit: Deterministic time of the search, about seconds.
        fill: Whether to use remaining wires and ports.

    Raises:
        BypassError: A flow or the method is invalid.
        UnitError: A time has no unit.
    """
    _check(mesh, flows, method)
    space = space_of(mesh)
    if method == "auto":
        method = "exact" if mesh.nodes <= _MOST_NODES else "local"
    limit = Time.of_any(time_limit).ps / 1e12
    chosen, requested = greedy.place(space, flows), Counter(flows)
    if method != "greedy":
        trials = int(_TRIALS * limit)
        chosen = improved(space, requested, chosen, trials=trials)
    if method == "exact":
        chosen = exact.choose(space, flows, chosen, limit=limit)
    else:
        bound = min(exact.most(requested), cut_bound(space, requested))
        chosen = Chosen(chosen.paths, chosen.links, bound)
    return completed(mesh, flows, chosen, method, fill=fill)


def balanced_flows(mesh: BypassMesh, flows: Sequence[Flow]) -> Mapping:
    """Returns a mapping without reserved links that minimises the flows on the most loaded links.

    If many flows share links, ports reserved for dedicated flows cost more than they gain.

    Raises:
        BypassError: A flow is invalid.
    """
    _check(mesh, flows, "local")
    space = space_of(mesh)
    live, requested = balanced(space, flows), Counter(flows)
    chosen = Chosen({}, {}, min(exact.most(requested), cut_bound(space, requested)))
    return _mapping(mesh, flows, live, chosen, "local", fill=True)


def completed(
    mesh: BypassMesh, flows: Sequence[Flow], chosen: Chosen, method: Method, *, fill: bool
) -> Mapping:
    """Returns the mapping with these dedicated flows; the others share the remaining links."""
    live = Live(space_of(mesh), flows, chosen)
    return _mapping(mesh, flows, live, chosen, method, fill=fill)


def _mapping(
    mesh: BypassMesh,
    flows: Sequence[Flow],
    live: Live,
    chosen: Chosen,
    method: Method,
    *,
    fill: bool,
) -> Mapping:
    """Returns the mapping of live links and paths, with these dedicated flows."""
    if fill:
        live.fill()
    left = Counter(chosen.links)
    dedicated, shared = [], []
    for flow in flows:
        if left[flow]:
            left[flow] -= 1
            dedicated.append(flow)
        elif flow in live.paths:
            shared.append(flow)
    lent = live.lent
    return Mapping(
        mesh=mesh,
        flows=tuple(flows),
        paths=live.paths,
        dedicated=tuple(dedicated),
        shared=tuple(shared),
        unplaced=tuple(flow for flow in flows if flow not in live.paths),
        lent=tuple(sorted(one for one in chosen.paths if lent & set(hops_of(chosen.paths[one])))),
        bound=chosen.bound,
        method=method,
        links=dict(sorted(live.taken.hops.items())),
    )


def space_of(mesh: BypassMesh) -> Space:
    """Returns the resources of a mesh."""
    return Space(mesh.columns, mesh.rows, mesh.wires, mesh.muxes)


def _check(mesh: BypassMesh, flows: Sequence[Flow], method: str) -> None:
    if method not in METHODS:
        known = ", ".join(METHODS)
        message = f"unknown method `{method}`: expected one of {known}"
        hint = did_you_mean(method, METHODS) or None
        raise BypassError(message, kind="method", hint=hint, fields={"method": method})
    for flow in flows:
        for node in flow:
            if not 0 <= node < mesh.nodes:
                message = (
                    f"flow {flow[0]} -> {flow[1]}: node {node} does not exist: "
                    f"expected 0 to {mesh.nodes - 1} for {mesh.size} nodes"
                )
                raise BypassError(message, kind="flow", fields={"flow": flow, "node": node})
        if flow[0] == flow[1]:
            message = f"flow {flow[0]} -> {flow[1]}: expected two different nodes"
            raise BypassError(message, kind="flow", fields={"flow": flow, "node": flow[0]})
