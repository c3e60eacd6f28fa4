"""The timeline of a run as SVG, for notebooks and for the folder of a run.

Matplotlib, which draws it for papers, takes 1.5 s for 64 ranks.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from tutti.view import svg
from tutti.view.notebook import time_axis, time_x
from tutti.view.palette import KINDS, kind_colour
from tutti.view.quantity import format_size, format_time

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree import ElementTree as ET

    import polars as pl

    from .timeline import Arrow, Picture

_ROW, _LEFT, _TOP, _FOOT = 20, 44, 22, 26
_LINE = 16
"""Height of a line of a title, in pixels."""
_CHARACTERS = 110
"""Characters in a line of a title."""
_HEAD = 6
"""Length of an arrow head, in pixels."""
_MOST_RANKS = 16
_INK = "#59636E"


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
    return svg.written(_drawing(drawn, _title(drawn), []))


def write_timeline(
    path: Path, timeline: pl.DataFrame, messages: pl.DataFrame | None, title: str
) -> Path:
    """Writes a run of up to 64 ranks as an SVG file, with its title and the omissions.

    Args:
        path: The file to write; its folder must exist.
        timeline: The timeline frame of a run, times in picoseconds.
        messages: The message frame of the same run.
        title: The title of the drawing.

    Returns:
        The path written.

    Raises:
        ReportError: A frame lacks columns or is empty.
    """
    from .timeline import picture

    drawn = picture(timeline, messages)
    lines = textwrap.wrap("  ".join([f"{title}.", _title(drawn), *drawn.notes]), _CHARACTERS)
    root = _drawing(drawn, title, lines)
    root.set("style", f"background:#fff;{root.get('style')}")
    path.write_text(svg.written(root), encoding="utf-8")
    return path


def _title(drawn: Picture) -> str:
    return f"Timeline, complete after {format_time(drawn.complete_ps)}"


def _drawing(drawn: Picture, title: str, lines: list[str]) -> ET.Element:
    """Returns the drawing with lines of text above it."""
    above = _LINE * len(lines)
    height = above + _TOP + _ROW * len(drawn.ranks) + _FOOT
    root = svg.drawing(svg.WIDTH, height, title)
    for number, line in enumerate(lines):
        svg.text(root, (_LEFT, _LINE * number + 12), line)
    seen = {bar.kind for bar in drawn.bars if bar.duration_ps > 0}
    colours = [(kind, kind_colour(kind)) for kind in KINDS if kind in seen]
    svg.legend(root, colours, (_LEFT, above + 4))
    _rows(root, drawn, above + _TOP)
    time_axis(root, drawn.end_ps, _LEFT, height - 10)
    return root


def _x(drawn: Picture, ps: int) -> float:
    return time_x(ps, drawn.end_ps, _LEFT)


def _rows(root: ET.Element, drawn: Picture, top: int) -> None:
    rows = {rank: top + _ROW * index for index, rank in enumerate(drawn.ranks)}
    for rank, y in rows.items():
        svg.text(root, (_LEFT - 8, y + 14), str(rank), "end")
    for bar in drawn.bars:
        if bar.duration_ps == 0:
            continue
        start, end = _x(drawn, bar.start_ps), _x(drawn, bar.end_ps)
        tip = f"rank {bar.rank}, {bar.name}: {bar.label}, {format_time(bar.duration_ps)}"
        svg.shape(root, "rect", tip, x=start, y=rows[bar.rank] + 3, width=end - start,
                  height=_ROW - 6, fill=kind_colour(bar.kind))  # fmt: skip
    for arrow in drawn.arrows:
        _arrow(root, drawn, arrow, rows)


def _arrow(root: ET.Element, drawn: Picture, arrow: Arrow, rows: dict[int, int]) -> None:
    """Appends a line from sender to receiver, with a head."""
    x1, x2 = _x(drawn, arrow.sent_ps), _x(drawn, arrow.arrival_ps)
    y1, y2 = (rows[end] + _ROW // 2 for end in (arrow.source, arrow.destination))
    tip = (
        f"message {arrow.source} to {arrow.destination}, {format_size(arrow.bytes)}, "
        f"sent {format_time(arrow.sent_ps)}, arrives {format_time(arrow.arrival_ps)}"
    )
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    along, across = _HEAD * (x2 - x1) / length, _HEAD * (y2 - y1) / length
    corners = (
        (x2, y2),
        (x2 - along - across / 4, y2 - across + along / 4),
        (x2 - along + across / 4, y2 - across - along / 4),
        (x2, y2),
    )
    path = f"M{x1:.1f} {y1}" + "".join(f"L{x:.1f} {y:.1f}" for x, y in corners)
    svg.shape(root, "path", tip, d=path, fill=_INK, stroke=_INK, stroke_width="0.6",
              opacity="0.8")  # fmt: skip
