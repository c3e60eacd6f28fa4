"""Gantt charts of a run for pages and papers: a row per rank, bars of ops, message arrows."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.view.charts import TEXT, Axis, bars, chart, line
from tutti.view.palette import KIND_COLOURS, KINDS, MESSAGE_COLOUR, kind_colour
from tutti.view.plot import BELOW, figure_at
from tutti.view.quantity import format_size, format_time, time_unit

from .timeline import picture

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from tutti.view.charts import Figure, Trace

    from .timeline import Bar, Picture


def gantt(picture: Picture) -> Figure:
    """Returns ranks over time: a bar per op, an arrow per message from sender to receiver."""
    factor, unit = time_unit(picture.end_ps)
    traces = []
    for kind, colour in KIND_COLOURS.items():
        ops = [bar for bar in picture.bars if bar.kind == kind and bar.duration_ps > 0]
        if ops:
            lengths = [bar.duration_ps / factor for bar in ops]
            starts = [bar.start_ps / factor for bar in ops]
            texts = [_bar_text(bar) for bar in ops]
            traces.append(
                bars([bar.rank for bar in ops], lengths, colour, across=True, name=kind,
                     base=starts, width=0.62, customdata=texts, marker={"line": {"width": 0}})
            )  # fmt: skip
    if picture.arrows:
        traces.append(_arrows(picture, factor))
    ranks = picture.ranks
    rows = {"range": [ranks[-1] + 0.6, ranks[0] - 0.6], "showgrid": False, "zeroline": False}
    if len(ranks) <= 40:
        rows["tickvals"] = list(ranks)
    end = {"range": [0, picture.end_ps / factor * 1.02 or 1]}
    height = 130 + (34 if len(ranks) <= 16 else 18) * len(ranks)
    return chart(traces, Axis("time", unit, more=end), Axis("rank", more=rows), height,
                 barmode="overlay")  # fmt: skip


def _bar_text(bar: Bar) -> str:
    size = f", {format_size(bar.bytes)}" if bar.bytes is not None else ""
    return (
        f"<b>rank {bar.rank}: {bar.label}</b>{size}<br>step {bar.step} ({bar.name})<br>"
        f"{format_time(bar.start_ps)} to {format_time(bar.end_ps)}, {format_time(bar.duration_ps)}"
    )


def _arrows(picture: Picture, factor: int) -> Trace:
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
    marker = {
        "symbol": "arrow",
        "angleref": "previous",
        "size": [0, 9, 0] * len(picture.arrows),
        "color": MESSAGE_COLOUR,
        "opacity": 1,
        "line": {"width": 0},
    }
    return line(x, y, MESSAGE_COLOUR, TEXT, name="message", mode="lines+markers", marker=marker,
                line={"width": 1}, opacity=0.75, customdata=hover)  # fmt: skip


_WIDTH, _LINE = 8.0, 0.18
"""Width of the drawing, and height of a line of its title, in inches."""
_CHARACTERS = 96
"""Characters in a line of the title."""


def draw_timeline(
    path: str | Path,
    timeline: pl.DataFrame,
    messages: pl.DataFrame | None = None,
    title: str | None = None,
) -> Path:
    """Draws a run in the style of Figs 18-23 of Ruefenacht et al. 2017.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        timeline: The timeline frame of a run, times in picoseconds.
        messages: The message frame of the same run, for arrows.
        title: The title of the drawing.

    Returns:
        The path written.

    Raises:
        ReportError: A frame lacks columns or is empty.
    """
    drawn = picture(timeline, messages)
    lines = textwrap.wrap("  ".join([*([title] if title else []), *drawn.notes]), _CHARACTERS)
    height = 1.3 + 0.34 * len(drawn.ranks) + _LINE * max(0, len(lines) - 1)
    with figure_at(path, (_WIDTH, height)) as figure:
        axes = figure.add_subplot()
        _draw(axes, drawn)
        axes.set_title("\n".join(lines), loc="left")
    return Path(path)


def _draw(axes: Axes, drawn: Picture) -> None:
    from matplotlib.patches import Patch

    factor, unit = time_unit(drawn.end_ps)
    seen = [kind for kind in KINDS if any(bar.kind == kind for bar in drawn.bars)]
    spans: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for bar in drawn.bars:
        if bar.duration_ps > 0:
            span = (bar.start_ps / factor, bar.duration_ps / factor)
            spans.setdefault((bar.kind, bar.rank), []).append(span)
    for kind in seen:
        for rank in drawn.ranks:
            if (kind, rank) in spans:
                axes.broken_barh(
                    spans[kind, rank],
                    (rank - 0.31, 0.62),
                    facecolors=kind_colour(kind),
                    edgecolor="white",
                    lw=0.3,
                )
    _draw_arrows(axes, drawn, factor)
    axes.set_xlim(0, drawn.end_ps / factor * 1.02 or 1)
    axes.set_ylim(drawn.ranks[-1] + 0.6, drawn.ranks[0] - 0.6)
    axes.set_yticks(list(drawn.ranks) if len(drawn.ranks) <= 40 else list(drawn.ranks)[::8])
    axes.grid(visible=True, axis="x")
    axes.set(xlabel=f"time ({unit})", ylabel="rank")
    handles: list[Any] = [Patch(color=kind_colour(kind), label=kind) for kind in seen]
    axes.figure.legend(handles=handles, loc=BELOW, ncols=len(seen))


def _draw_arrows(axes: Axes, drawn: Picture, factor: int) -> None:
    from matplotlib.patches import FancyArrowPatch

    # An annotation draws the same arrow in twice the time, as its text is measured, too.
    for one in drawn.arrows:
        arrow = FancyArrowPatch(
            (one.sent_ps / factor, one.source),
            (one.arrival_ps / factor, one.destination),
            arrowstyle="-|>,head_width=0.12,head_length=0.28",
            color="#3A424C",
            lw=0.5,
            shrinkA=0,
            shrinkB=0,
            mutation_scale=9,
            clip_on=False,
            zorder=3,
        )
        arrow.set_in_layout(False)
        axes.add_artist(arrow)
