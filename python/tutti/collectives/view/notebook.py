"""The timeline of a run as inline SVG, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.view import svg
from tutti.view.notebook import time_axis, time_x
from tutti.view.palette import KINDS, kind_colour
from tutti.view.quantity import format_time

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    import polars as pl

    from .timeline import Picture

_ROW, _LEFT, _TOP, _FOOT = 20, 44, 22, 26
_MOST_RANKS = 16


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
