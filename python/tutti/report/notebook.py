"""HTML and inline SVG of runs, schedules and comparisons for notebooks.

The output has no scripts and no styles that could leak into the notebook. Only the standard library
writes it, so that showing a result imports nothing.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tutti import _core

from .palette import KINDS, kind_colour
from .quantity import format_rate, format_share, format_time, plural, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tutti.run import Run
    from tutti.schedule import Schedule

    from .timeline import Picture

_WIDTH, _ROW, _LEFT, _TOP, _FOOT = 760, 20, 44, 22, 26
_MOST_RANKS, _MOST_STEPS, _MOST_OPS = 16, 12, 12
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
    root = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}",
        width=str(_WIDTH), style="max-width:100%;font:12px sans-serif", role="img",
    )  # fmt: skip
    ET.SubElement(root, "title").text = f"Timeline, complete after {format_time(drawn.complete_ps)}"
    _legend(root, drawn)
    _rows(root, drawn)
    _axis(root, drawn, height)
    return ET.tostring(root, encoding="unicode")


def _x(drawn: Picture, ps: int) -> str:
    return f"{_LEFT + (_WIDTH - _LEFT - 12) * ps / max(drawn.end_ps, 1):.2f}"


def _rows(root: ET.Element, drawn: Picture) -> None:
    rows = {rank: index for index, rank in enumerate(drawn.ranks)}
    for rank, row in rows.items():
        _text(root, str(_LEFT - 8), _TOP + _ROW * row + 14, str(rank), anchor="end")
    for bar in drawn.bars:
        if bar.duration_ps == 0:
            continue
        start, end = float(_x(drawn, bar.start_ps)), float(_x(drawn, bar.end_ps))
        rect = ET.SubElement(
            root, "rect", x=f"{start:.2f}", y=str(_TOP + _ROW * rows[bar.rank] + 3),
            width=f"{end - start:.2f}", height=str(_ROW - 6), fill=kind_colour(bar.kind),
        )  # fmt: skip
        tip = f"rank {bar.rank}, {bar.name}: {bar.label}, {format_time(bar.duration_ps)}"
        ET.SubElement(rect, "title").text = tip
    for arrow in drawn.arrows:
        y1, y2 = (_TOP + _ROW * rows[end] + _ROW // 2 for end in (arrow.source, arrow.destination))
        ET.SubElement(
            root, "line", x1=_x(drawn, arrow.sent_ps), y1=str(y1), x2=_x(drawn, arrow.arrival_ps),
            y2=str(y2), stroke="#59636E",
            attrib={"stroke-width": "0.6", "stroke-opacity": "0.8"},
        )  # fmt: skip


def _legend(root: ET.Element, drawn: Picture) -> None:
    seen = {bar.kind for bar in drawn.bars if bar.duration_ps > 0}
    at = _LEFT
    for kind in (kind for kind in KINDS if kind in seen):
        ET.SubElement(
            root, "rect", x=str(at), y="4", width="11", height="11", fill=kind_colour(kind)
        )
        _text(root, str(at + 15), 14, kind)
        at += 28 + 7 * len(kind)


def _axis(root: ET.Element, drawn: Picture, height: int) -> None:
    factor, unit = time_unit(drawn.end_ps)
    for quarter in range(5):
        ps = drawn.end_ps * quarter // 4
        anchor = ("start", "middle", "middle", "middle", "end")[quarter]
        label = f"{ps / factor:.3g}" + (f" {unit}" if quarter == 4 else "")
        _text(root, _x(drawn, ps), height - 10, label, anchor=anchor)


def _text(root: ET.Element, x: str, y: int, text: str, anchor: str = "start") -> None:
    element = ET.SubElement(root, "text", x=x, y=str(y), fill="currentColor")
    element.set("text-anchor", anchor)
    element.text = text


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
    facts: Iterable[tuple[str, str]],
    timeline: pl.DataFrame | None = None,
    messages: pl.DataFrame | None = None,
) -> str:
    """Returns facts as a table, and the timeline of a run below it.

    Args:
        facts: Names and values, such as ("completion time", "3.4 us").
        timeline: The timeline frame, if any.
        messages: The message frame, if any.
    """
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts
    )
    drawing = "" if timeline is None or timeline.is_empty() else timeline_svg(timeline, messages)
    return f"<div><table>{rows}</table>{drawing}</div>"


def schedule_html(schedule: Schedule) -> str:
    """Returns the ops of the first ranks and steps of a schedule, a row per step."""
    ranks = range(min(schedule.ranks, _MOST_RANKS))
    most = max((schedule.steps(rank) for rank in ranks), default=0)
    steps = range(min(most, _MOST_STEPS))
    heading = "".join(f"<th>rank {rank}</th>" for rank in ranks)
    body = "".join(
        f"<tr><th>{step}</th>{''.join(_cell(schedule, rank, step) for rank in ranks)}</tr>"
        for step in steps
    )
    left_out = []
    if schedule.ranks > len(ranks):
        left_out.append(plural(schedule.ranks - len(ranks), "more rank"))
    if most > len(steps):
        left_out.append(plural(most - len(steps), "more step"))
    rest = f"<p>and {' and '.join(left_out)}</p>" if left_out else ""
    title = f"<b>{escape(schedule.name)}</b>: {schedule.collective} on {schedule.ranks:,} ranks"
    return f"<p>{title}</p><table><tr><th>step</th>{heading}</tr>{body}</table>{rest}"


def _cell(schedule: Schedule, rank: int, step: int) -> str:
    if step >= schedule.steps(rank):
        return "<td></td>"
    lines = [str(op) for op in schedule.ops(rank, step)]
    if len(lines) > _MOST_OPS:
        lines[_MOST_OPS:] = [f"and {plural(len(lines) - _MOST_OPS, 'more op')}"]
    shown = "<br>".join(map(escape, lines))
    name = escape(schedule.step_name(rank, step))
    return f"<td style='text-align:left'><i>{name}</i><br>{shown}</td>"
