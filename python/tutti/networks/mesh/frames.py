"""Data frames of runs of single-cycle multi-hop meshes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.flit.frames import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tutti.networks.mesh.results import Run


def frame(runs: Iterable[Run]) -> pl.DataFrame:
    """Returns a row per run and traffic; times in cycles, rates in messages per cycle of the mesh.

    Latencies are null unless all seeds were stable, since they then depend on the length of the
    run. If a seed deadlocked, all measured values are null.
    """
    rows = []
    for run in runs:
        stable, moved = run.is_stable, run.ending != "deadlocked"
        settings = {name: str(value) for name, value in run.mesh.settings.items()}
        for traffic, one in zip(run.traffic, run.loads, strict=True):
            known = (one.offered, one.accepted, one.arrivals, one.active)
            offered, accepted, arrivals, active = (each if moved else None for each in known)
            latency = one.latency if stable else None
            rows.append(
                {
                    "design": run.mesh.design,
                    "kind": traffic.kind,
                    "message_class": traffic.message_class,
                    "load": traffic.rate,
                    "ending": run.ending,
                    "offered": offered and offered.mean,
                    "accepted": accepted and accepted.mean,
                    "accepted_half_width": accepted and accepted.half_width,
                    "latency": latency and latency.mean,
                    "latency_half_width": latency and latency.half_width,
                    "latency_least": one.latency_extremes[0] if stable else None,
                    "latency_most": one.latency_extremes[1] if stable else None,
                    **{
                        f"latency_{name}": value if stable else None
                        for name, value in one.quantiles.items()
                    },
                    "part_latency": one.part_latency.mean if stable else None,
                    "arrivals": arrivals and arrivals.mean,
                    "arrivals_half_width": arrivals and arrivals.half_width,
                    "active": active and active.mean,
                    "table_entries": run.table_entries.mean if moved else None,
                    "buffered_flows": run.buffered_flows.mean if moved else None,
                    "stay": run.stay.mean if moved else None,
                    "messages": one.messages if moved else None,
                    "seeds": run.plan.seeds,
                    "seed": run.plan.seed,
                    "cycles": run.cycles,
                    "settings": ", ".join(f"{name} = {value}" for name, value in settings.items()),
                }
            )
    return table(rows, _TEXT, _INTEGERS)


_TEXT = ("design", "kind", "ending", "settings")
_INTEGERS = (
    "message_class",
    "latency_least",
    "latency_most",
    "messages",
    "seeds",
    "seed",
    "cycles",
)
