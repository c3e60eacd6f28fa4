"""Charts of a network report: link utilisation on the topology, buffers, stalls and energy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from plotly.colors import sample_colorscale

from .charts import HIDDEN, NAMES, TEXT, Axis, bars, chart, errors, line
from .noc_words import channel, spoken, stalls
from .palette import BLUE, ORANGE, RED
from .quantity import format_share, number
from .topology_graph import MOST_DRAWN
from .topology_layout import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.energy import EnergyReport
    from tutti.noc import NocRun

    from .topology_layout import Position

_SCALE = "YlOrRd"
_STEPS = 12
"""Colours of the heat map, one trace each: a line of plotly has one colour."""
_ASIDE = 0.07
"""Distance of the two directions of a cable from its centre line, as a share of a unit."""
_BEND = 0.11
_MOST_BEND = 0.45
"""Offset of a bent link that would cover others: a share of its length, and the maximum."""
_BEND_POINTS = 9
_MOST_ROWS = 24
"""VCs in the chart of the fullest VCs."""
_MOST_TIMES = 400
"""Samples in that chart; longer series are decimated."""
_CYCLE = Axis("cycle", more={"tickformat": ","})
_FLITS = Axis("occupancy", "flits", zero=True)
_Mark = tuple[float, float, float, str]


def heat_map(run: NocRun) -> go.Figure | None:
    """Returns the topology with links coloured by utilisation; None if it is too large."""
    topology = run.network.topology
    if len(topology.vertices) > MOST_DRAWN:
        return None
    placed = layout(topology)
    # The router of an NPU has the NPU's position and is not drawn separately.
    found = run.channels.filter(pl.col("source") != pl.col("target"))
    busiest = max([*found["utilisation"], 1e-12])
    colours = sample_colorscale(_SCALE, [0.15 + 0.85 * i / (_STEPS - 1) for i in range(_STEPS)])
    lines: list[tuple[list[float | None], list[float | None]]] = [([], []) for _ in range(_STEPS)]
    marks: list[_Mark] = []
    columns = found.select("source", "target", "flits", "utilisation")
    for source, target, flits, busy in columns.iter_rows():
        bent = (source, target) in placed.bent
        points = _route(placed.at[source], placed.at[target], bent=bent)
        xs, ys = lines[min(int(busy / busiest * _STEPS), _STEPS - 1)]
        xs += [*(x for x, _ in points), None]
        ys += [*(y for _, y in points), None]
        text = f"<b>{source} to {target}</b><br>utilisation {format_share(busy)}, {flits:,} flits"
        marks.append((*points[len(points) * 2 // 3], busy, text))
    traces = [
        line(xs, ys, colour, line={"width": 3}, showlegend=False)
        for colour, (xs, ys) in zip(colours, lines, strict=True)
        if xs
    ]
    traces += [_marks(marks, busiest, colours), _vertices(run, placed.at)]
    across, down = ([place[axis] for place in placed.at.values()] for axis in (0, 1))
    wide, high = max(across) - min(across) or 1.0, max(down) - min(down)
    height = int(min(max(320, 120 + 900 * high / wide), 900))
    square = Axis(more={"visible": False, "scaleanchor": "x"})
    return chart(traces, HIDDEN, square, height, showlegend=False,
                 margin={"l": 8, "r": 8, "b": 84})  # fmt: skip


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


def _marks(marks: Sequence[_Mark], busiest: float, colours: Sequence[str]) -> go.Scatter:
    """Returns a dot per link, which carries its tooltip and the colour scale."""
    steps = [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)]
    xs, ys, busy, texts = zip(*marks, strict=True) if marks else ((), (), (), ())
    marker = {
        "size": 6,
        "color": busy,
        "cmin": 0,
        "cmax": busiest,
        "colorscale": steps,
        "colorbar": {
            "title": {"text": "utilisation"},
            "tickformat": ".0%",
            "thickness": 14,
            "orientation": "h",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
        },
    }
    return go.Scatter(x=xs, y=ys, mode="markers", marker=marker, customdata=texts,
                      hovertemplate=TEXT)  # fmt: skip


def _vertices(run: NocRun, at: dict[str, Position]) -> go.Scatter:
    vertices = run.network.topology.vertices
    held: dict[str, float] = {}
    if not run.occupancy.is_empty():
        held = dict(run.occupancy.group_by("router").agg(pl.col("flits").sum()).iter_rows())
    texts = []
    for vertex in vertices:
        mean = held.get(vertex.name)
        extra = "" if mean is None else f"<br>{number(mean, 3)} flits in its buffers on average"
        texts.append(f"<b>{vertex.name}</b>{extra}")
    xs, ys = zip(*(at[vertex.name] for vertex in vertices), strict=True)
    marker = {
        "size": 11 if len(vertices) <= 100 else 7,
        "color": "#DDE2E8",
        "line": {"color": "#3A424D", "width": 1},
        "symbol": ["circle" if vertex.kind == "npu" else "square" for vertex in vertices],
    }
    return go.Scatter(x=xs, y=ys, mode="markers", marker=marker, customdata=texts,
                      hovertemplate=TEXT)  # fmt: skip


def buffered(run: NocRun) -> go.Figure | None:
    """Returns the flits in all buffers over the window."""
    if not run.buffered:
        return None
    plan = run.plan
    times = [plan.warmup + plan.sample * (index + 1) for index in range(len(run.buffered))]
    trace = line(times, run.buffered, BLUE, "cycle %{x:,}: %{y:,} flits<extra></extra>")
    return chart([trace], _CYCLE, _FLITS, 300, showlegend=False)


def over_time(run: NocRun) -> go.Figure | None:
    """Returns the flits per VC number over the window, one line each."""
    if not run.buffered:
        return None
    vcs, start = run.network.router.vcs, run.plan.warmup
    shades = [0.25 + 0.65 * index / max(vcs - 1, 1) for index in range(vcs)]
    traces = []
    for vc, colour in enumerate(sample_colorscale("Viridis", shades)):
        of_vc = run.buffered_by_vc.filter(pl.col("vc") == vc)
        hover = f"cycle %{{x:,}}: %{{y:,}} flits in VC {vc}<extra></extra>"
        cycles = [start + cycle for cycle in of_vc["cycle"]]
        traces.append(line(cycles, of_vc["flits"].to_list(), colour, hover, name=f"VC {vc}"))
    return chart(traces, _CYCLE, _FLITS, 320, showlegend=vcs > 1)


def by_vc(run: NocRun) -> go.Figure | None:
    """Returns the mean flits per VC: average over all ports, and the fullest port."""
    if run.occupancy.is_empty():
        return None
    of_vc = run.occupancy.group_by("vc", maintain_order=True).agg(
        pl.col("flits").mean().alias("mean"), pl.col("flits").max().alias("most")
    )
    capacity = run.network.router.buffer
    names = [str(vc) for vc in of_vc["vc"]]
    traces = [
        bars(names, of_vc[column].to_list(), colour,
             f"VC %{{x}}, {name}: %{{y:.3g}} of {capacity} flits<extra></extra>", name=name)
        for column, name, colour in (
            ("mean", "mean of all ports", BLUE),
            ("most", "fullest port", ORANGE),
        )
    ]  # fmt: skip
    y = Axis("mean occupancy", "flits", zero=True)
    return chart(traces, Axis("VC", category=True), y, 300, barmode="group")


def fullest(run: NocRun) -> go.Figure | None:
    """Returns the flits in the fullest VCs at each sample; None unless `keep_vcs` is set."""
    if not run.plan.keep_vcs or not run.buffered:
        return None
    per_channel = max(_MOST_ROWS // run.network.router.vcs, 1)
    ports = (
        run.occupancy.group_by("source", "router", maintain_order=True)
        .agg(pl.col("flits").sum())
        .sort("flits", descending=True, maintain_order=True)
        .head(per_channel)
    )
    rows: list[list[int]] = []
    names: list[str] = []
    step = -(-len(run.buffered) // _MOST_TIMES)
    for source, router in reversed(ports.select("source", "router").rows()):
        found = run.vcs_over_time(source, router)
        for vc in reversed(range(run.network.router.vcs)):
            rows.append(found.filter(pl.col("vc") == vc)["flits"].gather_every(step).to_list())
            names.append(f"{channel('injection', source, router)}, VC {vc}")
    heat = go.Heatmap(
        x=[run.plan.warmup + cycle for cycle in run.look_times[::step]],
        y=names,
        z=rows,
        zmin=0,
        zmax=run.network.router.buffer,
        colorscale=_SCALE,
        colorbar={"title": {"text": "flits"}, "thickness": 14},
        hovertemplate="%{y}<br>cycle %{x:,}: %{z} flits<extra></extra>",
    )
    y = Axis(category=True, more={"automargin": True})
    return chart([heat], _CYCLE, y, 110 + 18 * max(len(rows), 6), showlegend=False)


def stalled(run: NocRun) -> go.Figure | None:
    """Returns the causes of stalls of head flits."""
    if not run.stalls.busy:
        return None
    causes, shares = zip(*stalls(run)[::-1], strict=True)
    texts = [format_share(share) for share in shares]
    trace = bars(causes, shares, RED, "%{y}: %{text}<extra></extra>", across=True, text=texts)
    x = Axis("share of samples of occupied VCs", share=True)
    return chart([trace], x, NAMES, 240, showlegend=False)


def energy_bars(energy: EnergyReport) -> go.Figure:
    """Returns the energy of the window by component, with the bounds of the sources."""
    kinds = (
        ("dynamic", BLUE, energy.dynamic_by_component),
        ("leakage", ORANGE, energy.leakage_by_component),
    )
    traces = []
    for name, colour, parts in kinds:
        above = [(part.high - part.nominal) * 1e9 for part in parts.values()]
        below = [(part.nominal - part.low) * 1e9 for part in parts.values()]
        hover = f"%{{x}}, {name}: %{{y:.4g}} nJ<extra></extra>"
        values = [part.nominal * 1e9 for part in parts.values()]
        traces.append(bars([spoken(component) for component in parts], values, colour, hover,
                           name=name, error_y=errors(above, below)))  # fmt: skip
    return chart(traces, Axis(), Axis("energy of the window", "nJ", zero=True), 340,
                 barmode="group")  # fmt: skip
