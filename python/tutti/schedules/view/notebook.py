"""A schedule in a notebook: an animated drawing of its messages, and its ops."""

from __future__ import annotations

import hashlib
import math
from html import escape
from typing import TYPE_CHECKING

from tutti.view import svg
from tutti.view.palette import BLUE, ORANGE
from tutti.view.quantity import plural

from .rounds import rounds

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from tutti.schedules.ir import Schedule

    from .rounds import Message, Rounds

_MOST_RANKS, _MOST_ROUNDS = 12, 12
"""The drawn part of a schedule."""
_MOST_OPS = 60_000
"""The most ops in the drawn rounds, of all ranks: following them takes half a second."""
_TABLE_RANKS, _TABLE_STEPS, _TABLE_OPS = 16, 12, 12
_LEFT, _TOP, _ROW = 170, 34, 46
_SECONDS = 1.2
"""Seconds of a round; after the last one there is a pause as long."""


def schedule_html(schedule: Schedule) -> str:
    """Returns the messages by round as an animation, and the ops of the first ranks and steps.

    The animation moves the messages of each round from rank to rank. With reduced motion in
    the settings of the reader's system, the same drawing is static.
    """
    most = max(schedule.steps(rank) for rank in range(min(schedule.ranks, _TABLE_RANKS)))
    facts = [
        f"{schedule.collective} on {plural(schedule.ranks, 'rank')}",
        plural(most, "step") + " per rank" * (most != 1),
        plural(schedule.chunks, "chunk"),
        "verified" if schedule.base.is_verified else "not verified",
    ]
    heading = f"<p><b>{escape(schedule.name)}</b>: {escape(', '.join(facts))}</p>"
    table = f"<details><summary>Ops of each rank</summary>{_table(schedule, most)}</details>"
    return f"<div>{heading}{_animation(schedule)}{table}</div>"


def _animation(schedule: Schedule) -> str:
    if (ops := _ops(schedule)) > _MOST_OPS:
        return (
            f"<p>Not drawn: about {ops:,} ops in the first {_MOST_ROUNDS} steps of all ranks. "
            f"Schedules of up to {_MOST_OPS:,} are drawn.</p>"
        )
    found = rounds(schedule, _MOST_ROUNDS)
    shown = min(schedule.ranks, _MOST_RANKS)
    inside = [one for one in found.messages if max(one.source, one.destination) < shown]
    notes = []
    if schedule.ranks > shown:
        outside = plural(len(found.messages) - len(inside), "message")
        notes.append(
            f"Drawn: ranks 0 to {shown - 1} of {schedule.ranks:,}; {outside} of the drawn rounds "
            "to or from other ranks are omitted."
        )
    if not found.complete and len(found.names) == _MOST_ROUNDS:
        notes.append(f"Drawn: the first {_MOST_ROUNDS} rounds; more follow.")
    elif not found.complete:
        notes.append("After the last round, ranks wait for messages that are never sent.")
    note = "".join(f"<p>{escape(text)}</p>" for text in notes)
    return svg.written(_drawn(schedule, shown, found, inside)) + note


def _ops(schedule: Schedule) -> int:
    """Returns an estimate of the ops in the drawn rounds, from the first and the last rank."""
    counts = [
        sum(
            len(schedule.ops(rank, step)) for step in range(min(schedule.steps(rank), _MOST_ROUNDS))
        )
        for rank in (0, schedule.ranks - 1)
    ]
    return schedule.ranks * max(counts)


def _drawn(schedule: Schedule, shown: int, found: Rounds, inside: list[Message]) -> ET.Element:
    gap = min(56.0, (svg.WIDTH - _LEFT - 30) / max(shown - 1, 1))
    right, bottom = _LEFT + gap * (shown - 1), _TOP + _ROW * len(found.names) + 8
    title = f"Messages of {schedule.name} by round; time runs downwards"
    root = svg.drawing(right + 30, bottom + 4, title)
    # A style sheet of inline SVG applies to the complete page, so each drawing has unique names.
    content = f"{schedule.name} {schedule.collective} {shown} {found}"
    name = f"tutti-{hashlib.blake2b(content.encode(), digest_size=5).hexdigest()}"
    root.set("class", name)
    svg.shape(root, "style").text = _style(name, len(found.names))
    svg.text(root, (8, 18), "round")
    for number, step in enumerate(found.names):
        y = _TOP + _ROW * number
        svg.shape(root, "rect", x=0, y=y + 2, width=right + 30, height=_ROW - 4, rx=5,
                  fill=ORANGE, opacity="0", class_="band", style=_delay(number))  # fmt: skip
        label = svg.text(root, (8, y + _ROW / 2 + 4), f"{number}")
        label.set("font-weight", "bold")
        svg.text(root, (34, y + _ROW / 2 + 4), step if len(step) <= 20 else f"{step[:19]}…")
    for rank in range(shown):
        x = _LEFT + gap * rank
        svg.shape(root, "line", x1=x, y1=_TOP - 4, x2=x, y2=bottom, stroke="currentColor",
                  stroke_opacity="0.25")  # fmt: skip
        svg.text(root, (x, 18), f"rank {rank}" if gap > 44 else f"{rank}", "middle")
    for message in inside:
        _line(root, message, gap, len(found.names))
    for message in inside:
        _dot(root, message, gap, len(found.names))
    return root


def _ends(message: Message, gap: float, count: int) -> tuple[float, float, float, float]:
    """Returns the position of the send, and the offset to the arrival."""
    arrival = count - 1 if message.arrival is None else message.arrival
    x, y = _LEFT + gap * message.source, _TOP + _ROW * message.sent + 8
    return (
        x,
        y,
        gap * (message.destination - message.source),
        _ROW * (arrival - message.sent + 1) - 16,
    )


def _tip(message: Message) -> str:
    return f"round {message.sent}, rank {message.source}: {message.op}"


def _line(root: ET.Element, message: Message, gap: float, count: int) -> None:
    """Draws a message as an arrow."""
    x, y, dx, dy = _ends(message, gap, count)
    turn = math.atan2(dy, dx)
    tips = [(x + dx - 7 * math.cos(turn + a), y + dy - 7 * math.sin(turn + a)) for a in (-0.4, 0.4)]
    (x1, y1), (x2, y2) = tips
    path = (
        f"M{x:.1f} {y:.1f}l{dx:.1f} {dy:.1f}M{x1:.1f} {y1:.1f}L{x + dx:.1f} {y + dy:.1f}"
        f"L{x2:.1f} {y2:.1f}"
    )
    svg.shape(root, "path", _tip(message), d=path, fill="none", stroke=BLUE,
              stroke_width="1.2")  # fmt: skip


def _dot(root: ET.Element, message: Message, gap: float, count: int) -> None:
    """Draws the moving message, which is invisible without animation."""
    x, y, dx, dy = _ends(message, gap, count)
    style = f"{_delay(message.sent)};--x:{dx:.1f}px;--y:{dy:.1f}px"
    svg.shape(root, "circle", _tip(message), cx=x, cy=y, r=5, fill=ORANGE, stroke="#333",
              opacity="0", class_="message", style=style)  # fmt: skip


def _delay(number: int) -> str:
    return f"animation-delay:{number * _SECONDS:g}s"


def _style(name: str, count: int) -> str:
    """Returns the style sheet of an animation: each round is shown once per cycle."""
    cycle, part = (count + 1) * _SECONDS, 100 / (count + 1)
    end = "opacity:0;transform:translate(var(--x),var(--y))"
    return (
        "@media (prefers-reduced-motion:no-preference){"
        f".{name} .message{{animation:{name}-message {cycle:g}s ease-in-out infinite}}"
        f".{name} .band{{animation:{name}-band {cycle:g}s linear infinite}}}}"
        f"@keyframes {name}-message{{0%{{opacity:1;transform:none}}"
        f"{part:.2f}%{{opacity:1;transform:translate(var(--x),var(--y))}}"
        f"{part + 0.01:.2f}%,100%{{{end}}}}}"
        f"@keyframes {name}-band{{0%,{part:.2f}%{{opacity:.22}}"
        f"{part + 0.01:.2f}%,100%{{opacity:0}}}}"
    )


def _table(schedule: Schedule, most: int) -> str:
    """Returns the ops as a table with a row per step."""
    ranks = range(min(schedule.ranks, _TABLE_RANKS))
    steps = range(min(most, _TABLE_STEPS))
    heading = "".join(f"<th>rank {rank}</th>" for rank in ranks)
    body = "".join(
        f"<tr><th>{step}</th>{''.join(_cell(schedule, rank, step) for rank in ranks)}</tr>"
        for step in steps
    )
    omitted = []
    if schedule.ranks > len(ranks):
        omitted.append(plural(schedule.ranks - len(ranks), "more rank"))
    if most > len(steps):
        omitted.append(plural(most - len(steps), "more step"))
    rest = f"<p>and {' and '.join(omitted)}</p>" if omitted else ""
    return f"<table><tr><th>step</th>{heading}</tr>{body}</table>{rest}"


def _cell(schedule: Schedule, rank: int, step: int) -> str:
    if step >= schedule.steps(rank):
        return "<td></td>"
    lines = [str(op) for op in schedule.ops(rank, step)]
    if len(lines) > _TABLE_OPS:
        lines[_TABLE_OPS:] = [f"and {plural(len(lines) - _TABLE_OPS, 'more op')}"]
    shown = "<br/>".join(map(escape, lines))
    name = escape(schedule.step_name(rank, step))
    return f"<td style='text-align:left'><i>{name}</i><br/>{shown}</td>"
