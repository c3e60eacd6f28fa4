"""What a run of an ASTRA-sim workload shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.view.view import Data, Fact, View, json_facts

from .reader import frame

if TYPE_CHECKING:
    from .networks import AstraSimNetwork
    from .reader import AstraSimRun


def run_view(run: AstraSimRun, network: AstraSimNetwork, workload: str, *, aware: bool) -> View:
    """Returns what a run shows.

    Args:
        run: The run.
        network: Its network.
        workload: Its workload, for files.
        aware: Whether links are shared.
    """
    shape = " x ".join(f"{one.block} {one.npus}" for one in network.dimensions)
    total, compute, exposed = (ps / 1000 for ps in (run.total.ps, run.compute, run.exposed))
    return View(
        headline=Fact("", f"{run.npus} NPUs: {shape}"),
        facts=json_facts(
            npus=run.npus,
            dimensions=shape,
            time_ps=run.total.ps,
            compute_ps=run.compute,
            exposed_ps=run.exposed,
        ),
        data=[
            Data("results", lambda: frame(run, workload, shape, aware=aware), ["results.parquet"])
        ],
        below=[
            f"{total:,.3f} ns: {compute:,.3f} ns compute, {exposed:,.3f} ns exposed communication"
        ],
    )
