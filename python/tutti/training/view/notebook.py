"""A training step in a notebook: a bar of compute and communication, and a timeline."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from tutti.view import svg
from tutti.view.notebook import time_axis, time_x
from tutti.view.quantity import format_shares, format_time

from .quantities import PARTS
from .text import communication_colours
from .timeline import fewer_bars, task_rows
from .tracks import COMPUTE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree import ElementTree as ET

    from tutti.training.results import TrainingResult

    from .timeline import Rows, TaskBar

_MOST_BARS, _MOST_LANES = 400, 6
_LEFT, _ROW, _LANE, _GAP = 150, 22, 9, 6


def drawn(run: TrainingResult) -> str:
    """Returns a bar of the parts of a step, with their times and shares, and a timeline."""
    return f"{_breakdown(run)}{_timeline(run)}"


def _breakdown(run: TrainingResult) -> str:
    parts = [(part.name, part.get(run), colour) for part, colour in PARTS if part.get(run)]
    total = sum(ps for _, ps, _ in parts) or 1
    shares = format_shares([ps / total for _, ps, _ in parts])
    root = svg.drawing(svg.WIDTH, 34 + 20 * len(parts), "Compute and communication of the step")
    x = 0.0
    for row, ((name, ps, colour), share) in enumerate(zip(parts, shares, strict=True)):
        width = svg.WIDTH * ps / total
        label = f"{name}: {format_time(ps)}, {share}"
        svg.shape(root, "rect", label, x=x, y=2, width=width, height=24, fill=colour)
        svg.legend(root, [(label, colour)], (0, 34 + 20 * row))
        x += width
    return svg.written(root)


def _timeline(run: TrainingResult) -> str:
    rows = task_rows(run, [0], communication_colours([run]))
    rows, limit = fewer_bars(rows, run.total.ps, _MOST_BARS)
    omitted = sum(len(lanes) > _MOST_LANES for lanes in rows.values())
    rows = {key: lanes[:_MOST_LANES] for key, lanes in rows.items()}
    notes = []
    if limit:
        notes.append(f"Tasks shorter than {format_time(limit)} share a bar.")
    if omitted:
        notes.append(f"Up to {_MOST_LANES} concurrent collectives of a group are drawn.")
    note = f"<p>{' '.join(notes)}</p>" if notes else ""
    return f"<p>Timeline of NPU 0</p>{svg.written(_drawn(run, rows))}{note}"


def _drawn(run: TrainingResult, rows: Rows) -> ET.Element:
    heights = [max(_ROW, _LANE * len(lanes)) for lanes in rows.values()]
    bottom = sum(heights) + _GAP * len(heights)
    colours = {bar.name: bar.colour for lanes in rows.values() for lane in lanes for bar in lane}
    root = svg.drawing(svg.WIDTH, bottom + 24 + 20 * -(-len(colours) // 4), "Timeline of NPU 0")
    top = 0
    for ((_, name), lanes), height in zip(rows.items(), heights, strict=True):
        label = "processor" if name == COMPUTE else name
        label = label if len(label) <= 22 else f"{label[:21]}…"
        svg.text(root, (_LEFT - 8, top + height / 2 + 4), label, "end")
        each = height / max(len(lanes), 1)
        for number, lane in enumerate(lanes):
            for bar in lane:
                _bar(root, bar, run.total.ps, (top + each * number, each))
        top += height + _GAP
    time_axis(root, run.total.ps, _LEFT, bottom + 12)
    _legend(root, colours, bottom + 22)
    return root


def _bar(root: ET.Element, bar: TaskBar, end_ps: int, place: tuple[float, float]) -> None:
    start, end = (time_x(ps, end_ps, _LEFT) for ps in (bar.start, bar.end))
    tip = unescape(re.sub(r"<[^>]+>", "", bar.text.replace("<br>", "\n")))
    y, height = place
    svg.shape(root, "rect", tip, x=start, y=y, width=end - start, height=height * 0.9,
              fill=bar.colour)  # fmt: skip


def _legend(root: ET.Element, colours: Mapping[str, str], y: int) -> None:
    entries = list(colours.items())
    for first in range(0, len(entries), 4):
        svg.legend(root, entries[first : first + 4], (_LEFT, y + 5 * first))
