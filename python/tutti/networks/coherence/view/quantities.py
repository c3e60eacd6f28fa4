"""The quantities of kernels on coherent chips: each is declared once, for all renderings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from tutti.base.files.typed import every_of
from tutti.networks.coherence.results import CoherenceRun
from tutti.networks.errors import CoherenceError
from tutti.view.quantity import count, counted, format_share, format_shares, number, plural, three
from tutti.view.tables import Column, frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from tutti.networks.coherence.results import FlowCount, Mean, Misses

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


class _OfRun(Protocol):
    """A row of a table on runs."""

    @property
    def run(self) -> CoherenceRun:
        """The run."""


Row = TypeVar("Row", bound=_OfRun)


class Compared(NamedTuple):
    """A run, and its cycles relative to the first of its kernel and protocol."""

    run: CoherenceRun
    ratio: float


class MissPart(NamedTuple):
    """The misses of a kind in a run."""

    run: CoherenceRun
    misses: Misses


class FlowPart(NamedTuple):
    """The flows of a kind in a run, and the flows of all kinds."""

    run: CoherenceRun
    flow: FlowCount
    total: int


def compared(runs: Iterable[CoherenceRun]) -> list[Compared]:
    """Returns runs with their cycles relative to the first of each kernel and protocol."""
    first: dict[tuple[str, str], int] = {}
    rows = []
    for run in runs:
        base = first.setdefault((run.case.kernel, run.case.protocol), run.cycles)
        rows.append(Compared(run, run.cycles / base if base else 0.0))
    return rows


def miss_parts(runs: Iterable[CoherenceRun]) -> list[MissPart]:
    """Returns the misses of each kind of each run."""
    return [MissPart(run, misses) for run in runs for misses in run.misses]


def flow_parts(runs: Iterable[CoherenceRun]) -> list[FlowPart]:
    """Returns the flows of each kind of each run."""
    return [
        FlowPart(run, flow, sum(each.count for each in run.flows))
        for run in runs
        for flow in run.flows
    ]


def frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run; times in cycles, misses per thousand instructions."""
    runs = every_of("frame", CoherenceError, "runs", runs, CoherenceRun)
    return frame_of(QUANTITIES, compared(runs))


def miss_frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run and kind of miss, with mean latency and its components in cycles."""
    runs = every_of("miss_frame", CoherenceError, "runs", runs, CoherenceRun)
    return frame_of(MISSES, miss_parts(runs))


def flow_frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run and kind of flow."""
    runs = every_of("flow_frame", CoherenceError, "runs", runs, CoherenceRun)
    return frame_of(FLOWS, flow_parts(runs))


def _identity(_: type[Row]) -> list[Column[Row]]:
    return [
        Column("kernel", lambda row: row.run.case.kernel, key="kernel"),
        Column("protocol", lambda row: row.run.case.protocol, key="protocol", scope="file"),
        Column("design", lambda row: row.run.case.mesh.design, key="design"),
    ]


def _runtime(row: Compared) -> tuple[str, str]:
    cycles = f"{row.run.cycles:,} cycles; {row.run.total_cycles:,} with initialisation"
    return "runtime", cycles


def _instructions(row: Compared) -> tuple[str, str]:
    return "instructions", f"{row.run.instructions:,}, {number(row.run.ipc, 3)} per cycle and core"


def _missed(row: Compared) -> tuple[str, str]:
    mpki = f"{number(row.run.mpki, 3)} per thousand instructions"
    return (
        "misses",
        f"{row.run.misses_of_all:,}, {mpki}; {format_share(row.run.cache_to_cache)} cache-to-cache",
    )


def _stalls(row: Compared) -> tuple[str, str]:
    network = f"{format_share(row.run.network_stall)} for the network"
    return "stalls", f"{format_share(row.run.stall)} of core time, {network}"


def _cycles(mean: Mean) -> str:
    return f"mean {counted(number(mean.mean), 'cycle')}, maximum {mean.most:,}"


def _broadcasts(row: Compared) -> tuple[str, str] | None:
    mean = row.run.broadcasts
    return ("broadcasts", f"{mean.count:,}, {_cycles(mean)}") if mean.count else None


def _reductions(row: Compared) -> tuple[str, str]:
    each = f"{counted(number(row.run.responses_per_flow, 3), 'packet')} each"
    return "reductions", f"{row.run.reductions.count:,}, {_cycles(row.run.reductions)}, {each}"


def _in_flight(row: Compared) -> tuple[str, str] | None:
    entries = f"{number(row.run.table_occupancy, 3)} table entries in use per router"
    text = f"{counted(number(row.run.open_reductions, 3), 'reduction')}, {entries}"
    return ("in flight", text) if row.run.reductions.count else None


def _shares(row: Compared) -> tuple[str, str]:
    casts = ("unicast", "broadcast", "responses")
    shares = format_shares([row.run.share_of(cast) for cast in casts])
    texts = (f"{share} {cast}" for share, cast in zip(shares, casts, strict=True))
    return "flows", ", ".join(texts)


def _reissued(row: Compared) -> tuple[str, str] | None:
    text = f"{plural(row.run.reissues, 'request')}; {row.run.persistent:,} persistent"
    return ("reissued", text) if row.run.case.protocol == "tc" else None


def _memory(row: Compared) -> tuple[str, str]:
    lines = plural(row.run.memory_reads, "line")
    return "memory", f"{lines} read, {row.run.memory_writes:,} written"


def _settings(row: Compared) -> str:
    settings = {**row.run.case.mesh.settings, **row.run.chip}
    given = {name: value for name, value in settings.items() if value is not None}
    return ", ".join(f"{name} = {value}" for name, value in given.items())


def _broadcast(row: Compared) -> bool:
    return row.run.broadcasts.count > 0


def _reduced(row: Compared) -> bool:
    return row.run.reductions.count > 0


CORES: tuple[Column[Compared], ...] = (
    *_identity(Compared),
    Column("scale", lambda row: row.run.case.scale, key="scale", scope="file"),
    Column("seed", lambda row: row.run.case.seed, count, key="seed", scope="file"),
    Column("cores", lambda row: row.run.cores, count, key="cores", scope="file"),
    Column("cycles", lambda row: row.run.cycles, count, key="cycles", fact=_runtime),
    Column("relative runtime", lambda row: row.ratio, "{:.3f}".format, key="relative_runtime",
           fact=False, short="ratio"),
    Column("total cycles", lambda row: row.run.total_cycles, count, key="total_cycles",
           scope="file"),
    Column("instructions", lambda row: row.run.instructions, count, key="instructions",
           scope="file", fact=_instructions),
    Column("accesses", lambda row: row.run.accesses, count, key="accesses", scope="file"),
    Column("IPC", lambda row: row.run.ipc, "{:.3f}".format, key="ipc", fact=False, terminal=False),
    Column("L1 MPKI", lambda row: row.run.l1_mpki, three, key="l1_mpki", scope="file"),
    Column("MPKI", lambda row: row.run.mpki, three, key="mpki", fact=False),
    Column("misses", lambda row: row.run.misses_of_all, count, key="misses", scope="file",
           fact=_missed),
    Column("mean latency of a miss", lambda row: row.run.miss_latency, three, "cycles",
           key="miss_latency", fact=False, terminal=False),
    Column("misses served by caches", lambda row: row.run.cache_to_cache, format_share,
           key="cache_to_cache", fact=False, terminal=False),
    Column("stalls", lambda row: row.run.stall, format_share, key="stall", scope="file",
           fact=_stalls),
    Column("network stalls", lambda row: row.run.network_stall, format_share, "of core time",
           key="network_stall", fact=False, short="stall"),
    Column("spun", lambda row: row.run.spun, count, key="spun", scope="file"),
)  # fmt: skip
"""The quantities of cores and caches."""

NETWORK: tuple[Column[Compared], ...] = (
    Column("broadcasts", lambda row: row.run.broadcasts.count, count, key="broadcasts",
           scope="file", fact=_broadcasts),
    Column("mean latency of a broadcast", lambda row: row.run.broadcasts.mean, three, "cycles",
           key="broadcast_latency", when=_broadcast, fact=False, short="1-to-M"),
    Column("reductions", lambda row: row.run.reductions.count, count, key="reductions",
           scope="file", fact=False),
    Column("mean latency of a reduction", lambda row: row.run.reductions.mean, three, "cycles",
           key="reduction_latency", scope="file", when=_reduced, fact=_reductions),
    Column("responses per reduction", lambda row: row.run.responses_per_flow, three,
           key="responses_per_flow", when=_reduced, fact=False, short="responses"),
    Column("reductions in flight", lambda row: row.run.open_reductions, three,
           key="open_reductions", scope="file", fact=_in_flight),
    Column("table entries per router", lambda row: row.run.table_occupancy, three,
           key="table_occupancy", scope="file"),
    Column("unicasts among flows", lambda row: row.run.share_of("unicast"), format_share,
           key="unicast_share", scope="file", fact=_shares),
    Column("broadcasts among flows", lambda row: row.run.share_of("broadcast"), format_share,
           key="broadcast_share", fact=False, terminal=False),
    Column("responses among flows", lambda row: row.run.share_of("responses"), format_share,
           key="responses_share", scope="file"),
    Column("reissues", lambda row: row.run.reissues, count, key="reissues", scope="file",
           fact=_reissued),
    Column("persistent requests", lambda row: row.run.persistent, count, key="persistent",
           scope="file"),
    Column("memory reads", lambda row: row.run.memory_reads, count, key="memory_reads",
           scope="file", fact=_memory),
    Column("memory writes", lambda row: row.run.memory_writes, count, key="memory_writes",
           scope="file"),
    Column("settings", _settings, key="settings", scope="file"),
)  # fmt: skip
"""The quantities of the network and the memory."""

QUANTITIES = (*CORES, *NETWORK)
"""The quantities of a run; times in cycles.

A quantity added here appears in the terminal, in `--json`, in reports, in notebooks and in files.
"""


def _spent(name: str, row: MissPart) -> float:
    return row.misses.parts[name]


MISSES: tuple[Column[MissPart], ...] = (
    *_identity(MissPart),
    Column("access", lambda row: row.misses.kind, key="kind"),
    Column("misses", lambda row: row.misses.latency.count, count, key="count"),
    Column("mean latency", lambda row: row.misses.latency.mean, number, key="latency",
           exported="cycles"),
    Column("maximum latency", lambda row: row.misses.latency.most, count, key="latency_most",
           exported="cycles"),
    Column("served by caches", lambda row: row.misses.from_caches, count, key="from_caches"),
    Column("served by memory", lambda row: row.misses.from_memory, count, key="from_memory"),
    *(Column(name, partial(_spent, key), three, key=key, exported="cycles")
      for key, name in PARTS.items()),
)  # fmt: skip
"""The quantities of the misses of a kind."""

FLOWS: tuple[Column[FlowPart], ...] = (
    *_identity(FlowPart),
    Column("message kind", lambda row: row.flow.kind, key="kind"),
    Column("flow kind", lambda row: row.flow.cast, key="cast"),
    Column("message class", lambda row: row.flow.message_class, count, key="message_class"),
    Column("flows", lambda row: row.flow.count, count, key="count"),
    Column("share of flows", lambda row: row.flow.count / row.total, format_share, key="share"),
)
"""The quantities of the flows of a kind."""


def latencies(run: CoherenceRun) -> Sequence[tuple[str, str]]:
    """Returns the mean latency of each kind of miss, with its components, as facts."""
    texts = []
    for misses in run.misses:
        parts = {PARTS[name]: cycles for name, cycles in misses.parts.items() if cycles}
        spent = ", ".join(f"{number(cycles, 3)} {name}" for name, cycles in parts.items())
        if misses.latency.count:
            mean = f"{counted(number(misses.latency.mean), 'cycle')} to {misses.kind}"
            texts.append(f"{mean} ({plural(misses.latency.count, 'miss', 'misses')}): {spent}")
    return [("miss latency", text) for text in texts]
