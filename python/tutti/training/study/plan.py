"""The study of parallelisations of a decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.study.study import present
from tutti.training.plan import search
from tutti.training.plan.view import plan_view

if TYPE_CHECKING:
    from tutti.training.plan import Cluster, FixedDegrees
    from tutti.workloads import Model

_SIMULATED = 10
_SIMULATED_LARGE = 2
_LARGE = 2048
"""Simulated plans by default: for more GPUs than `_LARGE`, fewer."""


def run_plans(
    model: Model,
    cluster: Cluster,
    batch: int,
    fixed: FixedDegrees,
    *,
    simulated: int | None,
    top: int,
) -> None:
    """Searches the fastest parallelisation of a decoder, and shows it.

    Args:
        model: The decoder.
        cluster: The GPUs.
        batch: The global batch, in sequences.
        fixed: The degrees that the search keeps.
        simulated: The number of plans to simulate; None for the default.
        top: The number of plans to list.

    Raises:
        ConfigError: The degrees do not divide the GPUs, or no plan fits their memory.
    """
    most = simulated
    if most is None:
        most = _SIMULATED if cluster.gpus <= _LARGE else _SIMULATED_LARGE
    with Progress("simulating plans", work=max(most, 1), total=most) as progress:
        plans = search(model, cluster, batch, fixed=fixed, simulated=most,
                       progress=lambda done: progress.advance(1, done))  # fmt: skip
    present(plan_view(plans, top))
    for ranked in plans.fitting[:top]:
        if ranked.problem:
            remark(f"not simulated: {ranked.problem}")
