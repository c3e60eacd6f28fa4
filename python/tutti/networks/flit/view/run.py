"""What a flit-level run shows."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from tutti.networks.flit.capacity import capacity as ideal_capacity
from tutti.networks.flit.events import busiest_first
from tutti.topologies.coordinates import with_coordinates
from tutti.view.quantity import format_share, number, plural, sentence
from tutti.view.view import Data, Fact, View, facts_of, json_facts, results

from .quantities import (
    QUANTITIES,
    Part,
    by_class,
    capacity_text,
    cycles,
    rate_text,
    requested,
    state,
    with_class,
)
from .settings import settings_of
from .text import (
    channel,
    clocks,
    counts,
    describe_network,
    describe_traffic,
    mean_utilisation,
    power,
    slow_links,
    stalls_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tutti.energy.link_classes import Technologies
    from tutti.energy.technology import AreaReport, EnergyReport
    from tutti.networks.flit import NocRun
    from tutti.view.page import Section

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
        sections = partial(_page, run)
    else:
        spent = (run.energy(technology), run.area(technology)) if technology else None
        facts += _facts(run)
        data += _located(run)
        if spent and technology:
            facts += energy_facts(*spent, run.window * run.network.cycle_ps)
            data += energy_data(*spent)
            below = [spent[0].table()]
        below = [*([by_class(parts)] if len(parts) > 1 else []), *below]
        sections = partial(_page, run, technology, spent)
    return View(
        kind="network",
        kicker=KICKER,
        title=title,
        question=_question(run),
        answer=_answer(run),
        remarks=remarks,
        headline=Fact("network", describe_network(run.network)),
        inputs=_inputs(run),
        facts=[*facts, *json_facts(settings=partial(settings_of, run))],
        data=data,
        below=below,
        sections=sections,
        conventions=CONVENTIONS,
    )


def _page(
    run: NocRun,
    technology: Technologies | None = None,
    spent: tuple[EnergyReport, AreaReport] | None = None,
) -> list[Section]:
    """Returns the sections of the page, whose charts only a page imports."""
    from .sections import sections, waiting

    return waiting(run) if run.ending == "deadlocked" else sections(run, technology, spent)


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
    if run.makespan is not None and run.plan.warmup + run.window == run.makespan + 1:
        return f"{plural(run.window, 'cycle')}, until the last packet arrived"
    return f"{plural(run.window, 'cycle')} after {plural(run.plan.warmup, 'cycle')} of warm-up"


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
        Fact("simulated", plural(run.cycles, "cycle")),
        Fact("seed", str(run.network.seed)),
        *([Fact("clocks", clocks(run.network))] if run.network.clocks else []),
        *([Fact("slow channels", slow)] if slow else []),
    ]


def _facts(run: NocRun) -> list[Fact]:
    facts = [Fact("busiest", _busiest(run))]
    ideal = ideal_capacity(run.network, run.traffic)
    if ideal:
        text = capacity_text(ideal, requested(run))
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


def _busiest(run: NocRun) -> str:
    """Returns the channels with the highest utilisation, and the mean over all channels."""
    busy = [
        f"{channel(*sent[:3])} {format_share(sent.utilisation)}"
        for sent in busiest_first(run.sent)[:_SHOWN_CHANNELS]
    ]
    return f"{', '.join(busy)}; mean {format_share(mean_utilisation(run))}"


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
        traffic = f"at an offered load of {rate_text(number(run.load))}"
    return f"Is {name} stable {traffic}, and what is its latency?"


def _answer(run: NocRun) -> list[str]:
    """Returns state, latency and the busiest link of a run in sentences."""
    lines = [sentence(state(run))]
    if run.ending == "deadlocked":
        return [*lines, sentence(f"measured: {_NOTHING}")]
    if run.is_stable:
        latency = cycles(run.latency, run.network.cycle_ps)
        lines.append(f"Mean latency {latency}, p99 latency {plural(run.quantiles['99'], 'cycle')}.")
    top = busiest_first(run.sent)[0]
    where = channel(top.kind, top.source, top.target)
    lines.append(f"Highest link utilisation: {format_share(top.utilisation)}, {where}.")
    return lines
