"""Pages of a network: one run, and latency against load."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.errors import ReportError

from . import noc_charts
from . import noc_words as words
from .charts import Axis, Curve, LoadChart, draw_loads
from .page import Page, Section
from .palette import styles
from .quantity import count, estimate, format_share, mean, number, sentence, three
from .tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.energy import Interval, Technology
    from tutti.noc import Measured, NocRun, Saturation

_MOST_LINKS = 40
"""Rows of the table of links; channels.parquet has all."""
_KICKER = "networks of routers, flit by flit"
_RATE = "flits per node and cycle"
LOAD = Axis("load", _RATE, zero=True)
CONVENTIONS = (
    "Times are in clock cycles, rates in flits per node and cycle. Latency is from a packet's "
    "creation to its last flit's arrival, of the packets created in the measured window; what is "
    "accepted is what arrived in it. ± is the 95 % CI half-width by batch means. A network is "
    "stable if all of these packets arrived and not more was offered than accepted; elsewhere "
    "latency is undefined. Events are counted in the window."
)


def write_noc_report(
    path: str | Path,
    run: NocRun,
    title: str = "",
    *,
    technology: Technology | None = None,
    remarks: Sequence[str] = (),
) -> Path:
    """Writes the report of a run: latency, links on the topology, buffers, stalls, events.

    Args:
        path: where to; the folder must exist.
        run: the run.
        title: the question; by default it is made from the network.
        technology: the cost of events; without it there is no section on energy.
        remarks: further sentences for the answer.

    Returns:
        The path written.

    Raises:
        EnergyError: a link has no length, and energy is asked for.
    """
    deadlocked = run.ending == "deadlocked"
    said = [words.ending(run), *([words.NOTHING_MEASURED] if deadlocked else []), *remarks]
    page = Page(
        kicker=_KICKER,
        title=title or f"{run.network.topology.name} under load",
        answers=[("", [sentence(text) for text in said])],
        facts=_facts(run),
        sections=[_waiting(run)] if deadlocked else _sections(run, technology),
        conventions=CONVENTIONS,
    )
    return page.write(path)


def _facts(run: NocRun) -> list[tuple[str, str]]:
    measured = f"{run.window:,} cycles after {run.plan.warmup:,}"
    slow = words.slow_links(run)
    return [
        ("network", words.describe_network(run.network)),
        *(("traffic", line) for line in words.describe_traffic(run.traffic)),
        ("measured", "nothing" if run.ending == "deadlocked" else measured),
        ("run", f"{run.cycles:,} cycles"),
        ("seed", str(run.network.seed)),
        *([("slow channels", slow)] if slow else []),
    ]


def _sections(run: NocRun, technology: Technology | None) -> list[Section]:
    return [
        Section("Latency and throughput", "In cycles.", table=_latencies(run)),
        _links(run),
        *(section for section in _buffers(run) if section.drawn),
        events_section("In the window, of all routers and links: the events that cost energy.",
                       [(name, int(text.replace(",", ""))) for name, text in words.events(run)]),
        *([_energy(run, technology)] if technology else []),
    ]  # fmt: skip


def events_section(lead: str, counts: Sequence[tuple[str, int]]) -> Section:
    """A section with a table of events."""
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
        Column("class", lambda row: row[0]),
        Column("offered", lambda row: row[1].offered, number),
        Column("accepted", lambda row: row[1].accepted, estimate),
        Column("of a node", lambda row: row[1].accepted_extremes,
               lambda ends: f"{number(ends[0], 3)} to {number(ends[1], 3)}"),
        Column("mean latency", lambda row: row[1].latency, estimate, when=stable),
        Column("least", lambda row: row[1].latency_extremes[0], count, when=stable),
        *(Column[Any](f"{name} %", partial(_quantile, name), count, when=stable)
          for name in run.quantiles),
        Column("most", lambda row: row[1].latency_extremes[1], count, when=stable),
        Column("in the network", lambda row: row[1].network_latency, estimate, when=stable),
        Column("routers", lambda row: row[1].hops, mean, when=stable),
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
        Column("latency", lambda row: row["latency"], count),
        Column("cycles per flit", lambda row: row["cycles_per_flit"], "{:g}".format),
    ]
    order = run.channels.sort("utilisation", descending=True, maintain_order=True)
    rows = order.head(_MOST_LINKS).to_dicts()
    lead = (
        f"Utilisation of each channel in the window; {format_share(fmean(order['utilisation']))} "
        f"on average. The busiest {len(rows)} of {order.height:,} channels are listed."
    )
    return Section("Links", lead, {"links": noc_charts.heat_map(run)}, ReportTable(columns, rows))


def _buffers(run: NocRun) -> list[Section]:
    return [
        Section(
            "Flits in buffers over time",
            f"In all routers, sampled every {run.plan.sample:,} cycles of the window. Steady in a "
            "stable network, growing up to a limit in a saturated one.",
            {"buffered": noc_charts.buffered(run)},
        ),
        Section(
            "VCs over time",
            "Flits in the buffers of all VCs of a number, at each sample.",
            {"over-time": noc_charts.over_time(run)},
        ),
        Section(
            "The fullest VCs over time",
            f"Flits in the buffer of each VC, of {run.network.router.buffer} that fit, at the "
            "input ports that held most; NocRun.vcs_over_time has all.",
            {"fullest": noc_charts.fullest(run)},
        ),
        Section(
            "Buffers by VC",
            "Mean flits in the buffers of each VC, over all input ports and in the fullest.",
            {"vcs": noc_charts.by_vc(run)},
        ),
        Section(
            "Causes of stalls",
            "What the first flit of each VC was waiting for when buffers were sampled. Requesting "
            "the switch takes every flit a cycle.",
            {"stalls": noc_charts.stalled(run)},
        ),
    ]


def _energy(run: NocRun, technology: Technology) -> Section:
    """What the window cost and what the hardware takes up.

    Raises:
        EnergyError: a link has no length.
    """
    energy, area = run.energy(technology), run.area(technology)
    spent = words.power(energy, run.window * run.network.cycle_ps)
    lead = (
        f"The cost of the window with routers as in {technology.router} and links as in "
        f"{technology.link}: {spent}. Bars reach from one bound of the sources to the other, as if "
        "all erred alike."
    )

    columns: list[Column[_Spent]] = [
        Column("component", lambda row: words.spoken(row.name)),
        Column("dynamic", lambda row: row.dynamic.nominal * 1e9, _four, "nJ"),
        Column("leakage", lambda row: row.leakage.nominal * 1e9, _four, "nJ"),
        Column("least", lambda row: row.dynamic.plus(row.leakage).low * 1e9, _four, "nJ"),
        Column("most", lambda row: row.dynamic.plus(row.leakage).high * 1e9, _four, "nJ"),
        Column("area", lambda row: row.um2.nominal / 1e6, _four, "mm2"),
        Column("least area", lambda row: row.um2.low / 1e6, _four, "mm2"),
        Column("most area", lambda row: row.um2.high / 1e6, _four, "mm2"),
    ]
    rows = [
        _Spent(name, energy.dynamic_by_component[name], energy.leakage_by_component[name],
               area.um2_by_component[name])
        for name in energy.dynamic_by_component
    ]  # fmt: skip
    table = ReportTable(
        columns, [*rows, _Spent("total", energy.dynamic, energy.leakage, area.total_um2)]
    )
    return Section("Energy and area", lead, {"energy": noc_charts.energy_bars(energy)}, table)


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
        path: where to; the folder must exist.
        runs: of one network and traffic, at one load or more.
        found: the saturation load, if it was searched.
        title: the question; by default it is made from the network.
        remarks: further sentences for the answer.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every, key=lambda load: load or 0.0)]
    first = ordered[0]
    answer = [sentence(words.saturation(found))] if found else []
    if stable := [run for run in ordered if run.is_stable]:
        at = f"At {number(stable[0].load)} {_RATE} a packet takes "
        answer.append(at + words.cycles(stable[0].latency, first.network.cycle_ps) + ".")
    page = Page(
        kicker=_KICKER,
        title=title or f"{first.network.topology.name}: latency under load",
        answers=[("", [*answer, *(sentence(text) for text in remarks)])],
        facts=[
            ("network", words.describe_network(first.network)),
            *(("traffic at the lowest load", one) for one in words.describe_traffic(first.traffic)),
            ("measured", f"{first.window:,} cycles after {first.plan.warmup:,}"),
        ],
        sections=_load_sections(ordered, found),
        conventions=CONVENTIONS,
    )
    return page.write(path)


def _load_sections(runs: Sequence[NocRun], found: Saturation | None) -> list[Section]:
    marks = {"latency": found, "accepted": found} if found else {}
    quantities = {"latency": "latency", "in the network alone": "network_latency"}
    latency = _chart(dict.fromkeys(quantities, runs), quantities, marks)
    throughput = _chart({"accepted": runs}, {"accepted": "accepted"}, marks)
    every = Section("Every run", "A heading sorts.", table=loads_table(runs))
    return [*load_sections("network", latency, throughput), every]


def load_sections(what: str, latency: LoadChart, throughput: LoadChart) -> list[Section]:
    """Latency and throughput against load.

    Args:
        what: what has the load, such as `network`.
        latency: its latency over load.
        throughput: what it accepts over load.
    """
    lead = (
        f"Bars are 95 % confidence intervals; the curve ends at the last stable load of the {what}."
    )
    if latency.reference:
        lead += " Dashed: every message in a cycle, until a link or port is always busy."
    return [
        Section("Latency against load", lead, {"latency": latency.figure()}),
        Section("Throughput against load", f"Accepted against offered load of the {what}.",
                {"throughput": throughput.figure(380)}),
    ]  # fmt: skip


def loads_table(runs: Sequence[NocRun]) -> ReportTable[NocRun]:
    """A row per load, for a page or for the terminal."""

    def moved(run: NocRun) -> bool:
        return run.ending != "deadlocked"

    def stable(run: NocRun) -> bool:
        return run.is_stable

    columns: list[Column[NocRun]] = [
        Column("load", lambda run: run.load, number),
        Column("ending", lambda run: run.ending),
        Column("accepted", lambda run: run.accepted, estimate, when=moved),
        Column("mean latency", lambda run: run.latency, estimate, when=stable),
        Column("50 %", lambda run: run.quantiles["50"], count, when=stable),
        Column("99 %", lambda run: run.quantiles["99"], count, when=stable),
        Column("in the network", lambda run: run.network_latency, estimate, when=stable,
               terminal=mean),
        Column("routers", lambda run: run.hops, mean, when=stable, terminal=three),
        Column("packets", lambda run: run.all.packets, count, terminal=False),
    ]  # fmt: skip
    return ReportTable(columns, runs)


def plot_latency(
    path: str | Path,
    lines: Mapping[str, Sequence[NocRun]],
    saturations: Mapping[str, Saturation] | None = None,
) -> Path:
    """Draws latency against load beside accepted throughput against load.

    Bars are 95 % confidence intervals. A line of latency ends at the last stable load; a dotted
    line marks saturation, where it was searched.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        lines: by name, the runs of a network at several loads.
        saturations: by the same names, where each saturates.

    Returns:
        The path written.

    Raises:
        ReportError: when there is no run at a known load.
    """
    by_name = {
        name: sorted((run for run in runs if run.load is not None), key=lambda run: run.load or 0)
        for name, runs in lines.items()
    }
    if not any(by_name.values()):
        raise ReportError("there are no runs to draw", kind="frame")
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
    """Quantities over load, a curve for each line; of latencies, at stable loads alone."""
    chosen = styles(lines)
    most = max((run.load or 0.0 for runs in lines.values() for run in runs), default=1.0)
    accepted = "accepted" in quantities.values()
    unit = _RATE if accepted else "cycles"
    curves = []
    for name, runs in lines.items():
        shown = [run for run in runs if accepted or run.is_stable]
        points = [(run.load or 0.0, getattr(run, quantities[name])) for run in shown]
        end = found[name].load if name in found and found[name].below is not None else None
        curves.append(Curve(name, points, chosen[name], unit, end, f"stable up to {number(end)}"))
    y = Axis("accepted" if accepted else "mean latency", unit, zero=True)
    reference = ("all that is offered", [0.0, most], [0.0, most]) if accepted else None
    return LoadChart(curves, LOAD, y, reference, most=most)
