"""Drawings of topologies: NPUs, switches and routers by shape, links by colour and width.

Positions follow from the graph alone: a mesh or torus lies on its grid, a ring on a circle, a
hierarchy in circles from the outside in. Only graphs of no known family are laid out by springs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.errors import TopologyError

from .palette import styles
from .plot import FORMATS, figure_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tutti.topology import Link, Topology

MOST_DRAWN = 499
"""Vertices that a drawing holds at most; from 500 on, networkx' springs would need scipy."""
MOST_NAMED = 64
"""Vertices up to which each carries its name, unless asked otherwise."""

_SHAPES = {"npu": "o", "switch": "s", "router": "D"}
_FILLS = {"npu": "#FFFFFF", "switch": "#DDE2E8", "router": "#DDE2E8"}
_WIDTHS = (0.7, 3.0)
_MOST_KINDS = 8
"""Kinds of link that the legend tells apart; the rest share a line."""

_CENTRAL = 0.15
"""How far from the middle the neighbours' middle may be for a vertex to belong to all sides."""

Position = tuple[float, float]


def draw_topology(path: str | Path, topology: Topology, names: bool | None = None) -> Path:
    """Draws a topology.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        topology: of at most `MOST_DRAWN` vertices.
        names: whether vertices carry their names (NPUs their rank); by default up to `MOST_NAMED`.

    Returns:
        The path written.

    Raises:
        TopologyError: the graph is too large to be drawn, or the ending is none of these.
    """
    count = len(topology.vertices)
    if count > MOST_DRAWN:
        message = f"{topology.name} has {count} vertices: a drawing holds at most {MOST_DRAWN}"
        raise TopologyError(message, kind="too_large_to_draw")
    if Path(path).suffix.lower() not in FORMATS:
        message = f"cannot draw to `{path}`: expected an ending in {', '.join(FORMATS)}"
        raise TopologyError(message, kind="file")
    at = positions(topology)
    named = count <= MOST_NAMED if names is None else names
    side = min(4.5 + count / 16, 11.0)
    with figure_at(path, (side + 1.5, side)) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(topology.name, loc="left")
        _links(axes, topology, at)
        _vertices(axes, topology, at, named)
        figure.legend(loc="outside right upper")
    return Path(path)


def positions(topology: Topology) -> dict[str, Position]:
    """Where each vertex is drawn, by name."""
    if topology.grid is not None and len(topology.grid[0]) > 1:
        return _on_grid(topology, topology.grid[0])
    if topology.is_family:
        return _in_circles(topology)
    return _by_springs(topology)


def _on_grid(topology: Topology, sizes: list[int]) -> dict[str, Position]:
    """The first two dimensions as such, the others as copies: aslant, then further and further."""
    at: dict[str, Position] = {}
    for rank, vertex in enumerate(topology.vertices):
        x = y = 0.0
        rest, reach = rank, 1.0
        for dimension, size in enumerate(sizes):
            rest, here = divmod(rest, size)
            if dimension == 0:
                x += here
            elif dimension == 1:
                y -= here
            elif dimension == 2:
                x, y = x + 0.38 * here, y + 0.27 * here
            else:
                x += here * reach
            reach = reach * size if dimension != 2 else reach + 0.38 * size
        at[vertex.name] = (x, y)
    return at


def _in_circles(topology: Topology) -> dict[str, Position]:
    """NPUs on a circle by rank; whatever is n links away from them on the n-th circle inside it.

    On an inner circle the vertices stand in the order of what they are linked with outside, so that
    groups stay together.
    """
    circles = _circles(topology)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for link in topology.links:
        neighbours[link.target].add(link.source)
        neighbours[link.source].add(link.target)
    turns = {name: index / len(circles[0]) for index, name in enumerate(circles[0])}
    drawn = [circles[0]]
    for circle in circles[1:]:
        outside = {name: [turns[n] for n in neighbours[name] if n in turns] for name in circle}
        pull = {name: _middle([_on_circle(1.0, turn) for turn in outside[name]]) for name in circle}
        # What is linked to all sides belongs further inside than what stands for one side.
        central = [name for name in circle if math.hypot(*pull[name]) < _CENTRAL]
        for group in ([name for name in circle if name not in central], central):
            order = sorted(group, key=lambda name: (round(_turn(pull[name]), 6), group.index(name)))
            first = 0.0 if group is central or not order else _turn(pull[order[0]])
            turns |= {name: first + index / len(order) for index, name in enumerate(order)}
            drawn += [order] if order else []
    return {
        name: _on_circle(_radius(depth, drawn), turns[name])
        for depth, circle in enumerate(drawn)
        for name in circle
    }


def _radius(depth: int, circles: list[list[str]]) -> float:
    """From 1 inwards; what is alone on the innermost circle stands in the middle."""
    innermost = depth == len(circles) - 1
    return 0.0 if depth and innermost and len(circles[depth]) == 1 else 1 - depth / len(circles)


def _circles(topology: Topology) -> list[list[str]]:
    """The vertices by their distance from the nearest NPU."""
    circles = [[vertex.name for vertex in topology.vertices if vertex.kind == "npu"]]
    seen = set(circles[0])
    outgoing: dict[str, list[str]] = defaultdict(list)
    for link in topology.links:
        outgoing[link.source].append(link.target)
    while reached := {n for name in circles[-1] for n in outgoing[name] if n not in seen}:
        seen |= reached
        circles.append([vertex.name for vertex in topology.vertices if vertex.name in reached])
    if left := [vertex.name for vertex in topology.vertices if vertex.name not in seen]:
        circles.append(left)
    return circles


def _by_springs(topology: Topology) -> dict[str, Position]:
    import networkx as nx

    graph = nx.Graph((link.source, link.target) for link in topology.links)
    graph.add_nodes_from(vertex.name for vertex in topology.vertices)
    # The start makes it deterministic, and close to what is told apart easily.
    start = _in_circles(topology)
    found = nx.spring_layout(graph, pos=start, iterations=200, seed=0)
    return {name: (float(x), float(y)) for name, (x, y) in found.items()}


def _on_circle(radius: float, turn: float) -> Position:
    """Clockwise from the top."""
    angle = 2 * math.pi * turn
    return (radius * math.sin(angle), radius * math.cos(angle))


def _turn(position: Position) -> float:
    return (math.atan2(position[0], position[1]) / (2 * math.pi)) % 1.0


def _middle(points: list[Position]) -> Position:
    if not points:
        return (0.0, 0.0)
    return (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))


def _kind(link: Link) -> str:
    length = "" if link.length is None else f", {link.length}"
    return f"{link.rate}, {link.latency}{length}"


def _links(axes: Axes, topology: Topology, at: dict[str, Position]) -> None:
    """A line per cable, an arrow per link that has no way back, a colour per kind of link."""
    kinds = Counter(_kind(link) for link in topology.links)
    known = [kind for kind, _ in kinds.most_common(_MOST_KINDS)]
    palette = styles([str(number) for number in range(len(known))])
    colours = {kind: palette[str(number)].colour for number, kind in enumerate(known)}
    widths = _widths(topology)
    both = {(link.source, link.target, _kind(link)) for link in topology.links}
    labelled: set[str] = set()
    for link in topology.links:
        kind = _kind(link)
        cable = (link.target, link.source, kind) in both
        if cable and link.source > link.target:
            continue
        group = kind if kind in colours else "other"
        label = (
            f"{group} ({_count(group, kinds, colours)} links)" if group not in labelled else None
        )
        labelled.add(group)
        ends = (at[link.source], at[link.target])
        _line(
            axes,
            ends if not cable or ends[0] < ends[1] else ends[::-1],
            colours.get(kind, "#7F7F7F"),
            widths[str(link.rate)],
            arrow=not cable,
            bend=_bend(topology, *ends),
        )
        if label:
            axes.plot([], [], color=colours.get(kind, "#7F7F7F"), label=label)


def _count(group: str, kinds: Counter[str], colours: dict[str, str]) -> int:
    if group in kinds:
        return kinds[group]
    return sum(count for kind, count in kinds.items() if kind not in colours)


def _widths(topology: Topology) -> dict[str, float]:
    """Faster links are wider, by the logarithm of their rate."""
    rates = {str(link.rate): link.rate.core.bytes_per_second for link in topology.links}
    if not rates:
        return {}
    low, high = math.log(min(rates.values())), math.log(max(rates.values()))
    thin, thick = _WIDTHS
    share = {text: (math.log(rate) - low) / (high - low or 1.0) for text, rate in rates.items()}
    return {text: thin + (thick - thin) * part for text, part in share.items()}


def _bend(topology: Topology, a: Position, b: Position) -> float:
    """A torus' links from end to end are bent, as they would cover the links between."""
    if topology.grid is None or len(topology.grid[0]) < 2 or math.dist(a, b) < 1.5:
        return 0.0
    return 0.18


def _line(
    axes: Axes,
    ends: tuple[Position, Position],
    colour: str,
    width: float,
    *,
    arrow: bool,
    bend: float,
) -> None:
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(
        FancyArrowPatch(
            *ends,
            arrowstyle="-|>" if arrow else "-",
            connectionstyle=f"arc3,rad={bend}",
            mutation_scale=9,
            shrinkA=0,
            shrinkB=7 if arrow else 0,
            color=colour,
            linewidth=width,
            zorder=1,
        )
    )


def _vertices(axes: Axes, topology: Topology, at: dict[str, Position], named: bool) -> None:
    for kind, shape in _SHAPES.items():
        members = [vertex for vertex in topology.vertices if vertex.kind == kind]
        if not members:
            continue
        label = {"npu": "NPU"}.get(kind, kind) + f" ({len(members)})"
        axes.scatter(
            [at[vertex.name][0] for vertex in members],
            [at[vertex.name][1] for vertex in members],
            s=240 if named and kind == "npu" else 60,
            marker=shape,
            facecolor=_FILLS[kind],
            edgecolor="#3A424D",
            linewidth=1.0,
            zorder=2,
            label=label,
        )
        for vertex in members if named else []:
            _name(axes, at[vertex.name], vertex.name, vertex.rank)


def _name(axes: Axes, where: Position, name: str, rank: int | None) -> None:
    if rank is not None:
        axes.annotate(str(rank), where, ha="center", va="center", fontsize=7, zorder=3)
        return
    axes.annotate(
        name, where, xytext=(0, 7), textcoords="offset points", ha="center", fontsize=6, zorder=3
    )
