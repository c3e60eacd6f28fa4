"""Runs at several loads as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import polars as pl

    from tutti.noc.measured import NocRun


def frame(runs: Iterable[NocRun]) -> pl.DataFrame:
    """A row per run, by ascending load; times in cycles, rates in flits per node and cycle.

    Latencies are null where the network is not stable: there they say how long the run was, and
    nothing of the network. Where it deadlocked, nothing was measured, and all of it is null.
    """
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
    return table(rows, _TEXT, _WHOLE)


_TEXT = ("topology", "routing", "ending")
_WHOLE = ("packets", "cycles", "seed", "latency_least", "latency_most",
          "latency_50", "latency_90", "latency_99", "latency_99.9")  # fmt: skip


def table(
    rows: Sequence[Mapping[str, Any]], text: Collection[str], whole: Collection[str]
) -> pl.DataFrame:
    """Builds a frame of named values; real numbers that are not defined are null.

    Args:
        rows: The values by name.
        text: The columns of strings.
        whole: The columns of whole numbers; all others are of real numbers.
    """
    import polars as pl

    kinds = dict.fromkeys(text, pl.String) | dict.fromkeys(whole, pl.UInt64)
    schema = {name: kinds.get(name, pl.Float64) for name in (rows[0] if rows else ())}
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)
