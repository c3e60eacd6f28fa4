"""Descriptions of flit-level networks, traffic, channels and events, for all renderings."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from tutti.networks.flit.network import every
from tutti.networks.flit.settings import Trace
from tutti.view.quantity import counted, format_power, format_share, plural

from .quantities import rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.energy.technology import EnergyReport
    from tutti.networks.flit import Events, Network, NocRun
    from tutti.networks.flit.network import Supply
    from tutti.networks.flit.settings import Traffic

_LONGEST_PATTERN = 60
"""Characters of a traffic pattern that are shown."""


def describe_network(network: Network) -> str:
    """Returns topology, routing and router parameters on one line."""
    router = network.router
    buffers = f"{plural(router.vcs, 'VC')} of {plural(router.buffer, 'flit')}{_smaller(network)}"
    return (
        f"{network.topology.name}, {network.routing_name}, {buffers}, flit size {network.flit}, "
        f"cycle time {network.cycle}{_slower(network)}"
    )


def _slower(network: Network) -> str:
    """Returns the clocks of routers that differ."""
    texts = [f"{clock.period} at {', '.join(clock.at)}" for clock in network.clocks]
    return f" ({'; '.join(texts)})" if texts else ""


def clocks(network: Network) -> str:
    """Returns the unit of times and loads of a network with several clocks."""
    waits = [clock.synchroniser for clock in network.clocks]
    least, most = min(waits), max(waits)
    spread = str(least) if least == most else f"{least} to {most}"
    return (
        f"cycles are those of the network, {network.cycle}: latencies and loads count them; "
        f"synchronisers take {counted(spread, 'cycle')} of the receiver"
    )


def _smaller(network: Network) -> str:
    """Returns the buffers of routers that differ."""
    texts = []
    for entry in network.routers:
        vcs, buffer = entry.vcs or network.router.vcs, entry.buffer or network.router.buffer
        each = entry.vcs_per_class
        count = plural(vcs, "VC") if each is None else f"{plural(each, 'VC')} per class"
        texts.append(f"{count} of {plural(buffer, 'flit')} at {', '.join(entry.at)}")
    return f" ({'; '.join(texts)})" if texts else ""


def describe_traffic(traffic: Supply) -> list[str]:
    """Returns one line per traffic class."""
    if isinstance(traffic, Trace):
        return ["trace"]
    lines = []
    for load in every(traffic):
        on = "" if load.vcs is None else f", VCs {load.vcs[0]} to {load.vcs[1]}"
        size, rate = counted(str(load.packet), "flit"), rate_text(f"{load.rate:g}")
        lines.append(f"{_shortened(load.pattern)}, {load.process}, {rate}, packet size {size}{on}")
        lines[-1] += "".join(_loop(load))
    return lines


def _loop(load: Traffic) -> Iterator[str]:
    """Yields the limits and replies of a class."""
    if load.outstanding:
        yield f", at most {load.outstanding:,} outstanding per node"
    if load.requests:
        yield f", {plural(load.requests, 'packet')} per node"
    if load.reply:
        on = f" on VCs {load.reply.vcs[0]} to {load.reply.vcs[1]}" if load.reply.vcs else ""
        later = f" after {plural(load.reply.delay, 'cycle')}" if load.reply.delay else ""
        yield f"; replies of {counted(str(load.reply.packet), 'flit')}{on}{later}"
    if load.queue:
        yield f"; injection queue `{load.queue}`"


def _shortened(pattern: str) -> str:
    """Returns a pattern without the end of a long list of nodes or weights."""
    return pattern if len(pattern) <= _LONGEST_PATTERN else f"{pattern[:_LONGEST_PATTERN]}..."


def slow_links(run: NocRun) -> str:
    """Returns the number of links that need several cycles per flit, or an empty text."""
    times = [sent.cycles_per_flit for sent in run.sent if sent.cycles_per_flit > 1]
    if not times:
        return ""
    least, most = f"{min(times):g}", f"{max(times):g}"
    spread = least if least == most else f"{least} to {most}"
    need = "needs" if len(times) == 1 else "need"
    return f"{len(times):,} of {len(run.sent):,} {need} {spread} cycles per flit"


def channel(kind: str, source: str, target: str) -> str:
    """Returns the ends of a channel; an NPU and its router may have the same name."""
    if source == target:
        return f"{source} to its router" if kind == "injection" else f"router of {target} to it"
    return f"{source} to {target}"


def mean_utilisation(run: NocRun) -> float:
    """Returns the mean utilisation over all channels."""
    return fmean(sent.utilisation for sent in run.sent)


def stalls(run: NocRun) -> list[tuple[str, float]]:
    """Returns each cause of stalls of head flits, and its share of the samples of busy VCs."""
    samples = run.stalls
    causes = (
        ("waiting for a credit", samples.no_credit),
        ("waiting for a VC", samples.no_vc),
        ("waiting for the switch", samples.switch),
        ("route computation", samples.routing),
    )
    return [(name, count / samples.busy if samples.busy else 0.0) for name, count in causes]


def stalls_text(run: NocRun) -> str:
    """Returns the causes of stalls on one line, without causes below 0.5 %."""
    if not run.stalls.busy:
        return "none: all sampled buffers were empty" if run.buffered else "not sampled"
    parts = [f"{format_share(share)} {cause}" for cause, share in stalls(run) if share >= 0.005]
    return ", ".join(parts)


def counts(events: Events) -> list[tuple[str, float]]:
    """Returns name and count of each kind of event that the energy model counts."""
    rows: list[tuple[str, float]] = [
        ("buffer writes", events.buffer_writes),
        ("buffer reads", events.buffer_reads),
        ("crossbar traversals", events.crossbar_traversals),
        ("VC grants", events.vc_grants),
        ("link traversals", events.link_flits),
    ]
    return rows if events.link_flit_mm is None else [*rows, ("flit-mm", events.link_flit_mm)]


def power(energy: EnergyReport, window_ps: int) -> str:
    """Returns the mean power of a window: total, dynamic and leakage, with the range."""
    seconds = window_ps * 1e-12
    dynamic, leakage, both = energy.dynamic, energy.leakage, energy.total
    joules = both.nominal, dynamic.nominal, leakage.nominal, both.low, both.high
    total, of_events, leaked, low, high = (format_power(each / seconds) for each in joules)
    return f"{total} ({of_events} dynamic, {leaked} leakage), range {low} to {high}"


def spoken(component: str) -> str:
    """Returns the name of a router component for display."""
    return component.replace("_", " ").replace("vc ", "VC ")
