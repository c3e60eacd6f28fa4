"""The section of a training report on exposed communication by collective and process group."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.training.exposed import exposed_parts
from tutti.view.charts import Axis, bars, chart
from tutti.view.page import Chart, Section
from tutti.view.quantity import format_share, format_time, time_unit
from tutti.view.tables import ReportTable, of_scope

from .quantities import EXPOSED
from .text import collective, communication_colours, of_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.training.exposed import CollectiveTime
    from tutti.training.results import TrainingResult
    from tutti.view.charts import Figure

HEADING = "Exposed communication by collective"
_LEAD = (
    "Communication in flight while the NPU does not compute. It belongs to the collective that the "
    "next pass waits for, since its issue. If several collectives end at the same time, or the "
    "pass waits for something else, the time is divided equally among the collectives in flight."
)


def exposed_section(runs: Sequence[TrainingResult]) -> list[Section]:
    """Returns the section, if the runs have collectives."""
    rows = first_parts(runs)
    if not rows:
        return []
    unit = time_unit(max(run.exposed for run in runs))[1]
    colours = communication_colours(runs)
    drawn = Chart(
        _chart(runs, rows, colours),
        f"Horizontal: exposed communication ({unit}). Vertical: endpoint configuration.",
        "the longest part of a bar: the collective and process group to shorten or overlap first.",
    )
    shown = {"exposed": drawn} if any(row.exposed_ps for row in rows) else {}
    columns = [
        replace(column, colour=lambda row: colours[row.collective, row.group])
        if column.name == "collective"
        else column
        for column in of_scope(EXPOSED, "runs")
    ]
    lead = _LEAD + of_first(runs)
    return [Section(HEADING, lead, shown, ReportTable(columns, rows))]


def first_parts(runs: Sequence[TrainingResult]) -> list[CollectiveTime]:
    """Returns the exposed communication of NPU 0 of each run."""
    return [row for run in runs for row in exposed_parts(run, [0])]


def _chart(
    runs: Sequence[TrainingResult],
    rows: Sequence[CollectiveTime],
    colours: Mapping[tuple[str, str], str],
) -> Figure:
    """Returns a stacked bar per configuration, with a part per collective and process group."""
    names = [run.configuration.name for run in runs][::-1]
    factor, unit = time_unit(max(run.exposed for run in runs))
    parts: dict[tuple[str, str], dict[str, CollectiveTime]] = {}
    for row in rows:
        parts.setdefault((row.collective, row.group), {})[row.run.configuration.name] = row
    traces = []
    for (kind, group), by_name in parts.items():
        name = f"{collective(kind)} on {group}"
        shown = [by_name.get(configuration) for configuration in names]
        texts = [_text(row, name) if row else "" for row in shown]
        times = [row.exposed_ps / factor if row else 0 for row in shown]
        traces.append(bars(names, times, colours[kind, group], across=True, name=name,
                           customdata=texts, marker={"line": {"width": 0}}))  # fmt: skip
    return chart(
        traces, Axis("exposed communication", unit, zero=True),
        Axis(category=True, more={"automargin": True}), 130 + 44 * len(runs), barmode="stack",
        bargap=0.35, margin={"b": 84}, legend={"traceorder": "normal"}, showlegend=True,
    )  # fmt: skip


def _text(row: CollectiveTime, name: str) -> str:
    share = format_share(row.exposed_ps / row.run.total.ps)
    return (
        f"<b>{row.run.configuration.name}</b>: {name}<br>{format_time(row.exposed_ps)} "
        f"exposed, {share} of the time<br>in flight for {format_time(row.in_flight_ps)}"
    )
