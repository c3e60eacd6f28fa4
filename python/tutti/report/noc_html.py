"""The HTML reports of a network: of one run, and of latency against load.

Like the report of a comparison, each is one file that opens from disk without a network, and the
same input gives the same bytes.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from . import noc_energy, noc_figures, noc_words
from .noc_words import number
from .page import write_page
from .quantity import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import plotly.graph_objects as go

    from tutti.energy import Technology
    from tutti.noc import Measured, NocRun, Saturation

_MOST_LINKS = 40
"""Rows of the table of links; channels.parquet has all."""

CONVENTIONS = (
    "Times are in clock cycles, rates in flits per node and cycle. Latency is from a packet's "
    "creation to its last flit's arrival, of the packets created in the measured window; what is "
    "accepted is what arrived in it. ± is the half width of the 95 % confidence interval by batch "
    "means. A network is stable if all of these packets arrived and not more was offered than "
    "accepted; elsewhere there is no latency to be told. Events are counted in the window."
)

Table = dict[str, Any]


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
        technology: what events cost; without it there is no section on energy.
        remarks: what a reader should know besides, a sentence each.

    Returns:
        The path written.

    Raises:
        EnergyError: a link has no length, and energy is asked for.
    """
    charts: dict[str, go.Figure] = {}
    if run.ending == "deadlocked":
        sections = [_waiting(run)]
    else:
        sections = [
            {"heading": "Latency and throughput", "lead": "In cycles.", "table": _latencies(run)},
            *_links(run, charts),
            *_buffers(run, charts),
            _events(run),
            *(noc_energy.sections(run, technology, charts) if technology else ()),
        ]
    facts = [("network", noc_words.describe_network(run.network))]
    facts += [("traffic", line) for line in noc_words.describe_traffic(run.traffic)]
    measured = f"{run.window:,} cycles after {run.plan.warmup:,}"
    facts += [
        ("measured", "nothing" if run.ending == "deadlocked" else measured),
        ("run", f"{run.cycles:,} cycles"),
        ("seed", str(run.network.seed)),
    ]
    if slow := noc_words.slow_links(run):
        facts.append(("slow channels", slow))
    heading = title or f"{run.network.topology.name} under load"
    said = [noc_words.ending(run)]
    if run.ending == "deadlocked":
        said.append(noc_words.NOTHING_MEASURED)
    answer = [_sentence(text) for text in (*said, *remarks)]
    return _write(path, title=heading, answer=answer, facts=facts, sections=sections, charts=charts)


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
        found: where it saturates, if that was searched.
        title: the question; by default it is made from the network.
        remarks: what a reader should know besides, a sentence each.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every, key=lambda load: load or 0.0)]
    first = ordered[0]
    charts = {
        "latency": noc_figures.latency_curve(ordered, found),
        "throughput": noc_figures.throughput_curve(ordered, found),
    }
    sections: list[dict[str, Any]] = [
        {
            "heading": "Latency against load",
            "lead": "Bars are 95 % confidence intervals; the curve ends where the network is "
            "stable last.",
            "chart": "latency",
        },
        {
            "heading": "Throughput against load",
            "lead": "What the network accepts of what it is offered.",
            "chart": "throughput",
        },
        {"heading": "Every run", "lead": "A heading sorts.", "table": _every(ordered)},
    ]
    answer = [_sentence(noc_words.saturation(found))] if found else []
    stable = [run for run in ordered if run.is_stable]
    if stable:
        low = stable[0]
        at = f"At {number(low.load)} flits per node and cycle a packet takes "
        answer.append(at + noc_words.cycles(low.latency, low.network.cycle_ps) + ".")
    answer += [_sentence(text) for text in remarks]
    facts = [("network", noc_words.describe_network(first.network))]
    traffic = noc_words.describe_traffic(first.traffic)
    facts += [("traffic at the lowest load", line) for line in traffic]
    facts.append(("measured", f"{first.window:,} cycles after {first.plan.warmup:,}"))
    heading = title or f"{first.network.topology.name}: latency under load"
    return _write(path, title=heading, answer=answer, facts=facts, sections=sections, charts=charts)


def _write(path: str | Path, **shown: Any) -> Path:  # noqa: ANN401 - as write_page has them
    kicker = "networks of routers, flit by flit"
    return write_page(path, kicker=kicker, conventions=CONVENTIONS, **shown)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _waiting(run: NocRun) -> dict[str, Any]:
    """Who waits on whom where nothing moves any more."""
    after = [*run.circle[1:], *run.circle[:1]]
    rows = [[(a, a), (b, b)] for a, b in zip(run.circle, after, strict=True)]
    return {
        "heading": "Who waits on whom",
        "lead": "A VC named by its channel, with what the first flit in it is waiting for, and the "
        "VC that has it; the last one waits on the first.",
        "table": {"columns": [("VC", "text"), ("waits on", "text")], "rows": rows},
    }


def _latencies(run: NocRun) -> Table:
    names = ["all", *(str(index) for index in range(len(run.classes)))]
    found = [run.all, *run.classes] if len(run.classes) > 1 else [run.all]
    columns = [
        ("class", "text"),
        ("offered", "number"),
        ("accepted", "number"),
        ("of a node", "number"),
        ("mean latency", "number"),
        ("least", "number"),
        *((f"{name} %", "number") for name in run.quantiles),
        ("most", "number"),
        ("in the network", "number"),
        ("routers", "number"),
        ("packets", "number"),
    ]
    rows = [
        _latency(name, one, is_stable=run.is_stable)
        for name, one in zip(names, found, strict=False)
    ]
    return {"columns": columns, "rows": rows}


def _latency(name: str, one: Measured, *, is_stable: bool) -> list[tuple[object, str]]:
    least, most = one.accepted_extremes
    times = [
        (one.latency.mean, noc_words.estimate(one.latency)),
        *((value, f"{value:,}") for value in (one.latency_extremes[0], *one.quantiles.values())),
        (one.latency_extremes[1], f"{one.latency_extremes[1]:,}"),
        (one.network_latency.mean, noc_words.estimate(one.network_latency)),
        (one.hops.mean, number(one.hops.mean)),
    ]
    if not is_stable:
        times = [(0, "-") for _ in times]
    return [
        (name, name),
        (one.offered, number(one.offered)),
        (one.accepted.mean, noc_words.estimate(one.accepted)),
        (least, f"{number(least, 3)} to {number(most, 3)}"),
        *times,
        (one.packets, f"{one.packets:,}"),
    ]


def _links(run: NocRun, charts: dict[str, go.Figure]) -> list[dict[str, Any]]:
    chart = noc_figures.heat_map(run)
    if chart is not None:
        charts["links"] = chart
    order = run.channels.sort("utilisation", descending=True, maintain_order=True)
    rows = []
    for row in order.head(_MOST_LINKS).iter_rows(named=True):
        place = noc_words.channel(row["kind"], row["source"], row["target"])
        rows.append(
            [
                (place, place),
                (row["kind"], row["kind"]),
                (row["utilisation"], format_share(row["utilisation"])),
                (row["flits"], f"{row['flits']:,}"),
                (row["latency"], f"{row['latency']:,}"),
                (row["cycles_per_flit"], f"{row['cycles_per_flit']:g}"),
            ]
        )
    columns = [
        ("channel", "text"),
        ("kind", "text"),
        ("utilisation", "number"),
        ("flits", "number"),
        ("latency", "number"),
        ("cycles per flit", "number"),
    ]
    mean = fmean(run.channels["utilisation"])
    lead = (
        f"How busy each channel was in the window; {format_share(mean)} on average. "
        f"The busiest {min(_MOST_LINKS, order.height)} of {order.height:,} channels are listed."
    )
    return [
        {
            "heading": "Links",
            "lead": lead,
            "chart": "links" if chart is not None else None,
            "table": {"columns": columns, "rows": rows},
        }
    ]


def _buffers(run: NocRun, charts: dict[str, go.Figure]) -> list[dict[str, Any]]:
    wanted = (
        (
            "buffered",
            "Flits in buffers over time",
            (
                f"In all routers, looked at every {run.plan.sample:,} cycles of the window. Steady "
                "in a stable network, growing up to a limit in a saturated one."
            ),
            noc_figures.buffered(run),
        ),
        (
            "over-time",
            "VCs over time",
            "Flits in the buffers of all VCs of a number, at each look.",
            noc_figures.over_time(run),
        ),
        (
            "fullest",
            "The fullest VCs over time",
            (
                f"Flits in the buffer of each VC, of {run.network.router.buffer} that fit, at the "
                "input ports that held most; NocRun.vcs_over_time has all."
            ),
            noc_figures.fullest(run),
        ),
        (
            "vcs",
            "Buffers by VC",
            "Mean flits in the buffers of each VC, over all input ports and in the fullest.",
            noc_figures.by_vc(run),
        ),
        (
            "stalls",
            "Why flits stood",
            (
                "What the first flit of each VC was waiting for when buffers were looked at. "
                "Asking for the switch takes every flit a cycle."
            ),
            noc_figures.stalled(run),
        ),
    )
    sections = []
    for name, heading, lead, chart in wanted:
        if chart is not None:
            charts[name] = chart
            sections.append({"heading": heading, "lead": lead, "chart": name})
    return sections


def _events(run: NocRun) -> dict[str, Any]:
    rows = [[(name, name), (text.replace(",", ""), text)] for name, text in noc_words.events(run)]
    return {
        "heading": "Events",
        "lead": "In the window, of all routers and links: what energy is made of.",
        "table": {"columns": [("event", "text"), ("count", "number")], "rows": rows},
    }


def _every(runs: Sequence[NocRun]) -> Table:
    columns = [
        ("load", "number"),
        ("ending", "text"),
        ("accepted", "number"),
        ("mean latency", "number"),
        ("50 %", "number"),
        ("99 %", "number"),
        ("in the network", "number"),
        ("routers", "number"),
        ("packets", "number"),
    ]
    rows = []
    for run in runs:
        times = [
            (run.latency.mean, noc_words.estimate(run.latency)),
            (run.quantiles["50"], f"{run.quantiles['50']:,}"),
            (run.quantiles["99"], f"{run.quantiles['99']:,}"),
            (run.network_latency.mean, noc_words.estimate(run.network_latency)),
            (run.hops.mean, number(run.hops.mean)),
        ]
        rows.append(
            [
                (run.load, number(run.load)),
                (run.ending, run.ending),
                (run.accepted.mean, noc_words.estimate(run.accepted)),
                *(times if run.is_stable else [(0, "-") for _ in times]),
                (run.all.packets, f"{run.all.packets:,}"),
            ]
        )
    return {"columns": columns, "rows": rows}
