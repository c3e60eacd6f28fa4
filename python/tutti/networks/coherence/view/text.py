"""Text for reports and terminal tables of kernels on chips with coherent caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.networks.mesh.view.text import describe_mesh
from tutti.view.quantity import count, counted, format_share, format_shares, number, plural, three
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.coherence import CoherenceRun

CAPTION = (
    "cycles: region of interest; ratio: cycles relative to the first design; MPKI: network misses "
    "per thousand instructions; stall: share of core time spent waiting for the network; "
    "1-to-M: mean broadcast latency (cycles); responses: arrivals per reduction"
)
ALL = (
    "cycles: region of interest; IPC: instructions per cycle and core; MPKI: network misses per "
    "thousand instructions"
)

PARTS = {
    "lookup": "cache lookup",
    "request": "request to home",
    "wait": "wait at home",
    "probe": "broadcast",
    "snoop": "snoop",
    "responses": "responses",
    "data": "data from cache",
    "memory": "data from memory",
}
"""The components of the latency of a miss, in order of time."""


def describe(run: CoherenceRun) -> str:
    """Returns kernel, chip and mesh of a run on one line."""
    case = run.case
    on = f"{case.scale}, on {plural(run.cores, 'core')}, {case.protocol}"
    return f"{case.kernel}, {on}: {describe_mesh(case.mesh)}"


def describe_chip(runs: Sequence[CoherenceRun]) -> str:
    """Returns the settings that all runs share, on one line."""
    first = runs[0]
    size = f"{first.case.mesh.columns} x {first.case.mesh.rows}"
    return (
        f"{first.case.protocol}, {plural(first.cores, 'core')} on {size}, scale {first.case.scale}"
    )


def caches(run: CoherenceRun) -> str:
    """Returns size, associativity and latency of the caches, and the memory."""
    chip = run.chip
    each = [
        f"{name.upper()} {chip[f'{name}_bytes'] / 1024:g} KiB, associativity "
        f"{chip[f'{name}_ways']}, {plural(chip[f'{name}_cycles'], 'cycle')}"
        for name in ("l1", "l2")
    ]
    memory = f"memory at {plural(len(chip['homes']), 'node')}"
    return "; ".join((*each, f"{memory}, {plural(chip['dram_cycles'], 'cycle')}"))


def facts(run: CoherenceRun) -> list[tuple[str, str]]:
    """Returns name and value of each fact that summarises a run."""
    mpki = f"{number(run.mpki, 3)} per thousand instructions"
    transfers = f"{format_share(run.cache_to_cache)} cache-to-cache"
    stall = f"{format_share(run.stall)} of core time"
    found = [
        ("caches", caches(run)),
        ("runtime", f"{run.cycles:,} cycles; {run.total_cycles:,} with initialisation"),
        ("instructions", f"{run.instructions:,}, {number(run.ipc, 3)} per cycle and core"),
        ("misses", f"{run.misses_of_all:,}, {mpki}; {transfers}"),
        ("stalls", f"{stall}, {format_share(run.network_stall)} for the network"),
    ]
    found += [("" if place else "miss latency", text) for place, text in enumerate(_latencies(run))]
    if run.broadcasts.count:
        found.append(("broadcasts", f"{run.broadcasts.count:,}, {_cycles(run.broadcasts)}"))
    if run.reductions.count:
        each = f"{counted(number(run.responses_per_flow, 3), 'packet')} each"
        found.append(("reductions", f"{run.reductions.count:,}, {_cycles(run.reductions)}, {each}"))
        entries = f"{number(run.table_occupancy, 3)} table entries in use per router"
        in_flight = counted(number(run.open_reductions, 3), "reduction")
        found.append(("in flight", f"{in_flight}, {entries}"))
    casts = ("unicast", "broadcast", "responses")
    shares = format_shares([run.share_of(cast) for cast in casts])
    names = zip(casts, shares, strict=True)
    found.append(("flows", ", ".join(f"{share} {name}" for name, share in names)))
    if run.case.protocol == "tc":
        found.append(
            ("reissued", f"{plural(run.reissues, 'request')}; {run.persistent:,} persistent")
        )
    memory = f"{plural(run.memory_reads, 'line')} read, {run.memory_writes:,} written"
    return [*found, ("memory", memory), ("result", "equals the serial program")]


def _latencies(run: CoherenceRun) -> list[str]:
    lines = []
    for one in run.misses:
        parts = {PARTS[name]: cycles for name, cycles in one.parts.items() if cycles}
        spent = ", ".join(f"{number(cycles, 3)} {name}" for name, cycles in parts.items())
        if one.latency.count:
            mean = f"{counted(number(one.latency.mean), 'cycle')} to {one.kind}"
            lines.append(f"{mean} ({plural(one.latency.count, 'miss', 'misses')}): {spent}")
    return lines


def _cycles(mean: Any) -> str:  # noqa: ANN401 - a Mean
    return f"mean {counted(number(mean.mean), 'cycle')}, maximum {mean.most:,}"


def relative(runs: Sequence[CoherenceRun]) -> list[float]:
    """Returns the cycles of each run relative to the first of its kernel and protocol."""
    first: dict[tuple[str, str], int] = {}
    found = []
    for run in runs:
        base = first.setdefault((run.case.kernel, run.case.protocol), run.cycles)
        found.append(run.cycles / base if base else 0.0)
    return found


def table(runs: Sequence[CoherenceRun]) -> ReportTable[tuple[CoherenceRun, float]]:
    """Returns a table with a row per run, for a page or the terminal."""
    columns: list[Column[tuple[CoherenceRun, float]]] = [
        Column("kernel", lambda row: row[0].case.kernel),
        Column("design", lambda row: row[0].case.mesh.design),
        Column("cycles", lambda row: row[0].cycles, count),
        Column("relative runtime", lambda row: row[1], "{:.3f}".format, short="ratio"),
        Column("IPC", lambda row: row[0].ipc, "{:.3f}".format, terminal=False),
        Column("MPKI", lambda row: row[0].mpki, three),
        Column("mean latency of a miss", lambda row: row[0].miss_latency, three, "cycles",
               terminal=False),
        Column("misses served by caches", lambda row: row[0].cache_to_cache, format_share,
               terminal=False),
        Column("network stalls", lambda row: row[0].network_stall, format_share, "of core time",
               short="stall"),
        Column("mean latency of a broadcast", lambda row: row[0].broadcasts.mean, three, "cycles",
               short="1-to-M"),
    ]  # fmt: skip
    if any(run.reductions.count for run in runs):
        columns.append(Column("responses per reduction", lambda row: row[0].responses_per_flow,
                              three, short="responses"))  # fmt: skip
    columns.append(Column("broadcasts among flows", lambda row: row[0].share_of("broadcast"),
                          format_share, terminal=False))  # fmt: skip
    return ReportTable(columns, list(zip(runs, relative(runs), strict=True)))
