"""Data frames of flit-level runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import polars as pl

    from tutti.networks.flit.results import NocRun


def frame(runs: Iterable[NocRun]) -> pl.DataFrame:
    """Returns a row per run, by ascending load; times in cycles, rates in flits per node and cycle.

    Latencies are null if the network is not stable, since they then depend on the length of the
    run. If it deadlocked, all measured values are null.
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
    return table(rows, _TEXT, _INTEGERS)


_TEXT = ("topology", "routing", "ending")
_INTEGERS = ("packets", "cycles", "seed", "latency_least", "latency_most",
             "latency_50", "latency_90", "latency_99", "latency_99.9")  # fmt: skip


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
