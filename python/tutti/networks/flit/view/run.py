"""What a flit-level run shows."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.networks.flit.capacity import capacity as ideal_capacity
from tutti.networks.flit.network import class_names, every
from tutti.networks.flit.settings import Trace
from tutti.networks.view import events_section
from tutti.topologies.coordinates import with_coordinates
from tutti.topologies.view.heat_map import axes_of
from tutti.topologies.view.pixel_map import MOST_PIXELS
from tutti.view.page import Section, captioned
from tutti.view.quantity import count, format_share, number, sentence
from tutti.view.tables import Column, ReportTable, of_scope
from tutti.view.view import Data, Fact, View, facts_of, results

from . import charts as noc_charts
from .quantities import (
    QUANTITIES,
    RATE,
    Part,
    by_class,
    capacity_text,
    cycles,
    state,
    with_class,
)
from .text import (
    channel,
    counts,
    describe_network,
    describe_traffic,
    power,
    slow_links,
    spoken,
    stalls_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tutti.energy.link_classes import Technologies
    from tutti.energy.technology import AreaReport, EnergyReport, Interval
    from tutti.networks.flit import NocRun

_MOST_LINKS = 40
"""Rows of the link table; channels.parquet has all channels."""
_SHOWN_CHANNELS = 3
_SHOWN_VCS = 8
"""VCs of a deadlock cycle that are named."""
KICKER = "flit-level network simulation"
UNITS = (
    "Latencies in cycles; offered load and accepted throughput in flits per node and cycle. p99 "
    "is the 99th percentile."
)
CONVENTIONS = (
    "Times are in clock cycles, rates in flits per node and cycle. Latency is measured from the "
    "creation of a packet to the arrival of its last flit, for packets created in the measurement "
    "window. Network latency excludes the time in the source queue. Accepted throughput counts "
    "flits that arrive in the window. ± is the 95 % CI half-width by batch means. A run is stable "
    "if all packets of the window arrive and accepted throughput equals offered load; otherwise "
    "latency is undefined. Events are counted in the window."
)
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

_NOTHING = "nothing, as throughput and latency are undefined in a deadlock"


def run_view(
    run: NocRun,
    *,
    technology: Technologies | None = None,
    title: str = "",
    remarks: Sequence[str] = (),
) -> View:
    """Returns what a run shows: latency, link utilisation, buffers, stalls, events, energy.

    Args:
        run: The run.
        technology: Energy per event; None to show no energy.
        title: The title of the experiment.
        remarks: Sentences below the answer.

    Raises:
        EnergyError: `technology` is set, and a link has no length.
    """
    complete, parts = Part.complete(run), Part.every(run)
    shown = with_class(QUANTITIES, parts)
    data, facts = [results(shown, parts, suffixes=[".parquet", ".csv"])], facts_of(shown, complete)
    below: list[RenderableType] = []
    if run.ending == "deadlocked":
        facts += _deadlock_facts(run)
        sections = partial(_waiting, run)
    else:
        spent = (run.energy(technology), run.area(technology)) if technology else None
        facts += _facts(run)
        data += _located(run)
        if spent and technology:
            facts += energy_facts(*spent, run.window * run.network.cycle_ps)
            data += energy_data(*spent)
            below = [spent[0].table()]
        below = [*([by_class(parts)] if len(parts) > 1 else []), *below]
        sections = partial(_sections, run, technology, spent)
    return View(
        kind="network",
        kicker=KICKER,
        title=title,
        question=_question(run),
        answer=_answer(run),
        remarks=remarks,
        headline=Fact("network", describe_network(run.network)),
        inputs=_inputs(run),
        facts=facts,
        data=data,
        below=below,
        sections=sections,
        conventions=CONVENTIONS,
    )


def _located(run: NocRun) -> list[Data]:
    """Returns the data of channels and buffers, with coordinates."""
    topology = run.network.topology
    return [
        Data(
            "channels",
            lambda: with_coordinates(run.channels, topology),
            ["channels.parquet", "channels.csv"],
        ),
        Data(
            "",
            lambda: with_coordinates(run.occupancy, topology),
            ["occupancy.parquet", "occupancy.csv"],
        ),
    ]


def phases(run: NocRun) -> str:
    """Returns the lengths of measurement window and warm-up."""
    return f"{run.window:,} cycles after {run.plan.warmup:,} cycles of warm-up"


def deadlock(run: NocRun) -> str:
    """Returns how a deadlocked run ended, and which VC waits for which, in a sentence."""
    shown = _waiting_vcs(run)
    if not shown:
        return state(run)
    *most, last = shown
    held = f"{', '.join(most)} {last}" if len(run.deadlock_cycle) > _SHOWN_VCS else ", ".join(shown)
    return f"{state(run)}; each waits for the next and the last for the first: {held}"


def energy_facts(energy: EnergyReport, area: AreaReport | None, window_ps: int) -> list[Fact]:
    """Returns mean power over a window, and area, if a model has it."""
    watts = energy.total.nominal / (window_ps * 1e-12)
    facts = [Fact("power", power(energy, window_ps), "mean_power_w", watts)]
    if area is None:
        return facts
    low, nominal, high = (value / 1e6 for value in area.total_um2)
    return [
        *facts,
        Fact("area", f"{nominal:.4g} mm2, range {low:.4g} to {high:.4g}"),
    ]


def energy_data(energy: EnergyReport, area: AreaReport | None) -> list[Data]:
    """Returns energy by component, and area, if a model has it."""
    found = [Data("energy", lambda: energy.frame, ["energy.parquet"])]
    return found if area is None else [*found, Data("area", lambda: area.frame)]


def _inputs(run: NocRun) -> list[Fact]:
    slow = slow_links(run)
    return [
        *(Fact("traffic", line) for line in describe_traffic(run.traffic)),
        Fact("measured", _NOTHING if run.ending == "deadlocked" else phases(run)),
        Fact("simulated", f"{run.cycles:,} cycles"),
        Fact("seed", str(run.network.seed)),
        *([Fact("slow channels", slow)] if slow else []),
    ]


def _facts(run: NocRun) -> list[Fact]:
    facts = [Fact("busiest", _busiest(run))]
    ideal = ideal_capacity(run.network, run.traffic)
    if ideal:
        text = capacity_text(ideal, _requested(run))
        facts.append(Fact("ideal capacity", text, "capacity", ideal))
    if run.buffered:
        held = fmean(run.buffered)
        text = f"{held:,.1f} flits on average, capacity {run.buffer_capacity:,}"
        facts += [
            Fact("buffer occupancy", text, "mean_buffered_flits", held),
            Fact("stalls", stalls_text(run), "stalls", run.stalls),
        ]
    events = ", ".join(f"{value:,.0f} {name}" for name, value in counts(run.events))
    return [*facts, Fact("events", events, "events", run.events)]


def _requested(run: NocRun) -> float | None:
    """Returns the offered load without replies; in a closed loop or a batch, the measured one."""
    supply = run.traffic
    if run.load is None or isinstance(supply, Trace):
        return None
    if not any(load.outstanding or load.requests for load in every(supply)):
        return run.load
    names = class_names(supply)
    return sum(measured.offered for name, measured in zip(names, run.classes, strict=True)
               if not name.endswith("replies"))  # fmt: skip


def _busiest(run: NocRun) -> str:
    """Returns the channels with the highest utilisation, and the mean over all channels."""
    order = run.channels.sort("utilisation", descending=True, maintain_order=True)
    columns = order.select("kind", "source", "target", "utilisation")
    busy = [
        f"{channel(kind, source, target)} {format_share(share)}"
        for kind, source, target, share in columns.head(_SHOWN_CHANNELS).iter_rows()
    ]
    return f"{', '.join(busy)}; mean {format_share(fmean(order['utilisation']))}"


def _deadlock_facts(run: NocRun) -> list[Fact]:
    vcs = _waiting_vcs(run)
    heading = "each VC waits for the next, the last for the first:" if vcs else ""
    texts = [Fact("deadlock cycle", text) for text in vcs]
    return [Fact("deadlock cycle", heading, "deadlock_cycle", run.deadlock_cycle), *texts]


def _waiting_vcs(run: NocRun) -> list[str]:
    more = len(run.deadlock_cycle) - _SHOWN_VCS
    return [*run.deadlock_cycle[:_SHOWN_VCS], *([f"and {more} more"] if more > 0 else [])]


def _question(run: NocRun) -> str:
    name = run.network.topology.name
    traffic = "under this traffic"
    if run.load is not None:
        traffic = f"at an offered load of {number(run.load)} {RATE}"
    return f"Is {name} stable {traffic}, and what is its latency?"


def _answer(run: NocRun) -> list[str]:
    """Returns state, latency and the busiest link of a run in sentences."""
    lines = [sentence(state(run))]
    if run.ending == "deadlocked":
        return [*lines, sentence(f"measured: {_NOTHING}")]
    if run.is_stable:
        latency = cycles(run.latency, run.network.cycle_ps)
        lines.append(f"Mean latency {latency}, p99 latency {run.quantiles['99']:,} cycles.")
    top = run.channels.sort("utilisation", descending=True, maintain_order=True).row(0, named=True)
    where = channel(top["kind"], top["source"], top["target"])
    lines.append(f"Highest link utilisation: {format_share(top['utilisation'])}, {where}.")
    return lines


def _sections(
    run: NocRun, technology: Technologies | None, spent: tuple[EnergyReport, AreaReport] | None
) -> list[Section]:
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


def _waiting(run: NocRun) -> list[Section]:
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
    columns: list[Column[dict[str, Any]]] = [
        Column("channel", lambda row: channel(row["kind"], row["source"], row["target"])),
        Column("kind", lambda row: row["kind"]),
        Column("utilisation", lambda row: row["utilisation"], format_share),
        Column("flits", lambda row: row["flits"], count),
        Column("latency", lambda row: row["latency"], count, "cycles"),
        Column("cycles per flit", lambda row: row["cycles_per_flit"], "{:g}".format),
    ]
    order = run.channels.sort("utilisation", descending=True, maintain_order=True)
    rows = order.head(_MOST_LINKS).to_dicts()
    lead = (
        f"Link utilisation in the window; mean {format_share(fmean(order['utilisation']))}. The "
        f"table lists the {len(rows)} channels of {order.height:,} with the highest utilisation."
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
         (f"Flits in the buffers of all routers, sampled every {run.plan.sample:,} cycles. The "
         "count is steady in a stable network and grows in a saturated network.")),
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
