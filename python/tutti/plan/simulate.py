"""The simulated time of a plan: the engine of training steps, with flows.

Steady state repeats, so a pipeline of many micro-batches is simulated with two smaller numbers of
them and extrapolated. Without a pipeline, one micro-batch is simulated with its gradients; the
others repeat what does not belong to gradients.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.endpoint import configurations
from tutti.plan.estimate import ELEMENT, ELEMENTS, kind_of
from tutti.plan.timing import Timing
from tutti.step_fabric import Dimension
from tutti.training import Step
from tutti.training_exposed import exposed_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.plan.cluster import Cluster
    from tutti.plan.space import Plan
    from tutti.training import TrainingResult
    from tutti.workload.compute import ComputeModel
    from tutti.workload.model import Model

__all__ = ["simulate", "step_of"]

_MOST = 3
"""Micro-batches per stage that are simulated without extrapolation."""


def simulate(
    model: Model, plan: Plan, cluster: Cluster, compute: ComputeModel | None = None
) -> Timing:
    """Returns the simulated time of a step.

    Raises:
        TuttiError: The engine cannot express the plan.
    """
    stages, count = plan.kinds.pipeline, plan.kinds.micro_batches

    def run(micro_batches: int) -> Timing:
        kinds = replace(plan.kinds, micro_batches=micro_batches)
        part = replace(plan, kinds=kinds)
        step = step_of(model, part, cluster, compute)
        return _timing(step.run(configurations()["ideal"]))

    if stages == 1:
        return _repeated(run(1), count)
    if count <= _MOST * stages:
        return run(count)
    few, more = run((_MOST - 1) * stages), run(_MOST * stages)
    return _combined(few, more, lambda one, two: one + (two - one) * (count / stages - _MOST + 1))


def step_of(
    model: Model, plan: Plan, cluster: Cluster, compute: ComputeModel | None = None
) -> Step:
    """Returns the training step of a plan."""
    order = [kind for kind in plan.kinds.order if plan.degree(kind) > 1]
    given = {} if compute is None else {"compute": compute}
    return Step(
        model=model,
        batch=plan.samples,
        rings=tuple(Dimension(kind, plan.degree(kind)) for kind in order),
        platform=cluster.platform,
        npu=cluster.engine,
        element=ELEMENT,
        elements=ELEMENTS,
        iterations=1,
        parallelism=plan.kinds,
        detail="flows",
        **given,  # type: ignore[arg-type]
    )


def _timing(run: TrainingResult) -> Timing:
    """Returns the parts of the time of the GPU that computes most, among the first of each stage.

    The rest of the time, in which the GPU waits for others or is done, is idle.
    """
    busy = {npu: sum(run.record.breakdown(npu)[:2]) for npu in run.recorded}
    npu = max(busy, key=lambda one: busy[one])
    exposed: dict[str, float] = {}
    for row in exposed_frame(run, [npu]).iter_rows(named=True):
        is_message = row["collective"] == "shift"
        kind = "pipeline" if is_message else kind_of(row["group"].split(" x "))
        if row["exposed_ps"]:
            exposed[kind] = exposed.get(kind, 0.0) + row["exposed_ps"] * 1e-12
    compute = busy[npu] * 1e-12
    idle = run.total.ps * 1e-12 - compute - sum(exposed.values())
    return Timing(compute=compute, idle=max(idle, 0.0), exposed=exposed)


def _repeated(one: Timing, count: int) -> Timing:
    """Returns the time of `count` micro-batches, of which the last one reduces gradients."""
    exposed = {
        kind: seconds * (1 if kind == "data" else count) for kind, seconds in one.exposed.items()
    }
    return Timing(compute=count * one.compute, idle=count * one.idle, exposed=exposed)


def _combined(one: Timing, two: Timing, by: Callable[[float, float], float]) -> Timing:
    kinds = {*one.exposed, *two.exposed}
    pairs = {kind: (one.exposed.get(kind, 0.0), two.exposed.get(kind, 0.0)) for kind in kinds}
    return Timing(
        compute=by(one.compute, two.compute),
        idle=max(0.0, by(one.idle, two.idle)),
        exposed={kind: max(0.0, by(*pair)) for kind, pair in sorted(pairs.items())},
    )
