"""Facts and time axes of drawings for notebooks.

The output of this and of the other modules for notebooks has no scripts and no styles that could
leak into the notebook.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from tutti.view import svg
from tutti.view.quantity import time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree import ElementTree as ET

    from tutti.view.tables import ReportTable
    from tutti.view.view import View

MOST_MESSAGES = 100_000
"""Messages of a run up to which a notebook records and shows its timeline."""


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


def view_html(view: View) -> str:
    """Returns the facts of a view, its tables with the columns of the terminal, and its drawing."""
    facts = [(fact.name, fact.text) for fact in view.every_fact if fact.text]
    tables = "".join(map(_table_html, view.tables))
    return facts_html(facts, tables + (view.inline() if view.inline else ""))


def _table_html(table: ReportTable[Any]) -> str:
    columns = table.narrow
    head = "".join(f"<th>{escape(column.heading)}</th>" for column in columns)
    rows = (
        "".join(f"<td>{escape(column.text(row))}</td>" for column in columns) for row in table.rows
    )
    body = f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    heading, caption = (
        f"<p>{escape(text)}</p>" if text else "" for text in (table.heading, table.caption)
    )
    return heading + body + caption


def facts_html(facts: Iterable[tuple[str, ...]], drawing: str = "") -> str:
    """Returns facts as a table, and a drawing below it.

    Args:
        facts: Names and values, such as ("completion time", "3.4 us"), perhaps with an explanation.
        drawing: Inline SVG; empty if there is none.
    """
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        + "".join(f"<td style='text-align:left'>{escape(value)}</td>" for value in values)
        + "</tr>"
        if name
        else f"<caption style='text-align:left'>{escape(values[0])}</caption>"
        for name, *values in facts
    )
    return f"<div><table>{rows}</table>{drawing}</div>"
