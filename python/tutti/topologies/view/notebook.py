"""A topology in a notebook: name, size and a small drawing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tutti.topologies.view.layout import Layout, layout
from tutti.topologies.view.lines import lines
from tutti.view import svg
from tutti.view.palette import FAINT, OUTLINE_COLOUR
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.topologies import Topology
    from tutti.topologies.view.layout import Position

_MOST_VERTICES = 256
"""Maximum number of vertices of a drawing."""
_SIDE, _MARGIN = 240.0, 14.0
_BEND = 0.18
"""Offset of the control point of a bent line, as a share of its length."""


def topology_html(topology: Topology) -> str:
    """Returns name and size of a topology, and a drawing of up to 256 vertices."""
    switches = len(topology.vertices) - topology.ranks
    sizes = [
        plural(topology.ranks, "NPU"),
        *([plural(switches, "switch or router", "switches and routers")] if switches else []),
        plural(len(topology.links), "link"),
    ]
    heading = f"<p><b>{escape(topology.name)}</b>: {', '.join(sizes)}</p>"
    count = len(topology.vertices)
    if count > _MOST_VERTICES:
        return f"{heading}<p>Topologies of up to {_MOST_VERTICES} vertices are drawn.</p>"
    return heading + topology_svg(topology)


def topology_svg(topology: Topology) -> str:
    """Returns a topology as inline SVG: NPUs are round, switches and routers square."""
    placed = layout(topology)
    at, size = _scaled(placed.at, _MARGIN + (_BEND * _SIDE / 2 if placed.bent else 0.0))
    found = lines(topology, Layout(at=at, bent=placed.bent))
    legend_width = 30 + 6.6 * max((len(label) for label, _ in found.legend), default=0)
    legend_height = 20 * len(found.legend)
    root = svg.drawing(max(size[0], legend_width), size[1] + legend_height, topology.name)
    for line in found.lines:
        svg.shape(root, "path", d=_path(*line.ends, bent=line.is_bent), fill="none",
                  stroke=line.colour, stroke_width=line.width)  # fmt: skip
    radius = 5.0 if len(at) <= 64 else 3.0
    for vertex in topology.vertices:
        x, y = at[vertex.name]
        tip = vertex.name if vertex.rank is None else f"{vertex.name}, rank {vertex.rank}"
        if vertex.kind == "npu":
            svg.shape(root, "circle", tip, cx=x, cy=y, r=radius, fill="#FFFFFF",
                      stroke=OUTLINE_COLOUR)  # fmt: skip
        else:
            svg.shape(root, "rect", tip, x=x - radius, y=y - radius, width=2 * radius,
                      height=2 * radius, fill=FAINT, stroke=OUTLINE_COLOUR)  # fmt: skip
    for row, entry in enumerate(found.legend):
        svg.legend(root, [entry], (_MARGIN - 5, size[1] + 20 * row))
    return svg.written(root)


def _scaled(
    at: dict[str, Position], margin: float
) -> tuple[dict[str, Position], tuple[float, float]]:
    """Returns the positions in pixels, and the size of the drawing."""
    xs, ys = zip(*at.values(), strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    scale = _SIDE / max(wide, high, 1.0)
    found = {
        name: (margin + (x - min(xs)) * scale, margin + (max(ys) - y) * scale)
        for name, (x, y) in at.items()
    }
    return found, (2 * margin + wide * scale, 2 * margin + high * scale)


def _path(start: Position, end: Position, *, bent: bool) -> str:
    (x1, y1), (x2, y2) = start, end
    if not bent:
        return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    x, y = (x1 + x2) / 2 + _BEND * (y2 - y1), (y1 + y2) / 2 - _BEND * (x2 - x1)
    return f"M{x1:.1f} {y1:.1f}Q{x:.1f} {y:.1f} {x2:.1f} {y2:.1f}"
