"""Data frames of runs of kernels on chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import polars as pl

    from tutti.networks.coherence.results import CoherenceRun


def frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run; times in cycles, misses per thousand instructions."""
    return table([_row(run) for run in runs], (*_NAMES, "scale", "settings"), _INTEGERS)


def _row(run: CoherenceRun) -> dict[str, Any]:
    settings = {**run.case.mesh.settings, **run.chip}
    return {
        **_named(run),
        "scale": run.case.scale,
        "seed": run.case.seed,
        "cores": run.cores,
        "cycles": run.cycles,
        "total_cycles": run.total_cycles,
        "instructions": run.instructions,
        "accesses": run.accesses,
        "ipc": run.ipc,
        "l1_mpki": run.l1_mpki,
        "mpki": run.mpki,
        "misses": run.misses_of_all,
        "miss_latency": run.miss_latency,
        "cache_to_cache": run.cache_to_cache,
        "stall": run.stall,
        "network_stall": run.network_stall,
        "spun": run.spun,
        "broadcasts": run.broadcasts.count,
        "broadcast_latency": run.broadcasts.mean if run.broadcasts.count else None,
        "reductions": run.reductions.count,
        "reduction_latency": run.reductions.mean if run.reductions.count else None,
        "responses_per_flow": run.responses_per_flow if run.reductions.count else None,
        "open_reductions": run.open_reductions,
        "table_occupancy": run.table_occupancy,
        "unicast_share": run.share_of("unicast"),
        "broadcast_share": run.share_of("broadcast"),
        "responses_share": run.share_of("responses"),
        "reissues": run.reissues,
        "persistent": run.persistent,
        "memory_reads": run.memory_reads,
        "memory_writes": run.memory_writes,
        "settings": ", ".join(f"{name} = {value}" for name, value in settings.items()),
    }


def miss_frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run and kind of miss, with mean latency and its components in cycles."""
    rows = [
        {
            **_named(run),
            "kind": one.kind,
            "count": one.latency.count,
            "latency": one.latency.mean,
            "latency_most": one.latency.most,
            **one.parts,
            "from_caches": one.from_caches,
            "from_memory": one.from_memory,
        }
        for run in runs
        for one in run.misses
    ]
    integers = ("count", "latency_most", "from_caches", "from_memory")
    return table(rows, (*_NAMES, "kind"), integers)


def flow_frame(runs: Iterable[CoherenceRun]) -> pl.DataFrame:
    """Returns a row per run and kind of flow."""
    rows = [
        {
            **_named(run),
            "kind": one.kind,
            "message_class": one.message_class,
            "cast": one.cast,
            "count": one.count,
        }
        for run in runs
        for one in run.flows
    ]
    return table(rows, (*_NAMES, "kind", "cast"), ("message_class", "count"))


_INTEGERS = (
    "seed", "cores", "cycles", "total_cycles", "instructions", "accesses", "misses", "spun",
    "broadcasts", "reductions", "reissues", "persistent", "memory_reads", "memory_writes",
)  # fmt: skip
_NAMES = ("kernel", "protocol", "design")


def _named(run: CoherenceRun) -> dict[str, Any]:
    """Returns the columns that identify a run."""
    case = run.case
    return dict(zip(_NAMES, (case.kernel, case.protocol, case.mesh.design), strict=True))


def table(
    rows: Sequence[Mapping[str, Any]], text: Collection[str], integers: Collection[str]
) -> pl.DataFrame:
    """Returns a frame of rows; NaN becomes null.

    Args:
        rows: The values by column.
        text: The columns of strings.
        integers: The columns of integers; all others are of floats.
    """
    import polars as pl

    kinds = dict.fromkeys(text, pl.String) | dict.fromkeys(integers, pl.UInt64)
    schema = {name: kinds.get(name, pl.Float64) for name in (rows[0] if rows else ())}
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)
