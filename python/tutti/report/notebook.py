"""HTML and inline SVG of runs for notebooks.

The output of this and of the other modules for notebooks has no scripts and no styles that could
leak into the notebook.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tutti import _core

from . import svg
from .palette import KINDS, kind_colour
from .quantity import format_rate, format_share, format_time, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree import ElementTree as ET

    import polars as pl

    from tutti.run import Run

    from .timeline import Picture

_ROW, _LEFT, _TOP, _FOOT = 20, 44, 22, 26
_MOST_RANKS = 16
MOST_MESSAGES = 100_000
"""Messages of a run up to which a notebook records and shows its timeline."""


def timeline_svg(timeline: pl.DataFrame, messages: pl.DataFrame | None = None) -> str:
    """Returns a run as inline SVG: a row per rank, a bar per op, a line per message.

    Args:
        timeline: The timeline frame of a run, times in picoseconds.
        messages: The message frame of the same run.

    Raises:
        ReportError: A frame lacks columns or is empty.
    """
    from .timeline import picture

    drawn = picture(timeline, messages, most_ranks=_MOST_RANKS, most_bars=1500, most_arrows=300)
    height = _TOP + _ROW * len(drawn.ranks) + _FOOT
    title = f"Timeline, complete after {format_time(drawn.complete_ps)}"
    root = svg.drawing(svg.WIDTH, height, title)
    seen = {bar.kind for bar in drawn.bars if bar.duration_ps > 0}
    svg.legend(root, [(kind, kind_colour(kind)) for kind in KINDS if kind in seen], (_LEFT, 4))
    _rows(root, drawn)
    time_axis(root, drawn.end_ps, _LEFT, height - 10)
    return svg.written(root)


def _x(drawn: Picture, ps: int) -> float:
    return time_x(ps, drawn.end_ps, _LEFT)


def _rows(root: ET.Element, drawn: Picture) -> None:
    rows = {rank: index for index, rank in enumerate(drawn.ranks)}
    for rank, row in rows.items():
        svg.text(root, (_LEFT - 8, _TOP + _ROW * row + 14), str(rank), "end")
    for bar in drawn.bars:
        if bar.duration_ps == 0:
            continue
        start, end = _x(drawn, bar.start_ps), _x(drawn, bar.end_ps)
        tip = f"rank {bar.rank}, {bar.name}: {bar.label}, {format_time(bar.duration_ps)}"
        svg.shape(root, "rect", tip, x=start, y=_TOP + _ROW * rows[bar.rank] + 3,
                  width=end - start, height=_ROW - 6, fill=kind_colour(bar.kind))  # fmt: skip
    for arrow in drawn.arrows:
        y1, y2 = (_TOP + _ROW * rows[end] + _ROW // 2 for end in (arrow.source, arrow.destination))
        svg.shape(root, "line", x1=_x(drawn, arrow.sent_ps), y1=y1,
                  x2=_x(drawn, arrow.arrival_ps), y2=y2, stroke="#59636E",
                  stroke_width="0.6", stroke_opacity="0.8")  # fmt: skip


def time_x(ps: int, end_ps: int, left: int) -> float:
    """Returns the position of a time on an axis that starts at `left`."""
    return left + (svg.WIDTH - left - 12) * ps / max(end_ps, 1)


def time_axis(root: ET.Element, end_ps: int, left: int, y: int) -> None:
    """Appends five labels from zero to `end_ps`."""
    factor, unit = time_unit(end_ps)
    for quarter in range(5):
        ps = end_ps * quarter // 4
        anchor = ("start", "middle", "middle", "middle", "end")[quarter]
        label = f"{ps / factor:.3g}" + (f" {unit}" if quarter == 4 else "")
        svg.text(root, (time_x(ps, end_ps, left), y), label, anchor)


def run_html(run: Run) -> str:
    """Returns the figures of a run, with a timeline up to `MOST_MESSAGES` messages."""
    facts = [
        ("schedule", run.schedule.name),
        ("verified", "yes" if run.not_verified is None else f"no: {run.not_verified}"),
        ("collective", f"{run.schedule.collective} of {run.size} ({run.datatype})"),
        ("ranks", f"{run.schedule.ranks:,}"),
        ("platform", f"{run.platform.name} ({run.platform.network})"),
        ("completion time", _core.format_time(run.completion_ps)),
        ("busbw", format_rate(run.busbw)),
        ("of the lower bound", format_share(run.of_limit)),
        ("messages", f"{run.messages:,}"),
    ]
    if max(run.messages, run.delivered) > MOST_MESSAGES:
        return facts_html(facts)
    return facts_html(facts, run.timeline, run.messages_frame)


def facts_html(
    facts: Iterable[tuple[str, ...]],
    timeline: pl.DataFrame | None = None,
    messages: pl.DataFrame | None = None,
) -> str:
    """Returns facts as a table, and the timeline of a run below it.

    Args:
        facts: Names and values, such as ("completion time", "3.4 us"), perhaps with an explanation.
        timeline: The timeline frame, if any.
        messages: The message frame, if any.
    """
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        + "".join(f"<td style='text-align:left'>{escape(value)}</td>" for value in values)
        + "</tr>"
        for name, *values in facts
    )
    drawing = "" if timeline is None or timeline.is_empty() else timeline_svg(timeline, messages)
    return f"<div><table>{rows}</table>{drawing}</div>"
