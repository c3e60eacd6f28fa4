"""Kernels on chips with coherent caches, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .quantity import count, counted, format_share, format_shares, number, plural, three
from .smart_words import describe_mesh
from .tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.coherence import CoherenceRun

CAPTION = (
    "cycles: of the region of interest; ratio: to those of the first design; MPKI: misses that "
    "went to the network per thousand instructions; stall: of the cores' time, for the network; "
    "1-to-M: cycles of a broadcast; answers: that arrived per reduction"
)
ALL = (
    f"{CAPTION}; a miss: cycles of one; from caches: of the lines that were missed; broadcasts: of "
    "all flows"
)

PARTS = {
    "lookup": "own caches",
    "request": "request to the home",
    "wait": "waiting for the home",
    "probe": "broadcast",
    "snoop": "other caches",
    "answers": "answers",
    "data": "data from a cache",
    "memory": "data from memory",
}
"""What a miss is spent on, in the order in which it is."""


def describe(run: CoherenceRun) -> str:
    """A run in a line."""
    case = run.case
    on = f"{case.scale}, on {plural(run.cores, 'core')}, {case.protocol}"
    return f"{case.kernel}, {on}: {describe_mesh(case.mesh)}"


def describe_chip(runs: Sequence[CoherenceRun]) -> str:
    """What all runs have in common, in a line."""
    first = runs[0]
    size = f"{first.case.mesh.columns} x {first.case.mesh.rows}"
    return (
        f"{first.case.protocol}, {plural(first.cores, 'core')} on {size}, scale {first.case.scale}"
    )


def caches(run: CoherenceRun) -> str:
    """The caches and the memory."""
    chip = run.chip
    each = [
        f"{chip[f'{name}_bytes'] / 1024:g} KiB in {plural(chip[f'{name}_ways'], 'way')}, "
        f"{plural(chip[f'{name}_cycles'], 'cycle')}"
        for name in ("l1", "l2")
    ]
    memory = f"memory at {plural(len(chip['homes']), 'node')}"
    return "; ".join((*each, f"{memory}, {plural(chip['dram_cycles'], 'cycle')}"))


def facts(run: CoherenceRun) -> list[tuple[str, str]]:
    """Everything that one wants to know at a glance."""
    mpki = f"{number(run.mpki, 3)} per thousand instructions"
    caught = f"{format_share(run.cache_to_cache)} of the lines from another cache"
    stalled = f"{format_share(run.stall)} of the time"
    found = [
        ("caches", caches(run)),
        ("runtime", f"{run.cycles:,} cycles; {run.total_cycles:,} with what came before"),
        ("instructions", f"{run.instructions:,}, {number(run.ipc, 3)} per cycle and core"),
        ("misses", f"{run.misses_of_all:,}, {mpki}; {caught}"),
        ("stalled", f"{stalled}, {format_share(run.network_stall)} for the network"),
    ]
    found += [("" if place else "a miss takes", text) for place, text in enumerate(_latencies(run))]
    if run.broadcasts.count:
        found.append(("broadcasts", f"{run.broadcasts.count:,}, {_cycles(run.broadcasts)}"))
    if run.reductions.count:
        each = f"{counted(number(run.answers_per_flow, 3), 'packet')} each"
        found.append(("reductions", f"{run.reductions.count:,}, {_cycles(run.reductions)}, {each}"))
        entries = f"{number(run.table_occupancy, 3)} table entries in use per router"
        under_way = counted(number(run.open_reductions, 3), "reduction")
        found.append(("under way", f"{under_way}, {entries}"))
    casts = ("unicast", "broadcast", "answers")
    shares = format_shares([run.share_of(cast) for cast in casts])
    found.append(
        ("flows", ", ".join(f"{share} {cast}" for cast, share in zip(casts, shares, strict=True)))
    )
    if run.case.protocol == "tc":
        found.append(
            ("sent again", f"{plural(run.reissues, 'request')}; {run.persistent:,} persistent")
        )
    memory = f"{plural(run.memory_reads, 'line')} read, {run.memory_writes:,} written"
    return [*found, ("memory", memory), ("result", "that of the serial program")]


def _latencies(run: CoherenceRun) -> list[str]:
    lines = []
    for one in run.misses:
        parts = {PARTS[name]: cycles for name, cycles in one.parts.items() if cycles}
        spent = ", ".join(f"{number(cycles, 3)} {name}" for name, cycles in parts.items())
        if one.latency.count:
            mean = f"{counted(number(one.latency.mean), 'cycle')} to {one.kind}"
            lines.append(f"{mean} ({one.latency.count:,}): {spent}")
    return lines


def _cycles(mean: Any) -> str:  # noqa: ANN401 - a Mean
    return f"{counted(number(mean.mean), 'cycle')}, {mean.most:,} the most"


def relative(runs: Sequence[CoherenceRun]) -> list[float]:
    """Each run's cycles over those of the first of its kernel and protocol."""
    first: dict[tuple[str, str], int] = {}
    found = []
    for run in runs:
        base = first.setdefault((run.case.kernel, run.case.protocol), run.cycles)
        found.append(run.cycles / base if base else 0.0)
    return found


def table(runs: Sequence[CoherenceRun]) -> ReportTable[tuple[CoherenceRun, float]]:
    """Runs, and their cycles over those of the first design: for a page, or for the terminal."""
    columns: list[Column[tuple[CoherenceRun, float]]] = [
        Column("kernel", lambda row: row[0].case.kernel),
        Column("design", lambda row: row[0].case.mesh.design),
        Column("cycles", lambda row: row[0].cycles, count),
        Column("ratio", lambda row: row[1], "{:.3f}".format),
        Column("IPC", lambda row: row[0].ipc, "{:.3f}".format, terminal=False),
        Column("MPKI", lambda row: row[0].mpki, three),
        Column("a miss", lambda row: row[0].miss_latency, three, terminal=False),
        Column("from caches", lambda row: row[0].cache_to_cache, format_share, terminal=False),
        Column("stall", lambda row: row[0].network_stall, format_share),
        Column("1-to-M", lambda row: row[0].broadcasts.mean, three),
    ]
    if any(run.reductions.count for run in runs):
        columns.append(Column("answers", lambda row: row[0].answers_per_flow, three))
    columns.append(
        Column("broadcasts", lambda row: row[0].share_of("broadcast"), format_share, terminal=False)
    )
    return ReportTable(columns, list(zip(runs, relative(runs), strict=True)))
