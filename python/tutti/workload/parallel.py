"""Parallelisation of a model over NPUs, and the resulting collectives.

NPUs form a torus of named rings, or their numbers have named dimensions, and each kind of
parallelism takes complete rings. By default, tensor and expert parallelism take the first rings, as
they communicate most. The pipeline takes the last rings, data parallelism the remaining ones. Sizes
are in elements, by the convention of each collective.

- **Data**: NPUs process different samples, and all-reduce gradients of the same weights. **ZeRO**
  (Rajbhandari et al. 2020) shards replicated state. With stages 1 (optimiser) and 2 (gradients),
  gradients are reduce-scattered and updated weights all-gathered. With stage 3 (weights, as in
  FSDP), weights are all-gathered before each forward and backward pass.
- **Tensor** (Shoeybi et al. 2019): the weights of a layer are divided by columns, or by rows if the
  outputs of the previous layer are divided. Row-parallel layers all-reduce their outputs,
  column-parallel layers the gradients of their inputs. Column-parallel outputs are all-gathered if
  the next layer needs all of them. With **sequence** parallelism (Korthikanti et al. 2022), NPUs
  of a tensor group hold different tokens between these layers: each all-reduce becomes a
  reduce-scatter and an all-gather.
- **Expert** (Lepikhin et al. 2020): experts are distributed. An all-to-all sends tokens to their
  experts, another returns them, and the same holds for gradients.
- **Pipeline** (Huang et al. 2019; Narayanan et al. 2021): layers are divided into stages, a batch
  into micro-batches. Stages may have several model chunks, which micro-batches pass in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field, Strict

from tutti.errors import WorkloadError
from tutti.files.described import Count, InFiles, Positive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.workload.model import Gemm, Model, ModelLayer

__all__ = [
    "KINDS",
    "Divided",
    "Division",
    "LayerTransfers",
    "Parallelism",
    "Placement",
    "Stages",
    "Transfer",
]


@dataclass(frozen=True)
class Transfer:
    """A collective of a pass.

    Attributes:
        collective: The collective.
        bytes: The size, by the convention of the collective.
        rings: The participating rings; empty for all.
    """

    collective: str
    bytes: int
    rings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LayerTransfers:
    """The collectives of a layer.

    Attributes:
        before_forward: Gathers the weights; the forward pass waits for it.
        before_backward: Gathers the weights for the backward pass, if they are not retained.
        after_forward: Sequential collectives after the forward pass; the next layer waits.
        after_input_gradient: Collectives after the input gradient. The previous layer waits.

        after_weight_gradient: Reduces the weight gradients; the next forward pass waits.
    """

    before_forward: Transfer | None = None
    before_backward: Transfer | None = None
    after_forward: tuple[Transfer, ...] = ()
    after_input_gradient: tuple[Transfer, ...] = ()
    after_weight_gradient: Transfer | None = None


@dataclass(frozen=True, kw_only=True)
class Divided:
    """The parts of a model on the NPUs.

    Attributes:
        layers: The part of each layer on an NPU, with its collectives.
        samples: The samples of a micro-batch.
        pipeline: The stages of these layers, if any.
        prefetch: The number of passes ahead for which weights are gathered.
    """

    layers: tuple[tuple[ModelLayer, LayerTransfers], ...]
    samples: int
    pipeline: Stages | None = None
    prefetch: int | None = None


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The stages of a pipeline.

    Attributes:
        stages: Their number.
        micro_batches: Micro-batches per iteration.
        order: The order of passes, as in :class:`Parallelism`.
        rings: The rings along which the stages lie.
        ends: The end of the layers of each model chunk; chunk c is on stage c modulo `stages`.
        messages: Bytes from each model chunk to the next, per micro-batch.
    """

    stages: int
    micro_batches: int
    order: str
    rings: tuple[str, ...]
    ends: tuple[int, ...]
    messages: tuple[int, ...]


class Division(Protocol):
    """A method to divide a model among NPUs."""

    def divide(
        self,
        model: Model,
        samples: int,
        element: int,
        rings: Sequence[tuple[str, int]],
        cost: Callable[[ModelLayer, int], int],
    ) -> Divided:
        """Returns the parts of the NPUs; `cost` is the time of a layer for some samples."""


@dataclass(frozen=True)
class Placement:
    """The rings of each kind of parallelism.

    Attributes:
        tensor: The rings that divide the weights of a layer.
        expert: The rings that divide experts, with different samples per NPU.
        data: The rings with replicated weights.
        pipeline: The rings of stages.
    """

    tensor: tuple[str, ...]
    expert: tuple[str, ...]
    data: tuple[str, ...]
    pipeline: tuple[str, ...]


Kind = Literal["tensor", "expert", "data", "pipeline"]
KINDS: tuple[Kind, ...] = ("tensor", "expert", "data", "pipeline")


@dataclass(frozen=True, kw_only=True)
class Parallelism(InFiles):
    """The degrees of parallelism; each kind takes complete dimensions of the NPU numbers.

    Dimensions are the rings of a torus, or those of the platform. The remaining ones are data
    parallel.
    """

    tensor: Annotated[
        Positive, Field(description="Degree of tensor parallelism, on the first dimensions.")
    ] = 1
    expert: Annotated[
        Positive, Field(description="Degree of expert parallelism, on the next dimensions.")
    ] = 1
    sequence: Annotated[
        bool,
        Field(
            description="Sequence parallelism with tensor parallelism: all-reduces of activations "
            "become a reduce-scatter and an all-gather, and messages between stages are divided."
        ),
    ] = False
    pipeline: Annotated[
        Positive, Field(description="Number of pipeline stages, on the last dimensions.")
    ] = 1
    micro_batches: Annotated[
        Positive, Field(description="Micro-batches per batch; at least the number of stages.")
    ] = 1
    schedule: Annotated[
        Literal["1f1b", "gpipe"],
        Field(
            description="The order of passes in a pipeline: alternating (`1f1b`), or all forward "
            "passes first (`gpipe`)."
        ),
    ] = "1f1b"
    interleaved: Annotated[
        Positive,
        Field(description="Model chunks per stage, which micro-batches pass in turn (with 1F1B)."),
    ] = 1
    order: Annotated[
        tuple[Kind, ...],
        Strict(strict=False),
        Field(description="The kinds of parallelism from the inner dimensions to the outer ones."),
    ] = KINDS
    zero: Annotated[
        Literal[0, 1, 2, 3],
        Field(
            description="ZeRO stage: the state that NPUs with the same weights partition; 3 "
            "is FSDP.",
        ),
    ] = 0
    prefetch: Annotated[Count, Field(description="Passes by which FSDP prefetches weights.")] = 1

    @property
    def replica(self) -> int:
        """The number of NPUs that share a replica of the model."""
        return self.tensor * self.pipeline

    def on(self, rings: Sequence[tuple[str, int]]) -> Placement:
        """Assigns rings of (name, NPUs) to kinds of parallelism.

        Raises:
            WorkloadError: A degree is not a product of complete rings.
        """
        if sorted(self.order) != sorted(KINDS):
            given, kinds = ", ".join(self.order), ", ".join(KINDS)
            message = f"`order` has {given}: expected each of {kinds} once"
            raise WorkloadError(message, kind="wrong_order")
        left = [ring for ring in rings if ring[1] > 1]
        taken: dict[str, tuple[str, ...]] = {}
        at = self.order.index("data")
        degrees = {"tensor": self.tensor, "expert": self.expert, "pipeline": self.pipeline}
        for kind in self.order[:at]:
            taken[kind], left = _taken(kind, degrees[kind], left, rings)
        for kind in reversed(self.order[at + 1 :]):
            outer, rest = _taken(kind, degrees[kind], left[::-1], rings)
            taken[kind], left = outer[::-1], rest[::-1]
        return Placement(data=tuple(name for name, _ in left), **taken)

    def divide(
        self,
        model: Model,
        samples: int,
        element: int,
        rings: Sequence[tuple[str, int]],
        cost: Callable[[ModelLayer, int], int],
    ) -> Divided:
        """Returns the parts of the NPUs.

        Raises:
            WorkloadError: The model or the NPUs cannot be divided accordingly.
        """
        self._check(model, samples)
        placement = self.on(rings)
        passing = samples // self.micro_batches
        parts = [_part(layer, self.tensor, self.expert) for layer in model.layers]
        transfers = _Transfers(self, placement, model.layers, passing * element, element)
        layers = [(part, transfers.of(index)) for index, part in enumerate(parts)]
        if self.pipeline == 1:
            prefetch = self.prefetch if self.zero == 3 else None
            return Divided(layers=tuple(layers), samples=passing, prefetch=prefetch)
        costs = [cost(part, passing) for part in parts]
        ends = [stop for _, stop in _stages(tuple(costs), self.pipeline * self.interleaved)]
        outputs = [model.layers[stop - 1].outputs for stop in ends[:-1]]
        shares = self.tensor if self.sequence else 1
        return Divided(
            layers=tuple(layers),
            samples=passing,
            pipeline=Stages(
                stages=self.pipeline,
                micro_batches=self.micro_batches,
                order=self.schedule,
                rings=placement.pipeline,
                ends=tuple(ends),
                messages=tuple(-(-passing * element * count // shares) for count in outputs),
            ),
            prefetch=self.prefetch if self.zero == 3 else None,
        )

    def _check(self, model: Model, samples: int) -> None:
        if samples % self.micro_batches:
            message = f"`micro_batches = {self.micro_batches}` does not divide {samples} samples"
            raise WorkloadError(message, kind="does_not_divide")
        if self.micro_batches > 1 and self.pipeline == 1:
            message = f"`micro_batches = {self.micro_batches}` without a pipeline: expected 1"
            raise WorkloadError(message, kind="no_pipeline")
        if self.sequence and self.tensor == 1:
            message = "`sequence` without tensor parallelism: expected `tensor` above 1"
            raise WorkloadError(message, kind="no_tensor")
        if self.interleaved > 1 and self.pipeline == 1:
            message = f"`interleaved = {self.interleaved}` without a pipeline: expected 1"
            raise WorkloadError(message, kind="no_pipeline")
        if self.pipeline * self.interleaved > len(model.layers):
            message = (
                f"{self.pipeline} stages of {self.interleaved} model chunks: expected at most "
                f"{len(model.layers)} chunks, the number of layers"
            )
            raise WorkloadError(message, kind="too_few_layers")
        if model.tables is not None and (self.tensor, self.expert, self.pipeline) != (1, 1, 1):
            message = (
                f"{model.name} distributes its embedding tables over all NPUs: expected data "
                "parallelism only"
            )
            raise WorkloadError(message, kind="tables_divided")
        experts = {layer.experts for layer in model.layers if layer.experts > 1}
        for count in sorted(experts or {1}):
            if count % self.expert:
                message = f"`expert = {self.expert}` does not divide {count} experts of a layer"
                raise WorkloadError(message, kind="does_not_divide")


_Rings = list[tuple[str, int]]


def _taken(
    what: str, count: int, left: _Rings, rings: Sequence[tuple[str, int]]
) -> tuple[tuple[str, ...], _Rings]:
    """Returns the first rings with a product of `count` NPUs, and the other rings."""
    taken: list[str] = []
    product, rest = 1, list(left)
    while product < count and rest:
        name, nodes = rest.pop(0)
        taken.append(name)
        product *= nodes
    if product != count:
        possible, so_far = [], 1
        for _, nodes in left:
            so_far *= nodes
            possible.append(str(so_far))
        expected = f"expected 1 or {' or '.join(possible)}" if possible else "expected 1"
        message = (
            f"`{what} = {count}` does not divide the NPUs, {_text(rings)}, into complete rings: "
            f"{expected}"
        )
        raise WorkloadError(message, kind="does_not_divide")
    return tuple(taken), rest


def _text(rings: Sequence[tuple[str, int]]) -> str:
    return " x ".join(str(nodes) for _, nodes in rings)


def _part(layer: ModelLayer, tensor: int, expert: int) -> ModelLayer:
    """Returns the largest part of a layer on one NPU."""
    if tensor == 1 and layer.experts == 1:
        return layer

    def shard(gemm: Gemm) -> Gemm:
        if gemm.split == "k":
            return replace(gemm, k=-(-gemm.k // tensor))
        return replace(gemm, n=-(-gemm.n // tensor))

    rows = layer.by_rows
    experts = layer.experts // expert if layer.experts > 1 else 1
    share = tensor * (layer.experts // experts)
    return replace(
        layer,
        gemms=tuple(shard(gemm) for gemm in layer.gemms),
        parameters=-(-layer.parameters // share),
        inputs=-(-layer.inputs // tensor) if rows else layer.inputs,
        outputs=layer.outputs if rows else -(-layer.outputs // tensor),
        experts=experts,
    )


@dataclass(frozen=True)
class _Transfers:
    """The collectives of each layer, with `passing` bytes per element of a sample."""

    parallelism: Parallelism
    placement: Placement
    layers: Sequence[ModelLayer]
    passing: int
    element: int

    def of(self, index: int) -> LayerTransfers:
        before, backward, gradients = self._weights(index)
        return LayerTransfers(
            before_forward=before,
            before_backward=backward,
            after_forward=(*self._tensor_forward(index), *self._experts_forward(index)),
            after_input_gradient=(*self._tensor_back(index), *self._experts_back(index)),
            after_weight_gradient=gradients,
        )

    def _weights(self, index: int) -> tuple[Transfer | None, Transfer | None, Transfer | None]:
        layer, placement = self.layers[index], self.placement
        rings = placement.data if layer.experts > 1 else placement.expert + placement.data
        part = _part(layer, self.parallelism.tensor, self.parallelism.expert)
        size = part.parameters * self.element
        if size == 0 or not rings:
            return None, None, None
        zero = self.parallelism.zero
        if zero == 0:
            return None, None, Transfer("all_reduce", size, rings)
        gather, scatter = (
            Transfer("all_gather", size, rings),
            Transfer("reduce_scatter", size, rings),
        )
        return gather, gather if zero == 3 else None, scatter

    def _exchange(self, collective: str, elements: int, rings: tuple[str, ...]) -> Transfer:
        return Transfer(collective, elements * self.passing, rings)

    def _reduced(self, elements: int, rings: tuple[str, ...]) -> tuple[Transfer, ...]:
        """Returns the collectives that reduce activations over a tensor group."""
        parts = ("reduce_scatter", "all_gather") if self.parallelism.sequence else ("all_reduce",)
        return tuple(self._exchange(collective, elements, rings) for collective in parts)

    def _tensor_forward(self, index: int) -> tuple[Transfer, ...]:
        layer, rings = self.layers[index], self.placement.tensor
        if not rings:
            return ()
        if layer.by_rows:
            return self._reduced(layer.outputs, rings)
        if index + 1 == len(self.layers) or self.layers[index + 1].by_rows:
            return ()
        return (self._exchange("all_gather", layer.outputs, rings),)

    def _tensor_back(self, index: int) -> tuple[Transfer, ...]:
        layer, rings = self.layers[index], self.placement.tensor
        if not rings or layer.first:
            return ()
        if not layer.by_rows:
            return self._reduced(layer.inputs, rings)
        if self.layers[index - 1].by_rows:
            return (self._exchange("all_gather", layer.inputs, rings),)
        return ()

    def _is_expert(self, index: int) -> bool:
        inside = 0 <= index < len(self.layers)
        return bool(self.placement.expert) and inside and self.layers[index].experts > 1

    def _experts_forward(self, index: int) -> tuple[Transfer, ...]:
        """Returns the all-to-all before the first layer of experts, or after the last."""
        if self._is_expert(index) == self._is_expert(index + 1):
            return ()
        is_expert = self._is_expert(index)
        elements = self.layers[index].outputs if is_expert else self.layers[index + 1].inputs
        return (self._exchange("all_to_all", elements, self.placement.expert),)

    def _experts_back(self, index: int) -> tuple[Transfer, ...]:
        if self._is_expert(index) == self._is_expert(index - 1) or self.layers[index].first:
            return ()
        is_expert = self._is_expert(index)
        elements = self.layers[index].inputs if is_expert else self.layers[index - 1].outputs
        return (self._exchange("all_to_all", elements, self.placement.expert),)


@lru_cache(maxsize=16)
def _stages(costs: tuple[int, ...], stages: int) -> list[tuple[int, int]]:
    """Divides layers into `stages` pieces with the minimal longest piece."""
    total = [0]
    for cost in costs:
        total.append(total[-1] + cost)
    # best[k][n]: the longest of k stages of the first n layers, and the start of the last stage.
    best = [(total[n], 0) for n in range(len(costs) + 1)]
    starts = [[0] * (len(costs) + 1)]
    for k in range(2, stages + 1):
        row = [(0, 0)] * (len(costs) + 1)
        for n in range(k, len(costs) + 1):
            cuts = range(k - 1, n)
            row[n] = min((max(best[cut][0], total[n] - total[cut]), cut) for cut in cuts)
        best = row
        starts.append([cut for _, cut in row])
    bounds, stop = [], len(costs)
    for row_of in reversed(starts):
        start = row_of[stop]
        bounds.append((start, stop))
        stop = start
    return bounds[::-1]
