"""Terminal output of `tutti noc`."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tutti.base.errors import SimulationError
from tutti.cli.console import out, record, record_table
from tutti.cli.energy import show_energy
from tutti.networks.flit.frames import frame
from tutti.networks.flit.view import text as words
from tutti.view.quantity import estimate, format_share, number

if TYPE_CHECKING:
    from tutti.energy.technology import Technology
    from tutti.networks.flit import NocRun, Saturation

_SHOWN_CHANNELS = 3
_SHOWN_CLASSES = 16


def show_run(run: NocRun, technology: Technology | None = None) -> None:
    """Prints the summary of a run."""
    _record(run)
    console = out()
    console.print(words.describe_network(run.network), style="bold", markup=False)
    cycle = run.network.cycle_ps
    traffic = words.describe_traffic(run.traffic)
    facts = [("traffic", traffic[0]), *(("", line) for line in traffic[1:_SHOWN_CLASSES])]
    if run.ending == "deadlocked":
        console.print(facts_table([*facts, *_deadlock_facts(run)]))
        return
    facts += [
        ("measured", f"{run.window:,} cycles after {run.plan.warmup:,}; {run.cycles:,} simulated"),
        ("state", words.ending(run)),
    ]
    if run.is_stable:
        shown = ", ".join(f"p{name} {value:,}" for name, value in run.quantiles.items())
        facts += [
            ("mean latency", words.cycles(run.latency, cycle)),
            ("percentiles", f"{shown}, maximum {run.all.latency_extremes[1]:,} cycles"),
            ("network latency", words.cycles(run.network_latency, cycle)),
            ("hops", f"{estimate(run.hops)} routers on the route"),
        ]
    least, most = run.all.accepted_extremes
    facts.append(("accepted per node", f"{number(least, 3)} to {number(most, 3)} flits per cycle"))
    if run.is_stable and len(run.classes) > 1:
        for index, one in enumerate(run.classes[:_SHOWN_CLASSES]):
            text = f"{estimate(one.accepted)} accepted, latency {estimate(one.latency)}"
            facts.append((f"class {index}", text))
    facts.append(("busiest", _busiest(run)))
    if slow := words.slow_links(run):
        facts.append(("slow channels", slow))
    if run.buffered:
        held = sum(run.buffered) / len(run.buffered)
        capacity = run.occupancy.height * run.network.router.buffer
        facts.append(("buffer occupancy", f"{held:,.1f} flits on average, capacity {capacity:,}"))
        facts.append(("stalls", words.stalls_text(run)))
    facts.append(("events", ", ".join(f"{count} {name}" for name, count in words.events(run))))
    console.print(facts_table(facts))
    if technology is not None:
        window_ps = run.window * run.network.cycle_ps
        show_energy(run.energy(technology), run.area(technology), window_ps)


def _record(run: NocRun) -> None:
    """Records the figures of a run for `--json`."""
    record_table("results", lambda: frame([run]))
    if run.ending == "deadlocked":
        record(deadlock_cycle=run.deadlock_cycle)
        return
    record_table("channels", lambda: run.channels)
    record(events=run.events)
    if run.buffered:
        record(mean_buffered_flits=fmean(run.buffered), stalls=run.stalls)


def _deadlock_facts(run: NocRun) -> list[tuple[str, str]]:
    """Returns how a deadlocked run ended, and its deadlock cycle."""
    facts = [("state", words.ending(run)), ("measured", words.NOTHING_MEASURED)]
    waits = words.waiting(run)
    heading = "each VC waits for the next, the last for the first:"
    facts += [("deadlock cycle", heading)] if waits else []
    return [*facts, *(("", line) for line in waits)]


def _busiest(run: NocRun) -> str:
    """Returns the channels with the highest utilisation, and the mean over all channels."""
    order = run.channels.sort("utilisation", descending=True, maintain_order=True)
    columns = order.select("kind", "source", "target", "utilisation")
    busy = [
        f"{words.channel(kind, source, target)} {format_share(share)}"
        for kind, source, target, share in columns.head(_SHOWN_CHANNELS).iter_rows()
    ]
    return f"{', '.join(busy)}; mean {format_share(fmean(order['utilisation']))}"


def refuse_unstable(ending: str, source: object) -> None:
    """Refuses a run that saturated or deadlocked, and so has no latency.

    Raises:
        SimulationError: The run saturated or deadlocked.
    """
    if ending == "deadlocked":
        raise SimulationError(f"{source}: the network deadlocks", kind="deadlocked")
    if ending != "stable":
        problem = f"{source}: the network saturates at this load, or no packet was measured"
        raise SimulationError(problem, kind="saturated")


def facts_table(facts: list[tuple[str, str]]) -> Table:
    """Returns a table of names and values; long values wrap."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(f"  {name}:" if name else "", Text(value))
    return table


def loads_table(runs: list[NocRun]) -> Table:
    """Returns the table of latency against load, with a row per load."""
    from tutti.networks.flit.view import page as noc

    record_table("results", lambda: frame(runs))
    caption = (
        "load, accepted: flits per node and cycle; latencies: cycles; hops: routers on the route; "
        "±: 95 % CI half-width"
    )
    if any(run.ending == "deadlocked" for run in runs):
        caption += "; -: not measured"
    return noc.loads_table(runs).terminal(caption)


def print_saturation(found: Saturation) -> None:
    """Prints the saturation load."""
    record(
        saturation={
            "load": found.load,
            "unstable_load": found.below,
            "accepted": found.accepted,
            "deadlocks": found.deadlocks,
        }
    )
    out().print(words.saturation(found), markup=False)


def print_deadlock(runs: list[NocRun]) -> None:
    """Prints the deadlock at the lowest load that deadlocked, if any."""
    deadlocked = [run for run in runs if run.ending == "deadlocked"]
    if deadlocked:
        first = min(deadlocked, key=lambda run: run.load or 0.0)
        out().print(f"at {number(first.load)} {words.deadlock(first)}", markup=False)
