"""The closed-form time of a plan: kernels, alpha-beta collectives, and the pipeline's bubble.

:func:`amounts` reduces a plan to amounts at published peaks, :func:`combined` multiplies them by
coefficients (:mod:`tutti.training.plan.efficiency`) and overlaps what overlaps. The latter accepts
many plans at once, so that measured steps determine the coefficients of this model.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tutti.training.plan.collectives import library_seconds
from tutti.training.plan.efficiency import NAMES, UPDATE
from tutti.training.plan.timing import StepTiming
from tutti.workloads import kernels
from tutti.workloads.kernels import TERMS
from tutti.workloads.model import PASSES
from tutti.workloads.parallel import KINDS
from tutti.workloads.transfers import Transfers, recomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.space import Plan
    from tutti.workloads.model import ModelLayer
    from tutti.workloads.parallel import Kind
    from tutti.workloads.pieces import Pieces
    from tutti.workloads.transfers import Transfer

    Array = NDArray[np.float64]

__all__ = [
    "ELEMENT",
    "Known",
    "StepAmounts",
    "Times",
    "amounts",
    "busy",
    "combined",
    "estimate",
    "least_data",
    "stacked",
    "update",
]

ELEMENT = 2
"""Bytes of an activation: BF16."""

BLOCKING = ("tensor", "context", "expert")
"""Kinds of parallelism whose collectives the next layer waits for."""

_OPTIMIZER = 30
"""Bytes per weight of a shard: the FP32 weight and two moments are read and written, the gradient
read, the weight written."""


@dataclass(frozen=True, kw_only=True)
class StepAmounts:
    """What a step consists of, at published peaks; arrays have leading axes for several steps.

    Attributes:
        forward: Amounts of :data:`TERMS` of each stage for a micro-batch, shape (stages, terms).
        backward: The same, with what is computed again.
        blocking: Seconds of collectives that block layers, shape (stages, kinds).
        ring: Seconds of ring exchanges in forward and backward passes, shape (stages, 2).
        covered: Amounts of attention that run during them, shape (stages, 2).
        gather: Seconds of gathers of weights, shape (stages,).
        reduce: Seconds of the reduction of gradients, shape (stages,).
        idle_forward: Amounts of the forward passes that each stage waits for, shape (stages,
            terms).
        idle_backward: The same of backward passes.
        idle_blocking: Seconds of collectives of these passes that block layers.
        passing: Seconds of messages between stages that each stage waits for, shape (stages,).
        layers: Blocks of a stage.
        micro_batches: Micro-batches of a step.
        interleaved: Model chunks per stage.
        message: Seconds of the activations between stages, at the slowest hop.
        sharded: 1 if weights are gathered in each pass (ZeRO 3), else 0.
        update: Amounts of :data:`tutti.training.plan.efficiency.UPDATE`.
    """

    forward: Array
    backward: Array
    blocking: Array
    ring: Array
    covered: Array
    gather: Array
    reduce: Array
    idle_forward: Array
    idle_backward: Array
    idle_blocking: Array
    passing: Array
    layers: Array
    micro_batches: Array
    interleaved: Array
    message: Array
    sharded: Array
    update: Array


class Times(NamedTuple):
    """Seconds of the parts of a step: the fields of :class:`StepTiming`."""

    compute: Array
    idle: Array
    update: Array
    exposed: dict[str, Array]

    @property
    def step(self) -> Array:
        """Seconds of the step."""
        return self.compute + self.idle + self.update + sum(self.exposed.values())


def estimate(
    pieces: Pieces, plan: Plan, cluster: Cluster, known: Known | None = None
) -> StepTiming:
    """Returns the closed-form time of a step of the model of `pieces`.

    `known` stores costs of blocks for further plans of the same model and cluster.
    """
    found = combined(amounts(pieces, plan, cluster, known), cluster.coefficients(pieces.model))
    exposed = {kind: float(value) for kind, value in found.exposed.items() if value > 0}
    return StepTiming(
        compute=float(found.compute),
        idle=float(found.idle),
        update=float(found.update),
        exposed=exposed,
    )


def combined(step: StepAmounts, coefficients: Array) -> Times:
    """Returns the times of steps, whose coefficients are in the last axis."""
    value = {name: coefficients[..., at] for at, name in enumerate(NAMES)}
    count = len(TERMS)
    forward, backward = (
        kernels.pass_seconds(part, coefficients[..., None, :count])
        for part in (step.forward, step.backward)
    )
    exposed = {
        kind: step.blocking[..., at] * value[kind][..., None] for at, kind in enumerate(BLOCKING)
    }
    hidden = step.covered * value["attention"][..., None, None]
    shown = np.maximum(value["context"][..., None, None] * step.ring, step.ring - hidden)
    exposed["context"] = exposed["context"] + shown.sum(axis=-1)
    each = forward + backward + sum(exposed.values())
    idle = _idle(step, coefficients)
    busiest = each.argmax(axis=-1)[..., None]

    def of(array: Array) -> Array:
        return np.take_along_axis(array, busiest, axis=-1)[..., 0]

    forward, backward, each = of(forward), of(backward), of(each)
    micro_batches = step.micro_batches
    found = {kind: micro_batches * of(seconds) for kind, seconds in exposed.items()}
    waits = np.maximum(0.0, 2 * step.interleaved * step.message - each)
    found["pipeline"] = of(step.passing) + micro_batches * waits
    # Collectives that block layers hide gathers, too: they do not use all links.
    longer = each / (forward + backward)
    passes = (forward * longer, backward * longer, of(step.gather), of(step.reduce))
    found["data"] = _data(step, passes, value["data"])
    terms = coefficients[..., -step.update.shape[-1] :]
    return Times(
        compute=micro_batches * (forward + backward),
        idle=of(idle),
        update=(step.update * terms).sum(axis=-1),
        exposed=found,
    )


def _idle(step: StepAmounts, coefficients: Array) -> Array:
    """Returns the seconds that each stage waits for passes of others."""
    of_terms = coefficients[..., None, : len(TERMS)]
    # Work that a stage does while it waits may exceed that of others in single terms.
    found = sum(
        kernels.pass_seconds(np.maximum(part, 0.0), of_terms)
        for part in (step.idle_forward, step.idle_backward)
    )
    shares = coefficients[..., None, [NAMES.index(kind) for kind in BLOCKING]]
    total: Array = found + np.maximum(0.0, step.idle_blocking * shares).sum(axis=-1)
    return total


def busy(step: StepAmounts, coefficients: Array) -> Array:
    """Returns the seconds in which the GPU of the busiest stage runs kernels that compute.

    Those of passes, without the time of launches, and those of casts and the optimizer.
    """
    parts = (step.forward + step.backward) * coefficients[..., None, : len(TERMS)]
    kernels_of_passes = parts[..., : -kernels.HOST].sum(axis=-1).max(axis=-1)
    terms = coefficients[..., NAMES.index(UPDATE[0]) :][..., :2]
    once = (step.update[..., :2] * terms).sum(axis=-1)
    found: Array = step.micro_batches * kernels_of_passes + once
    return found


def compute_shares(step: StepAmounts, coefficients: Array) -> dict[str, float]:
    """Returns the shares of the compute time of the busiest stage of a step.

    Those of the GPU's terms sum to its time without the host; `launches` is what launches add.
    """
    count, host = len(TERMS), kernels.HOST
    of_terms = coefficients[:count]
    seconds = sum(kernels.pass_seconds(part, of_terms) for part in (step.forward, step.backward))
    at = int(np.asarray(seconds).argmax())
    parts = ((step.forward + step.backward)[at] * of_terms)[:-host] / np.asarray(seconds)[at]
    found = dict(zip(TERMS[:-host], map(float, parts), strict=True))
    return {**found, "launches": 1.0 - sum(found.values())}


def _data(step: StepAmounts, passes: tuple[Array, Array, Array, Array], share: Array) -> Array:
    """Returns the exposed communication of gradients and weights.

    The collective of the first layer is issued when the backward pass ends. Weights are gathered
    during the first forward pass of the next step, or with ZeRO 3 during each pass.
    """
    forward, backward, gather, reduce = passes

    def exposed(moved: Array, during: Array, least: Array) -> Array:
        return np.maximum(moved - during, least)

    once = exposed(reduce, backward, np.maximum(share, 1 / step.layers) * reduce)
    once = once + exposed(gather, forward, share * gather)
    again = step.micro_batches * exposed(gather, forward, share * gather)
    again = again + (step.micro_batches - 1) * exposed(gather, backward, share * gather)
    again = again + exposed(gather + reduce, backward, share * (gather + reduce))
    return np.where(step.sharded > 0, again, once)


def amounts(
    pieces: Pieces, plan: Plan, cluster: Cluster, known: Known | None = None
) -> StepAmounts:
    """Returns the amounts of a step.

    `known` stores those of blocks for further plans of the same model and cluster.
    """
    return _Amounts(pieces, plan, cluster, {} if known is None else known).found()


def update(pieces: Pieces, plan: Plan, cluster: Cluster) -> float:
    """Returns the seconds of a step that belong to no pass: casts, optimizer, and a constant."""
    of = _Amounts(pieces, plan, cluster, {}).update
    return float(of @ cluster.coefficients(pieces.model)[-len(of) :])


def least_data(pieces: Pieces, plan: Plan, cluster: Cluster) -> float:
    """Returns the seconds of data parallelism that no compute hides."""
    found = amounts(pieces, plan, cluster)
    share = cluster.coefficients(pieces.model)[NAMES.index("data")]
    hidden = np.asarray(math.inf)
    return float(_data(found, (hidden, hidden, found.gather.max(), found.reduce.max()), share))


def stacked(steps: Sequence[StepAmounts]) -> StepAmounts:
    """Returns the amounts of several steps in arrays; the last stage is repeated if necessary."""
    most = max(len(step.gather) for step in steps)

    def padded(name: str, step: StepAmounts) -> Array:
        value: Array = getattr(step, name)
        if name not in _BY_STAGE:
            return value
        return np.concatenate([value, np.repeat(value[-1:], most - len(value), axis=0)])

    return StepAmounts(
        **{
            one.name: np.stack([padded(one.name, step) for step in steps])
            for one in fields(StepAmounts)
        }
    )


_OF_COST = ("forward", "backward", "blocking", "ring", "covered", "gather", "reduce")
_BY_STAGE = frozenset({*_OF_COST, "idle_forward", "idle_backward", "idle_blocking", "passing"})


_WIDTHS = {
    "forward": len(TERMS),
    "backward": len(TERMS),
    "blocking": len(BLOCKING),
    "ring": 2,
    "covered": 2,
    "gather": 1,
    "reduce": 1,
    "weights": 1,
    "shard": 1,
}
"""The number of elements of each part of a cost."""
_ENDS = dict(zip(_WIDTHS, accumulate(_WIDTHS.values()), strict=True))
_SLICES = {name: slice(_ENDS[name] - width, _ENDS[name]) for name, width in _WIDTHS.items()}

Known = dict[tuple[object, ...], "list[Array]"]
"""Costs of the distinct pieces of a model by what they depend on.

A cost has amounts of a layer, a block or a stage for a micro-batch, as in :class:`StepAmounts`, in
one array, which takes a ninth of the calls of nine. `weights` are those of a GPU, `shard` those
that its optimizer updates.
"""


def _part(costs: Array, name: str) -> Array:
    """Returns a part of costs by name; scalars lose their axis."""
    found: Array = costs[..., _SLICES[name]]
    return found if _WIDTHS[name] > 1 else found[..., 0]


def _sum(costs: Sequence[tuple[Array, float]]) -> Array:
    found: Array = sum(cost * count for cost, count in costs)  # type: ignore[assignment]
    return found


@dataclass(frozen=True)
class _Amounts:
    pieces: Pieces
    plan: Plan
    cluster: Cluster
    known: Known

    def found(self) -> StepAmounts:
        kinds, costs = self.plan.kinds, self._pieces
        parts = self.pieces.stages(kinds.pipeline, kinds.interleaved)

        def total(pieces: Sequence[float]) -> Array:
            return _sum([(costs[at], n) for at, n in enumerate(pieces) if n] or [(costs[0], 0)])

        stages = np.stack([total(one.pieces) for one in parts])
        waits = np.stack([total(one.awaited) for one in parts])
        slowest, once, around = self._messages()
        return StepAmounts(
            **{name: _part(stages, name) for name in _OF_COST},
            idle_forward=_part(waits, "forward"),
            idle_backward=_part(waits, "backward"),
            idle_blocking=_part(waits, "blocking"),
            passing=np.array([2 * (once + one.rounds * around) for one in parts]),
            layers=np.asarray(max(1, self.pieces.decoder.layers // kinds.pipeline)),
            micro_batches=np.asarray(float(kinds.micro_batches)),
            interleaved=np.asarray(float(kinds.interleaved)),
            message=np.asarray(slowest),
            sharded=np.asarray(1.0 if kinds.zero == 3 else 0.0),
            update=self.update,
        )

    @cached_property
    def update(self) -> Array:
        """The amounts of the update, for the weights of a mean stage."""
        counts = Counter(self.pieces.numbers)
        all_pieces = _sum([(self._pieces[at], n) for at, n in counts.items()])
        weights, shard = (
            float(_part(all_pieces, name)) / self.plan.kinds.pipeline / self.cluster.rates.memory
            for name in ("weights", "shard")
        )
        domains = max(1.0, self.cluster.gpus / self.cluster.domain)
        return np.array([weights, _OPTIMIZER * shard, 1.0, math.log2(domains)])

    @cached_property
    def _pieces(self) -> list[Array]:
        """The costs of the distinct pieces, of which `known` stores the parts."""
        plan = self.plan
        kinds = replace(plan.kinds, pipeline=1, micro_batches=1, interleaved=1)
        inner = [kind for kind in kinds.order if kind in BLOCKING]
        places = tuple((kind, plan.stride(kind)) for kind in inner)
        passes = replace(kinds, zero=0, order=KINDS), plan.micro_batch, places
        units = bool(plan.kinds.units(self.pieces.model))
        weights = replace(kinds, recompute="none"), plan.data, plan.stride("data"), units
        parts = [
            self.known.get(key) or self.known.setdefault(key, self._blocks(part))
            for key, part in ((passes, self._passes), (weights, self._weights))
        ]
        return [np.concatenate(both) for both in zip(*parts, strict=True)]

    def _blocks(self, cost: Callable[[ModelLayer, Transfers, int], Array]) -> list[Array]:
        """Returns a part of the cost of each distinct piece, between its neighbours."""
        plan, layers = self.plan, self.pieces.model.layers
        placement = plan.kinds.on([(kind, plan.degree(kind)) for kind in plan.kinds.order])
        sizes = self.cluster.elements.of(ELEMENT)
        copies = plan.kinds.dispatched(self.pieces.model)
        units = plan.kinds.units(self.pieces.model)
        found = []
        for start, stop in self.pieces.places:
            first = max(0, start - 1)
            near = layers[first : stop + 1]
            moved = Transfers(plan.kinds, placement, near, plan.micro_batch, sizes, copies,
                              units[first : stop + 1])  # fmt: skip
            costs = [cost(near[at], moved, at) for at in range(start - first, stop - first)]
            found.append(_sum([(one, 1) for one in costs]))
        return found

    def _passes(self, layer: ModelLayer, moved: Transfers, at: int) -> Array:
        """Returns the elements of a layer's cost that depend on the samples of a pass."""
        kinds, samples, rates = self.plan.kinds, self.plan.micro_batch, self.cluster.rates
        part = kinds.part(layer)
        forward, *back = (
            np.array(kernels.amounts(part, which, samples, rates)) for which in PASSES
        )
        backward: Array = sum(back)  # type: ignore[assignment]
        again = recomputed(part, kinds.recompute)
        if again and not layer.first and layer.name != "classifier":
            backward = backward + np.array(kernels.amounts(again, "forward", samples, rates))
        found = moved.of(at)
        blocking = dict.fromkeys(BLOCKING, 0.0)
        for one in (*found.after_forward, *found.after_input_gradient):
            kind = "expert" if one.collective == "all_to_all" else one.rings[0]
            blocking[kind] += self._time(one)
        ring = [sum(map(self._time, of)) for of in (found.with_forward, found.with_backward)]
        share = (kinds.context - 1) / kinds.context if any(ring) else 0.0
        attention = TERMS.index("attention")
        covered = share * np.array([forward[attention], backward[attention]])
        blocked = [blocking[kind] for kind in BLOCKING]
        return np.concatenate([forward, backward, blocked, ring, covered])

    def _weights(self, layer: ModelLayer, moved: Transfers, at: int) -> Array:
        """Returns the elements of a layer's cost that depend on the copies of its weights."""
        kinds = self.plan.kinds
        gather, _, reduce = moved.weights(at)
        weights = kinds.part(layer, context=False).parameters
        copies = self.plan.data * kinds.context * (1 if layer.experts > 1 else kinds.expert)
        return np.array(
            [
                self._time(gather) if gather else 0.0,
                self._time(reduce) if reduce else 0.0,
                float(weights),
                weights / (copies if kinds.zero else 1),
            ]
        )

    @cached_property
    def _dimensions(self) -> list[tuple[Kind, int, bool]]:
        return list(self.plan.dimensions(self.cluster.domain))

    def _time(self, transfer: Transfer) -> float:
        """Returns the library's or the alpha-beta time of a collective, with its launch.

        A group is one ring per GPU that it has in a domain, through as many adapters, as NCCL's
        channels are. The slowest link sets the bandwidth.
        """
        by_library = library_seconds(self.plan, self.cluster, transfer)
        if by_library is not None:
            return by_library
        if transfer.collective == "all_to_all":
            return self._all_to_all(transfer)
        parts = [part for part in self._dimensions if part[0] in transfer.rings]
        inside = math.prod(ranks for _, ranks, is_inside in parts if is_inside)
        count = math.prod(ranks for _, ranks, _ in parts)
        outside = count // inside
        if count == 1:
            return 0.0
        near, far = self.cluster.inner, self.cluster.outer
        slowest = (count - 1) / count * transfer.bytes
        slowest *= max(1 / near.rate, 1 / (inside * far.rate)) if outside > 1 else 1 / near.rate
        latency = outside * (inside - 1) * near.latency + (outside - 1) * far.latency
        rounds = 2 if transfer.collective == "all_reduce" else 1
        return self.cluster.launch + (slowest + latency) * rounds

    def _all_to_all(self, transfer: Transfer) -> float:
        """Returns the time of an all-to-all: of its bytes for other domains, or for other GPUs."""
        plan, domain, ranks, reach = self.plan, self.cluster.domain, 1, 1
        for kind in plan.kinds.order:
            if kind in transfer.rings:
                ranks *= plan.degree(kind)
                reach = plan.stride(kind) * plan.degree(kind)
        if ranks == 1:
            return 0.0
        link = self.cluster.inner if reach <= domain else self.cluster.outer
        near = max(1, ranks * domain // reach) if reach > domain else 1
        share = (ranks - near) / ranks
        return self.cluster.launch + share * transfer.bytes / link.rate + link.latency

    def _messages(self) -> tuple[float, float, float]:
        """Returns seconds of the activations of a micro-batch: a hop, all hops, all and back.

        The first is the slowest hop between stages. From the last stage they return to the first.
        """
        plan, shape, stages = self.plan, self.pieces.decoder, self.plan.kinds.pipeline
        if stages == 1:
            return 0.0, 0.0, 0.0
        size = plan.micro_batch * shape.tokens * shape.hidden * ELEMENT
        size //= plan.kinds.tensor * plan.kinds.context
        near, far = (size / link.rate + link.latency
                     for link in (self.cluster.inner, self.cluster.outer))  # fmt: skip
        together = max(1, min(stages, self.cluster.domain // plan.stride("pipeline")))
        if together == stages:
            return near, (stages - 1) * near, stages * near
        between = -(-stages // together)
        around = between * far + (stages - between) * near
        return far, around - far, around
