"""Charts of a comparison page: curves over sizes and ranks, and the decision map.

The `meta` of a trace is the value of the selector at which the script of the page shows the trace.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.view.charts import TEXT, Axis, chart, errors, heat, legend_entry, line
from tutti.view.palette import Style, styles
from tutti.view.quantity import (
    format_rate,
    format_share,
    format_size,
    format_time,
    size_ticks,
)
from tutti.view.tables import of_scope

from .quantities import MEASURED, Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.collectives.comparison import Comparison, Fastest, Measurement
    from tutti.view.charts import Figure, Trace

PS_PER_S = 10**12
_LOG = {"type": "log"}
_TITLES = {"time": "completion time", "busbw": "busbw"}


def curves(case: Comparison, quantity: str, over: str) -> Figure:
    """Returns curves of "time" (s) or "busbw" (B/s) over "size" or "ranks", one per algorithm.

    Each value of the other axis has a set of lines; `meta` of a line is that value.
    """
    best = [one for one in case.best().values() if one.size_bytes > 0 or over == "ranks"]
    chosen = styles(case.algorithms)
    others = sorted({_other(one, over) for one in best})
    shown = default_choice(others, over)
    traces = []
    for other in others:
        for name in case.algorithms:
            points = [one for one in best if _other(one, over) == other and one.algorithm == name]
            points.sort(key=lambda one: (one.size_bytes, one.ranks))
            if points:
                trace = _line(points, quantity, over, chosen[name])
                traces.append(trace | {"meta": other, "visible": other == shown})
    if over == "size":
        sizes = size_ticks(case.sizes)
        ticks = (sizes, [format_size(size) for size in sizes])
    else:
        ticks = (case.ranks, [str(count) for count in case.ranks])
    y = Axis(_TITLES[quantity], ticks=_log_ticks(best, quantity), more=_LOG)
    return chart(traces, Axis(over, ticks=ticks, more=_LOG), y, 430)


def default_choice(values: Sequence[int], over: str) -> int:
    """Returns the initial value of a selector: the largest rank count, or the smallest size."""
    return max(values, default=0) if over == "size" else min(values, default=0)


def _other(one: Measurement, over: str) -> int:
    return one.ranks if over == "size" else one.size_bytes


def _log_ticks(points: list[Measurement], quantity: str) -> tuple[list[float], list[str]]:
    """Returns ticks at 1, 2 and 5 of every decade; the script of the page thins them out."""
    timed = quantity == "time"
    values = [one.time_ps if timed else one.busbw for one in points if one.time_ps > 0] or [1]
    scale, write = (PS_PER_S, format_time) if timed else (1, format_rate)
    decades = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ticks = [digit * 10.0**power for power in decades for digit in (1, 2, 5)]
    return [tick / scale for tick in ticks], [write(tick) for tick in ticks]


def _line(points: list[Measurement], quantity: str, over: str, style: Style) -> Trace:
    timed, name = quantity == "time", points[0].algorithm
    trace = line(
        [one.size_bytes if over == "size" else one.ranks for one in points],
        [one.time_ps / PS_PER_S if timed else one.busbw for one in points],
        style.colour,
        "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        name=name,
        legendgroup=name,
        mode="lines+markers",
        customdata=[[one.schedule, point_text(one)] for one in points],
        line={"width": 2, "dash": style.dash},
        marker={"color": style.colour, "size": 8, "symbol": style.marker},
    )
    if timed and any(one.repetitions > 1 for one in points):
        above = [(one.upper_quartile_ps - one.time_ps) / PS_PER_S for one in points]
        below = [(one.time_ps - one.lower_quartile_ps) / PS_PER_S for one in points]
        trace["error_y"] = errors(above, below) | {"symmetric": False, "thickness": 1}
    return trace


def point_text(one: Measurement) -> str:
    """Returns the tooltip of a measurement."""
    columns = of_scope(MEASURED, "runs" if one.repetitions > 1 else "run")
    point = Point(one, one.time_ps)
    return "<br>".join(
        f"{column.name}: {column.text(point)}"
        for column in columns
        if column.name not in {"schedule", "slowdown"} and column.value(point) is not None
    )


def decision_map(case: Comparison) -> Figure:
    """Returns ranks over sizes: the winner as colour, its lead over the runner-up as number."""
    decided = case.decisions()
    winners = sorted({d.winner.algorithm for d in decided.values()})
    chosen = styles(case.algorithms)
    cells = [[decided.get((count, size)) for size in case.sizes] for count in case.ranks]
    shown = heat(
        x=[format_size(size) for size in case.sizes],
        y=[str(count) for count in case.ranks],
        z=[[winners.index(d.winner.algorithm) if d else None for d in row] for row in cells],
        zmin=-0.5,
        zmax=len(winners) - 0.5,
        colorscale=stepped([chosen[name].colour for name in winners]),
        showscale=False,
        xgap=2,
        ygap=2,
        text=[[_short_margin(d.margin) if d else "" for d in row] for row in cells],
        texttemplate="%{text}",
        textfont={"size": 11},
        customdata=[[_decision_text(d) if d else "not compared" for d in row] for row in cells],
        hovertemplate=TEXT,
    )
    legend = [legend_entry(name, chosen[name].colour) for name in winners]
    plain = {"showgrid": False}
    x, y = (Axis(title, category=True, more=plain) for title in ("size", "ranks"))
    height = 130 + max(34 * len(case.ranks), 60)
    fixed = {"itemclick": False, "itemdoubleclick": False}
    return chart([shown, *legend], x, y, height, legend=fixed)


def decision_lines(decision: Fastest) -> list[str]:
    """Returns the tooltip of a point of the decision map."""
    first, second = decision.winner, decision.runner_up
    lines = [
        f"{first.ranks:,} ranks, {format_size(first.size_bytes)}",
        f"fastest: {first.schedule}, {format_time(first.time_ps)}",
        *(f"tied: {one.schedule}" for one in decision.level),
    ]
    if second is None:
        return [*lines, "no slower algorithm"]
    runner_up = f"runner-up: {second.schedule}, {format_time(second.time_ps)}"
    return [*lines, runner_up, f"lead: {format_share(decision.margin or 0.0)} longer"]


def _decision_text(decision: Fastest) -> str:
    where, *lines = decision_lines(decision)
    return "<br>".join([f"<b>{where}</b>", *lines])


def _short_margin(margin: float | None) -> str:
    if margin is None:
        return ""
    if margin < 0.005:
        return "<1"
    return f"{margin * 100:.0f}" if margin < 9.995 else f"{margin + 1:.0f}x"


def stepped(colours: list[str]) -> list[list[float | str]]:
    """Returns a stepped colour scale: plotly has only continuous ones."""
    return [
        [place / len(colours), colour]
        for index, colour in enumerate(colours)
        for place in (index, index + 1)
    ]
