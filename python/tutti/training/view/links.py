"""The section of a training report on links: utilisation of every link, and the busiest links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.topologies.view.heat_map import SCALE, LinkUse, heat_map
from tutti.training.links import link_frame
from tutti.view.charts import TEXT, Axis, chart, heat
from tutti.view.page import Choice, Section, captioned
from tutti.view.quantity import format_share, format_size, format_time
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.training.step import TrainingResult
    from tutti.view.charts import Figure, Trace

_MOST_LISTED = 10
"""Links of a configuration in the table."""
_BAR = {
    "title": {"text": "utilisation"},
    "tickformat": ".0%",
    "thickness": 14,
    "orientation": "h",
    "yref": "container",
    "y": 0,
    "yanchor": "bottom",
}


def links_section(runs: Sequence[TrainingResult]) -> Section:
    """Returns the section: a heat map of links, and a table of the busiest."""
    found = [_links(run) for run in runs]
    step = runs[0].step
    several = len(runs) > 1
    if step.platform is not None:
        lead, axes = "Every link of the topology. ", "The topology, without scale."
        figure = _topology(runs, found)
    elif max(run.record.npus for run in runs) > 1:
        lead = "The links of every NPU, by ring and direction. "
        axes = "Horizontal: NPU. Vertical: link."
        figure = _npus(found)
    else:
        lead = "The links of an NPU, by ring and direction; they are equal on all NPUs. "
        figure, several = _representative(found), False
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
    return Section("Link utilisation", lead, {"links": drawn}, _busiest(found), choice,
                   source="links.parquet")  # fmt: skip


def _links(run: TrainingResult) -> pl.DataFrame:
    several = run.step.platform is None and run.record.npus > 1
    return link_frame(run).with_columns(of_several=pl.lit(several))


def _topology(runs: Sequence[TrainingResult], found: Sequence[pl.DataFrame]) -> Figure | None:
    """Returns the topology of the platform; None if it is too large to draw."""
    routes = runs[0].step.platform.routes if runs[0].step.platform else None
    if routes is None:
        return None
    columns = ("source", "target", "utilisation", "busy_ps", "bytes")
    several = [
        [
            LinkUse(source, target, share, f"{format_size(size)}<br>busy {format_time(busy)}")
            for source, target, share, busy, size in links.select(columns).iter_rows()
        ]
        for links in found
    ]
    return heat_map(routes.topology, several)


def _npus(found: Sequence[pl.DataFrame]) -> Figure:
    """Returns a map per configuration: links of an NPU by NPU."""
    busiest = _most(found)
    traces = []
    for index, links in enumerate(found):
        names = links["link"].unique(maintain_order=True).to_list()
        npus = links["npu"].unique(maintain_order=True).to_list()
        cells = [links.filter(pl.col("link") == name).to_dicts() for name in names[::-1]]
        trace = _map([str(npu) for npu in npus], names[::-1], cells, busiest)
        traces.append(trace | {"meta": index, "visible": index == 0})
    height = 150 + 26 * max(len(trace["y"]) for trace in traces)
    return _chart(traces, Axis("NPU", category=True, more={"nticks": 16}), height)


def _representative(found: Sequence[pl.DataFrame]) -> Figure:
    """Returns a map of links by configuration."""
    links = pl.concat(found)
    names = links["link"].unique(maintain_order=True).to_list()
    configurations = links["configuration"].unique(maintain_order=True).to_list()[::-1]
    cells = [links.filter(pl.col("configuration") == one).to_dicts() for one in configurations]
    trace = _map(names, configurations, cells, _most(found))
    return _chart([trace], Axis(category=True), 150 + 34 * len(configurations))


def _map(
    xs: Sequence[str], ys: Sequence[str], cells: Sequence[Sequence[Mapping[str, Any]]], most: float
) -> Trace:
    return heat(
        x=xs,
        y=ys,
        z=[[cell["utilisation"] for cell in row] for row in cells],
        customdata=[[_text(cell) for cell in row] for row in cells],
        hovertemplate=TEXT,
        zmin=0,
        zmax=most,
        colorscale=SCALE,
        colorbar=_BAR,
        xgap=1,
        ygap=1,
    )


def _chart(traces: Sequence[Trace], x: Axis, height: int) -> Figure:
    y = Axis(category=True, more={"automargin": True, "showgrid": False})
    return chart(traces, x, y, height, showlegend=False, margin={"b": 110})


def _most(found: Sequence[pl.DataFrame]) -> float:
    return max(max(links["utilisation"], default=0.0) for links in found) or 1.0


def _text(link: Mapping[str, Any]) -> str:
    return (
        f"<b>{link['configuration']}</b>: {_name(link)}<br>utilisation "
        f"{format_share(link['utilisation'])}, {format_size(link['bytes'])}<br>"
        f"busy {format_time(link['busy_ps'])}"
    )


def _name(link: Mapping[str, Any]) -> str:
    """Returns the name of a link; links of a representative NPU are those of all NPUs."""
    return f"NPU {link['npu']}, {link['link']}" if link["of_several"] else link["link"]


def _busiest(found: Sequence[pl.DataFrame]) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("configuration", lambda row: row["configuration"]),
        Column("link", _name, kind="nowrap"),
        Column("utilisation", lambda row: row["utilisation"], format_share),
        Column("busy", lambda row: row["busy_ps"], format_time),
        Column("bytes", lambda row: row["bytes"], format_size),
    ]
    ordered = [
        links.sort("utilisation", descending=True, maintain_order=True).head(_MOST_LISTED)
        for links in found
    ]
    return ReportTable(columns, pl.concat(ordered).to_dicts())
