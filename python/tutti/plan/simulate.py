"""The simulated time of a plan: the engine of training steps, with flows.

Replicas of a model are alike and steady state repeats, so a part of the step suffices:

- Of the replicas of data parallelism, as few are simulated as span two scale-up domains. The closed
  form adds the difference in the exposed communication of gradients.
- Of the micro-batches of a pipeline, one per stage is simulated. Each further one takes the time
  in which the busiest stage computes or waits for a collective of a layer.
- Without a pipeline, one micro-batch is simulated with its gradients. The others repeat what does
  not belong to gradients.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.endpoint import configurations
from tutti.errors import TuttiError
from tutti.plan.estimate import ELEMENT, ELEMENTS, estimate, kind_of
from tutti.plan.timing import Timing
from tutti.step_fabric import Dimension
from tutti.training import Step
from tutti.training_exposed import exposed_frame

if TYPE_CHECKING:
    from tutti.plan.cluster import Cluster
    from tutti.plan.space import Plan
    from tutti.training import TrainingResult
    from tutti.workload.compute import ComputeModel
    from tutti.workload.model import Model
    from tutti.workload.parallel import Parallelism
    from tutti.workload.pieces import Pieces

__all__ = ["simulate", "step_of"]

_GATHER = "gather"
"""Gathers of weights, unlike the reduction of gradients."""


def simulate(
    pieces: Pieces, plan: Plan, cluster: Cluster, compute: ComputeModel | None = None
) -> Timing:
    """Returns the simulated time of a step.

    Raises:
        TuttiError: The engine cannot express the plan.
    """
    few, smaller = _fewer_replicas(plan, cluster)
    count, simulated = plan.kinds.micro_batches, plan.kinds.pipeline
    kinds = replace(plan.kinds, micro_batches=simulated)
    step = step_of(pieces.model, replace(few, kinds=kinds), smaller, compute)
    one = _timing(step.run(configurations()["ideal"]), kinds)
    found = _repeated(one, simulated, count, is_sharded=plan.kinds.zero == 3)
    if few.data == plan.data:
        return found
    more = estimate(pieces, plan, cluster).exposed.get("data", 0.0)
    more -= estimate(pieces, few, smaller).exposed.get("data", 0.0)
    data = max(0.0, found.exposed.get("data", 0.0) + more)
    return replace(found, exposed={**found.exposed, "data": data})


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


def _fewer_replicas(plan: Plan, cluster: Cluster) -> tuple[Plan, Cluster]:
    """Returns the plan with few replicas of the model, and as many GPUs."""
    if cluster.smaller is None:
        return plan, cluster
    rest = cluster.gpus // plan.data
    for data in range(2, plan.data // 2 + 1):
        spans = plan.stride("data") * data >= min(cluster.gpus, 2 * cluster.domain)
        if plan.data % data or not spans:
            continue
        try:
            platform = cluster.smaller(rest * data)
        except TuttiError:
            continue
        return replace(plan, data=data), replace(cluster, platform=platform)
    return plan, cluster


def _timing(run: TrainingResult, kinds: Parallelism) -> Timing:
    """Returns the parts of the time of the GPU that computes most, among the first of each stage.

    The rest of the time, in which the GPU waits for others or is done, is idle. Gathers of weights
    after the backward pass (ZeRO 1) hide behind the first forward pass of the next step.
    """
    busy = {npu: sum(run.record.breakdown(npu)[:2]) for npu in run.recorded}
    npu = max(busy, key=lambda one: busy[one])
    exposed: dict[str, float] = {}
    for row in exposed_frame(run, [npu]).iter_rows(named=True):
        kind = kind_of(row["group"].split(" x "))
        if row["collective"] == "shift":
            kind = "pipeline"
        elif kind == "data" and row["collective"] == "all_gather":
            kind = _GATHER
        if row["exposed_ps"]:
            exposed[kind] = exposed.get(kind, 0.0) + row["exposed_ps"] * 1e-12
    compute = busy[npu] * 1e-12
    idle = run.total.ps * 1e-12 - compute - sum(exposed.values())
    if kinds.zero < 3 and _GATHER in exposed:
        forward = compute / kinds.micro_batches / (4 if kinds.recompute == "full" else 3)
        exposed[_GATHER] = max(0.0, exposed[_GATHER] - forward)
    return Timing(compute=compute, idle=max(idle, 0.0), exposed=exposed)


def _repeated(one: Timing, simulated: int, count: int, *, is_sharded: bool) -> Timing:
    """Returns the time of `count` micro-batches from that of fewer; the last reduces gradients."""
    once = {"data", "pipeline"} if is_sharded else {"data", "pipeline", _GATHER}
    by = count / simulated
    exposed = {kind: seconds * (1 if kind in once else by) for kind, seconds in one.exposed.items()}
    if _GATHER in exposed:
        exposed["data"] = exposed.get("data", 0.0) + exposed.pop(_GATHER)
    return Timing(compute=by * one.compute, idle=one.idle, exposed=exposed)
