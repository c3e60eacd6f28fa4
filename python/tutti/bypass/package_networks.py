"""The networks of Yin et al. 2023 (ARIES), and the variants of an all_reduce on each.

Each parameter that the paper leaves open is a field of `Assumptions`. Its default is the value that
the text suggests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Literal

import tutti
from tutti.base.units import Time
from tutti.bypass import BypassMesh, map_flows
from tutti.bypass.plans import MappedSchedule, flows_of_configurations, run_on
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
SEARCH = "1 s"
"""Time limit of a mapping, in the solver's deterministic time."""
ALGORITHMS = ("ring", "double_binary_tree", "multi_tree")
RATE = "68 GB/s"
"""Link rate between chiplets, each direction (section V)."""
PITCH = "5 mm"
"""Distance between adjacent chiplets (inferred: the paper states none)."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What the paper leaves open.

    Attributes:
        hop: Latency of a hop: 10 ns on the wire (section V) and two router cycles.
        per_span: Whether the latency of a long wire is 10 ns per spanned chiplet.
        wires: Bypass wires per row or column and direction (Table I allows one).
        muxes: The wires that a port can select.
        switched: Whether trees are reconfigured between their phases.
        switch: The time of a reconfiguration, with a barrier among all routers (inferred).
        butterfly: The flattened butterfly: as many pins per router as a mesh, or wide links.
        chunks: Chunks of each half of a double binary tree.
        accumulators: Accumulators per group of the concentrated MultiTree.
        bidirectional: Whether latency-optimised rings also use both directions, as ports allow.
        rings: The rings of Adapt-NoC and the butterfly; mesh and torus run the plain ring (section
            V-B). `stated`: Adapt-NoC runs the plain ring, by the title of figure 10; the butterfly,
            with "multiple nodes fully connected" (V-B), also runs rings or direct exchanges in each
            row and then each column. `plain`: both run the plain ring. `grid`: both run all.
    """

    hop: str = "12 ns"
    per_span: bool = False
    wires: int = 1
    muxes: Muxes = "any"
    switched: bool = True
    switch: str = "100 ns"
    butterfly: Literal["equal_pins", "wide", "concentrated"] = "equal_pins"
    chunks: int = 4
    accumulators: int = 4
    bidirectional: bool = False
    rings: Literal["stated", "plain", "grid"] = "stated"

    def relevant(self, network: str, algorithm: str) -> Assumptions:
        """Returns these assumptions, with those on which a case does not depend at the default."""
        kept = {"hop", "per_span"}
        if network == "aries":
            kept |= {"wires", "muxes", "switched", "switch"}
        if network == "adapt_noc":
            kept.add("wires")
        if network == "flattened_butterfly":
            kept.add("butterfly")
        if algorithm == "ring":
            kept |= {"aries": {"bidirectional"}, "mesh": set(), "torus": set()}.get(
                network, {"rings"}
            )
        if algorithm == "double_binary_tree":
            kept.add("chunks")
        if algorithm == "multi_tree" and network == "aries":
            kept.add("accumulators")
        return replace(DEFAULT, **{name: getattr(self, name) for name in sorted(kept)})


DEFAULT = Assumptions()


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


def variants(
    network: str, algorithm: str, side: int, assumptions: Assumptions = DEFAULT
) -> tuple[Variant, ...]:
    """Returns the variants of an algorithm on a network, which uses the fastest for a size."""
    return _variants(network, algorithm, side, assumptions.relevant(network, algorithm))


@cache
def _variants(
    network: str, algorithm: str, side: int, assumptions: Assumptions
) -> tuple[Variant, ...]:
    if network == "aries":
        return tuple(_aries(algorithm, side, assumptions))
    if network == "adapt_noc":
        return tuple(_adapt_noc(algorithm, side, assumptions))
    return tuple(_fixed(network, algorithm, side, assumptions))


def _fixed(network: str, algorithm: str, side: int, assumptions: Assumptions) -> Iterator[Variant]:
    """Yields the variants on a network without configurable links."""
    routes = routes_of(network, side, assumptions)
    in_lines = network == "flattened_butterfly" and assumptions.rings != "plain"
    for schedule in _schedules(algorithm, side, assumptions, routes, in_lines=in_lines):
        yield Variant(schedule.name, schedule, (routes,))


def routes_of(network: str, side: int, assumptions: Assumptions = DEFAULT) -> Routes:
    """Returns the routes of a network without configurable links."""
    if network == "torus":
        # Wraparound links are long wires of a mesh, so that `per_span` applies to them.
        return shaped(network, BypassMesh(side=side, muxes="axis"), assumptions)
    return _routes(_notation(network, side, assumptions), assumptions)


def _schedules(
    algorithm: str, side: int, assumptions: Assumptions, routes: Routes, *, in_lines: bool
) -> Iterator[Schedule]:
    """Yields the schedules for networks without algorithms for bypass wires.

    `in_lines`: whether rings may run in rows and columns.
    """
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield all_reduce(f"ring:{grid}", side)
        if in_lines:
            yield all_reduce(f"multi_ring:{grid}:all_dimensions", side)
            yield all_reduce(f"blue_connect:{grid}:direct", side)
    elif algorithm == "double_binary_tree":
        yield all_reduce(f"double_binary_tree:nccl,{assumptions.chunks}", side)
    else:
        yield tutti.schedule("multi_tree", ranks=side * side, topology=routes)


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
def _routes(notation: str, assumptions: Assumptions) -> Routes:
    topology = Topology.build(notation, rate=RATE, latency=assumptions.hop, length=PITCH)
    return topology.routes("dimension_order")


def _adapt_noc(algorithm: str, side: int, assumptions: Assumptions) -> Iterator[Variant]:
    """Yields variants whose ports select their mesh link or a wire of their axis, once per run."""
    own = BypassMesh(side=side, wires=assumptions.wires, muxes="axis")
    for shape in ("mesh", "torus"):
        routes = shaped(shape, own, assumptions)
        in_lines = assumptions.rings == "grid"
        for schedule in _schedules(algorithm, side, assumptions, routes, in_lines=in_lines):
            yield Variant(f"{schedule.name} on a {shape}", schedule, (routes,))
    if algorithm == "double_binary_tree":
        schedule = all_reduce(f"double_binary_tree:nccl,{assumptions.chunks}", side)
        yield from _mapped("tree", own, schedule, assumptions)


@cache
def shaped(shape: str, mesh: BypassMesh, assumptions: Assumptions) -> Routes:
    """Returns dimension-order routes of a mesh, or of a torus of one long wire per line."""
    side, last = mesh.side, mesh.side - 1
    rows = [f"{row * side}={row * side + last}" for row in range(side)]
    columns = [f"{column}={last * side + column}" for column in range(side)]
    configuration = mesh.configure(["mesh", *rows, *columns] if shape == "torus" else "mesh")
    topology = configuration.topology(
        RATE, assumptions.hop, length=PITCH, per_span=assumptions.per_span
    )
    regular = Topology.build(f"{shape}:{side}x{side}", rate=RATE, latency=assumptions.hop)
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
    """Yields the variants that use bypass wires."""
    mesh = BypassMesh(side=side, wires=assumptions.wires, muxes=assumptions.muxes)
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield from _mapped(
            "bandwidth", mesh, all_reduce(f"ring:{grid}", side), assumptions, copies=2
        )
        yield from _either("latency", mesh, f"mirrored_ring:{grid}", side, assumptions)
        if assumptions.bidirectional:
            both = f"mirrored_ring:{grid},bidirectional"
            yield from _either("latency and bandwidth", mesh, both, side, assumptions)
    elif algorithm == "double_binary_tree":
        notation = f"double_binary_tree:nccl,phased,{assumptions.chunks}"
        static = f"double_binary_tree:nccl,{assumptions.chunks}"
        yield from _mapped("configured once", mesh, all_reduce(static, side), assumptions)
        if assumptions.switched:
            phased = all_reduce(notation, side)
            yield from _mapped(
                "configured for each phase", mesh, phased, assumptions, switched=True
            )
    else:
        notation = f"concentrated_multi_tree:{grid},accumulators={assumptions.accumulators}"
        yield from _either("concentrated", mesh, notation, side, assumptions)


def _either(
    name: str, mesh: BypassMesh, notation: str, side: int, assumptions: Assumptions
) -> Iterator[Variant]:
    """Yields the variants configured once and, if `switched`, once per phase."""
    schedule = all_reduce(notation, side)
    yield from _mapped(name, mesh, schedule, assumptions)
    if assumptions.switched:
        name = f"{name}, configured for each phase"
        yield from _mapped(name, mesh, schedule, assumptions, switched=True)


def _mapped(
    name: str,
    mesh: BypassMesh,
    schedule: Schedule,
    assumptions: Assumptions,
    *,
    copies: int = 1,
    switched: bool = False,
) -> Iterator[Variant]:
    """Yields the network configured for the flows of a schedule, with `copies` links per pair.

    It yields nothing if a flow has no path.
    """
    configurations = flows_of_configurations(schedule, switched=switched, copies=copies)
    planned = MappedSchedule(schedule, tuple(mapped(mesh, flows) for flows in configurations))
    if not any(mapping.unplaced for mapping in planned.mappings):
        routes = planned.routes(RATE, assumptions.hop, length=PITCH, per_span=assumptions.per_span)
        yield Variant(name, schedule, routes, Time.parse(assumptions.switch))


@cache
def mapped(mesh: BypassMesh, flows: tuple[Flow, ...], time_limit: str = SEARCH) -> Mapping:
    """Returns the configuration for these flows; cached, since most variations share it."""
    return map_flows(mesh, flows, time_limit=time_limit)


def package_of(network: str, side: int, technology: Technology) -> Package:
    """Returns the package with the routers and links of a network."""
    known = packages(side, technology)
    if network == "adapt_noc":
        return known["bypass"].model_copy(update={"muxes": "own", "circuit": False})
    return known["bypass" if network == "aries" else network]
