"""Report pages of flit-level network runs: one run, and latency against load."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.view.charts import Axis, Curve, LoadChart, draw_loads
from tutti.view.errors import ReportError
from tutti.view.page import Page, Section, captioned
from tutti.view.palette import styles
from tutti.view.quantity import count, estimate, format_share, mean, number, sentence, three
from tutti.view.tables import Column, ReportTable

from . import charts as noc_charts
from . import text as words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.energy.technology import Interval, Technology
    from tutti.networks.flit import Measured, NocRun, Saturation

_MOST_LINKS = 40
"""Rows of the link table; channels.parquet has all channels."""
_KICKER = "flit-level network simulation"
_ACCEPTED = "accepted throughput"
LOAD = Axis("offered load", words.RATE, zero=True)
_UNITS = (
    "Latencies in cycles; offered load and accepted throughput in flits per node and cycle. p99 "
    "is the 99th percentile."
)
SORTING = "Select a heading to sort the table."
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


def write_noc_report(
    path: str | Path,
    run: NocRun,
    title: str = "",
    *,
    technology: Technology | None = None,
    remarks: Sequence[str] = (),
) -> Path:
    """Writes the report of a run: latency, link utilisation, buffers, stalls, events.

    Args:
        path: The file to write; its folder must exist.
        run: The run.
        title: The title of the experiment, above the question of the page.
        technology: Energy per event. If None, the page has no section on energy.
        remarks: Sentences below the answer.

    Returns:
        The path written.

    Raises:
        EnergyError: `technology` is set, and a link has no length.
    """
    deadlocked = run.ending == "deadlocked"
    page = Page(
        kind="network",
        kicker=_KICKER,
        title=title,
        question=words.question(run),
        answer=words.answer(run),
        notes=[sentence(text) for text in remarks],
        facts=_facts(run),
        sections=[_waiting(run)] if deadlocked else _sections(run, technology),
        conventions=CONVENTIONS,
    )
    return page.write(path)


def _phases(run: NocRun) -> str:
    return f"{run.window:,} cycles after {run.plan.warmup:,} cycles of warm-up"


def _facts(run: NocRun) -> list[tuple[str, str]]:
    slow = words.slow_links(run)
    return [
        ("network", words.describe_network(run.network)),
        *(("traffic", line) for line in words.describe_traffic(run.traffic)),
        ("measured", "nothing" if run.ending == "deadlocked" else _phases(run)),
        ("simulated", f"{run.cycles:,} cycles"),
        ("seed", str(run.network.seed)),
        *([("slow channels", slow)] if slow else []),
    ]


def _sections(run: NocRun, technology: Technology | None) -> list[Section]:
    return [
        Section(
            "Latency and throughput",
            _UNITS,
            table=_latencies(run),
        ),
        _links(run),
        *(section for section in _buffers(run) if section.drawn),
        events_section("Events of the energy model in all routers and links, in the window.",
                       [(name, int(text.replace(",", ""))) for name, text in words.events(run)]),
        *([_energy(run, technology)] if technology else []),
    ]  # fmt: skip


def events_section(lead: str, counts: Sequence[tuple[str, int]]) -> Section:
    """Returns a section with a table of events."""
    columns: list[Column[tuple[str, int]]] = [
        Column("event", lambda row: row[0]),
        Column("count", lambda row: row[1], count),
    ]
    return Section("Events", lead, table=ReportTable(columns, counts))


def _waiting(run: NocRun) -> Section:
    """The deadlock cycle: each VC, and the VC that it waits for."""
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
    return Section("Deadlock cycle", lead, table=ReportTable(columns, rows))


def _latencies(run: NocRun) -> ReportTable[tuple[str, Measured]]:
    classes = run.classes if len(run.classes) > 1 else []
    rows = [("all", run.all), *((str(index), one) for index, one in enumerate(classes))]

    def stable(_: object) -> bool:
        return run.is_stable

    columns: list[Column[tuple[str, Measured]]] = [
        Column("traffic class", lambda row: row[0]),
        Column("offered load", lambda row: row[1].offered, number, exported=words.RATE),
        Column("accepted throughput", lambda row: row[1].accepted, estimate, exported=words.RATE),
        Column("lowest throughput of a node", lambda row: row[1].accepted_extremes[0], three,
               exported=words.RATE),
        Column("highest throughput of a node", lambda row: row[1].accepted_extremes[1], three,
               exported=words.RATE),
        Column("mean latency", lambda row: row[1].latency, estimate, when=stable,
               exported="cycles"),
        Column("minimum latency", lambda row: row[1].latency_extremes[0], count, when=stable,
               exported="cycles"),
        *(Column[Any](f"p{name} latency", partial(_quantile, name), count, when=stable,
                      exported="cycles")
          for name in run.quantiles),
        Column("maximum latency", lambda row: row[1].latency_extremes[1], count, when=stable,
               exported="cycles"),
        Column("network latency", lambda row: row[1].network_latency, estimate, when=stable,
               exported="cycles"),
        Column("hops", lambda row: row[1].hops, mean, when=stable),
        Column("packets", lambda row: row[1].packets, count),
    ]  # fmt: skip
    return ReportTable(columns, rows)


def _quantile(name: str, row: tuple[str, Measured]) -> int:
    return row[1].quantiles[name]


def _links(run: NocRun) -> Section:
    columns: list[Column[dict[str, Any]]] = [
        Column("channel", lambda row: words.channel(row["kind"], row["source"], row["target"])),
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
    heat = captioned(
        noc_charts.heat_map(run),
        "The topology, without scale: round vertices are NPUs, square ones are other routers. "
        "Colour: utilisation of a link in each direction, in per cent.",
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


def _energy(run: NocRun, technology: Technology) -> Section:
    """Returns the section on the energy of the window and the area of the hardware.

    Raises:
        EnergyError: A link has no length.
    """
    energy, area = run.energy(technology), run.area(technology)
    spent = words.power(energy, run.window * run.network.cycle_ps)
    lead = (
        f"Mean power with router model {technology.router} and link model {technology.link}: "
        f"{spent}. Error bars span the low and the high bounds of the sources, taken as fully "
        "correlated."
    )

    columns: list[Column[_Spent]] = [
        Column("component", lambda row: words.spoken(row.name)),
        Column("dynamic", lambda row: row.dynamic.nominal * 1e9, _four, "nJ"),
        Column("leakage", lambda row: row.leakage.nominal * 1e9, _four, "nJ"),
        Column("low bound", lambda row: row.dynamic.plus(row.leakage).low * 1e9, _four, "nJ"),
        Column("high bound", lambda row: row.dynamic.plus(row.leakage).high * 1e9, _four, "nJ"),
        Column("area", lambda row: row.um2.nominal / 1e6, _four, "mm2"),
        Column("area low bound", lambda row: row.um2.low / 1e6, _four, "mm2"),
        Column("area high bound", lambda row: row.um2.high / 1e6, _four, "mm2"),
    ]
    rows = [
        _Spent(name, energy.dynamic_by_component[name], energy.leakage_by_component[name],
               area.um2_by_component[name])
        for name in energy.dynamic_by_component
    ]  # fmt: skip
    table = ReportTable(
        columns, [*rows, _Spent("total", energy.dynamic, energy.leakage, area.total_um2)]
    )
    chart = captioned(
        noc_charts.energy_bars(energy),
        "Horizontal: component. Vertical: energy of the window in nJ, dynamic and leakage.",
        "the highest bars, and error bars that exceed the differences between components.",
    )
    return Section("Energy and area", lead, {"energy": chart}, table)


class _Spent(NamedTuple):
    """Energy and area of a component."""

    name: str
    dynamic: Interval
    leakage: Interval
    um2: Interval


def _four(value: float) -> str:
    return f"{value:,.4g}"


def write_load_report(
    path: str | Path,
    runs: Sequence[NocRun],
    found: Saturation | None = None,
    title: str = "",
    *,
    remarks: Sequence[str] = (),
) -> Path:
    """Writes the report of latency against load.

    Args:
        path: The file to write; its folder must exist.
        runs: Runs of one network and traffic, at one or more loads.
        found: The result of the saturation search.
        title: The title of the experiment, above the question of the page.
        remarks: Sentences below the answer.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every, key=lambda load: load or 0.0)]
    first = ordered[0]
    page = Page(
        kind="network_load", kicker=_KICKER, title=title,
        question=f"At which load does {first.network.topology.name} saturate?",
        answer=words.load_answer(ordered, found),
        notes=[sentence(text) for text in remarks],
        facts=[
            ("network", words.describe_network(first.network)),
            *(("traffic at the lowest load", one) for one in words.describe_traffic(first.traffic)),
            ("measured", _phases(first)),
        ],
        sections=_load_sections(ordered, found),
        conventions=CONVENTIONS,
    )  # fmt: skip
    return page.write(path)


def _load_sections(runs: Sequence[NocRun], found: Saturation | None) -> list[Section]:
    marks = {"latency": found, _ACCEPTED: found} if found else {}
    quantities = {"latency": "latency", "network latency": "network_latency"}
    latency = _chart(dict.fromkeys(quantities, runs), quantities, marks)
    throughput = _chart({_ACCEPTED: runs}, {_ACCEPTED: "accepted"}, marks)
    every = Section("All runs", f"{_UNITS} {SORTING}", table=loads_table(runs))
    return [*load_sections("network", latency, throughput), every]


def load_sections(what: str, latency: LoadChart, throughput: LoadChart) -> list[Section]:
    """Returns the sections on latency and throughput against load.

    Args:
        what: The simulated object, such as `network`.
        latency: Latency against load.
        throughput: Accepted throughput against load.
    """
    lead = (
        "Error bars are 95 % confidence intervals. The curve ends at the last stable load of the "
        f"{what}."
    )
    if latency.reference:
        lead += " Dashed: the latency lower bound, up to the load that saturates a link or port."
    return [
        Section("Latency against offered load", lead, {"latency": latency.captioned(
            "the load at which latency rises steeply, and the latency at low load."
        )}),
        Section("Throughput against offered load", f"Accepted throughput of the {what}.",
                {"throughput": throughput.captioned(
                    "the load at which the curve leaves the diagonal: the network saturates.", 380
                )}),
    ]  # fmt: skip


def loads_table(runs: Sequence[NocRun]) -> ReportTable[NocRun]:
    """Returns a table with a row per load, for a page or the terminal."""

    def moved(run: NocRun) -> bool:
        return run.ending != "deadlocked"

    def stable(run: NocRun) -> bool:
        return run.is_stable

    columns: list[Column[NocRun]] = [
        Column("offered load", lambda run: run.load, number, short="load", exported=words.RATE),
        Column("state", lambda run: run.ending),
        Column("accepted throughput", lambda run: run.accepted, estimate, when=moved,
               short="accepted", exported=words.RATE),
        Column("mean latency", lambda run: run.latency, estimate, when=stable, short="latency",
               exported="cycles"),
        Column("p50 latency", lambda run: run.quantiles["50"], count, when=stable, short="p50",
               exported="cycles"),
        Column("p99 latency", lambda run: run.quantiles["99"], count, when=stable, short="p99",
               exported="cycles"),
        Column("network latency", lambda run: run.network_latency, estimate, when=stable,
               terminal=mean, exported="cycles"),
        Column("hops", lambda run: run.hops, mean, when=stable, terminal=three),
        Column("packets", lambda run: run.all.packets, count, terminal=False),
    ]  # fmt: skip
    return ReportTable(columns, runs)


def plot_latency(
    path: str | Path,
    lines: Mapping[str, Sequence[NocRun]],
    saturations: Mapping[str, Saturation] | None = None,
) -> Path:
    """Draws latency and accepted throughput against load, side by side.

    Bars are 95 % confidence intervals. A latency curve ends at the last stable load. A dotted line
    marks the saturation load, if it was searched.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        lines: The runs of each network at several loads, by network name.
        saturations: The saturation load of each network, by network name.

    Returns:
        The path written.

    Raises:
        ReportError: No run has a known load.
    """
    by_name = {
        name: sorted((run for run in runs if run.load is not None), key=lambda run: run.load or 0)
        for name, runs in lines.items()
    }
    if not any(by_name.values()):
        raise ReportError("no run has a load to draw", kind="frame")
    shown = [
        _chart(by_name, dict.fromkeys(by_name, one), saturations or {})
        for one in ("latency", "accepted")
    ]
    return draw_loads(path, shown)


def _chart(
    lines: Mapping[str, Sequence[NocRun]],
    quantities: Mapping[str, str],
    found: Mapping[str, Saturation],
) -> LoadChart:
    """Returns quantities against load, one curve per line; latencies at stable loads only."""
    chosen = styles(lines)
    most = max((run.load or 0.0 for runs in lines.values() for run in runs), default=1.0)
    accepted = "accepted" in quantities.values()
    unit = words.RATE if accepted else "cycles"
    curves = []
    for name, runs in lines.items():
        shown = [run for run in runs if accepted or run.is_stable]
        points = [(run.load or 0.0, getattr(run, quantities[name])) for run in shown]
        end = found[name].load if name in found and found[name].below is not None else None
        curves.append(Curve(name, points, chosen[name], unit, end, f"stable up to {number(end)}"))
    y = Axis(_ACCEPTED if accepted else "mean latency", unit, zero=True)
    reference = ("offered load", [0.0, most], [0.0, most]) if accepted else None
    return LoadChart(curves, LOAD, y, reference, most=most)
