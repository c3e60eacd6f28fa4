"""The closed-form time of a plan: roofline, alpha-beta collectives, and the pipeline's bubble.

One block of each kind is costed and multiplied. Groups within a scale-up domain use its links.
Others use the links between domains. Collectives that block the next layer are exposed. Gradients
hide behind the backward pass of the last micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.training.plan.timing import StepTiming
from tutti.workloads.compute import PassTimes, Roofline, covered
from tutti.workloads.model import PASSES
from tutti.workloads.transfers import Elements, Transfers, divided

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.space import Plan
    from tutti.workloads.model import ModelLayer
    from tutti.workloads.pieces import Pieces
    from tutti.workloads.transfers import Transfer

__all__ = ["ELEMENT", "ELEMENTS", "Known", "estimate"]

ELEMENT = 2
"""Bytes of an activation and of a weight: BF16."""

ELEMENTS = Elements(gradients=4)
"""Gradients are reduced in FP32 (Grattafiori et al. 2024, section 3.3.2)."""


def estimate(
    pieces: Pieces, plan: Plan, cluster: Cluster, known: Known | None = None
) -> StepTiming:
    """Returns the closed-form time of a step of the model of `pieces`.

    `known` stores costs of blocks for further plans of the same model and cluster.
    """
    return _Estimate(pieces, plan, cluster, {} if known is None else known).timing()


@dataclass
class Cost:
    """Seconds of a layer, a block or a stage, for a micro-batch."""

    forward: float
    backward: float
    blocking: dict[str, float]
    gather: float
    reduce: float

    @property
    def busy(self) -> float:
        return self.forward + self.backward + sum(self.blocking.values())

    def times(self, count: float) -> Cost:
        return Cost(
            self.forward * count,
            self.backward * count,
            {kind: seconds * count for kind, seconds in self.blocking.items()},
            self.gather * count,
            self.reduce * count,
        )


Known = dict[tuple[object, ...], list[Cost]]
"""Costs of the distinct pieces of a model by what they depend on."""


def _sum(costs: Iterable[Cost]) -> Cost:
    total = Cost(0.0, 0.0, {}, 0.0, 0.0)
    for one in costs:
        total.forward += one.forward
        total.backward += one.backward
        total.gather += one.gather
        total.reduce += one.reduce
        for kind, seconds in one.blocking.items():
            total.blocking[kind] = total.blocking.get(kind, 0.0) + seconds
    return total


@dataclass(frozen=True)
class _Estimate:
    pieces: Pieces
    plan: Plan
    cluster: Cluster
    known: Known

    def timing(self) -> StepTiming:
        """Returns the time of the busiest stage, and the bubble."""
        kinds, stage = self.plan.kinds, self._stage()
        count = kinds.micro_batches
        exposed = {kind: count * seconds for kind, seconds in stage.blocking.items()}
        compute = stage.forward + stage.backward
        each = stage.busy
        message = self._message() if kinds.pipeline > 1 else 0.0
        later = kinds.pipeline - 1
        if later:
            hidden = max(0.0, 2 * kinds.interleaved * message - each)
            exposed["pipeline"] = 2 * later * message + count * hidden
        data = self._data(stage, count)
        if data:
            exposed["data"] = data
        bubble = later / kinds.interleaved * each
        return StepTiming(compute=count * compute, idle=bubble, exposed=exposed)

    def _data(self, stage: Cost, count: int) -> float:
        """Returns the exposed communication of gradients and weights."""
        if self.plan.kinds.zero == 3:
            exposed = count * max(0.0, stage.gather - stage.forward)
            exposed += (count - 1) * max(0.0, stage.gather - stage.backward)
            return exposed + max(0.0, stage.gather + stage.reduce - stage.backward)
        # The collective of the first layer is issued when the backward pass ends. Weights are
        # gathered during the first forward pass of the next step.
        reduced = max(stage.reduce - stage.backward, stage.reduce / self._layers)
        return reduced + max(0.0, stage.gather - stage.forward)

    @cached_property
    def _layers(self) -> int:
        return max(1, self.pieces.decoder.layers // self.plan.kinds.pipeline)

    def _stage(self) -> Cost:
        """Returns the cost of the stage that takes the longest per micro-batch."""
        kinds, plan = self.plan.kinds, self.plan
        # What the cost of a block depends on.
        key = (
            replace(kinds, pipeline=1, micro_batches=1, interleaved=1),
            (plan.micro_batch, plan.data, plan.stride("data")),
        )
        if key not in self.known:
            self.known[key] = self._blocks()
        costs = self.known[key]
        stages: list[list[Cost]] = [[] for _ in range(kinds.pipeline)]
        for chunk, counted in enumerate(self.pieces.chunks(kinds.pipeline * kinds.interleaved)):
            stages[chunk % kinds.pipeline] += [costs[at].times(n) for at, n in counted.items()]
        return max(map(_sum, stages), key=lambda one: one.busy)

    def _blocks(self) -> list[Cost]:
        """Returns the cost of each distinct piece of the model."""
        plan, sample = self.plan, self.pieces.distinct
        flat = [layer for piece in sample for layer in piece]
        placement = plan.kinds.on([(kind, plan.degree(kind)) for kind in plan.kinds.order])
        moved = Transfers(plan.kinds, placement, flat, plan.micro_batch, ELEMENTS.of(ELEMENT))
        left = (self.cluster.engine.arithmetic.per_second, self.cluster.engine.memory)
        times = PassTimes(Roofline(), plan.micro_batch, ELEMENT, left)
        layers = [self._layer(layer, moved, at, times) for at, layer in enumerate(flat)]
        found, start = [], 0
        for piece in sample:
            found.append(_sum(layers[start : start + len(piece)]))
            start += len(piece)
        return found

    def _layer(self, layer: ModelLayer, moved: Transfers, at: int, times: PassTimes) -> Cost:
        kinds = self.plan.kinds
        part = divided(layer, kinds.tensor, kinds.context, kinds.expert)
        forward, *back = (times.of(part, which) * 1e-12 for which in PASSES)
        is_inner = 0 < at < len(moved.layers) - 1
        again = times.again(part, kinds.recompute) * 1e-12 if is_inner else 0.0
        found = moved.of(at)
        blocking: dict[str, float] = {}
        for one in (*found.after_forward, *found.after_input_gradient):
            kind = one.rings[0]
            blocking[kind] = blocking.get(kind, 0.0) + self._time(one)
        if found.with_forward:
            part_of = covered(times, part, kinds.recompute, kinds.context)
            for during, moving in (
                (part_of.forward, found.with_forward),
                (part_of.backward, found.with_backward),
            ):
                exposed = sum(map(self._time, moving)) - during * 1e-12
                blocking["context"] = blocking.get("context", 0.0) + max(0.0, exposed)
        gather, reduce = found.before_forward, found.after_weight_gradient
        return Cost(
            forward,
            sum(back) + again,
            blocking,
            self._time(gather) if gather else 0.0,
            self._time(reduce) if reduce else 0.0,
        )

    def _time(self, transfer: Transfer) -> float:
        """Returns the alpha-beta time of a collective on its group, with its launch.

        Groups along several dimensions use rings along each, the innermost first. Pieces of the
        collective pass them in turn, so the slowest dimension sets the bandwidth.
        """
        plan, domain = self.plan, self.cluster.domain
        slowest, latency, left = 0.0, 0.0, float(transfer.bytes)
        for kind in plan.kinds.order:
            ranks, stride = plan.degree(kind), plan.stride(kind)
            if kind not in transfer.rings or ranks == 1:
                continue
            link = self.cluster.inner if stride * ranks <= domain else self.cluster.outer
            if transfer.collective == "all_to_all":
                near = max(1, domain // stride) if stride * ranks > domain else 1
                slowest = max(slowest, (ranks - near) / ranks * left / link.rate)
                latency += link.latency
                continue
            slowest = max(slowest, (ranks - 1) * left / ranks / link.rate)
            latency += (ranks - 1) * link.latency
            left /= ranks
        if slowest == 0:
            return 0.0
        rounds = 2 if transfer.collective == "all_reduce" else 1
        return self.cluster.launch + (slowest + latency) * rounds

    def _message(self) -> float:
        """Returns the time of the activations of a micro-batch between stages."""
        plan, shape = self.plan, self.pieces.decoder
        size = plan.micro_batch * shape.tokens * shape.hidden * ELEMENT
        size //= plan.kinds.tensor * plan.kinds.context
        is_inside = plan.stride("pipeline") * plan.degree("pipeline") <= self.cluster.domain
        link = self.cluster.inner if is_inside else self.cluster.outer
        return size / link.rate + link.latency
