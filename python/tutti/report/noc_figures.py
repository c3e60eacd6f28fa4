"""The charts of a network's reports, as plotly figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from plotly.colors import sample_colorscale

from .figures import _layout
from .noc_words import channel, number, stalls
from .quantity import format_share
from .topology_graph import MOST_DRAWN
from .topology_layout import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc import Estimate, NocRun, Saturation

    from .topology_layout import Position

_SCALE = "YlOrRd"
_STEPS = 12
"""Colours of the heat map: a trace each, as plotly has one colour for a line."""

_ASIDE = 0.07
"""How far the two directions of a cable are drawn from its middle, as a share of a unit."""

_BEND = 0.11
_MOST_BEND = 0.45
"""How far a link is bent that would cover others: a share of its length, up to so many units."""
_BEND_POINTS = 9

_COLOURS = {"latency": "#0072B2", "accepted": "#009E73", "mark": "#D55E00", "grey": "#7F7F7F"}


def heat_map(run: NocRun) -> go.Figure | None:
    """The topology with its links by utilisation; None for graphs too large to be drawn."""
    topology = run.network.topology
    if len(topology.vertices) > MOST_DRAWN:
        return None
    placed = layout(topology)
    # A router of an NPU's own stands where the NPU does, and is not drawn apart.
    found = run.channels.filter(pl.col("source") != pl.col("target"))
    busiest = max([*found["utilisation"], 1e-12])
    colours = sample_colorscale(_SCALE, [0.15 + 0.85 * i / (_STEPS - 1) for i in range(_STEPS)])
    lines: list[tuple[list[float | None], list[float | None]]] = [([], []) for _ in range(_STEPS)]
    marks: list[tuple[float, float, float, str]] = []
    for source, target, flits, busy in found.select(
        "source", "target", "flits", "utilisation"
    ).iter_rows():
        bent = (source, target) in placed.bent
        points = _way(placed.at[source], placed.at[target], bent=bent)
        xs, ys = lines[min(int(busy / busiest * _STEPS), _STEPS - 1)]
        xs += [*(x for x, _ in points), None]
        ys += [*(y for _, y in points), None]
        text = f"<b>{source} to {target}</b><br>{format_share(busy)} busy, {flits:,} flits"
        marks.append((*points[len(points) * 2 // 3], busy, text))
    figure = go.Figure()
    for colour, (xs, ys) in zip(colours, lines, strict=True):
        if xs:
            figure.add_trace(
                go.Scatter(
                    x=xs,
                    y=ys,
                    mode="lines",
                    line={"color": colour, "width": 3},
                    hoverinfo="skip",
                    showlegend=False,
                )
            )
    figure.add_trace(_marks(marks, busiest, colours))
    figure.add_trace(_vertices(run, placed.at))
    hidden = {"visible": False}
    figure.update_xaxes(hidden)
    figure.update_yaxes(hidden | {"scaleanchor": "x"})
    across = [x for x, _ in placed.at.values()]
    down = [y for _, y in placed.at.values()]
    wide, high = max(across) - min(across) or 1.0, max(down) - min(down)
    height = int(min(max(320, 120 + 900 * high / wide), 900))
    figure.update_layout(_layout(height=height, hovermode="closest"), showlegend=False)
    return figure


def _way(a: Position, b: Position, *, bent: bool) -> list[Position]:
    """The line from one vertex to another, to the right of its middle, or bent around others."""
    length = math.dist(a, b) or 1.0
    side = ((b[1] - a[1]) / length, (a[0] - b[0]) / length)
    if not bent:
        by = min(_ASIDE, length / 6)
        points = [
            (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for t in (0, 1 / 3, 2 / 3, 1)
        ]
        return [(x + side[0] * by, y + side[1] * by) for x, y in points]
    points = []
    for index in range(_BEND_POINTS):
        t = index / (_BEND_POINTS - 1)
        by = min(_BEND * length, _MOST_BEND) * 4 * t * (1 - t)
        x, y = a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t
        points.append((x + side[0] * by, y + side[1] * by))
    return points


def _marks(
    marks: Sequence[tuple[float, float, float, str]], busiest: float, colours: Sequence[str]
) -> go.Scatter:
    """A dot on each link, to point at, which also carries the scale."""
    steps = [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)]
    return go.Scatter(
        x=[mark[0] for mark in marks],
        y=[mark[1] for mark in marks],
        mode="markers",
        marker={
            "size": 6,
            "color": [mark[2] for mark in marks],
            "cmin": 0,
            "cmax": busiest,
            "colorscale": steps,
            "colorbar": {"title": {"text": "utilisation"}, "tickformat": ".0%", "thickness": 14},
        },
        customdata=[mark[3] for mark in marks],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _vertices(run: NocRun, at: dict[str, Position]) -> go.Scatter:
    vertices = run.network.topology.vertices
    held = dict(
        run.occupancy.group_by("router").agg(pl.col("flits").sum()).iter_rows()
        if not run.occupancy.is_empty()
        else ()
    )
    texts = []
    for vertex in vertices:
        mean = held.get(vertex.name)
        extra = "" if mean is None else f"<br>{number(mean, 3)} flits in its buffers on average"
        texts.append(f"<b>{vertex.name}</b>{extra}")
    return go.Scatter(
        x=[at[vertex.name][0] for vertex in vertices],
        y=[at[vertex.name][1] for vertex in vertices],
        mode="markers",
        marker={
            "size": 11 if len(vertices) <= 100 else 7,
            "color": "#DDE2E8",
            "line": {"color": "#3A424D", "width": 1},
            "symbol": ["circle" if v.kind == "npu" else "square" for v in vertices],
        },
        customdata=texts,
        hovertemplate="%{customdata}<extra></extra>",
    )


def buffered(run: NocRun) -> go.Figure | None:
    """Flits in all buffers over the window."""
    if not run.buffered:
        return None
    plan = run.plan
    times = [plan.warmup + plan.sample * (index + 1) for index in range(len(run.buffered))]
    figure = go.Figure(
        go.Scatter(
            x=times,
            y=list(run.buffered),
            mode="lines",
            line={"color": _COLOURS["latency"], "width": 1.4},
            hovertemplate="cycle %{x:,}: %{y:,} flits<extra></extra>",
        )
    )
    figure.update_xaxes(title="cycle")
    figure.update_yaxes(title="flits in buffers", rangemode="tozero")
    figure.update_layout(_layout(height=300, hovermode="closest"), showlegend=False)
    return figure


def by_vc(run: NocRun) -> go.Figure | None:
    """How full the buffers of each VC are: on average, and the fullest."""
    if run.occupancy.is_empty():
        return None
    of_vc = run.occupancy.group_by("vc", maintain_order=True).agg(
        pl.col("flits").mean().alias("mean"), pl.col("flits").max().alias("most")
    )
    room = run.network.router.buffer
    figure = go.Figure()
    for column, name, colour in (
        ("mean", "mean of all ports", _COLOURS["latency"]),
        ("most", "fullest port", "#E69F00"),
    ):
        figure.add_trace(
            go.Bar(
                name=name,
                x=[str(vc) for vc in of_vc["vc"]],
                y=of_vc[column].to_list(),
                marker={"color": colour},
                hovertemplate=f"VC %{{x}}, {name}: %{{y:.3g}} of {room} flits<extra></extra>",
            )
        )
    figure.update_xaxes(title="VC", type="category")
    figure.update_yaxes(title=f"flits, of {room}", rangemode="tozero")
    figure.update_layout(_layout(height=300, hovermode="closest"), barmode="group")
    return figure


_MOST_ROWS = 24
"""VCs in the chart of the fullest."""

_MOST_TIMES = 400
"""Looks at the buffers in it; of more, every second, third, ... is shown."""


def over_time(run: NocRun) -> go.Figure | None:
    """Flits in the buffers of all VCs of a number, over the window: a line each."""
    if not run.buffered:
        return None
    vcs, start = run.network.router.vcs, run.plan.warmup
    shades = [0.25 + 0.65 * index / max(vcs - 1, 1) for index in range(vcs)]
    figure = go.Figure()
    for vc, colour in enumerate(sample_colorscale("Viridis", shades)):
        of_vc = run.buffered_by_vc.filter(pl.col("vc") == vc)
        figure.add_trace(
            go.Scatter(
                name=f"VC {vc}",
                x=[start + cycle for cycle in of_vc["cycle"]],
                y=of_vc["flits"].to_list(),
                mode="lines",
                line={"color": colour, "width": 1.4},
                hovertemplate=f"cycle %{{x:,}}: %{{y:,}} flits in VC {vc}<extra></extra>",
            )
        )
    figure.update_xaxes(title="cycle")
    figure.update_yaxes(title="flits in buffers", rangemode="tozero")
    figure.update_layout(_layout(height=320, hovermode="closest"), showlegend=vcs > 1)
    return figure


def fullest(run: NocRun) -> go.Figure | None:
    """How full the fullest VCs were each time; None unless the plan kept VCs."""
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
        way = channel("injection", source, router)
        for vc in reversed(range(run.network.router.vcs)):
            rows.append(found.filter(pl.col("vc") == vc)["flits"].gather_every(step).to_list())
            names.append(f"{way}, VC {vc}")
    figure = go.Figure(
        go.Heatmap(
            x=[run.plan.warmup + cycle for cycle in run.look_times[::step]],
            y=names,
            z=rows,
            zmin=0,
            zmax=run.network.router.buffer,
            colorscale=_SCALE,
            colorbar={"title": {"text": "flits"}, "thickness": 14},
            hovertemplate="%{y}<br>cycle %{x:,}: %{z} flits<extra></extra>",
        )
    )
    figure.update_xaxes(title="cycle")
    figure.update_yaxes(type="category", automargin=True)
    height = 110 + 18 * max(len(rows), 6)
    figure.update_layout(_layout(height=height, hovermode="closest"), showlegend=False)
    return figure


def stalled(run: NocRun) -> go.Figure | None:
    """Why flits that were first in their VC stood."""
    if not run.stalls.busy:
        return None
    causes = stalls(run)[::-1]
    figure = go.Figure(
        go.Bar(
            x=[share for _, share in causes],
            y=[cause for cause, _ in causes],
            orientation="h",
            marker={"color": _COLOURS["mark"]},
            text=[format_share(share) for _, share in causes],
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(title="share of the VCs that held flits", tickformat=".0%")
    figure.update_yaxes(automargin=True)
    figure.update_layout(_layout(height=240, hovermode="closest"), showlegend=False)
    return figure


def latency_curve(runs: Sequence[NocRun], found: Saturation | None) -> go.Figure:
    """Latency against load, with confidence intervals and where it saturates."""
    stable = [run for run in runs if run.is_stable]
    figure = go.Figure()
    for name, colour, pick in (
        ("latency", _COLOURS["latency"], "latency"),
        ("in the network alone", "#E69F00", "network_latency"),
    ):
        figure.add_trace(
            _points(
                name, colour, [(run.load or 0.0, getattr(run, pick)) for run in stable], "cycles"
            )
        )
    _mark(figure, found)
    figure.update_xaxes(title="load (flits per node and cycle)", rangemode="tozero")
    figure.update_yaxes(title="mean latency (cycles)", rangemode="tozero")
    figure.update_layout(_layout(height=420, hovermode="closest"))
    return figure


def throughput_curve(runs: Sequence[NocRun], found: Saturation | None) -> go.Figure:
    """Accepted against offered load."""
    most = max((run.load or 0.0 for run in runs), default=1.0)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            name="all that is offered",
            x=[0, most],
            y=[0, most],
            mode="lines",
            line={"color": _COLOURS["grey"], "width": 1},
            hoverinfo="skip",
        )
    )
    points = [(run.load or 0.0, run.accepted) for run in runs]
    figure.add_trace(_points("accepted", _COLOURS["accepted"], points, "flits per node and cycle"))
    _mark(figure, found)
    figure.update_xaxes(title="load (flits per node and cycle)", rangemode="tozero")
    figure.update_yaxes(title="accepted (flits per node and cycle)", rangemode="tozero")
    figure.update_layout(_layout(height=380, hovermode="closest"))
    return figure


def _points(
    name: str, colour: str, points: Sequence[tuple[float, Estimate]], unit: str
) -> go.Scatter:
    means = [one.mean for _, one in points]
    bars = [one.half_width for _, one in points]
    bars = [0.0 if math.isnan(bar) else bar for bar in bars]
    return go.Scatter(
        name=name,
        x=[load for load, _ in points],
        y=means,
        error_y={"type": "data", "array": bars, "thickness": 1.2, "width": 3},
        mode="lines+markers",
        line={"color": colour, "width": 1.6},
        marker={"size": 7, "color": colour},
        hovertemplate=f"load %{{x:.4g}}: %{{y:.4g}} {unit}<extra>{name}</extra>",
    )


def _mark(figure: go.Figure, found: Saturation | None) -> None:
    if found is None or found.below is None:
        return
    figure.add_vline(
        x=found.load,
        line={"color": _COLOURS["mark"], "width": 1.4, "dash": "dot"},
        annotation={"text": f"stable up to {number(found.load)}", "xanchor": "right"},
    )
