"""The section of a training report on links: utilisation of every link, and the busiest links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.topologies.view.heat_map import COLOUR_BAR, SCALE, LinkUse, heat_map
from tutti.training.links import link_times
from tutti.view.charts import TEXT, Axis, chart, heat
from tutti.view.page import Choice, Section, captioned
from tutti.view.quantity import format_share, format_size, format_time
from tutti.view.tables import ReportTable, of_scope

from .quantities import LINKS, link_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.links import LinkTime
    from tutti.training.results import TrainingResult
    from tutti.view.charts import Figure, Trace

_MOST_LISTED = 10
"""Links of a configuration in the table."""


def links_section(runs: Sequence[TrainingResult]) -> Section:
    """Returns the section: a heat map of links, and a table of the busiest."""
    every_link = [link_times(run) for run in runs]
    step = runs[0].step
    several = len(runs) > 1
    if step.platform is not None:
        lead, axes = "Every link of the topology. ", "The topology, without scale."
        figure = _topology(runs, every_link)
    elif max(run.record.npus for run in runs) > 1:
        lead = "The links of every NPU, by ring and direction. "
        axes = "Horizontal: NPU. Vertical: link."
        figure = _npus(every_link)
    else:
        lead = "The links of an NPU, by ring and direction; they are equal on all NPUs. "
        figure, several = _representative(every_link), False
        axes = "Horizontal: link. Vertical: endpoint configuration."
    lead += (
        "The utilisation of a link is its busy time as a share of the total time. The table lists "
        f"the busiest links of each configuration, up to {_MOST_LISTED}."
    )
    choice = None
    if several and figure is not None:
        names = [(index, run.configuration.name) for index, run in enumerate(runs)]
        choice = Choice("links", "Configuration", names, 0, "All configurations share the scale.")
    drawn = captioned(
        figure,
        f"{axes} Colour: utilisation in per cent.",
        "the busiest links, and large differences between links, which waste bandwidth.",
        "links",
    )
    return Section("Link utilisation", lead, {"links": drawn}, _busiest(every_link), choice,
                   source="links.parquet")  # fmt: skip


def _topology(
    runs: Sequence[TrainingResult], every_link: Sequence[Sequence[LinkTime]]
) -> Figure | None:
    """Returns the topology of the platform; None if it is too large to draw."""
    routes = runs[0].step.platform.routes if runs[0].step.platform else None
    if routes is None:
        return None
    several = [
        [
            LinkUse(link.source or "", link.target or "", link.utilisation,
                    f"{format_size(link.bytes)}<br>busy {format_time(link.busy_ps)}")
            for link in links
        ]
        for links in every_link
    ]  # fmt: skip
    return heat_map(routes.topology, several)


def _npus(every_link: Sequence[Sequence[LinkTime]]) -> Figure:
    """Returns a map per configuration: links of an NPU by NPU."""
    busiest = _most(every_link)
    traces = []
    for index, links in enumerate(every_link):
        rows: dict[str, list[LinkTime]] = {}
        for link in links:
            rows.setdefault(link.link, []).append(link)
        npus = [str(npu) for npu in dict.fromkeys(link.npu for link in links)]
        trace = _map(npus, list(rows)[::-1], list(rows.values())[::-1], busiest)
        traces.append(trace | {"meta": index, "visible": index == 0})
    height = 150 + 26 * max(len(trace["y"]) for trace in traces)
    return _chart(traces, Axis("NPU", category=True, more={"nticks": 16}), height)


def _representative(every_link: Sequence[Sequence[LinkTime]]) -> Figure:
    """Returns a map of links by configuration."""
    names = list(dict.fromkeys(link.link for links in every_link for link in links))
    configurations = [links[0].run.configuration.name for links in every_link][::-1]
    trace = _map(names, configurations, every_link[::-1], _most(every_link))
    return _chart([trace], Axis(category=True), 150 + 34 * len(configurations))


def _map(
    xs: Sequence[str], ys: Sequence[str], cells: Sequence[Sequence[LinkTime]], most: float
) -> Trace:
    return heat(
        x=xs,
        y=ys,
        z=[[cell.utilisation for cell in row] for row in cells],
        customdata=[[_text(cell) for cell in row] for row in cells],
        hovertemplate=TEXT,
        zmin=0,
        zmax=most,
        colorscale=SCALE,
        colorbar=COLOUR_BAR,
        xgap=1,
        ygap=1,
    )


def _chart(traces: Sequence[Trace], x: Axis, height: int) -> Figure:
    y = Axis(category=True, more={"automargin": True, "showgrid": False})
    return chart(traces, x, y, height, showlegend=False, margin={"b": 110})


def _most(every_link: Sequence[Sequence[LinkTime]]) -> float:
    return max((link.utilisation for links in every_link for link in links), default=0.0) or 1.0


def _text(link: LinkTime) -> str:
    return (
        f"<b>{link.run.configuration.name}</b>: {link_label(link)}<br>utilisation "
        f"{format_share(link.utilisation)}, {format_size(link.bytes)}<br>"
        f"busy {format_time(link.busy_ps)}"
    )


def _busiest(every_link: Sequence[Sequence[LinkTime]]) -> ReportTable[LinkTime]:
    rows = [
        link
        for links in every_link
        for link in sorted(links, key=lambda link: -link.utilisation)[:_MOST_LISTED]
    ]
    return ReportTable(of_scope(LINKS, "runs"), rows)
