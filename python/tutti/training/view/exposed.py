"""The section of a training report on exposed communication by collective and process group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.training.exposed import exposed_frame
from tutti.view.charts import Axis, bars, chart
from tutti.view.page import Chart, Section
from tutti.view.quantity import count, format_share, format_size, format_time, time_unit
from tutti.view.tables import Column, ReportTable

from .text import collective, communication_colours, of_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.training.step import TrainingResult
    from tutti.view.charts import Figure

_LEAD = (
    "Communication in flight while the NPU does not compute. It belongs to the collective that the "
    "next pass waits for, since its issue. If several collectives end at the same time, or the "
    "pass waits for something else, the time is divided equally among the collectives in flight."
)


def exposed_section(runs: Sequence[TrainingResult]) -> list[Section]:
    """Returns the section, if the runs have collectives."""
    found = pl.concat(exposed_frame(run, [0]) for run in runs)
    if found.is_empty():
        return []
    rows = _rows(runs, found)
    unit = time_unit(max(run.exposed for run in runs))[1]
    drawn = Chart(
        _chart(runs, rows),
        f"Horizontal: exposed communication ({unit}). Vertical: endpoint configuration.",
        "the longest part of a bar: the collective and process group to shorten or overlap first.",
    )
    shown = {"exposed": drawn} if any(row["exposed_ps"] for row in rows) else {}
    return [
        Section("Exposed communication by collective", _LEAD + of_first(runs), shown, _table(rows))
    ]


def _rows(runs: Sequence[TrainingResult], found: pl.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of the frame, with name and colour, and the share of the total time."""
    colours = communication_colours(runs)
    totals = {run.configuration.name: run.total.ps for run in runs}
    return [
        row
        | {
            "name": f"{collective(row['collective'])} on {row['group']}",
            "colour": colours[row["collective"], row["group"]],
            "share": row["exposed_ps"] / totals[row["configuration"]],
        }
        for row in found.to_dicts()
    ]


def _chart(runs: Sequence[TrainingResult], rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Returns a stacked bar per configuration, with a part per collective and process group."""
    names = [run.configuration.name for run in runs][::-1]
    factor, unit = time_unit(max(run.exposed for run in runs))
    parts: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        parts.setdefault(row["name"], {})[row["configuration"]] = row
    traces = []
    for name, of in parts.items():
        texts = [_text(of[one]) if one in of else "" for one in names]
        times = [of[one]["exposed_ps"] / factor if one in of else 0 for one in names]
        colour = next(iter(of.values()))["colour"]
        traces.append(bars(names, times, colour, across=True, name=name, customdata=texts,
                           marker={"line": {"width": 0}}))  # fmt: skip
    return chart(
        traces, Axis("exposed communication", unit, zero=True),
        Axis(category=True, more={"automargin": True}), 130 + 44 * len(runs), barmode="stack",
        bargap=0.35, margin={"b": 84}, legend={"traceorder": "normal"}, showlegend=True,
    )  # fmt: skip


def _text(row: Mapping[str, Any]) -> str:
    return (
        f"<b>{row['configuration']}</b>: {row['name']}<br>{format_time(row['exposed_ps'])} "
        f"exposed, {format_share(row['share'])} of the time<br>"
        f"in flight for {format_time(row['in_flight_ps'])}"
    )


def _table(rows: Sequence[dict[str, Any]]) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("configuration", lambda row: row["configuration"]),
        Column(
            "collective",
            lambda row: collective(row["collective"]),
            colour=lambda row: row["colour"],
        ),
        Column("process group", lambda row: row["group"]),
        Column("exposed", lambda row: row["exposed_ps"], format_time),
        Column("share of the time", lambda row: row["share"], format_share),
        Column("in flight", lambda row: row["in_flight_ps"], format_time),
        Column("count", lambda row: row["count"], count),
        Column("payload", lambda row: row["bytes"], format_size),
    ]
    return ReportTable(columns, rows)
