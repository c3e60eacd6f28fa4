"""The charts of the HTML report, as plotly figures.

Every trace of a chart with a selector carries as `meta` the selector's value it belongs to; the
page's script shows the chosen ones. Text, grid and background take their colours from the theme.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from .palette import KIND_COLOURS, MESSAGE_COLOUR, Style, styles
from .quantity import (
    format_limit,
    format_rate,
    format_share,
    format_size,
    format_time,
    size_ticks,
    time_unit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .comparison import Case, Decision, Measured
    from .timeline import Bar, Picture

PS_PER_S = 10**12
_LEGEND = {
    "orientation": "h",
    "yref": "container",
    "y": 0,
    "yanchor": "bottom",
    "x": 0,
    "xanchor": "left",
}
_MARGIN = {"l": 64, "r": 16, "t": 12, "b": 56}
_POINT = "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>"


def curves(case: Case, quantity: str, over: str) -> go.Figure:
    """Curves of "time" (s) or "busbw" (B/s) over "size" or "ranks", a line per algorithm.

    There is a set of lines per value of the other axis; `meta` of a line is that value.
    """
    best = [one for one in case.best().values() if one.size_bytes > 0 or over == "ranks"]
    chosen = styles(case.algorithms)
    figure = go.Figure()
    others = sorted({_other(one, over) for one in best})
    shown = default_choice(others, over)
    for other in others:
        for name in case.algorithms:
            line = [one for one in best if _other(one, over) == other and one.algorithm == name]
            line.sort(key=lambda one: (one.size_bytes, one.ranks))
            if line:
                trace = _line(line, quantity, over, chosen[name])
                figure.add_trace(trace.update(meta=other, visible=other == shown))
    figure.update_yaxes(title=quantity, type="log", **_log_ticks(best, quantity))
    if over == "size":
        ticks = size_ticks(case.sizes)
        figure.update_xaxes(
            title="size", type="log", tickvals=ticks, ticktext=[format_size(t) for t in ticks]
        )
    else:
        figure.update_xaxes(
            title="ranks", type="log", tickvals=case.ranks, ticktext=[str(r) for r in case.ranks]
        )
    figure.update_layout(_layout(height=430, hovermode="closest"))
    return figure


def default_choice(values: Sequence[int], over: str) -> int:
    """What a selector shows first: the largest rank count, the smallest size."""
    return max(values, default=0) if over == "size" else min(values, default=0)


def _other(one: Measured, over: str) -> int:
    return one.ranks if over == "size" else one.size_bytes


def _log_ticks(points: list[Measured], quantity: str) -> dict[str, list[float] | list[str]]:
    """Ticks at 1, 2 and 5 of every decade; the script keeps the ones where that is too many."""
    timed = quantity == "time"
    values = [one.time_ps if timed else one.busbw for one in points if one.time_ps > 0] or [1]
    scale, write = (PS_PER_S, format_time) if timed else (1, format_rate)
    decades = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ticks = [digit * 10.0**power for power in decades for digit in (1, 2, 5)]
    return {"tickvals": [tick / scale for tick in ticks], "ticktext": [write(t) for t in ticks]}


def _line(line: list[Measured], quantity: str, over: str, style: Style) -> go.Scatter:
    timed = quantity == "time"
    trace = go.Scatter(
        name=line[0].algorithm,
        legendgroup=line[0].algorithm,
        mode="lines+markers",
        x=[one.size_bytes if over == "size" else one.ranks for one in line],
        y=[one.time_ps / PS_PER_S if timed else one.busbw for one in line],
        customdata=[[one.schedule, point_text(one)] for one in line],
        hovertemplate=_POINT,
        line={"color": style.colour, "width": 2, "dash": style.dash},
        marker={"color": style.colour, "size": 8, "symbol": style.marker},
    )
    if timed and any(one.repetitions > 1 for one in line):
        trace.update(
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [(one.upper_quartile_ps - one.time_ps) / PS_PER_S for one in line],
                "arrayminus": [(one.time_ps - one.lower_quartile_ps) / PS_PER_S for one in line],
                "thickness": 1,
                "width": 3,
            }
        )
    return trace


def point_text(one: Measured) -> str:
    """One measurement in lines of text, for a tooltip."""
    lines = [
        f"{one.ranks:,} ranks, {format_size(one.size_bytes)}",
        f"time {format_time(one.time_ps)}",
        f"algbw {format_rate(one.algbw)}, busbw {format_rate(one.busbw)}",
    ]
    if one.of_limit is not None:
        lines.append(f"{format_limit(one.of_limit)} % of the limit")
    if one.repetitions > 1:
        lines[1] += (
            f" (median of {one.repetitions}; quartiles {format_time(one.lower_quartile_ps)} and "
            f"{format_time(one.upper_quartile_ps)}, least {format_time(one.least_ps)})"
        )
    if one.messages is not None:
        lines.append(f"{one.messages:,} messages, {format_size(one.message_bytes or 0)} in all")
    return "<br>".join(lines)


def decision_map(case: Case) -> go.Figure:
    """Ranks over sizes: the colour says who wins, the number how far the runner-up is behind."""
    decided = case.decisions()
    winners = sorted({d.winner.algorithm for d in decided.values()})
    chosen = styles(case.algorithms)
    sizes, ranks = case.sizes, case.ranks
    codes: list[list[int | None]] = []
    texts: list[list[str]] = []
    hovers: list[list[str]] = []
    for count in ranks:
        row = [decided.get((count, size)) for size in sizes]
        codes.append([winners.index(d.winner.algorithm) if d else None for d in row])
        texts.append([_short_margin(d.margin) if d else "" for d in row])
        hovers.append([decision_text(d) if d else "not compared" for d in row])
    figure = go.Figure()
    figure.add_trace(
        go.Heatmap(
            x=[format_size(size) for size in sizes],
            y=[str(count) for count in ranks],
            z=codes,
            zmin=-0.5,
            zmax=len(winners) - 0.5,
            colorscale=_steps([chosen[name].colour for name in winners]),
            showscale=False,
            xgap=2,
            ygap=2,
            text=texts,
            texttemplate="%{text}",
            textfont={"size": 11},
            customdata=hovers,
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    for name in winners:
        marker = {"symbol": "square", "size": 12, "color": chosen[name].colour}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker))
    figure.update_xaxes(title="size", type="category", showgrid=False)
    figure.update_yaxes(title="ranks", type="category", showgrid=False)
    height = 130 + max(34 * len(ranks), 60)
    figure.update_layout(_layout(height=height, hovermode="closest"))
    figure.update_layout(legend_itemclick=False, legend_itemdoubleclick=False)
    return figure


def decision_text(decision: Decision) -> str:
    """One point of the decision map in lines of text, for a tooltip."""
    first, second = decision.winner, decision.runner_up
    lines = [
        f"<b>{first.ranks:,} ranks, {format_size(first.size_bytes)}</b>",
        f"fastest: {first.schedule}, {format_time(first.time_ps)}",
    ]
    lines += [f"as fast: {one.schedule}" for one in decision.level]
    if second is None:
        lines.append("no other algorithm is slower")
    else:
        lines.append(f"runner-up: {second.schedule}, {format_time(second.time_ps)}")
        lines.append(f"margin: {format_share(decision.margin or 0.0)} longer")
    return "<br>".join(lines)


def _short_margin(margin: float | None) -> str:
    if margin is None:
        return ""
    if margin < 0.005:
        return "<1"
    return f"{margin * 100:.0f}" if margin < 9.995 else f"{margin + 1:.0f}x"


def _steps(colours: list[str]) -> list[list[float | str]]:
    """A colour scale in steps: plotly has continuous ones only."""
    count = len(colours)
    scale: list[list[float | str]] = []
    for index, colour in enumerate(colours):
        scale += [[index / count, colour], [(index + 1) / count, colour]]
    return scale


def gantt(picture: Picture) -> go.Figure:
    """Ranks over time: a bar per op, an arrow per message from its sender to its receiver."""
    factor, unit = time_unit(picture.end_ps)
    figure = go.Figure()
    for kind, colour in KIND_COLOURS.items():
        ops = [bar for bar in picture.bars if bar.kind == kind and bar.duration_ps > 0]
        if ops:
            figure.add_trace(_bars(kind, colour, ops, factor))
    if picture.arrows:
        figure.add_trace(_arrows(picture, factor))
    figure.update_xaxes(title=f"time ({unit})", range=[0, picture.end_ps / factor * 1.02 or 1])
    figure.update_yaxes(
        title="rank",
        range=[picture.ranks[-1] + 0.6, picture.ranks[0] - 0.6],
        showgrid=False,
        zeroline=False,
        tickvals=list(picture.ranks) if len(picture.ranks) <= 40 else None,
    )
    row = 34 if len(picture.ranks) <= 16 else 18
    height = 130 + row * len(picture.ranks)
    figure.update_layout(_layout(height=height, hovermode="closest"), barmode="overlay")
    return figure


def _bars(kind: str, colour: str, ops: list[Bar], factor: int) -> go.Bar:
    return go.Bar(
        name=kind,
        orientation="h",
        base=[bar.start_ps / factor for bar in ops],
        x=[bar.duration_ps / factor for bar in ops],
        y=[bar.rank for bar in ops],
        width=0.62,
        marker={"color": colour, "line": {"width": 0}},
        customdata=[_bar_text(bar) for bar in ops],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _bar_text(bar: Bar) -> str:
    size = f", {format_size(bar.bytes)}" if bar.bytes is not None else ""
    return (
        f"<b>rank {bar.rank}: {bar.label}</b>{size}<br>step {bar.step} ({bar.name})<br>"
        f"{format_time(bar.start_ps)} to {format_time(bar.end_ps)}, {format_time(bar.duration_ps)}"
    )


def _arrows(picture: Picture, factor: int) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for one in picture.arrows:
        text = (
            f"<b>message {one.source} to {one.destination}</b>, {format_size(one.bytes)}<br>"
            f"sent {format_time(one.sent_ps)}, arrives {format_time(one.arrival_ps)}, "
            f"received {format_time(one.received_ps)}"
        )
        x += [one.sent_ps / factor, one.arrival_ps / factor, None]
        y += [one.source, one.destination, None]
        hover += [text, text, ""]
    return go.Scatter(
        name="message",
        mode="lines+markers",
        x=x,
        y=y,
        line={"color": MESSAGE_COLOUR, "width": 1},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 9, 0] * len(picture.arrows),
            "color": MESSAGE_COLOUR,
            "opacity": 1,
            "line": {"width": 0},
        },
        opacity=0.75,
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )


def _layout(height: int, hovermode: str) -> dict[str, object]:
    return {
        "template": {"layout": {}},
        "height": height,
        "margin": _MARGIN,
        "legend": _LEGEND,
        "hovermode": hovermode,
        "hoverlabel": {"align": "left"},
        "dragmode": "zoom",
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"},
    }
