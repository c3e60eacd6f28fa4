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
- **Context** (Grattafiori et al. 2024, section 3.3.2): NPUs hold different tokens of a sequence
  and the same weights. Attention gathers the keys and values of all tokens; the backward pass
  gathers them again and reduce-scatters their gradients. A ring exchange (Liu et al. 2023) sends as
  many bytes while attention processes the blocks that have arrived.
- **Expert** (Lepikhin et al. 2020): experts are distributed. An all-to-all sends tokens to their
  experts, another returns them, and the same holds for gradients. With an expert domain, experts of
  the same NPU or domain share a copy of a token (:mod:`tutti.workloads.experts`). If experts are
  undivided, NPUs of a tensor group have different experts (expert tensor parallelism of 1).
- **Pipeline** (Huang et al. 2019; Narayanan et al. 2021): layers are divided into stages, a batch
  into micro-batches. Stages may have several model chunks, which micro-batches pass in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field, Strict

from tutti.base.files.described import Count, InFiles, Positive
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import ModelLayer
from tutti.workloads.sharing import shared_copies
from tutti.workloads.stages import cuts_of, longest, stage_ends, units_of
from tutti.workloads.tokens import Format  # noqa: TC001 - pydantic needs it at run time
from tutti.workloads.transfers import (
    CpCommType,
    Elements,
    LayerTransfers,
    Recompute,
    Transfer,
    Transfers,
    divided,
    with_more_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.workloads.model import Model

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


@dataclass(frozen=True, kw_only=True)
class Divided:
    """The parts of a model on the NPUs.

    Attributes:
        layers: The part of each layer on an NPU, with its collectives.
        samples: The samples of a micro-batch.
        pipeline: The stages of these layers, if any.
        prefetch: The number of passes ahead for which weights are gathered.
        context: The degree of context parallelism.
        recompute: What the backward pass computes again, as in :class:`Parallelism`.
    """

    layers: tuple[tuple[ModelLayer, LayerTransfers], ...]
    samples: int
    pipeline: Stages | None = None
    prefetch: int | None = None
    context: int = 1
    recompute: Recompute = "none"


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


DEFAULT_ELEMENTS = Elements()


class Division(Protocol):
    """A method to divide a model among NPUs."""

    def divide(
        self,
        model: Model,
        samples: int,
        element: int,
        rings: Sequence[tuple[str, int]],
        cost: Callable[[ModelLayer, int], int],
        *,
        elements: Elements = DEFAULT_ELEMENTS,
    ) -> Divided:
        """Returns the parts of the NPUs; `cost` is the time of a layer for some samples."""


@dataclass(frozen=True)
class Placement:
    """The rings of each kind of parallelism.

    Attributes:
        tensor: The rings that divide the weights of a layer.
        context: The rings that divide the tokens of a sequence.
        expert: The rings that divide experts, with different samples per NPU.
        data: The rings with replicated weights.
        pipeline: The rings of stages.
    """

    tensor: tuple[str, ...]
    context: tuple[str, ...]
    expert: tuple[str, ...]
    data: tuple[str, ...]
    pipeline: tuple[str, ...]


Kind = Literal["tensor", "context", "expert", "data", "pipeline"]
KINDS: tuple[Kind, ...] = ("tensor", "context", "expert", "data", "pipeline")


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
    undivided_experts: Annotated[
        bool,
        Field(
            description="Expert tensor parallelism of 1: NPUs of a tensor group have different "
            "experts instead of parts of the same; needs `sequence`."
        ),
    ] = False
    expert_domain: Annotated[
        Count,
        Field(
            description="NPUs of a scale-up domain, for dispatch as in DeepEP: a token is sent "
            "once to each NPU of its experts, or once to each other domain. 0: a copy per selected "
            "expert."
        ),
    ] = 0
    dispatch_format: Annotated[
        Format | None,
        Field(
            description="Format of tokens, and of gradients, that are sent to experts: "
            "`fp8` with scales, or `bf16`; by default that of activations. Outputs of experts "
            "return as activations."
        ),
    ] = None
    expert_imbalance: Annotated[
        float,
        Field(
            ge=1,
            le=1e4,
            description="Tokens of the busiest NPU of expert parallelism over the mean, as `tutti "
            "moe` prints it: a factor on its products, copies and all-to-alls.",
        ),
    ] = 1.0
    context: Annotated[
        Positive,
        Field(description="Degree of context parallelism, on the dimensions after `tensor`."),
    ] = 1
    cp_comm_type: Annotated[
        CpCommType,
        Field(
            description="Exchange of keys and values of context parallelism, as in Megatron-Core: "
            "gathered before attention (`all_gather`), or sent around a ring while attention "
            "processes the blocks that have arrived (`p2p`)."
        ),
    ] = "all_gather"
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
        Positive,
        Field(
            description="Micro-batches per batch; at least the number of stages. Without a "
            "pipeline, their gradients are accumulated."
        ),
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
        Field(
            description="The kinds of parallelism from the inner dimensions to the outer ones; "
            "`context` may be left out if it is 1."
        ),
    ] = KINDS
    zero: Annotated[
        Literal[0, 1, 2, 3],
        Field(
            description="ZeRO stage: the state that NPUs with the same weights partition; 3 "
            "is FSDP.",
        ),
    ] = 0
    prefetch: Annotated[Count, Field(description="Blocks by which FSDP prefetches weights.")] = 1
    recompute: Annotated[
        Recompute,
        Field(
            description="Activations that the backward pass computes again: `none`, those of "
            "attention scores (`selective`), or all between blocks (`full`)."
        ),
    ] = "none"

    @property
    def replica(self) -> int:
        """The number of NPUs that share a replica of the model."""
        return self.tensor * self.context * self.pipeline

    def part(self, layer: ModelLayer, *, context: bool = True) -> ModelLayer:
        """Returns the largest part of a layer on one NPU, for all tokens without `context`."""
        tokens = self.context if context else 1
        part = divided(
            layer, self.tensor, tokens, self.expert, undivided_experts=self.undivided_experts
        )
        is_skewed = layer.experts > 1 and self.expert_imbalance > 1
        return with_more_tokens(part, self.expert_imbalance) if is_skewed else part

    @property
    def expert_ranks(self) -> int:
        """The number of NPUs with different experts."""
        return self.expert * (self.tensor if self.undivided_experts else 1)

    def dispatched(self, model: Model) -> float:
        """Returns the copies of a token that dispatch sends, per selected expert."""
        experts = model.decoder.experts if model.decoder else None
        ranks = self.expert_ranks
        if experts is None or ranks == 1 or not self.expert_domain:
            return 1.0
        return shared_copies(
            experts.routed,
            experts.top,
            ranks=ranks,
            domain=self.expert_domain,
            groups=experts.groups,
            most_groups=experts.most_groups,
        )

    def on(self, rings: Sequence[tuple[str, int]]) -> Placement:
        """Assigns rings of (name, NPUs) to kinds of parallelism.

        Raises:
            WorkloadError: A degree is not a product of complete rings.
        """
        order = self._complete_order()
        left = [ring for ring in rings if ring[1] > 1]
        taken: dict[str, tuple[str, ...]] = {}
        at = order.index("data")
        degrees = {kind: getattr(self, kind, 1) for kind in KINDS}
        for kind in order[:at]:
            taken[kind], left = _taken(kind, degrees[kind], left, rings)
        for kind in reversed(order[at + 1 :]):
            outer, rest = _taken(kind, degrees[kind], left[::-1], rings)
            taken[kind], left = outer[::-1], rest[::-1]
        return Placement(data=tuple(name for name, _ in left), **taken)

    def _complete_order(self) -> tuple[Kind, ...]:
        """Returns `order`, with `context` first if it is left out and takes no dimension.

        Raises:
            WorkloadError: A kind is missing or duplicate.
        """
        order = self.order
        if self.context == 1 and "context" not in order:
            order = ("context", *order)
        if sorted(order) != sorted(KINDS):
            given, kinds = ", ".join(self.order), ", ".join(KINDS)
            message = f"`order` has {given}: expected each of {kinds} once"
            raise WorkloadError(message, kind="wrong_order")
        return order

    def divide(
        self,
        model: Model,
        samples: int,
        element: int,
        rings: Sequence[tuple[str, int]],
        cost: Callable[[ModelLayer, int], int],
        *,
        elements: Elements = DEFAULT_ELEMENTS,
    ) -> Divided:
        """Returns the parts of the NPUs.

        Raises:
            WorkloadError: The model or the NPUs cannot be divided accordingly.
        """
        self._check(model, samples)
        placement = self.on(rings)
        passing = samples // self.micro_batches
        parts = [self.part(one) for one in model.layers]
        sizes, copies = elements.of(element), self.dispatched(model)
        units = self.units(model)
        transfers = Transfers(self, placement, model.layers, passing, sizes, copies, units)
        layers = [(part, transfers.of(index)) for index, part in enumerate(parts)]
        if self.pipeline == 1:
            layers += (self.micro_batches - 1) * self._accumulated(layers)
        stages = None
        if self.pipeline > 1:
            costs = [cost(part, passing) for part in parts]
            size = passing * (elements.activations or element)
            stages = self._pipelined(model, costs, size, placement)
        return Divided(
            layers=tuple(layers),
            samples=passing,
            pipeline=stages,
            prefetch=self.prefetch * longest(units) if self.zero == 3 else None,
            context=self.context,
            recompute=self.recompute,
        )

    def units(self, model: Model) -> tuple[int, ...]:
        """Returns the unit of each layer that ZeRO 3 gathers together; empty without it."""
        return units_of(model) if self.zero == 3 else ()

    def _accumulated(self, layers: _Layers) -> _Layers:
        """Returns the layers of a micro-batch whose gradients are added to others before they move.

        All forward passes precede the backward passes, in reverse order, so the first micro-batch
        is the last to finish: it reduces the gradients, and its passes gather the weights.
        """
        moves = [(part, replace(moved, after_weight_gradient=None)) for part, moved in layers]
        if self.zero == 3:
            return moves
        return [
            (part, replace(moved, before_forward=None, before_backward=None))
            for part, moved in moves
        ]

    def _pipelined(
        self, model: Model, costs: Sequence[int], size: int, placement: Placement
    ) -> Stages:
        """Returns the stages for layers of some costs, and `size` bytes per element of outputs."""
        ends = stage_ends(model, costs, self.pipeline * self.interleaved)
        outputs = [model.layers[stop - 1].outputs for stop in ends[:-1]]
        shares = self.context * (self.tensor if self.sequence else 1)
        return Stages(
            stages=self.pipeline,
            micro_batches=self.micro_batches,
            order=self.schedule,
            rings=placement.pipeline,
            ends=tuple(ends),
            messages=tuple(-(-size * count // shares) for count in outputs),
        )

    def _check(self, model: Model, samples: int) -> None:
        self._check_pipeline(model, samples)
        if self.sequence and self.tensor == 1:
            message = "`sequence` without tensor parallelism: expected `tensor` above 1"
            raise WorkloadError(message, kind="no_tensor")
        if self.context > 1 and not any(layer.context for layer in model.layers):
            message = (
                f"`context = {self.context}` divides tokens, and {model.name} has no attention: "
                "expected a decoder or transformer"
            )
            raise WorkloadError(message, kind="no_context")
        if model.tables is not None and self.replica * self.expert > 1:
            message = (
                f"{model.name} distributes its embedding tables over all NPUs: expected data "
                "parallelism only"
            )
            raise WorkloadError(message, kind="tables_divided")
        self._check_experts(model)

    def _check_pipeline(self, model: Model, samples: int) -> None:
        if samples % self.micro_batches:
            message = f"`micro_batches = {self.micro_batches}` does not divide {samples} samples"
            raise WorkloadError(message, kind="does_not_divide")
        if self.pipeline == 1 and self.micro_batches * len(model.layers) > _MOST_LAYERS:
            message = (
                f"`micro_batches = {self.micro_batches}` of {len(model.layers)} layers without "
            )
            message += f"a pipeline: expected at most {_MOST_LAYERS:,} layers of all micro-batches"
            raise WorkloadError(message, kind="no_pipeline")
        if self.interleaved > 1 and self.pipeline == 1:
            message = f"`interleaved = {self.interleaved}` without a pipeline: expected 1"
            raise WorkloadError(message, kind="no_pipeline")
        pieces = len(cuts_of(model, self.pipeline * self.interleaved))
        if self.pipeline * self.interleaved > pieces:
            what = "blocks and the classifier" if model.cuts else "layers"
            message = (
                f"{self.pipeline} stages of {self.interleaved} model chunks: expected at most "
                f"{pieces} chunks, the number of {what}"
            )
            raise WorkloadError(message, kind="too_few_layers")

    def _check_experts(self, model: Model) -> None:
        has_experts = any(layer.experts > 1 for layer in model.layers)
        if not has_experts and (self.dispatch_format or self.expert_imbalance > 1):
            key = "dispatch_format" if self.dispatch_format else "expert_imbalance"
            message = f"`{key}` without experts in {model.name}: expected a model with experts"
            raise WorkloadError(message, kind="no_experts")
        if self.undivided_experts and not self.sequence:
            message = "`undivided_experts` without sequence parallelism: expected `sequence = true`"
            raise WorkloadError(message, kind="no_tensor")
        experts = {layer.experts for layer in model.layers if layer.experts > 1}
        ranks = self.expert_ranks
        for count in sorted(experts or {1}):
            if count % ranks:
                key = f"`expert = {ranks}`"
                if self.undivided_experts:
                    key = f"`expert` x `tensor` = {ranks}"
                message = f"{key} does not divide {count} experts of a layer"
                divisors = ", ".join(str(one) for one in range(1, count + 1) if count % one == 0)
                hint = f"experts divide by {divisors}"
                raise WorkloadError(message, kind="does_not_divide", hint=hint)


_Rings = list[tuple[str, int]]
_Layers = list[tuple[ModelLayer, LayerTransfers]]
_MOST_LAYERS = 1 << 16
"""Limit on the layers of all micro-batches without a pipeline."""


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
