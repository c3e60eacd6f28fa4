"""The simulated time of a plan: the engine of training steps, with flows.

Replicas of a model are alike and steady state repeats, so a part of the step suffices:

- Of the replicas of data parallelism, as few are simulated as span two scale-up domains. The closed
  form adds the difference in the exposed communication of gradients.
- Of the micro-batches, one and then two per stage are simulated. Each further one adds the same
  time of compute, of collectives of layers and of messages between stages as those in between.
- Beyond `MOST_FLOWS`, each collective is simulated once, in all of its groups, and takes this time
  in the step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.training.endpoint import configurations
from tutti.training.exposed import exposed_on
from tutti.training.fabric import Dimension
from tutti.training.plan.efficiency import NAMES
from tutti.training.plan.estimate import BLOCKING, ELEMENT, estimate, least_data, update
from tutti.training.plan.timing import StepTiming
from tutti.training.step import Detail, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.space import Plan
    from tutti.training.results import TrainingResult
    from tutti.training.spans import Span
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.model import Model
    from tutti.workloads.parallel import Parallelism
    from tutti.workloads.pieces import Pieces

MOST_FLOWS = 5_000_000
"""The most flows of a simulated step: some 10 s. A step of many experts has far more."""
_WITHIN_AND_BETWEEN = ("context", "data")
"""Kinds whose groups have a dimension within a domain, and one between domains."""
_CONTEXT = frozenset({"context", "context between domains"})
_BETWEEN_STAGES = frozenset({"send", "recv"})
_GATHER = "gather"
"""Gathers of weights, unlike the reduction of gradients."""


def simulate(
    pieces: Pieces, plan: Plan, cluster: Cluster, compute: ComputeModel | None = None
) -> StepTiming:
    """Returns the simulated time of a step.

    Raises:
        TuttiError: The engine cannot express the plan.
    """
    few, smaller = _fewer_replicas(plan, cluster)

    def step(micro_batches: int) -> Step:
        kinds = replace(plan.kinds, micro_batches=micro_batches)
        return step_of(pieces.model, replace(few, kinds=kinds), smaller, compute)

    largest = step(min(plan.kinds.micro_batches, 2 * plan.kinds.pipeline))
    detail: Detail = "isolated" if _flows(largest) > MOST_FLOWS else "flows"

    def run(micro_batches: int) -> StepTiming:
        of = replace(step(micro_batches), detail=detail)
        kinds = replace(plan.kinds, micro_batches=micro_batches)
        return _timing(of.run(configurations()["ideal"]), kinds)

    more = 0.0
    if few.data != plan.data:
        more = estimate(pieces, plan, cluster).exposed.get("data", 0.0)
        more -= estimate(pieces, few, smaller).exposed.get("data", 0.0)
    return _as_measured(_extrapolated(run, plan.kinds), pieces, plan, cluster, more)


def as_planned(run: TrainingResult, pieces: Pieces, plan: Plan, cluster: Cluster) -> StepTiming:
    """Returns the time of a plan from a run of its complete step with ideal endpoints.

    The exposed shares of collectives that block layers, and the time that belongs to no pass, are
    those of measured steps.
    """
    return _as_measured(_merged(_timing(run, plan.kinds)), pieces, plan, cluster)


def _flows(step: Step) -> int:
    """Returns the flows of a step: rings are one per rank, and other collectives one per pair."""
    programs = step.programs(configurations()["ideal"])
    pairs = sum(
        step.network.group_size(one.mask) - 1 if one.kind == "all_to_all" else 1
        for program in programs
        for one in program.issued
    )
    return pairs * step.npus // len(programs)


def _as_measured(
    found: StepTiming, pieces: Pieces, plan: Plan, cluster: Cluster, more: float = 0.0
) -> StepTiming:
    """Returns the timing with the exposed shares of measured steps, and their update.

    `more` are seconds of exposed communication of gradients that were not simulated.
    """
    shares = dict(zip(NAMES, cluster.coefficients(pieces.model), strict=True))
    exposed = {
        kind: seconds * (shares[kind] if kind in BLOCKING else 1.0)
        for kind, seconds in found.exposed.items()
    }
    data = max(exposed.get("data", 0.0) + more, least_data(pieces, plan, cluster))
    exposed |= {"data": data} if data else {}
    return replace(found, exposed=exposed, update=update(pieces, plan, cluster))


def step_of(
    model: Model, plan: Plan, cluster: Cluster, compute: ComputeModel | None = None
) -> Step:
    """Returns the training step of a plan."""
    return Step(
        model=model,
        batch=plan.samples,
        rings=dimensions_of(plan, cluster.domain),
        platform=cluster.platform,
        npu=cluster.engine,
        element=ELEMENT,
        elements=cluster.elements,
        iterations=1,
        parallelism=plan.kinds,
        detail="flows",
        compute=compute or cluster.compute(model),
    )


def dimensions_of(plan: Plan, domain: int) -> tuple[Dimension, ...]:
    """Returns the dimensions of a plan's GPUs.

    Groups of data or context parallelism that span domains have rings within each domain and
    between domains.
    """
    found = []
    for kind in plan.kinds.order:
        parts = [one for one in plan.dimensions(domain) if one[0] == kind]
        if kind not in _WITHIN_AND_BETWEEN:
            parts = [(kind, plan.degree(kind), True)] if plan.degree(kind) > 1 else []
        names = (kind, f"{kind} between domains")
        found += [Dimension(name, ranks) for name, (_, ranks, _) in zip(names, parts, strict=False)]
    return tuple(found)


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


def _timing(run: TrainingResult, kinds: Parallelism) -> StepTiming:
    """Returns the parts of the time of the GPU that computes most, among the first of each stage.

    The rest of the time, in which the GPU waits for others or is done, is idle. Gathers of weights
    after the backward pass (ZeRO 1) hide behind the first forward pass of the next step.
    """
    parts = {npu: run.record.breakdown(npu) for npu in run.recorded}
    busy = {npu: of.compute_ps + of.overlap_ps for npu, of in parts.items()}
    npu = max(busy, key=lambda one: busy[one])
    exchanged = {
        transfer.bytes
        for _, layer in run.step.divided(run.configuration).layers
        for transfer in (*layer.after_forward, *layer.with_forward)
        if set(transfer.rings) <= _CONTEXT
    }
    found: dict[str, float] = {}
    for interval in exposed_on(run, npu):
        for span, ps in interval.parts:
            kind = _kind(span, exchanged)
            found[kind] = found.get(kind, 0.0) + ps * 1e-12
    compute = busy[npu] * 1e-12
    idle = run.total.ps * 1e-12 - compute - sum(found.values())
    if kinds.zero < 3 and _GATHER in found:
        forward = compute / kinds.micro_batches / (4 if kinds.recompute == "full" else 3)
        found[_GATHER] = max(0.0, found[_GATHER] - forward)
    is_isolated = run.step.detail == "isolated"
    return StepTiming(compute=compute, idle=max(idle, 0.0), exposed=found, isolated=is_isolated)


def _kind(span: Span, exchanged: set[int]) -> str:
    """Returns the kind of parallelism of a collective.

    Without data parallelism, groups of `context` reduce gradients, too; their sizes differ from
    those of keys and values, `exchanged`.
    """
    if span.kind in _BETWEEN_STAGES:
        return "pipeline"
    if span.kind == "all_to_all":
        return "expert"
    if span.group == "tensor":
        return "tensor"
    if set(span.group.split(" x ")) <= _CONTEXT and span.bytes in exchanged:
        return "context"
    return _GATHER if span.kind == "all_gather" else "data"


def _extrapolated(run: Callable[[int], StepTiming], kinds: Parallelism) -> StepTiming:
    """Returns the time of all micro-batches from runs of few; the last one reduces gradients."""
    stages, count = kinds.pipeline, kinds.micro_batches
    if count <= 2 * stages:
        return _merged(run(count))
    few, more, by = run(stages), run(2 * stages), count / stages - 2
    once = {"data"} if kinds.zero == 3 else {"data", _GATHER}
    found = {
        kind: seconds
        if kind in once
        else seconds + by * max(0.0, seconds - few.exposed.get(kind, 0.0))
        for kind, seconds in more.exposed.items()
    }
    compute = more.compute + by * (more.compute - few.compute)
    return _merged(replace(more, compute=compute, exposed=found))


def _merged(one: StepTiming) -> StepTiming:
    """Returns the timing with gathers of weights among `data`."""
    found = dict(one.exposed)
    if _GATHER in found:
        found["data"] = found.get("data", 0.0) + found.pop(_GATHER)
    return replace(one, exposed=found)
