"""The networks of Yin et al. 2023 (ARIES), and the variants of an all_reduce on each.

Each parameter that the paper leaves open is a field of `Assumptions`. Its default is the value that
the text states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import tutti
from tutti.base.units import Time
from tutti.bypass import BypassMesh, map_flows
from tutti.bypass.plans import MappedSchedule, flows_of_configurations, less_loaded, run_on
from tutti.energy.package import packages
from tutti.topologies import Topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.base.units import Size
    from tutti.bypass import Flow, Mapping, Muxes
    from tutti.collectives.phases import PhasedRun
    from tutti.energy import Technology
    from tutti.energy.package import Package
    from tutti.schedules.ir import Schedule
    from tutti.topologies import Routes

SIDES = (4, 8)
SEARCH = "2 s"
"""Time limit of the local search for a mapping."""
ALGORITHMS = ("ring", "double_binary_tree", "multi_tree")
RATE = "68 GB/s"
"""Link rate between chiplets, each direction (section V)."""
PITCH = "5 mm"
"""Distance between adjacent chiplets (inferred: the paper states none)."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What the paper leaves open. Defaults are what its text states, if it states anything.

    Attributes:
        hop: Latency of a hop: 10 ns on the wire (section V) and two router cycles.
        per_span: Whether the latency of a long wire is 10 ns per spanned chiplet.
        wires: Bypass wires per row or column and direction: "two bi-directional bypassing links"
            (III-B).
        muxes: The wires that a port can select.
        switched: Whether ARIES may be configured again between phases, if that is faster. IV-C
            states "only configured prior to running the application", but the dedicated links of
            each tree edge in figure 7(c) fit only one phase at a time.
        switch: The time of a reconfiguration, with a barrier among all routers (inferred).
        butterfly: The flattened butterfly: as many pins per router as a mesh, or wide links.
        chunks: Chunks of each half of a double binary tree.
        accumulators: Accumulators per group of the concentrated MultiTree.
        bidirectional: Whether latency-optimised rings also use both directions: "clockwise or
            anti-clockwise" (IV-A).
        rings: The networks that also run rings and direct exchanges in each row and then each
            column. `lines`: Adapt-NoC and the butterfly, which "perform better compared to mesh
            and torus topologies, as multiple nodes are fully connected" (V-B). `butterfly`: only
            the butterfly. `plain`: none; every network runs the plain ring.
        shapes: Whether ARIES also runs the schedules of a mesh and a torus: it "can adapt to
            various network topologies supporting any tree and ring-based all-reduce algorithms"
            (III-B). V evaluates its own schedules.
    """

    hop: str = "12 ns"
    per_span: bool = False
    wires: int = 2
    muxes: Muxes = "any"
    switched: bool = True
    switch: str = "100 ns"
    butterfly: Literal["equal_pins", "wide", "concentrated"] = "equal_pins"
    chunks: int = 4
    accumulators: int = 4
    bidirectional: bool = True
    rings: Literal["lines", "butterfly", "plain"] = "lines"
    shapes: bool = False

    def relevant(self, network: str, algorithm: str) -> Assumptions:
        """Returns these assumptions, with those on which a case does not depend at the default."""
        kept = {"hop", "per_span"}
        if network == "aries":
            kept |= {"wires", "muxes", "switched", "shapes"}
            if self.switched:
                kept.add("switch")
        if network == "adapt_noc" and algorithm == "double_binary_tree":
            kept.add("wires")
        if network == "flattened_butterfly":
            kept.add("butterfly")
        if algorithm == "ring":
            kept |= {"aries": {"bidirectional", "rings"}, "mesh": set(), "torus": set()}.get(
                network, {"rings"}
            )
        if algorithm == "double_binary_tree":
            kept.add("chunks")
        if algorithm == "multi_tree" and network == "aries":
            kept.add("accumulators")
        return replace(DEFAULT, **{name: getattr(self, name) for name in sorted(kept)})


DEFAULT = Assumptions()
ONE_WIRE = Assumptions(wires=1, bidirectional=False, rings="butterfly")
"""One bypass wire per direction, as many wires as a torus (8 k (k - 1) links, Table I), configured
for each phase."""

_NO_TIME = Time(ps=0)


@dataclass(frozen=True)
class Variant:
    """A schedule of an all_reduce, mapped to a network.

    Attributes:
        name: The schedule and its mapping.
        schedule: The schedule.
        routes: One for the complete schedule, or one per phase.
        switch: The time to reconfigure the network for the next phase.
    """

    name: str
    schedule: Schedule
    routes: tuple[Routes, ...]
    switch: Time = _NO_TIME

    def run(self, size: Size) -> PhasedRun:
        """Simulates the schedule packet by packet."""
        return run_on(self.schedule, self.routes, size, switch=self.switch, datatype="int8")


class _Links(NamedTuple):
    """The latency of links."""

    hop: str
    per_span: bool


def variants(
    network: str, algorithm: str, side: int, assumptions: Assumptions = DEFAULT
) -> tuple[Variant, ...]:
    """Returns the variants of an algorithm on a network, which uses the fastest for a size.

    Equal variants of several networks and assumptions are the same object.
    """
    return _variants(network, algorithm, side, assumptions.relevant(network, algorithm))


@cache
def _variants(
    network: str, algorithm: str, side: int, assumptions: Assumptions
) -> tuple[Variant, ...]:
    if network == "aries":
        return tuple(_aries(algorithm, side, assumptions))
    if network == "adapt_noc":
        return tuple(_adapt_noc(algorithm, side, assumptions))
    in_lines = network == "flattened_butterfly" and assumptions.rings != "plain"
    return tuple(_regular(network, algorithm, side, assumptions, in_lines=in_lines))


def _regular(
    network: str, algorithm: str, side: int, assumptions: Assumptions, *, in_lines: bool
) -> Iterator[Variant]:
    """Yields the variants on a mesh, torus or butterfly.

    `in_lines`: whether rings may run in rows and columns.
    """
    butterfly = assumptions.butterfly if network == "flattened_butterfly" else "equal_pins"
    links = _Links(assumptions.hop, assumptions.per_span)
    for notation in _notations(algorithm, side, assumptions, in_lines=in_lines):
        yield _on_regular(network, notation, side, butterfly, links)


@cache
def _on_regular(network: str, notation: str, side: int, butterfly: Any, links: _Links) -> Variant:  # noqa: ANN401
    """Returns a schedule on a network without configurable links."""
    assumptions = Assumptions(hop=links.hop, per_span=links.per_span, butterfly=butterfly)
    routes = routes_of(network, side, assumptions)
    if notation == "multi_tree":
        schedule = tutti.schedule(notation, ranks=side * side, topology=routes)
    else:
        schedule = all_reduce(notation, side)
    return Variant(schedule.name, schedule, (routes,))


def routes_of(network: str, side: int, assumptions: Assumptions = DEFAULT) -> Routes:
    """Returns the routes of a network without configurable links."""
    links = _Links(assumptions.hop, assumptions.per_span)
    if network == "torus":
        # Wraparound links are long wires of a mesh, so that `per_span` applies to them.
        return _torus(side, links)
    return _routes(_notation(network, side, assumptions), links.hop)


def _notations(
    algorithm: str, side: int, assumptions: Assumptions, *, in_lines: bool
) -> Iterator[str]:
    """Yields the schedules for networks without algorithms for bypass wires."""
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield f"ring:{grid}"
        if in_lines:
            yield f"multi_ring:{grid}:all_dimensions"
            yield f"blue_connect:{grid}:direct"
    elif algorithm == "double_binary_tree":
        yield f"double_binary_tree:nccl,{assumptions.chunks}"
    else:
        yield "multi_tree"


@cache
def all_reduce(notation: str, side: int) -> Schedule:
    """Returns an all_reduce of k x k chiplets."""
    return tutti.schedule(notation, collective="all_reduce", ranks=side * side)


def _notation(network: str, side: int, assumptions: Assumptions) -> str:
    grid = f"{side}x{side}"
    distance = ",distance" if assumptions.per_span else ""
    if network != "flattened_butterfly":
        return f"{network}:{grid}"
    if assumptions.butterfly == "concentrated":
        return f"{network}:{side // 2}x{side // 2}:2x2{distance}"
    pins = ",equal_pins" if assumptions.butterfly == "equal_pins" else ""
    return f"{network}:{grid}{pins}{distance}"


@cache
def _routes(notation: str, hop: str) -> Routes:
    topology = Topology.build(notation, rate=RATE, latency=hop, length=PITCH)
    return topology.routes("dimension_order")


def _adapt_noc(algorithm: str, side: int, assumptions: Assumptions) -> Iterator[Variant]:
    """Yields variants whose ports select their mesh link or a wire of their axis, once per run."""
    in_lines = assumptions.rings == "lines"
    yield from _on_shapes(algorithm, side, assumptions, in_lines=in_lines)
    if algorithm == "double_binary_tree":
        own = BypassMesh(side=side, wires=assumptions.wires, muxes="axis")
        notation = f"double_binary_tree:nccl,{assumptions.chunks}"
        yield from _mapped("tree", own, notation, _Links(assumptions.hop, assumptions.per_span))


def _on_shapes(
    algorithm: str, side: int, assumptions: Assumptions, *, in_lines: bool
) -> Iterator[Variant]:
    """Yields the variants of a bypass mesh that is configured as a mesh or a torus."""
    for shape in ("mesh", "torus"):
        for variant in _regular(shape, algorithm, side, assumptions, in_lines=in_lines):
            yield replace(variant, name=f"{variant.name} on a {shape}")


@cache
def _torus(side: int, links: _Links) -> Routes:
    """Returns dimension-order routes of a torus of one long wire per line and direction."""
    mesh, last = BypassMesh(side=side, muxes="axis"), side - 1
    rows = [f"{row * side}={row * side + last}" for row in range(side)]
    columns = [f"{column}={last * side + column}" for column in range(side)]
    configuration = mesh.configure(["mesh", *rows, *columns])
    topology = configuration.topology(RATE, links.hop, length=PITCH, per_span=links.per_span)
    regular = Topology.build(f"torus:{side}x{side}", rate=RATE, latency=links.hop)
    in_order = regular.routes("dimension_order")
    return configuration.routes(topology, paths=_paths(in_order))


def _paths(routes: Routes) -> dict[tuple[int, int], list[int]]:
    """Returns the path between every two nodes of a network whose vertices are all NPUs."""
    rank = {vertex.name: vertex.rank or 0 for vertex in routes.topology.vertices}
    nodes = range(routes.topology.ranks)
    return {
        (a, b): [a, *(rank[link.target] for link in routes.path(a, b))]
        for a, b in product(nodes, nodes)
        if a != b
    }


def _aries(algorithm: str, side: int, assumptions: Assumptions) -> Iterator[Variant]:
    """Yields the variants that use bypass wires and, with `shapes`, those of mesh and torus."""
    mesh = BypassMesh(side=side, wires=assumptions.wires, muxes=assumptions.muxes)
    links = _Links(assumptions.hop, assumptions.per_span)
    switch = assumptions.switch if assumptions.switched else None
    if algorithm == "ring":
        yield from _mapped("bandwidth", mesh, f"ring:{side}x{side}", links, copies=2)
    for name, notation in _own_schedules(algorithm, side, assumptions):
        yield from _mapped(name, mesh, notation, links)
        if switch is not None:
            phased = notation.replace("nccl,", "nccl,phased,")
            each = f"{name}, configured for each phase"
            yield from _mapped(each, mesh, phased, links, switch=switch)
    if assumptions.shapes:
        in_lines = assumptions.rings == "lines"
        yield from _on_shapes(algorithm, side, assumptions, in_lines=in_lines)


def _own_schedules(
    algorithm: str, side: int, assumptions: Assumptions
) -> Iterator[tuple[str, str]]:
    """Yields name and notation of the schedules that may have a configuration for each phase."""
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield "latency", f"mirrored_ring:{grid}"
        if assumptions.bidirectional:
            yield "latency and bandwidth", f"mirrored_ring:{grid},bidirectional"
    elif algorithm == "double_binary_tree":
        yield "trees", f"double_binary_tree:nccl,{assumptions.chunks}"
    else:
        accumulators = f"accumulators={assumptions.accumulators}"
        yield "concentrated", f"concentrated_multi_tree:{grid},{accumulators}"


@cache
def _mapped(
    name: str,
    mesh: BypassMesh,
    notation: str,
    links: _Links,
    *,
    copies: int = 1,
    switch: str | None = None,
) -> tuple[Variant, ...]:
    """Returns the network configured for the flows of a schedule, with `copies` links per pair.

    `switch`: the time of a switch between phases, which then have their own configuration. The
    result is empty if a flow has no path.
    """
    schedule = all_reduce(notation, mesh.columns)
    switched = switch is not None
    configurations = flows_of_configurations(schedule, switched=switched, copies=copies)
    # "2N links are used" by the doubled ring (IV-A), even if wires for more remain.
    mappings = tuple(mapped(mesh, flows, fill=copies == 1) for flows in configurations)
    planned = MappedSchedule(schedule, mappings)
    if any(mapping.unplaced for mapping in planned.mappings):
        return ()
    routes = planned.routes(RATE, links.hop, length=PITCH, per_span=links.per_span)
    return (Variant(name, schedule, routes, Time.parse(switch) if switch else _NO_TIME),)


@cache
def mapped(mesh: BypassMesh, flows: tuple[Flow, ...], *, fill: bool = True) -> Mapping:
    """Returns the configuration for these flows; cached, since most variations share it."""
    return less_loaded(map_flows(mesh, flows, "local", SEARCH, fill=fill))


def package_of(network: str, side: int, technology: Technology) -> Package:
    """Returns the package with the routers and links of a network."""
    known = packages(side, technology)
    if network == "adapt_noc":
        return known["bypass"].model_copy(update={"muxes": "own", "circuit": False})
    return known["bypass" if network == "aries" else network]
