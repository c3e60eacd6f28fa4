"""The plans of a model on a number of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from tutti.workloads.errors import WorkloadError
from tutti.workloads.parallel import KINDS, Parallelism

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.workloads.decoder import Decoder
    from tutti.workloads.parallel import Kind
    from tutti.workloads.tokens import Format
    from tutti.workloads.transfers import CpCommType, Recompute

_CONTEXTS = (1, 2, 4, 8, 16)
_FEWEST_TOKENS = 1024
"""Tokens of a GPU below which context parallelism divides no further."""
_INTERLEAVED = (1, 2, 4, 8)
_MICRO_BATCHES = (1, 2, 4, 8)
_ORDERS: tuple[tuple[Kind, ...], ...] = (
    KINDS,
    ("tensor", "context", "expert", "pipeline", "data"),
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A parallelisation.

    Attributes:
        kinds: The degrees, the order of dimensions, ZeRO and recomputation.
        data: The degree of data parallelism, without `expert` and `context`.
        micro_batch: The sequences of a micro-batch.
    """

    kinds: Parallelism
    data: int
    micro_batch: int

    @property
    def samples(self) -> int:
        """Sequences per group of GPUs that share a replica of the model."""
        return self.micro_batch * self.kinds.micro_batches

    def degree(self, kind: Kind) -> int:
        """Returns the degree of a kind of parallelism."""
        return self.data if kind == "data" else int(getattr(self.kinds, kind))

    @property
    def expert_ranks(self) -> int:
        """The number of GPUs with different experts, as Megatron-Core counts expert parallelism."""
        return self.kinds.expert_ranks

    def stride(self, kind: Kind) -> int:
        """Returns the distance of neighbouring GPUs of a group: the product of inner degrees."""
        total = 1
        for one in self.kinds.order:
            if one == kind:
                break
            total *= self.degree(one)
        return total

    def dimensions(self, domain: int) -> Iterator[tuple[Kind, int, bool]]:
        """Yields kind, GPUs and whether they share a domain, for dimensions of more than one GPU.

        A kind whose groups span domains has a dimension within a domain and one between domains.
        """
        for kind in self.kinds.order:
            ranks, stride = self.degree(kind), self.stride(kind)
            near = max(n for n in _divisors(ranks) if n == 1 or stride * n <= domain)
            if near > 1:
                yield kind, near, True
            if ranks > near:
                yield kind, ranks // near, False

    def inside(self, domain: int) -> list[Kind]:
        """Returns the kinds whose groups lie within blocks of `domain` GPUs."""
        return [
            kind
            for kind in KINDS
            if self.degree(kind) > 1 and self.stride(kind) * self.degree(kind) <= domain
        ]


@dataclass(frozen=True, kw_only=True)
class FixedDegrees:
    """What the search does not change: degrees, or None for open ones, and the exchange.

    Attributes:
        expert: GPUs with different experts; with tensor parallelism a multiple of its degree.
        micro_batch: Sequences of a micro-batch.
        chunks: Model chunks of a stage.
        recompute: What the backward pass computes again.
        zero: The ZeRO stage.
        cp_comm_type: The exchange of keys and values, as in :class:`Parallelism`.
        dispatch_format: The format of dispatched tokens, as in :class:`Parallelism`.
        expert_imbalance: Tokens of the busiest NPU over the mean, as in :class:`Parallelism`.
    """

    tensor: int | None = None
    context: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    data: int | None = None
    micro_batch: int | None = None
    chunks: int | None = None
    recompute: Recompute | None = None
    zero: int | None = None
    cp_comm_type: CpCommType = "all_gather"
    dispatch_format: Format | None = None
    expert_imbalance: float = 1.0


def plans(
    shape: Decoder, gpus: int, batch: int, domain: int, fixed: FixedDegrees | None = None
) -> Iterator[Plan]:
    """Yields the plans of a decoder for a global batch of `batch` sequences.

    Stages are neighbours instead of replicas only if one of them then stays within a domain.
    Tensor parallelism stays within a domain and divides the heads, but not experts: GPUs of a group
    have different ones. Copies of a token for the same GPU or domain are sent once. Context
    parallelism leaves at least 1,024 tokens. There are at least as many micro-batches as stages.
    ZeRO 1 is used wherever weights are replicated, ZeRO 3 without a pipeline. ZeRO 2 is used in
    interleaved pipelines with as many micro-batches as stages, where each model chunk completes its
    gradients before the next, as in Llama 3 405B. Attention is always recomputed (selective), as
    FlashAttention does.

    Raises:
        WorkloadError: Fixed degrees do not divide the GPUs or the model.
    """
    given = fixed or FixedDegrees()
    _check(shape, gpus, given)
    tensors = _one(given.tensor, [n for n in _divisors(gpus) if n <= domain])
    contexts = _one(given.context, [n for n in _CONTEXTS if _divides_tokens(shape, n)])
    pipelines = _one(given.pipeline, [n for n in _divisors(gpus) if n <= shape.layers])
    experts = _one(given.expert, [n for n in _divisors(gpus) if _routed(shape) % n == 0])
    for tensor, context, pipeline, ranks in product(tensors, contexts, pipelines, experts):
        is_undivided = tensor > 1 and ranks > 1
        if is_undivided and ranks % tensor:
            continue
        expert = ranks // tensor if is_undivided else ranks
        used = tensor * context * pipeline * expert
        if gpus % used or shape.heads % tensor or batch % (gpus // used * expert):
            continue
        data = gpus // used
        if given.data not in (None, data):
            continue
        kinds = Parallelism(
            tensor=tensor,
            context=context,
            cp_comm_type=given.cp_comm_type,
            expert=expert,
            undivided_experts=is_undivided,
            expert_domain=domain if ranks > 1 else 0,
            dispatch_format=given.dispatch_format if ranks > 1 else None,
            expert_imbalance=given.expert_imbalance if ranks > 1 else 1.0,
            pipeline=pipeline,
            sequence=tensor > 1,
            recompute="selective",
        )
        yield from _variants(kinds, data, batch // (data * expert), (shape, domain, given))


def _variants(
    kinds: Parallelism, data: int, samples: int, of: tuple[Decoder, int, FixedDegrees]
) -> Iterator[Plan]:
    """Yields micro-batches, interleaving, ZeRO stages, recomputation and placements."""
    shape, domain, given = of
    copies = data * kinds.context * kinds.expert
    stages = kinds.pipeline
    zeros = [0] if copies == 1 else [1, 2] if stages > 1 else [1, 3]
    orders = _ORDERS if stages > 1 and data > 1 else _ORDERS[:1]
    sizes = _one(given.micro_batch, list(_MICRO_BATCHES))
    recomputes = [given.recompute] if given.recompute else ["selective", "full"]
    for size, chunks in product(sizes, _one(given.chunks, list(_INTERLEAVED))):
        count = samples // size
        if samples % size or count < stages:
            continue
        if chunks > 1 and (stages == 1 or stages * chunks > shape.layers + 2 or count % stages):
            continue
        for zero, recompute, order in product(_one(given.zero, zeros), recomputes, orders):
            if zero == 2 and (chunks == 1 or count != stages):
                continue
            changed = replace(
                kinds,
                micro_batches=count,
                interleaved=chunks,
                zero=zero,  # type: ignore[arg-type]
                recompute=recompute,  # type: ignore[arg-type]
                order=order,
            )
            plan = Plan(kinds=changed, data=data, micro_batch=size)
            if order == _ORDERS[0] or plan.inside(domain) != _usual(plan).inside(domain):
                yield plan


def _usual(plan: Plan) -> Plan:
    """Returns the plan with the default placement."""
    return replace(plan, kinds=replace(plan.kinds, order=_ORDERS[0]))


def _check(shape: Decoder, gpus: int, given: FixedDegrees) -> None:
    """Checks the fixed degrees.

    Raises:
        WorkloadError: They do not divide the GPUs or the model.
    """
    degrees = {kind: value for kind in KINDS if (value := getattr(given, kind)) is not None}
    tensor, expert = given.tensor or 1, given.expert or 1
    if tensor > 1 and expert > 1:
        if expert % tensor:
            message = f"`expert = {expert}` with `tensor = {tensor}`: expected a multiple"
            hint = "GPUs of a tensor group have different experts (expert tensor parallelism of 1)"
            raise WorkloadError(message, kind="does_not_divide", hint=hint)
        degrees["expert"] = expert // tensor
    total = 1
    for value in degrees.values():
        total *= value
    text = " x ".join(f"{kind} {value}" for kind, value in degrees.items())
    if gpus % total or (len(degrees) == len(KINDS) and total != gpus):
        expected = f"a divisor of {gpus:,}" if len(degrees) < len(KINDS) else f"{gpus:,}"
        message = f"{text} = {total:,} GPUs: expected {expected}"
        hint = f"the product of the degrees divides the GPUs: one of {_listed(gpus)}"
        raise WorkloadError(message, kind="does_not_divide", hint=hint)
    if shape.experts is None and (given.expert or 1) > 1:
        message = f"`expert = {given.expert}` of a model without experts: expected 1"
        raise WorkloadError(message, kind="no_experts")
    if _routed(shape) % (given.expert or 1):
        message = f"`expert = {given.expert}` does not divide {_routed(shape)} experts of a layer"
        hint = f"experts divide by {_listed(_routed(shape))}"
        raise WorkloadError(message, kind="does_not_divide", hint=hint)
    if shape.experts is None and (given.dispatch_format or given.expert_imbalance > 1):
        message = "a format or an imbalance of experts without experts: expected a model with them"
        raise WorkloadError(message, kind="no_experts")
    if shape.heads % (given.tensor or 1):
        message = f"`tensor = {given.tensor}` does not divide {shape.heads} heads"
        hint = f"heads divide by {_listed(shape.heads)}"
        raise WorkloadError(message, kind="does_not_divide", hint=hint)
    if (given.pipeline or 1) > shape.layers:
        message = f"{given.pipeline} stages: expected at most {shape.layers}, the number of blocks"
        raise WorkloadError(message, kind="too_few_layers")


def _listed(count: int) -> str:
    """Returns the divisors of a count."""
    return ", ".join(map(str, _divisors(count)))


def _one(given: int | None, possible: list[int]) -> list[int]:
    return possible if given is None else [given]


def _routed(shape: Decoder) -> int:
    return shape.experts.routed if shape.experts else 1


def _divides_tokens(shape: Decoder, context: int) -> bool:
    """Whether tokens divide into 2 parts per NPU, which balance causal attention."""
    is_even = shape.tokens % (2 * context) == 0
    return context == 1 or (is_even and shape.tokens // context >= _FEWEST_TOKENS)


def _divisors(count: int) -> list[int]:
    return [one for one in range(1, count + 1) if count % one == 0]
