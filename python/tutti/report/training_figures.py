"""The charts of a training step's report, as plotly figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .figures import _layout
from .palette import styles
from .quantity import format_share, format_time, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.training import TrainingResult

PARTS = (
    ("compute", "computing alone", "#0072B2"),
    ("overlap", "computing and communicating", "#56B4E9"),
    ("exposed", "communicating alone: exposed", "#D55E00"),
    ("idle", "idle", "#7F7F7F"),
)
"""Where the time of an NPU goes; the four make up the whole."""


def breakdown(runs: Sequence[TrainingResult]) -> go.Figure:
    """Where the time went, a stacked bar for each configuration."""
    factor, unit = time_unit(max(run.total.ps for run in runs))
    names = [run.configuration.name for run in runs][::-1]
    figure = go.Figure()
    for index, (_, words, colour) in enumerate(PARTS):
        times = [run.record.breakdown()[index] for run in runs][::-1]
        shares = [ps / run.total.ps for ps, run in zip(times, reversed(runs), strict=True)]
        figure.add_trace(
            go.Bar(
                name=words,
                orientation="h",
                x=[ps / factor for ps in times],
                y=names,
                marker={"color": colour, "line": {"width": 0}},
                customdata=[
                    f"<b>{name}</b>: {words}<br>{format_time(ps)}, {format_share(share)}"
                    for name, ps, share in zip(names, times, shares, strict=True)
                ],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    figure.update_xaxes(title=f"time of an NPU ({unit})", rangemode="tozero")
    figure.update_yaxes(automargin=True, type="category")
    layout = _layout(height=130 + 44 * len(runs), hovermode="closest")
    figure.update_layout(layout, barmode="stack", bargap=0.35)
    figure.update_layout(margin={"b": 84}, legend={"traceorder": "normal"})
    return figure


def over_time(windows: pl.DataFrame) -> go.Figure:
    """How busy links and processor are, window by window, a row for each configuration.

    Args:
        windows: Of all runs, as `tutti.training_frames.window_frame` makes them.
    """
    parts = windows.partition_by("configuration", maintain_order=True)
    factor, unit = time_unit(int(windows["start_ps"].max() or 1))  # type: ignore[arg-type]
    figure = make_subplots(rows=len(parts), cols=1, shared_xaxes=True, vertical_spacing=0.03)
    for row, part in enumerate(parts, start=1):
        name = part["configuration"][0]
        for quantity, words, colour, fill in _BUSY:
            shares = part[quantity].to_list()
            figure.add_trace(
                go.Scatter(
                    name=words,
                    legendgroup=words,
                    showlegend=row == 1,
                    x=[start / factor for start in part["start_ps"]],
                    y=shares,
                    mode="lines",
                    line={"color": colour, "width": 1.4, "shape": "hv"},
                    fill=fill,
                    customdata=[format_share(share) for share in shares],
                    hovertemplate=f"<b>{name}</b>, {words} from %{{x:.4g}} {unit}: %{{customdata}}"
                    "<extra></extra>",
                ),
                row=row,
                col=1,
            )
        figure.update_yaxes(title=name, tickformat=".0%", range=[0, 1.05], row=row, col=1)
    figure.update_xaxes(title=f"time ({unit})", row=len(parts), col=1)
    figure.update_layout(_layout(height=110 + 110 * len(parts), hovermode="closest"))
    figure.update_layout(margin={"b": 84})
    return figure


_BUSY = (
    ("links", "links busy", "#D55E00", "tozeroy"),
    ("compute", "processor busy", "#0072B2", None),
)


def busy_servers(servers: pl.DataFrame) -> go.Figure:
    """How busy each server of an endpoint and each ring was while it communicated."""
    figure = go.Figure()
    names = servers["server"].unique(maintain_order=True).to_list()
    chosen = styles(servers["configuration"])
    for part in servers.partition_by("configuration", maintain_order=True):
        found = dict(zip(part["server"], part["utilisation"], strict=True))
        configuration = part["configuration"][0]
        shown = [name for name in names if name in found]
        figure.add_trace(
            go.Bar(
                name=configuration,
                x=[name.replace("_", " ") for name in shown],
                y=[found[name] for name in shown],
                marker={"color": chosen[configuration].colour},
                customdata=[format_share(found[name]) for name in shown],
                hovertemplate=f"<b>{configuration}</b>, %{{x}}: busy %{{customdata}}"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(type="category")
    figure.update_yaxes(title="busy, while it communicates", tickformat=".0%", range=[0, 1.02])
    figure.update_layout(_layout(height=380, hovermode="closest"), barmode="group")
    return figure
