"""The paper's networks, and how each performs an all-reduce.

What the paper leaves open is a field of `Readings`, with the default that the text speaks for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Literal

import tutti
from tutti.bypass import BypassMesh, map_flows
from tutti.bypass.plans import MappedSchedule, flows_of_configurations, run_on
from tutti.papers import at_once
from tutti.topology import Topology
from tutti.units import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tutti.bypass import Flow, Mapping, Muxes
    from tutti.phases import PhasedRun
    from tutti.schedule import Schedule
    from tutti.topology import Routes
    from tutti.units import Size

SIDES = (4, 8)
SEARCH = "5 s"
"""For each mapping, in the solver's own count of its work."""
ALGORITHMS = ("ring", "double_binary_tree", "multi_tree")
BEST = "aries_best"
"""ARIES with whatever its wires can be configured to, beyond what the paper describes."""
RATE = "68 GB/s"
"""Between chiplets, each direction (section V)."""
PITCH = "5 mm"
"""From chiplet to chiplet (inferred: the paper gives none)."""


@dataclass(frozen=True, kw_only=True)
class Readings:
    """What the paper leaves open.

    Attributes:
        hop: From router to router: 10 ns on the wire (section V), and two cycles of a router.
        per_span: Whether the wire of a long link takes as many times 10 ns as it spans chiplets.
        wires: Bypass wires of a row or column in each direction (Table I has room for one).
        muxes: Which wires a port can take.
        switched: Whether trees are configured anew between their phases.
        switch: What that takes, a barrier among all routers included (inferred).
        butterfly: Which flattened butterfly: the pins of a mesh's router, or all links wide.
        chunks: Into how many chunks each half of a double binary tree is cut.
        accumulators: In each group of the concentrated MultiTree.
        both_ways: Whether latency-optimised rings also run both ways round, which the ports allow.
        grid_rings: Whether networks with links beyond a mesh's also run rings in rows and columns.
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
    both_ways: bool = False
    grid_rings: bool = True


DEFAULT = Readings()


_NO_TIME = Time(ps=0)


@dataclass(frozen=True)
class Variant:
    """A way to perform an all-reduce on a network.

    Attributes:
        name: Of the schedule and how it is mapped.
        schedule: What is performed.
        routes: One for all of it, or one for each of its phases.
        switch: What it takes to configure the network for the next phase.
    """

    name: str
    schedule: Schedule
    routes: tuple[Routes, ...]
    switch: Time = _NO_TIME

    def run(self, size: Size) -> PhasedRun:
        """Simulates it packet by packet."""
        return run_on(self.schedule, self.routes, size, switch=self.switch, datatype="int8")


@cache
def variants(
    network: str, algorithm: str, side: int, readings: Readings = DEFAULT
) -> tuple[Variant, ...]:
    """The ways in which a network performs an algorithm; the fastest for a size is what it does."""
    if network == "aries":
        return tuple(_aries(algorithm, side, readings))
    if network == "adapt_noc":
        return tuple(_adapt_noc(algorithm, side, readings))
    if network == BEST:
        # Muxes that take any wire take those of their own axis: every shape of Adapt-NoC is there.
        every = replace(readings, both_ways=True)
        return (*_aries(algorithm, side, every), *_adapt_noc(algorithm, side, every))
    return tuple(_fixed(network, algorithm, side, readings))


Case = tuple[str, str, int]
"""A network, an algorithm, a side."""


def fastest(
    cases: Iterable[Case],
    sizes: Iterable[Size],
    readings: Readings = DEFAULT,
    *,
    quiet: bool = False,
) -> dict[tuple[Case, Size], PhasedRun]:
    """For each case and size the run of its fastest variant; `quiet` tells nobody how far it is."""
    ways = at_once(lambda case: variants(*case, readings), cases, None if quiet else "mappings")

    def best(asked: tuple[Case, Size]) -> PhasedRun:
        case, size = asked
        return min((way.run(size) for way in ways[case]), key=lambda run: run.completion_ps)

    return at_once(best, product(ways, sizes), None if quiet else "runs")


def _fixed(network: str, algorithm: str, side: int, readings: Readings) -> Iterator[Variant]:
    """On a network that is not configured."""
    if network == "torus":
        # As long wires in a mesh, so that they can take longer.
        routes = _shaped(network, BypassMesh(side=side, muxes="axis"), readings)
    else:
        routes = _routes(_notation(network, side, readings), readings)
    hierarchical = network == "flattened_butterfly"
    for schedule in _schedules(algorithm, side, readings, routes, hierarchical=hierarchical):
        yield Variant(schedule.name, schedule, (routes,))


def _schedules(
    algorithm: str, side: int, readings: Readings, routes: Routes, *, hierarchical: bool
) -> Iterator[Schedule]:
    """What is performed where nothing was made for bypass wires.

    Meshes and tori run the plain ring, as the paper says; what has further links also a ring in
    each row and then in each column.
    """
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield _all_reduce(f"ring:{grid}", side)
        if hierarchical and readings.grid_rings:
            yield _all_reduce(f"multi_ring:{grid}:all_dimensions", side)
    elif algorithm == "double_binary_tree":
        yield _all_reduce(f"double_binary_tree:nccl,{readings.chunks}", side)
    else:
        yield tutti.schedule("multi_tree", ranks=side * side, topology=routes)


def _all_reduce(notation: str, side: int) -> Schedule:
    return tutti.schedule(notation, collective="all_reduce", ranks=side * side)


def _notation(network: str, side: int, readings: Readings) -> str:
    grid = f"{side}x{side}"
    distance = ",distance" if readings.per_span else ""
    if network != "flattened_butterfly":
        return f"{network}:{grid}"
    if readings.butterfly == "concentrated":
        return f"{network}:{side // 2}x{side // 2}:2x2{distance}"
    pins = ",equal_pins" if readings.butterfly == "equal_pins" else ""
    return f"{network}:{grid}{pins}{distance}"


@cache
def _routes(notation: str, readings: Readings) -> Routes:
    topology = Topology.build(notation, rate=RATE, latency=readings.hop, length=PITCH)
    return topology.routes("dimension_order")


def _adapt_noc(algorithm: str, side: int, readings: Readings) -> Iterator[Variant]:
    """A port takes its own mesh link or a wire of its own axis; one configuration for a run."""
    own = BypassMesh(side=side, wires=readings.wires, muxes="axis")
    for shape in ("mesh", "torus"):
        routes = _shaped(shape, own, readings)
        for schedule in _schedules(algorithm, side, readings, routes, hierarchical=True):
            yield Variant(f"{schedule.name} on a {shape}", schedule, (routes,))
    if algorithm == "double_binary_tree":
        schedule = _all_reduce(f"double_binary_tree:nccl,{readings.chunks}", side)
        yield from _mapped("tree", own, schedule, readings)


@cache
def _shaped(shape: str, mesh: BypassMesh, readings: Readings) -> Routes:
    """A mesh, or one with a wire from end to end of each row and column; in dimension order."""
    side, last = mesh.side, mesh.side - 1
    rows = [f"{row * side}={row * side + last}" for row in range(side)]
    columns = [f"{column}={last * side + column}" for column in range(side)]
    configuration = mesh.configure(["mesh", *rows, *columns] if shape == "torus" else "mesh")
    topology = configuration.topology(RATE, readings.hop, length=PITCH, per_span=readings.per_span)
    usual = Topology.build(f"{shape}:{side}x{side}", rate=RATE, latency=readings.hop)
    in_order = usual.routes("dimension_order")
    return configuration.routes(topology, paths=_ways(in_order))


def _ways(routes: Routes) -> dict[tuple[int, int], list[int]]:
    """The nodes between every two, on a network whose vertices are all NPUs."""
    rank = {vertex.name: vertex.rank or 0 for vertex in routes.topology.vertices}
    nodes = range(routes.topology.ranks)
    return {
        (a, b): [a, *(rank[link.target] for link in routes.path(a, b))]
        for a, b in product(nodes, nodes)
        if a != b
    }


def _aries(algorithm: str, side: int, readings: Readings) -> Iterator[Variant]:
    """What was made for bypass wires."""
    mesh = BypassMesh(side=side, wires=readings.wires, muxes=readings.muxes)
    grid = f"{side}x{side}"
    if algorithm == "ring":
        yield from _mapped("bandwidth", mesh, _all_reduce(f"ring:{grid}", side), readings, copies=2)
        yield from _either("latency", mesh, f"mirrored_ring:{grid}", side, readings)
        if readings.both_ways:
            both = f"mirrored_ring:{grid},bidirectional"
            yield from _either("latency and bandwidth", mesh, both, side, readings)
    elif algorithm == "double_binary_tree":
        notation = f"double_binary_tree:nccl,phased,{readings.chunks}"
        static = f"double_binary_tree:nccl,{readings.chunks}"
        yield from _mapped("configured once", mesh, _all_reduce(static, side), readings)
        if readings.switched:
            phased = _all_reduce(notation, side)
            yield from _mapped("configured for each phase", mesh, phased, readings, switched=True)
    else:
        notation = f"concentrated_multi_tree:{grid},accumulators={readings.accumulators}"
        yield from _either("concentrated", mesh, notation, side, readings)


def _either(
    name: str, mesh: BypassMesh, notation: str, side: int, readings: Readings
) -> Iterator[Variant]:
    """Configured once, or for each phase."""
    schedule = _all_reduce(notation, side)
    yield from _mapped(name, mesh, schedule, readings)
    if readings.switched:
        name = f"{name}, configured for each phase"
        yield from _mapped(name, mesh, schedule, readings, switched=True)


def _mapped(
    name: str,
    mesh: BypassMesh,
    schedule: Schedule,
    readings: Readings,
    *,
    copies: int = 1,
    switched: bool = False,
) -> Iterator[Variant]:
    """Configured for what a schedule sends, each pair asking for so many links.

    None where some pair finds no way at all.
    """
    asked = flows_of_configurations(schedule, switched=switched, copies=copies)
    planned = MappedSchedule(schedule, tuple(mapped(mesh, flows) for flows in asked))
    if not any(mapping.unplaced for mapping in planned.mappings):
        routes = planned.routes(RATE, readings.hop, length=PITCH, per_span=readings.per_span)
        yield Variant(name, schedule, routes, Time.parse(readings.switch))


@cache
def mapped(mesh: BypassMesh, flows: tuple[Flow, ...]) -> Mapping:
    """The configuration for these flows; most readings ask for the same."""
    return map_flows(mesh, flows, time_limit=SEARCH)
