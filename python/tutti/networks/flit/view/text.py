"""Text for the reports and terminal tables of flit-level network runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.networks.flit.settings import Trace, Traffic
from tutti.view.quantity import estimate, format_share, format_time, number, plural, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.energy.technology import EnergyReport
    from tutti.networks.flit import Estimate, Events, Network, NocRun, Saturation
    from tutti.networks.flit.network import Supply

RATE = "flits per node and cycle"


def cycles(value: Estimate, cycle_ps: int) -> str:
    """Returns a mean in cycles, and converted to a time."""
    if math.isnan(value.mean):
        return "no packet arrived"
    return f"{estimate(value)} cycles ({format_time(value.mean * cycle_ps)})"


def describe_network(network: Network) -> str:
    """Returns topology, routing and router parameters on one line."""
    router = network.router
    return (
        f"{network.topology.name}, {network.routing}, {plural(router.vcs, 'VC')} of "
        f"{plural(router.buffer, 'flit')}, flit size {network.flit}, cycle time {network.cycle}"
    )


def describe_traffic(traffic: Supply) -> list[str]:
    """Returns one line per traffic class."""
    if isinstance(traffic, Trace):
        return ["trace"]
    loads = (traffic,) if isinstance(traffic, Traffic) else traffic
    lines = []
    for load in loads:
        on = "" if load.vcs is None else f", VCs {load.vcs[0]} to {load.vcs[1]}"
        size = f"{load.packet} flits" if str(load.packet) != "1" else "1 flit"
        lines.append(
            f"{load.pattern}, {load.process}, {load.rate:g} flits per node and cycle, packet size "
            f"{size}{on}"
        )
    return lines


def ending(run: NocRun) -> str:
    """Returns the state in which a run ended, with the offered load and accepted throughput."""
    if run.ending == "deadlocked":
        return (
            "deadlocked: packets were in flight, but no flit moved after cycle "
            f"{max(run.cycles - run.plan.patience, 0):,}"
        )
    offered, accepted = number(run.offered), estimate(run.accepted)
    if run.ending == "saturated":
        return (
            f"saturated: offered load {offered}, accepted throughput {accepted} flits per node and "
            "cycle; queues grow without bound, so latency is undefined"
        )
    return (
        f"stable: offered load {offered}, accepted throughput {accepted} flits per node and cycle"
    )


NOTHING_MEASURED = "nothing, as throughput and latency are undefined in a deadlock"

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
    """Returns the number of links that need several cycles per flit, or an empty text."""
    import polars as pl

    slow = run.channels.filter(pl.col("cycles_per_flit") > 1)
    if slow.is_empty():
        return ""
    times = slow["cycles_per_flit"].to_list()
    least, most = f"{min(times):g}", f"{max(times):g}"
    spread = least if least == most else f"{least} to {most}"
    return f"{slow.height:,} of {run.channels.height:,} need {spread} cycles per flit"


def channel(kind: str, source: str, target: str) -> str:
    """Returns the ends of a channel; an NPU and its router may have the same name."""
    if source == target:
        return f"{source} to its router" if kind == "injection" else f"router of {target} to it"
    return f"{source} to {target}"


def stalls(run: NocRun) -> list[tuple[str, float]]:
    """Returns each cause of stalls of head flits, and its share of the samples of busy VCs."""
    found = run.stalls
    causes = (
        ("waiting for a credit", found.no_credit),
        ("waiting for a VC", found.no_vc),
        ("waiting for the switch", found.switch),
        ("route computation", found.routing),
    )
    return [(name, count / found.busy if found.busy else 0.0) for name, count in causes]


def stalls_text(run: NocRun) -> str:
    """Returns the causes of stalls on one line, without causes below 0.5 %."""
    if not run.stalls.busy:
        return "none: all sampled buffers were empty" if run.buffered else "not sampled"
    parts = [f"{format_share(share)} {cause}" for cause, share in stalls(run) if share >= 0.005]
    return ", ".join(parts)


def events(run: NocRun) -> list[tuple[str, str]]:
    """Returns the events of the window that the energy model counts."""
    return counts(run.events)


def counts(found: Events) -> list[tuple[str, str]]:
    """Returns the name and the count of each kind of event."""
    rows = [
        ("buffer writes", f"{found.buffer_writes:,}"),
        ("buffer reads", f"{found.buffer_reads:,}"),
        ("crossbar traversals", f"{found.crossbar_traversals:,}"),
        ("VC grants", f"{found.vc_grants:,}"),
        ("link traversals", f"{found.link_flits:,}"),
    ]
    if found.link_flit_mm is not None:
        rows.append(("flit-mm", f"{found.link_flit_mm:,.0f}"))
    return rows


def power(energy: EnergyReport, window_ps: int) -> str:
    """Returns the mean power of a window: total, dynamic and leakage, with the range."""
    seconds = window_ps * 1e-12
    dynamic, leakage, both = energy.dynamic, energy.leakage, energy.total
    low, high = _watts(both.low / seconds), _watts(both.high / seconds)
    return (
        f"{_watts(both.nominal / seconds)} ({_watts(dynamic.nominal / seconds)} dynamic, "
        f"{_watts(leakage.nominal / seconds)} leakage), range {low} to {high}"
    )


def _watts(watts: float) -> str:
    """Returns a power with three digits and an SI prefix."""
    for scale, unit in ((1.0, "W"), (1e-3, "mW"), (1e-6, "uW")):
        if watts >= scale:
            return f"{watts / scale:.3g} {unit}"
    return f"{watts / 1e-9:.3g} nW"


def saturation(found: Saturation) -> str:
    """Returns the highest stable load and the lowest unstable load."""
    state = "deadlocked" if found.deadlocks else "saturated"
    if found.accepted is None:
        return f"stable at no simulated load; {state} at {number(found.below)}"
    stable = (
        f"stable up to {number(found.load)} flits per node and cycle, accepted throughput "
        f"{estimate(found.accepted)}"
    )
    return stable if found.below is None else f"{stable}; {state} at {number(found.below)}"


def question(run: NocRun) -> str:
    """Returns the question that the report of a run answers."""
    name = run.network.topology.name
    if run.load is None:
        return f"Is {name} stable under this traffic, and what is its latency?"
    return (
        f"Is {name} stable at an offered load of {number(run.load)} flits per node and cycle, and "
        "what is its latency?"
    )


def answer(run: NocRun) -> list[str]:
    """Returns state, latency and the busiest link of a run in sentences."""
    lines = [sentence(ending(run))]
    if run.ending == "deadlocked":
        return [*lines, sentence(f"measured: {NOTHING_MEASURED}")]
    if run.is_stable:
        quantile = f"{run.quantiles['99']:,} cycles" if "99" in run.quantiles else ""
        tail = f", p99 latency {quantile}" if quantile else ""
        lines.append(f"Mean latency {cycles(run.latency, run.network.cycle_ps)}{tail}.")
    top = run.channels.sort("utilisation", descending=True, maintain_order=True).row(0, named=True)
    where = channel(top["kind"], top["source"], top["target"])
    lines.append(f"Highest link utilisation: {format_share(top['utilisation'])}, {where}.")
    return lines


def load_answer(runs: Sequence[NocRun], found: Saturation | None) -> list[str]:
    """Returns the saturation load, or the range that contains it, and the lowest latency."""
    stable = [run for run in runs if run.is_stable]
    if found:
        lines = [sentence(saturation(found))]
    else:
        unstable = [run.load for run in runs if not run.is_stable]
        last = number(stable[-1].load) if stable else ""
        lines = [f"Stable up to {last} {RATE}." if stable else "Stable at no simulated load."]
        lines[0] = lines[0][:-1] + (
            f"; the first unstable load is {number(unstable[0])}." if unstable
            else ", the highest simulated load."
        )  # fmt: skip
    if stable:
        latency = cycles(stable[0].latency, stable[0].network.cycle_ps)
        lines.append(f"Mean latency at {number(stable[0].load)} {RATE}: {latency}.")
    return lines


def spoken(component: str) -> str:
    """Returns the name of a router component for display."""
    return component.replace("_", " ").replace("vc ", "VC ")
