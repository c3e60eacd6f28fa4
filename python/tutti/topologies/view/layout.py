"""Positions of the vertices of a topology in a drawing.

Positions depend only on the graph. Grids are drawn as grids, fat trees and butterflies in rows
above their NPUs, and the groups of a dragonfly around a centre. Other families have concentric
shells with the NPUs outside. Graphs without a family have a spring layout.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.topologies import Topology

Position = tuple[float, float]

_CENTRAL = 0.15
"""Maximum distance between the centre and the centroid of a central vertex's neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Positions by name, and the links that are bent because they would cover others."""

    at: dict[str, Position]
    bent: set[tuple[str, str]] = field(default_factory=set)


def layout(topology: Topology) -> Layout:
    """Returns the position of each vertex."""
    if topology.grid is not None and len(topology.grid[0]) > 1:
        return _on_grid(topology, topology.grid[0])
    if not topology.is_family:
        return _by_springs(topology)
    family = topology.name.partition(":")[0]
    return _OF_FAMILY.get(family, _in_shells)(topology)


# --- grids ----------------------------------------------------------------------------------------


def _on_grid(topology: Topology, sizes: list[int]) -> Layout:
    names = [vertex.name for vertex in topology.vertices]
    at = dict(zip(names, _grid_positions(len(names), sizes), strict=True))
    bent = _longer_than(1.5, topology, at) | _not_adjacent(topology, names, sizes)
    return Layout(at=at, bent=bent)


def _steps(sizes: Sequence[int]) -> list[Position]:
    """Returns the offset to the next member of each dimension; the third one is oblique.

    Further dimensions are copies to the right or below, whichever is more compact.
    """
    steps = [(1.0, 0.0), (0.0, -1.0), (0.38, 0.27)]
    width = height = 0.0
    for dimension, size in enumerate(sizes):
        if dimension >= len(steps):
            to_right = width <= height
            steps.append((width + 1.6, 0.0) if to_right else (0.0, -(height + 1.6)))
        width += abs(steps[dimension][0]) * (size - 1)
        height += abs(steps[dimension][1]) * (size - 1)
    return steps


def _grid_positions(count: int, sizes: Sequence[int]) -> list[Position]:
    steps = _steps(sizes)
    found = []
    for index in range(count):
        x, y, rest = 0.0, 0.0, index
        for size, step in zip(sizes, steps, strict=False):
            rest, here = divmod(rest, size)
            x, y = x + here * step[0], y + here * step[1]
        found.append((x, y))
    return found


def _longer_than(
    straight: float, topology: Topology, at: dict[str, Position]
) -> set[tuple[str, str]]:
    """Returns the links that are longer than `straight`."""
    pairs = ((link.source, link.target) for link in topology.links)
    return {(a, b) for a, b in pairs if a in at and b in at and math.dist(at[a], at[b]) > straight}


def _with_npus_around(topology: Topology) -> Layout:
    """Places switches or routers on their grid, and the NPUs of each around it."""
    found = re.search(r"(?:s=|^[a-z_]+:)([\dx]+)", topology.name)
    sizes = [int(size) for size in found[1].split("x")] if found else [1]
    if sum(size > 1 for size in sizes) < 2:
        return _in_shells(topology)
    switches = [vertex.name for vertex in topology.vertices if vertex.kind != "npu"]
    if not switches:  # the NPUs are the routers
        return _on_grid(topology, sizes)
    reach = 1.0 if len(sizes) < 3 else 1.6
    grid = _grid_positions(len(switches), sizes)
    at = {name: (x * reach, y * reach) for name, (x, y) in zip(switches, grid, strict=True)}
    bent = _not_adjacent(topology, switches, sizes)
    for switch, npus in _on_switches(topology).items():
        at |= _around(at[switch], 0.33, npus)
    return Layout(at=at, bent=bent)


def _not_adjacent(
    topology: Topology, names: list[str], sizes: Sequence[int]
) -> set[tuple[str, str]]:
    """Returns the links of a grid that pass over other vertices of their row."""
    number = {name: index for index, name in enumerate(names)}
    ends = ((link.source, link.target) for link in topology.links)
    inside = ((a, b) for a, b in ends if a in number and b in number)
    return {(a, b) for a, b in inside if _positions_apart(abs(number[a] - number[b]), sizes) > 1}


def _positions_apart(numbers_apart: int, sizes: Sequence[int]) -> int:
    """Returns the distance of two members of a row from the difference of their numbers."""
    for size in sizes:
        if numbers_apart < size:
            return numbers_apart
        numbers_apart //= size
    return numbers_apart


def _around(middle: Position, radius: float, npus: list[str]) -> dict[str, Position]:
    """Places up to three NPUs at the upper left, away from bent links, and more all around."""
    count = len(npus)
    few = [-0.125 + 0.13 * (index - (count - 1) / 2) for index in range(count)]
    turns = few if count <= 3 else [(index + 0.5) / count for index in range(count)]
    places = [_plus(middle, _polar(radius, turn)) for turn in turns]
    return dict(zip(npus, places, strict=True))


# --- levels ---------------------------------------------------------------------------------------


def _fat_tree(topology: Topology) -> Layout:
    """Draws a row per level, the NPUs at the bottom."""
    rows: dict[int, list[str]] = defaultdict(list)
    for vertex in topology.vertices:
        found = re.match(r"level(\d+)\.", vertex.name)
        rows[int(found[1]) if found and vertex.kind != "npu" else 0].append(vertex.name)
    return _in_rows(rows)


def _butterfly(topology: Topology) -> Layout:
    """Draws a row per stage, the first above the NPUs; links back to the NPUs are bent."""
    rows: dict[int, list[str]] = defaultdict(list)
    for vertex in topology.vertices:
        found = re.match(r"stage(\d+)\.", vertex.name)
        rows[1 + int(found[1]) if found and vertex.kind != "npu" else 0].append(vertex.name)
    last = set(rows[max(rows)])
    npus = set(rows[0])
    ends = ((link.source, link.target) for link in topology.links)
    bent = {(a, b) for a, b in ends if a in last and b in npus}
    return Layout(at=_in_rows(rows).at, bent=bent)


def _rail_optimized(topology: Topology) -> Layout:
    """Draws spines over leaves over NPUs, and the switches of the hosts below."""
    rows: dict[int, list[str]] = defaultdict(list)
    heights = {"host": -1, "pod": 1, "spine": 2}
    for vertex in topology.vertices:
        kind = re.match(r"[a-z]+", vertex.name)
        height = heights[kind[0]] if kind and vertex.kind != "npu" else 0
        rows[height].append(vertex.name)
    return _in_rows(rows)


def _chiplet_mesh(topology: Topology) -> Layout:
    """Draws chiplets side by side, with the tiles of each on a grid."""
    sizes = [int(number) for number in re.findall(r"\d+", topology.name)[:4]]
    columns, _, width, height = sizes
    at = {}
    for number, vertex in enumerate(topology.vertices):
        chiplet, tile = divmod(number, width * height)
        row, column = divmod(chiplet, columns)
        y, x = divmod(tile, width)
        at[vertex.name] = (column * (width + 0.6) + x, -row * (height + 0.6) - y)
    return Layout(at=at)


def _in_rows(rows: dict[int, list[str]]) -> Layout:
    """Draws rows of equal width, with a gap in proportion to the width."""
    width = max(len(row) for row in rows.values())
    gap = max(1.5, 0.75 * width / len(rows))
    return Layout(
        at={
            name: ((index + 0.5) * width / len(row), height * gap)
            for height, row in rows.items()
            for index, name in enumerate(row)
        }
    )


# --- groups ---------------------------------------------------------------------------------------


def _dragonfly(topology: Topology) -> Layout:
    """Draws groups around a centre; a group is a ring of switches with NPUs outside, or a grid."""
    groups: dict[str, list[str]] = defaultdict(list)
    for vertex in topology.vertices:
        if vertex.kind != "npu":
            groups[vertex.name.partition(".")[0]].append(vertex.name)
    on_switch = _on_switches(topology)
    radius = 1.0 if len(groups) == 1 else 0.94 * math.sin(math.pi / len(groups))
    at: dict[str, Position] = {}
    bent: set[tuple[str, str]] = set()
    for number, switches in enumerate(groups.values()):
        middle = _polar(0.0 if len(groups) == 1 else 1.0, number / len(groups))
        columns = sum(".row0." in name for name in switches)
        if columns:
            inside = _grid_of_switches(switches, columns, on_switch, radius)
            local = {name: inside[name] for name in switches}
            bent |= _longer_than(1.2 * _cell(switches, columns, radius), topology, local)
        else:
            inside = _ring_of_switches(switches, on_switch, radius, number / len(groups))
        at |= {name: _plus(middle, offset) for name, offset in inside.items()}
    return Layout(at=at, bent=bent)


def _ring_of_switches(
    switches: list[str], on_switch: dict[str, list[str]], radius: float, turn: float
) -> dict[str, Position]:
    """Places the first switch outwards, and each NPU outside its switch."""
    at: dict[str, Position] = {}
    for number, switch in enumerate(switches):
        here = turn + number / len(switches)
        at[switch] = _polar(0.52 * radius if len(switches) > 1 else 0.0, here)
        npus = on_switch[switch]
        for index, npu in enumerate(npus):
            aside = (index - (len(npus) - 1) / 2) / len(npus) / len(switches)
            at[npu] = _polar(radius, here + 0.85 * aside)
    return at


def _cell(switches: list[str], columns: int, radius: float) -> float:
    """Returns the distance between neighbours of a grid with a given half diagonal."""
    rows = len(switches) // columns
    return 1.9 * radius / math.hypot(columns, rows)


def _grid_of_switches(
    switches: list[str], columns: int, on_switch: dict[str, list[str]], radius: float
) -> dict[str, Position]:
    rows, cell = len(switches) // columns, _cell(switches, columns, radius)
    at: dict[str, Position] = {}
    for number, switch in enumerate(switches):
        row, column = divmod(number, columns)
        at[switch] = ((column - (columns - 1) / 2) * cell, ((rows - 1) / 2 - row) * cell)
        at |= _around(at[switch], 0.38 * cell, on_switch[switch])
    return at


def _on_switches(topology: Topology) -> dict[str, list[str]]:
    """Returns the NPUs of each switch; each NPU has one switch."""
    switch = {link.source: link.target for link in topology.links}
    found: dict[str, list[str]] = defaultdict(list)
    for vertex in topology.vertices[: topology.ranks]:
        found[switch[vertex.name]].append(vertex.name)
    return found


# --- shells and springs --------------------------------------------------------------------------


def _in_shells(topology: Topology) -> Layout:
    """Draws NPUs on the outermost shell by rank, and vertices n links away on the n-th shell.

    Vertices of an inner shell are ordered by their neighbours outside, so that groups stay
    together.
    """
    shells = _shells(topology)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for link in topology.links:
        neighbours[link.target].add(link.source)
        neighbours[link.source].add(link.target)
    turns = {name: index / len(shells[0]) for index, name in enumerate(shells[0])}
    drawn = [shells[0]]
    for shell in shells[1:]:
        outside = {name: [turns[n] for n in neighbours[name] if n in turns] for name in shell}
        pull = {name: _middle([_polar(1.0, turn) for turn in outside[name]]) for name in shell}
        # Vertices with links to all sides have a shell further inside.
        central = [name for name in shell if math.hypot(*pull[name]) < _CENTRAL]
        for group in ([name for name in shell if name not in central], central):
            order = sorted(group, key=lambda name: (round(_turn(pull[name]), 6), group.index(name)))
            first = 0.0 if group is central or not order else _turn(pull[order[0]])
            turns |= {name: first + index / len(order) for index, name in enumerate(order)}
            drawn += [order] if order else []
    return Layout(
        at={
            name: _polar(_radius(depth, drawn), turns[name])
            for depth, shell in enumerate(drawn)
            for name in shell
        }
    )


def _radius(depth: int, shells: list[list[str]]) -> float:
    """Returns the radius of a shell, 1 for the outermost; a single innermost vertex has 0."""
    innermost = depth == len(shells) - 1
    return 0.0 if depth and innermost and len(shells[depth]) == 1 else 1 - depth / len(shells)


def _shells(topology: Topology) -> list[list[str]]:
    """Returns the vertices by their distance from the nearest NPU."""
    shells = [[vertex.name for vertex in topology.vertices if vertex.kind == "npu"]]
    seen = set(shells[0])
    outgoing: dict[str, list[str]] = defaultdict(list)
    for link in topology.links:
        outgoing[link.source].append(link.target)
    while reached := {n for name in shells[-1] for n in outgoing[name] if n not in seen}:
        seen |= reached
        shells.append([vertex.name for vertex in topology.vertices if vertex.name in reached])
    if left := [vertex.name for vertex in topology.vertices if vertex.name not in seen]:
        shells.append(left)
    return shells


def _by_springs(topology: Topology) -> Layout:
    import networkx as nx

    graph = nx.Graph((link.source, link.target) for link in topology.links)
    graph.add_nodes_from(vertex.name for vertex in topology.vertices)
    # The initial positions make the result deterministic and avoid overlap.
    start = _in_shells(topology).at
    found = nx.spring_layout(graph, pos=start, iterations=200, seed=0)
    return Layout(at={name: (float(x), float(y)) for name, (x, y) in found.items()})


def _polar(radius: float, turn: float) -> Position:
    """Returns the position at a radius and a turn, clockwise from the top."""
    angle = 2 * math.pi * turn
    return (radius * math.sin(angle), radius * math.cos(angle))


def _turn(position: Position) -> float:
    return (math.atan2(position[0], position[1]) / (2 * math.pi)) % 1.0


def _middle(points: list[Position]) -> Position:
    if not points:
        return (0.0, 0.0)
    return (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))


def _plus(a: Position, b: Position) -> Position:
    return (a[0] + b[0], a[1] + b[1])


_OF_FAMILY: dict[str, Callable[[Topology], Layout]] = {
    "butterfly": _butterfly,
    "chiplet_mesh": _chiplet_mesh,
    "cmesh": _with_npus_around,
    "dragonfly": _dragonfly,
    "fat_tree": _fat_tree,
    "flattened_butterfly": _with_npus_around,
    "hyperx": _with_npus_around,
    "rail_optimized": _rail_optimized,
}
"""Layouts of families; the others are drawn in shells."""
