"""Drawings of topologies: NPUs, switches and routers by shape, links by colour and width."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.errors import TopologyError

from .palette import GREY, OUTLINE_COLOUR, VERTEX_COLOUR, styles
from .plot import FORMATS, figure_at
from .topology_layout import layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tutti.topology import Link, Topology

    from .topology_layout import Layout, Position

MOST_DRAWN = 499
"""Maximum number of vertices; from 500 on, the spring layout of networkx requires scipy."""
MOST_NAMED = 64
"""Maximum number of vertices that are labelled by default."""

_SHAPES = {"npu": "o", "switch": "s", "router": "D"}
_FILLS = {"npu": "#FFFFFF", "switch": VERTEX_COLOUR, "router": VERTEX_COLOUR}
_WIDTHS = (0.7, 3.0)
_MOST_KINDS = 8
"""Kinds of link in the legend; the others share an entry."""

_BEND = 0.18
"""Offset of a bent link that would cover others, as a share of its length."""


def draw_topology(path: str | Path, topology: Topology, names: bool | None = None) -> Path:
    """Draws a topology.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        topology: A topology of at most `MOST_DRAWN` vertices.
        names: Whether vertices have labels (NPUs their rank); by default up to `MOST_NAMED`.

    Returns:
        The path written.

    Raises:
        TopologyError: The topology is too large to draw, or the suffix is unknown.
    """
    count = len(topology.vertices)
    if count > MOST_DRAWN:
        message = f"{topology.name} has {count} vertices: expected at most {MOST_DRAWN} to draw"
        raise TopologyError(message, kind="too_large_to_draw")
    if Path(path).suffix.lower() not in FORMATS:
        message = f"cannot draw to `{path}`: expected a suffix in {', '.join(FORMATS)}"
        raise TopologyError(message, kind="file")
    placed = layout(topology)
    named = count <= MOST_NAMED if names is None else names
    side = min(4.5 + count / 16, 11.0)
    with figure_at(path, (side + 1.5, side * _height(placed))) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(topology.name, loc="left")
        _links(axes, topology, placed)
        _vertices(axes, topology, placed.at, named)
        figure.legend(loc="outside right upper")
    return Path(path)


def _height(placed: Layout) -> float:
    """Returns the height of the picture for a width of 1, with space for labels and legend."""
    xs, ys = zip(*placed.at.values(), strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return min(max(0.5, 0.15 + high / wide if wide else 1.0), 1.0)


def _kind(link: Link) -> str:
    length = "" if link.length is None else f", {link.length}"
    return f"{link.rate}, {link.latency}{length}"


def _links(axes: Axes, topology: Topology, placed: Layout) -> None:
    """Draws a line per cable, an arrow per unidirectional link, a colour per kind of link."""
    at = placed.at
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
            colours.get(kind, GREY),
            widths[str(link.rate)],
            arrow=not cable,
            bend=_BEND if (link.source, link.target) in placed.bent else 0.0,
        )
        if label:
            axes.plot([], [], color=colours.get(kind, GREY), label=label)


def _count(group: str, kinds: Counter[str], colours: dict[str, str]) -> int:
    if group in kinds:
        return kinds[group]
    return sum(count for kind, count in kinds.items() if kind not in colours)


def _widths(topology: Topology) -> dict[str, float]:
    """Returns line widths by the logarithm of the rate."""
    rates = {str(link.rate): link.rate.core.bytes_per_second for link in topology.links}
    if not rates:
        return {}
    low, high = math.log(min(rates.values())), math.log(max(rates.values()))
    thin, thick = _WIDTHS
    share = {text: (math.log(rate) - low) / (high - low or 1.0) for text, rate in rates.items()}
    return {text: thin + (thick - thin) * part for text, part in share.items()}


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
        FancyArrowPatch(*ends, arrowstyle="-|>" if arrow else "-", mutation_scale=9, shrinkA=0,
                        shrinkB=7 if arrow else 0, connectionstyle=f"arc3,rad={bend}",
                        color=colour, linewidth=width, zorder=1)
    )  # fmt: skip


def _vertices(axes: Axes, topology: Topology, at: dict[str, Position], named: bool) -> None:
    for kind, shape in _SHAPES.items():
        members = [vertex for vertex in topology.vertices if vertex.kind == kind]
        if not members:
            continue
        label = {"npu": "NPU"}.get(kind, kind) + f" ({len(members)})"
        xs, ys = zip(*(at[vertex.name] for vertex in members), strict=True)
        size = 240 if named and kind == "npu" else 60
        axes.scatter(xs, ys, label=label, s=size, marker=shape, linewidth=1.0, zorder=2,
                     facecolor=_FILLS[kind], edgecolor=OUTLINE_COLOUR)  # fmt: skip
        for vertex in members if named else []:
            _name(axes, at[vertex.name], vertex.name, vertex.rank)


def _name(axes: Axes, where: Position, name: str, rank: int | None) -> None:
    if rank is not None:
        axes.annotate(str(rank), where, ha="center", va="center", fontsize=7, zorder=3)
        return
    axes.annotate(
        name, where, xytext=(0, 7), textcoords="offset points", ha="center", fontsize=6, zorder=3
    )
