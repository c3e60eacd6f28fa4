"""A network of routers and a run of it, in words and rows of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.noc.settings import Trace, Traffic

from .quantity import estimate, format_share, format_time, number, plural

if TYPE_CHECKING:
    from tutti.energy import EnergyReport
    from tutti.noc import Estimate, Events, Network, NocRun, Saturation
    from tutti.noc.network import Supply


def cycles(value: Estimate, cycle_ps: int) -> str:
    """A mean in cycles, and as a time."""
    if math.isnan(value.mean):
        return "no packet arrived"
    return f"{estimate(value)} cycles ({format_time(value.mean * cycle_ps)})"


def describe_network(network: Network) -> str:
    """Topology, routing and routers in a line."""
    router = network.router
    return (
        f"{network.topology.name}, {network.routing}, {plural(router.vcs, 'VC')} of "
        f"{plural(router.buffer, 'flit')}, flits of {network.flit}, cycles of {network.cycle}"
    )


def describe_traffic(traffic: Supply) -> list[str]:
    """A line per class."""
    if isinstance(traffic, Trace):
        return ["a trace"]
    loads = (traffic,) if isinstance(traffic, Traffic) else traffic
    lines = []
    for load in loads:
        on = "" if load.vcs is None else f", VCs {load.vcs[0]} to {load.vcs[1]}"
        size = f"{load.packet} flits" if str(load.packet) != "1" else "1 flit"
        lines.append(
            f"{load.pattern}, {load.process}, {load.rate:g} flits per node and cycle in packets of "
            f"{size}{on}"
        )
    return lines


def ending(run: NocRun) -> str:
    """How a run ended, as a statement."""
    if run.ending == "deadlocked":
        return (
            f"deadlocked: from cycle {max(run.cycles - run.plan.patience, 0):,} on, nothing moved, "
            "although packets were under way"
        )
    offered, accepted = number(run.offered), estimate(run.accepted)
    if run.ending == "saturated":
        return (
            f"saturated: of {offered} flits per node and cycle offered, {accepted} are accepted; "
            "queues grow, so there is no latency"
        )
    return f"stable: {accepted} flits per node and cycle accepted of {offered} offered"


NOTHING_MEASURED = "nothing was measured: what stands still has neither throughput nor latency"

_SHOWN_VCS = 8
"""VCs of a deadlock cycle that are named."""


def waiting(run: NocRun) -> list[str]:
    """Where it deadlocked: which VCs wait, each for the next and the last for the first."""
    more = len(run.deadlock_cycle) - _SHOWN_VCS
    return [*run.deadlock_cycle[:_SHOWN_VCS], *([f"and {more} more"] if more > 0 else [])]


def deadlock(run: NocRun) -> str:
    """How a deadlocked run ended, and what waits for what, in a sentence."""
    shown = waiting(run)
    if not shown:
        return ending(run)
    *most, last = shown
    held = f"{', '.join(most)} {last}" if len(run.deadlock_cycle) > _SHOWN_VCS else ", ".join(shown)
    return f"{ending(run)}; each waits for the next and the last for the first: {held}"


def slow_links(run: NocRun) -> str:
    """Links that take longer than a cycle for a flit, if there are any."""
    import polars as pl

    slow = run.channels.filter(pl.col("cycles_per_flit") > 1)
    if slow.is_empty():
        return ""
    times = slow["cycles_per_flit"].to_list()
    least, most = f"{min(times):g}", f"{max(times):g}"
    spread = least if least == most else f"{least} to {most}"
    return f"{slow.height:,} of {run.channels.height:,} take {spread} cycles for a flit"


def channel(kind: str, source: str, target: str) -> str:
    """From where to where; an NPU may have a router of its own, of the same name."""
    if source == target:
        return f"{source} to its router" if kind == "injection" else f"router of {target} to it"
    return f"{source} to {target}"


def stalls(run: NocRun) -> list[tuple[str, float]]:
    """Why flits that were first in their VC stood: the cause, and its share of all looks."""
    found = run.stalls
    causes = (
        ("waiting for a credit", found.no_credit),
        ("waiting for a VC", found.no_vc),
        ("asking for the switch", found.switch),
        ("being routed", found.routing),
    )
    return [(name, count / found.busy if found.busy else 0.0) for name, count in causes]


def stalls_text(run: NocRun) -> str:
    """The same in a line, without causes that are nearly none."""
    if not run.stalls.busy:
        return "no flit was seen in a buffer" if run.buffered else "not looked at"
    parts = [f"{format_share(share)} {cause}" for cause, share in stalls(run) if share >= 0.005]
    return ", ".join(parts)


def events(run: NocRun) -> list[tuple[str, str]]:
    """Counts of the window, for energy."""
    return counts(run.events)


def counts(found: Events) -> list[tuple[str, str]]:
    """The name of each kind of event, and how often it happened."""
    rows = [
        ("buffer writes", f"{found.buffer_writes:,}"),
        ("buffer reads", f"{found.buffer_reads:,}"),
        ("crossbar traversals", f"{found.crossbar_traversals:,}"),
        ("VC grants", f"{found.vc_grants:,}"),
        ("flits on links", f"{found.link_flits:,}"),
    ]
    if found.link_flit_mm is not None:
        rows.append(("flits x mm", f"{found.link_flit_mm:,.0f}"))
    return rows


def power(energy: EnergyReport, window_ps: int) -> str:
    """The mean power of a window, dynamic and leakage apart, between the bounds of its sources."""
    seconds = window_ps * 1e-12
    dynamic, leakage, both = energy.dynamic, energy.leakage, energy.total
    low, high = _watts(both.low / seconds), _watts(both.high / seconds)
    return (
        f"{_watts(both.nominal / seconds)} ({_watts(dynamic.nominal / seconds)} dynamic, "
        f"{_watts(leakage.nominal / seconds)} leakage), from {low} to {high}"
    )


def _watts(watts: float) -> str:
    """Three digits in a fitting unit."""
    for scale, unit in ((1.0, "W"), (1e-3, "mW"), (1e-6, "uW")):
        if watts >= scale:
            return f"{watts / scale:.3g} {unit}"
    return f"{watts / 1e-9:.3g} nW"


def saturation(found: Saturation) -> str:
    """Where a network saturates, in a sentence."""
    what = "deadlocks" if found.deadlocks else "saturates"
    if found.accepted is None:
        return f"it is stable at no load: it {what} at {number(found.below)} already"
    at = f"stable up to {number(found.load)} flits per node and cycle, of which it accepts "
    at += estimate(found.accepted)
    return at if found.below is None else f"{at}; it {what} at {number(found.below)}"


def spoken(component: str) -> str:
    """A component of a router as a name."""
    return component.replace("_", " ")
