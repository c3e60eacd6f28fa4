"""The charts of the reports of meshes of several hops per cycle, as plotly figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from tutti.noc.smart import UNITS, ideal

from .figures import _layout
from .palette import styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.noc import Estimate
    from tutti.noc.smart import Run

    from .palette import Style

_GREY = "#7F7F7F"


def latency_curves(lines: Mapping[str, Sequence[Run]]) -> go.Figure:
    """Latency against load, a line each, and what no mesh can better."""
    return _curves(lines, "mean latency (cycles)", lambda run: run.latency, stable=True)


def throughput_curves(lines: Mapping[str, Sequence[Run]]) -> go.Figure:
    """What is accepted against load, a line each."""
    title = "accepted (messages per cycle)"
    return _curves(lines, title, lambda run: run.accepted, stable=False)


def answers_curves(lines: Mapping[str, Sequence[Run]]) -> go.Figure:
    """Answers that arrive for a reduction against load, a line each."""
    return _curves(lines, "answers for each", lambda run: run.loads[0].arrivals, stable=False)


def _curves(
    lines: Mapping[str, Sequence[Run]],
    title: str,
    pick: Callable[[Run], Estimate],
    *,
    stable: bool,
) -> go.Figure:
    figure = go.Figure()
    chosen = styles(lines)
    for name, runs in lines.items():
        shown = [run for run in runs if run.ending != "deadlocked"]
        shown = [run for run in shown if run.is_stable or not stable]
        points = [(run.load, pick(run)) for run in shown]
        figure.add_trace(_points(name, chosen[name], points))
    first = next(run for runs in lines.values() for run in runs)
    bound = ideal(first.mesh, first.traffic[0])
    most = max(run.load for runs in lines.values() for run in runs)
    if bound is not None and stable:
        end = min(bound.load, most)
        figure.add_trace(
            go.Scatter(
                name="no mesh can better this",
                x=[0, end],
                y=[bound.latency] * 2,
                mode="lines",
                line={"color": _GREY, "width": 1.2, "dash": "dash"},
                hoverinfo="skip",
            )
        )
        if bound.load <= most:
            figure.add_vline(x=bound.load, line={"color": _GREY, "width": 1.2, "dash": "dash"})
    figure.update_xaxes(title=f"load ({UNITS[first.traffic[0].kind]})", rangemode="tozero")
    figure.update_yaxes(title=title, rangemode="tozero")
    figure.update_layout(_layout(height=420, hovermode="closest"))
    return figure


def _points(name: str, style: Style, points: Sequence[tuple[float, Estimate]]) -> go.Scatter:
    bars = [0.0 if math.isnan(one.half_width) else one.half_width for _, one in points]
    return go.Scatter(
        name=name,
        x=[load for load, _ in points],
        y=[one.mean for _, one in points],
        error_y={"type": "data", "array": bars, "thickness": 1.2, "width": 3},
        mode="lines+markers",
        line={"color": style.colour, "width": 1.6},
        marker={"size": 7, "color": style.colour, "symbol": style.marker},
        hovertemplate=f"load %{{x:.4g}}: %{{y:.4g}}<extra>{name}</extra>",
    )
