"""The heat map of a large topology: a pixel per vertex, coloured by its most used link."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.view.charts import HIDDEN, Axis, chart, heat
from tutti.view.quantity import format_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.topologies import Topology
    from tutti.topologies.view.heat_map import LinkUse
    from tutti.view.charts import Figure, Trace

MOST_PIXELS = 1 << 16
"""Maximum number of vertices; larger topologies are not drawn."""
_SIDE = 620
"""Height of a square map."""


def places(count: int, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Returns column and row of each vertex.

    A vertex of a grid has its coordinates; further dimensions continue to the right and below,
    with a gap. Without a grid, vertices fill rows of equal length by number.

    Args:
        count: The number of vertices.
        sizes: The members of each dimension of the grid; empty without one.

    Examples:
        >>> places(6, [3, 2])[4], places(5, [])[4], places(8, [2, 2, 2])[5]
        ((1, 1), (1, 1), (4, 0))
    """
    sizes = list(sizes) or [math.ceil(math.sqrt(count)), count]
    found = []
    for number in range(count):
        at, span, rest = [0, 0], [1, 1], number
        for dimension, size in enumerate(sizes):
            rest, here = divmod(rest, size)
            side = dimension % 2
            at[side] += here * span[side]
            span[side] = span[side] * size + 1 if size > 1 else span[side]
        found.append((at[0], at[1]))
    return found


def pixel_map(
    topology: Topology,
    several: Sequence[Iterable[LinkUse]],
    held: Mapping[str, str],
    look: Mapping[str, object],
) -> Figure | None:
    """Returns a pixel per vertex; None above `MOST_PIXELS` vertices.

    Args:
        topology: The topology.
        several: The links of one or more runs, as for `heat_map`.
        held: Further text in the tooltips of vertices.
        look: Scale and colour bar, as options of plotly.
    """
    names = [vertex.name for vertex in topology.vertices]
    if len(names) > MOST_PIXELS:
        return None
    grid = topology.grid[0] if topology.grid is not None else []
    at = dict(zip(names, places(len(names), grid), strict=True))
    columns, rows = (max(place[side] for place in at.values()) + 1 for side in (0, 1))
    drawn = [list(links) for links in several]
    most = max([link.utilisation for links in drawn for link in links] + [1e-12])
    traces: list[Trace] = []
    for index, links in enumerate(drawn):
        values: list[list[float | None]] = [[None] * columns for _ in range(rows)]
        texts = [[""] * columns for _ in range(rows)]
        for name, (busiest, text) in _of_vertices(names, links).items():
            column, row = at[name]
            values[row][column] = busiest
            texts[row][column] = f"<b>{name}</b>{text}{held.get(name, '')}"
        trace = heat(range(columns), range(rows), values, zmin=0, zmax=most, text=texts,
                     hoverongaps=False, hovertemplate="%{text}<extra></extra>", **look)  # fmt: skip
        traces.append(trace | {"meta": index, "visible": index == 0})
    height = int(min(max(_SIDE * rows / columns, 240), 900)) + 100
    down = Axis(more={"visible": False, "scaleanchor": "x", "autorange": "reversed"})
    return chart(traces, HIDDEN, down, height, showlegend=False,
                 margin={"l": 8, "r": 8, "b": 84})  # fmt: skip


def _of_vertices(names: Sequence[str], links: Iterable[LinkUse]) -> dict[str, tuple[float, str]]:
    """Returns the highest utilisation of the links of each vertex, and a line for each link."""
    leaving: dict[str, list[LinkUse]] = {name: [] for name in names}
    for link in links:
        leaving.setdefault(link.source, []).append(link)
    found = {}
    for name in names:
        lines = (
            f"<br>to {link.target if link.target != name else 'its NPU'}: "
            f"{format_share(link.utilisation)}, {link.text}"
            for link in leaving[name]
        )
        busiest = max((link.utilisation for link in leaving[name]), default=0.0)
        found[name] = (busiest, "".join(lines))
    return found
