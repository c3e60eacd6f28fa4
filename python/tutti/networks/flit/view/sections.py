"""The sections of the page of a flit-level run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.networks.flit.events import busiest_first
from tutti.networks.view import events_section
from tutti.topologies.view.heat_map import axes_of
from tutti.topologies.view.pixel_map import MOST_PIXELS
from tutti.view.page import Section, captioned
from tutti.view.quantity import count, format_share, plural
from tutti.view.tables import Column, ReportTable, of_scope

from . import charts as noc_charts
from .quantities import QUANTITIES, Part, with_class
from .run import UNITS
from .text import channel, counts, mean_utilisation, power, spoken

if TYPE_CHECKING:
    from tutti.energy.link_classes import Technologies
    from tutti.energy.technology import AreaReport, EnergyReport, Interval
    from tutti.networks.flit import NocRun
    from tutti.networks.flit.events import Sent

_MOST_LINKS = 40
"""Rows of the link table; channels.parquet has all channels."""
_CAPTIONS = {
    "buffered": (
        "Horizontal: cycle. Vertical: flits in all buffers.",
        "a line that rises until the end: the network does not keep up.",
    ),
    "over-time": (
        "Horizontal: cycle. Vertical: flits in all buffers of a VC number.",
        "a VC that is fuller than others, which carries more of the traffic.",
    ),
    "fullest": (
        "Horizontal: cycle. Vertical: VC of an input port. Colour: occupancy (flits).",
        "VCs that remain full, which block the VCs upstream.",
    ),
    "vcs": (
        "Horizontal: VC. Vertical: mean occupancy in flits.",
        "a fullest port near the capacity, far above the mean of all ports.",
    ),
    "stalls": (
        "Horizontal: share of samples of occupied VCs, in per cent. Vertical: cause.",
        "waits for credits or VCs, which are a sign of full buffers downstream.",
    ),
}
"""The axes of each chart of buffers, and what to look for."""


def sections(
    run: NocRun, technology: Technologies | None, spent: tuple[EnergyReport, AreaReport] | None
) -> list[Section]:
    """Returns latency, links, buffers, events and energy."""
    parts = Part.every(run)
    lead = "Events of the energy model in all routers and links, in the window."
    return [
        Section("Latency and throughput", UNITS,
                table=ReportTable(of_scope(with_class(QUANTITIES, parts), "run"), parts)),
        _links(run),
        *(section for section in _buffers(run) if section.drawn),
        events_section(lead, counts(run.events)),
        *([_energy(run, technology, *spent)] if technology and spent else []),
    ]  # fmt: skip


def waiting(run: NocRun) -> list[Section]:
    """Returns the deadlock cycle: each VC, and the VC that it waits for."""
    after = [*run.deadlock_cycle[1:], *run.deadlock_cycle[:1]]
    columns: list[Column[tuple[str, str]]] = [
        Column("VC", lambda row: row[0]),
        Column("waits on", lambda row: row[1]),
    ]
    lead = (
        "A VC named by its channel, with what the first flit in it is waiting for, and the VC that "
        "has it; the last one waits on the first."
    )
    rows = list(zip(run.deadlock_cycle, after, strict=True))
    return [Section("Deadlock cycle", lead, table=ReportTable(columns, rows))]


def _links(run: NocRun) -> Section:
    columns: list[Column[Sent]] = [
        Column("channel", lambda row: channel(row.kind, row.source, row.target)),
        Column("kind", lambda row: row.kind),
        Column("utilisation", lambda row: row.utilisation, format_share),
        Column("flits", lambda row: row.flits, count),
        Column("latency", lambda row: row.latency, count, "cycles"),
        Column("cycles per flit", lambda row: row.cycles_per_flit, "{:g}".format),
    ]
    rows = busiest_first(run.sent)[:_MOST_LINKS]
    lead = (
        f"Link utilisation in the window; mean {format_share(mean_utilisation(run))}. The "
        f"table lists {len(rows)} of {plural(len(run.sent), 'channel')}, with the highest "
        "utilisation."
    )
    if len(run.network.topology.vertices) > MOST_PIXELS:
        lead += f" There is no heat map above {MOST_PIXELS:,} vertices: channels.csv has the links."
    heat = captioned(
        noc_charts.heat_map(run),
        axes_of(run.network.topology),
        "the links with the highest utilisation, which saturate first.",
        "links",
    )
    table = ReportTable(columns, rows)
    return Section("Link utilisation", lead, {"links": heat}, table, source="channels.parquet")


def _buffers(run: NocRun) -> list[Section]:
    capacity = run.network.router.buffer
    charts = (
        ("buffered", noc_charts.buffered, "Buffer occupancy over time",
         (f"Flits in the buffers of all routers, a sample per {plural(run.plan.sample, 'cycle')}. "
         "The count is steady in a stable network and grows in a saturated network.")),
        ("over-time", noc_charts.over_time, "VC occupancy over time",
         "Flits per VC number, summed over all input ports, at each sample."),
        ("fullest", noc_charts.fullest, "Fullest VCs over time",
         (f"Flits per VC buffer (capacity {capacity}) at the input ports with the highest "
         "occupancy; NocRun.vcs_over_time has all ports.")),
        ("vcs", noc_charts.by_vc, "Mean occupancy by VC",
         (f"Mean flits per VC (capacity {capacity}): average over all input ports, and the fullest "
         "port.")),
        ("stalls", noc_charts.stalled, "Causes of stalls",
         ("What the head flit of each VC waits for when buffers are sampled. Every flit spends at "
         "least one cycle in switch allocation.")),
    )  # fmt: skip
    return [
        Section(heading, lead, {name: captioned(draw(run), *_CAPTIONS[name], "samples")},
                source="NocRun")
        for name, draw, heading, lead in charts
    ]  # fmt: skip


class _Spent(NamedTuple):
    """Energy and area of a component."""

    name: str
    dynamic: Interval
    leakage: Interval
    um2: Interval


_SPENT: tuple[Column[_Spent], ...] = tuple(
    Column(name, get, "{:,.4g}".format, unit)
    for name, get, unit in (
        ("dynamic", lambda row: row.dynamic.nominal * 1e9, "nJ"),
        ("leakage", lambda row: row.leakage.nominal * 1e9, "nJ"),
        ("low bound", lambda row: row.dynamic.plus(row.leakage).low * 1e9, "nJ"),
        ("high bound", lambda row: row.dynamic.plus(row.leakage).high * 1e9, "nJ"),
        ("area", lambda row: row.um2.nominal / 1e6, "mm2"),
        ("area low bound", lambda row: row.um2.low / 1e6, "mm2"),
        ("area high bound", lambda row: row.um2.high / 1e6, "mm2"),
    )
)


def _energy(
    run: NocRun, technology: Technologies, energy: EnergyReport, area: AreaReport
) -> Section:
    """Returns the section on the energy of the window and the area of the hardware."""
    lead = (
        f"Mean power with router model {technology.router} and link model {technology.link}: "
        f"{power(energy, run.window * run.network.cycle_ps)}. Error bars span the low and the high "
        "bounds of the sources, taken as fully correlated."
    )
    rows = [
        *(_Spent(name, dynamic, energy.leakage_by_component[name], area.um2_by_component[name])
          for name, dynamic in energy.dynamic_by_component.items()),
        _Spent("total", energy.dynamic, energy.leakage, area.total_um2),
    ]  # fmt: skip
    chart = captioned(
        noc_charts.energy_bars(energy),
        "Horizontal: component. Vertical: energy of the window in nJ, dynamic and leakage.",
        "the highest bars, and error bars that exceed the differences between components.",
    )
    component = Column[_Spent]("component", lambda row: spoken(row.name))
    table = ReportTable([component, *_SPENT], rows)
    return Section("Energy and area", lead, {"energy": chart}, table)
