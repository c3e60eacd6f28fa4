"""Runs at several loads as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tutti.noc.measured import NocRun


def frame(runs: Iterable[NocRun]) -> pl.DataFrame:
    """A row per run, by ascending load; times in cycles, rates in flits per node and cycle.

    Latencies are null where the network is not stable: there they say how long the run was, and
    nothing of the network. Where it deadlocked, nothing was measured, and all of it is null.
    """
    import polars as pl

    rows = []
    for run in sorted(runs, key=lambda run: run.load or 0.0):
        every, stable, moved = run.all, run.is_stable, run.ending != "deadlocked"
        rows.append(
            {
                "topology": run.network.topology.name,
                "routing": run.network.routing,
                "load": run.load,
                "ending": run.ending,
                "offered": every.offered if moved else None,
                "accepted": every.accepted.mean if moved else None,
                "accepted_half_width": every.accepted.half_width if moved else None,
                "accepted_least": every.accepted_extremes[0] if moved else None,
                "accepted_most": every.accepted_extremes[1] if moved else None,
                "latency": every.latency.mean if stable else None,
                "latency_half_width": every.latency.half_width if stable else None,
                "latency_least": every.latency_extremes[0] if stable else None,
                "latency_most": every.latency_extremes[1] if stable else None,
                **{
                    f"latency_{name}": value if stable else None
                    for name, value in every.quantiles.items()
                },
                "network_latency": every.network_latency.mean if stable else None,
                "network_latency_half_width": every.network_latency.half_width if stable else None,
                "hops": every.hops.mean if stable else None,
                "packets": every.packets if moved else None,
                "cycles": run.cycles,
                "seed": run.network.seed,
            }
        )
    whole, real, text = pl.UInt64, pl.Float64, pl.String
    schema = {
        "topology": text,
        "routing": text,
        "load": real,
        "ending": text,
        "offered": real,
        "accepted": real,
        "accepted_half_width": real,
        "accepted_least": real,
        "accepted_most": real,
        "latency": real,
        "latency_half_width": real,
        "latency_least": whole,
        "latency_most": whole,
        "latency_50": whole,
        "latency_90": whole,
        "latency_99": whole,
        "latency_99.9": whole,
        "network_latency": real,
        "network_latency_half_width": real,
        "hops": real,
        "packets": whole,
        "cycles": whole,
        "seed": whole,
    }
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)
