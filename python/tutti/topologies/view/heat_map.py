"""The heat map of a topology: links coloured by utilisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.view.charts import HIDDEN, TEXT, Axis, chart, line, marks
from tutti.view.palette import OUTLINE_COLOUR, UTILISATION, VERTEX_COLOUR
from tutti.view.quantity import format_share

from .graph import MOST_DRAWN
from .layout import layout
from .pixel_map import pixel_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.topologies import Topology
    from tutti.view.charts import Figure, Trace

    from .layout import Layout, Position

COLOUR_BAR = {
    "title": {"text": "utilisation"}, "tickformat": ".0%", "thickness": 14, "orientation": "h",
    "yref": "container", "y": 0, "yanchor": "bottom",
}  # fmt: skip
SCALE = [[place / (len(UTILISATION) - 1), colour] for place, colour in enumerate(UTILISATION)]
"""The colour scale of utilisation."""
_STEPS = len(UTILISATION)
"""Colours of the heat map, one trace each: a line of plotly has one colour."""
_ASIDE = 0.07
"""Distance of the two directions of a cable from its centre line, as a share of a unit."""
_BEND = 0.11
_MOST_BEND = 0.45
"""Offset of a bent link that would cover others: a share of its length, and the maximum."""
_BEND_POINTS = 9
_Mark = tuple[float, float, float, str]


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A link: its ends, its utilisation as a fraction, and further text of its tooltip."""

    source: str
    target: str
    utilisation: float
    text: str


def is_pixel_map(topology: Topology) -> bool:
    """Whether the heat map of a topology has a pixel per vertex instead of lines."""
    return len(topology.vertices) > MOST_DRAWN


def axes_of(topology: Topology) -> str:
    """Returns what the heat map of a topology shows, for its caption."""
    if not is_pixel_map(topology):
        return (
            "The topology, without scale: round vertices are NPUs, square ones are other routers. "
            "Colour: utilisation of a link in each direction, in per cent."
        )
    order = "in its column and row" if topology.grid is not None else "by number, row by row"
    return (
        f"A pixel per vertex, {order}. Colour: utilisation of the busiest link that leaves it, in "
        "per cent."
    )


def heat_map(
    topology: Topology, several: Sequence[Iterable[LinkUse]], held: Mapping[str, str] | None = None
) -> Figure | None:
    """Returns the topology with links coloured by utilisation; None if it is too large.

    Above `MOST_DRAWN` vertices, it is a grid of pixels (`pixel_map`).

    Args:
        topology: The topology.
        several: The links of one or more runs; traces of run i have `meta` i, and only those of
            the first run are visible. All have the same scale.
        held: Further text in the tooltips of vertices.
    """
    if is_pixel_map(topology):
        bar = COLOUR_BAR | {"title": {"text": "utilisation of the busiest link"}}
        return pixel_map(topology, several, held or {}, {"colorscale": SCALE, "colorbar": bar})
    placed = layout(topology)
    # The router of an NPU has the NPU's position and is not drawn separately.
    found = [[link for link in links if link.source != link.target] for links in several]
    busiest = max([link.utilisation for links in found for link in links] + [1e-12])
    traces: list[Trace] = []
    for index, links in enumerate(found):
        made = [*_links(links, placed, busiest), _vertices(topology, placed.at, held or {})]
        traces += [one | {"meta": index, "visible": index == 0} for one in made]
    across, down = ([place[axis] for place in placed.at.values()] for axis in (0, 1))
    wide, high = max(across) - min(across) or 1.0, max(down) - min(down)
    height = int(min(max(320, 120 + 900 * high / wide), 900))
    square = Axis(more={"visible": False, "scaleanchor": "x"})
    return chart(traces, HIDDEN, square, height, showlegend=False,
                 margin={"l": 8, "r": 8, "b": 84})  # fmt: skip


def _links(links: Iterable[LinkUse], placed: Layout, busiest: float) -> list[Trace]:
    lines: list[tuple[list[float | None], list[float | None]]] = [([], []) for _ in range(_STEPS)]
    dots: list[_Mark] = []
    for link in links:
        ends = (link.source, link.target)
        points = _route(*(placed.at[end] for end in ends), bent=ends in placed.bent)
        xs, ys = lines[min(int(link.utilisation / busiest * _STEPS), _STEPS - 1)]
        xs += [*(x for x, _ in points), None]
        ys += [*(y for _, y in points), None]
        text = (
            f"<b>{link.source} to {link.target}</b><br>utilisation "
            f"{format_share(link.utilisation)}, {link.text}"
        )
        dots.append((*points[len(points) * 2 // 3], link.utilisation, text))
    traces = [
        line(xs, ys, colour, line={"width": 3}, showlegend=False)
        for colour, (xs, ys) in zip(UTILISATION, lines, strict=True)
        if xs
    ]
    return [*traces, _dots(dots, busiest)]


def _route(a: Position, b: Position, *, bent: bool) -> list[Position]:
    """Returns the line between two vertices, right of the centre line or bent around others."""
    length = math.dist(a, b) or 1.0
    side = ((b[1] - a[1]) / length, (a[0] - b[0]) / length)
    if bent:
        most = min(_BEND * length, _MOST_BEND)
        along = [index / (_BEND_POINTS - 1) for index in range(_BEND_POINTS)]
        shifts = [most * 4 * t * (1 - t) for t in along]
    else:
        along = [0, 1 / 3, 2 / 3, 1]
        shifts = [min(_ASIDE, length / 6)] * 4
    return [
        (a[0] + (b[0] - a[0]) * t + side[0] * by, a[1] + (b[1] - a[1]) * t + side[1] * by)
        for t, by in zip(along, shifts, strict=True)
    ]


def _dots(dots: Sequence[_Mark], busiest: float) -> Trace:
    """Returns a dot per link, which carries its tooltip and the colour scale."""
    xs, ys, busy, texts = zip(*dots, strict=True) if dots else ((), (), (), ())
    marker = {
        "size": 6,
        "color": busy,
        "cmin": 0,
        "cmax": busiest,
        "colorscale": SCALE,
        "colorbar": COLOUR_BAR,
    }
    return marks(xs, ys, marker, customdata=texts, hovertemplate=TEXT)


def _vertices(topology: Topology, at: Mapping[str, Position], held: Mapping[str, str]) -> Trace:
    vertices = topology.vertices
    texts = [f"<b>{vertex.name}</b>{held.get(vertex.name, '')}" for vertex in vertices]
    xs, ys = zip(*(at[vertex.name] for vertex in vertices), strict=True)
    marker = {
        "size": 11 if len(vertices) <= 100 else 7,
        "color": VERTEX_COLOUR,
        "line": {"color": OUTLINE_COLOUR, "width": 1},
        "symbol": ["circle" if vertex.kind == "npu" else "square" for vertex in vertices],
    }
    return marks(xs, ys, marker, customdata=texts, hovertemplate=TEXT)
