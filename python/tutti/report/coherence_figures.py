"""The charts of the report of kernels on chips with coherent caches, as plotly figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from .coherence_words import PARTS, relative
from .figures import _layout
from .palette import styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.coherence import CoherenceRun


def runtimes(runs: Sequence[CoherenceRun]) -> go.Figure:
    """Cycles over those of the first design, a group of bars per kernel."""
    figure = go.Figure()
    designs = list(dict.fromkeys(run.case.mesh.design for run in runs))
    chosen = styles(designs)
    shares = list(zip(runs, relative(runs), strict=True))
    for design in designs:
        own = [(run, share) for run, share in shares if run.case.mesh.design == design]
        figure.add_trace(
            go.Bar(
                name=design,
                x=[run.case.kernel for run, _ in own],
                y=[share for _, share in own],
                marker={"color": chosen[design].colour},
                customdata=[run.cycles for run, _ in own],
                hovertemplate="%{x}: %{y:.3f}, %{customdata:,} cycles<extra>" + design + "</extra>",
            )
        )
    figure.update_yaxes(title=f"cycles over those of {designs[0]}", rangemode="tozero")
    figure.update_layout(_layout(height=400, hovermode="closest"), barmode="group")
    return figure


def latencies(runs: Sequence[CoherenceRun]) -> go.Figure:
    """What the mean miss is spent on, a bar per run."""
    figure = go.Figure()
    chosen = styles(PARTS)
    several = len({run.case.kernel for run in runs}) > 1
    names = [
        f"{run.case.kernel}, {run.case.mesh.design}" if several else run.case.mesh.design
        for run in runs
    ]
    for part, name in PARTS.items():
        values = [run.parts[part] / max(run.misses_of_all, 1) for run in runs]
        if any(values):
            figure.add_trace(
                go.Bar(
                    name=name,
                    y=names,
                    x=values,
                    orientation="h",
                    marker={"color": chosen[part].colour},
                    hovertemplate=f"%{{y}}: %{{x:.4g}} cycles<extra>{name}</extra>",
                )
            )
    figure.update_xaxes(title="cycles of a miss, mean", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True)
    height = 160 + 24 * len(names)
    figure.update_layout(_layout(height=height, hovermode="closest"), barmode="stack")
    return figure
