"""Drawings of topologies: NPUs, switches and routers by shape, links by colour and width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tutti.topologies.errors import TopologyError
from tutti.view.palette import OUTLINE_COLOUR, VERTEX_COLOUR
from tutti.view.plot import FORMATS, figure_at

from .layout import layout
from .lines import lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tutti.topologies import Topology

    from .layout import Layout, Position

MOST_DRAWN = 499
"""Maximum number of vertices; from 500 on, the spring layout of networkx requires scipy."""
MOST_NAMED = 64
"""Maximum number of vertices that are labelled by default."""

_SHAPES = {"npu": "o", "switch": "s", "router": "D"}
_FILLS = {"npu": "#FFFFFF", "switch": VERTEX_COLOUR, "router": VERTEX_COLOUR}
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


def _links(axes: Axes, topology: Topology, placed: Layout) -> None:
    """Draws a line per cable, an arrow per unidirectional link, a colour per kind of link."""
    found = lines(topology, placed)
    for one in found.lines:
        bend = _BEND if one.is_bent else 0.0
        _line(axes, one.ends, one.colour, one.width, arrow=one.is_arrow, bend=bend)
    for label, colour in found.legend:
        axes.plot([], [], color=colour, label=label)


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
