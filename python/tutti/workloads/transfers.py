"""The collectives of a parallelisation, with their sizes, and the part of a layer on an NPU.

:mod:`tutti.workloads.parallel` describes the kinds of parallelism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tutti.base.files.described import InFiles, Positive
from tutti.workloads.tokens import token_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.workloads.model import Gemm, ModelLayer
    from tutti.workloads.parallel import Parallelism, Placement

Recompute = Literal["none", "selective", "full"]
CpCommType = Literal["all_gather", "p2p"]


@dataclass(frozen=True, kw_only=True)
class Elements(InFiles):
    """Bytes per element of communication; by default those of the precision."""

    activations: Annotated[
        Positive | None, Field(description="Bytes of an activation or its gradient.")
    ] = None
    weights: Annotated[Positive | None, Field(description="Bytes of a gathered weight.")] = None
    gradients: Annotated[
        Positive | None, Field(description="Bytes of a reduced weight gradient.")
    ] = None

    def of(self, element: int) -> tuple[int, int, int]:
        """Returns bytes of activations, weights and gradients; by default `element`."""
        return self.activations or element, self.weights or element, self.gradients or element


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
        with_forward: Sequential collectives during the end of the forward pass.
        with_backward: Sequential collectives during the start of the backward pass.
        after_forward: Sequential collectives after the forward pass; the next layer waits.
        after_input_gradient: Collectives after the input gradient. The previous layer waits.
        after_weight_gradient: Reduces the weight gradients; the next forward pass waits.
    """

    before_forward: Transfer | None = None
    before_backward: Transfer | None = None
    with_forward: tuple[Transfer, ...] = ()
    with_backward: tuple[Transfer, ...] = ()
    after_forward: tuple[Transfer, ...] = ()
    after_input_gradient: tuple[Transfer, ...] = ()
    after_weight_gradient: Transfer | None = None


@lru_cache(maxsize=4096)
def divided(
    layer: ModelLayer, tensor: int, context: int, expert: int, *, undivided_experts: bool = False
) -> ModelLayer:
    """Returns the largest part of a layer on one NPU.

    With `undivided_experts`, the NPUs of a tensor group have different experts, and dispatch
    different tokens, instead of parts of the same experts.
    """
    if undivided_experts and layer.experts > 1:
        context, expert, tensor = context * tensor, expert * tensor, 1
    layer = _with_tokens(layer, context)
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
        context=-(-layer.context // tensor),
        experts=experts,
    )


def with_more_tokens(layer: ModelLayer, factor: float) -> ModelLayer:
    """Returns the part of a layer of experts that process more tokens than the mean."""
    return replace(
        layer,
        gemms=tuple(replace(gemm, m=math.ceil(gemm.m * factor)) for gemm in layer.gemms),
        inputs=math.ceil(layer.inputs * factor),
        outputs=math.ceil(layer.outputs * factor),
    )


def _with_tokens(layer: ModelLayer, context: int) -> ModelLayer:
    """Returns a layer with the largest share of the tokens; attention needs all keys and values."""
    if context == 1:
        return layer
    return replace(
        layer,
        gemms=tuple(replace(gemm, m=-(-gemm.m // context)) for gemm in layer.gemms),
        inputs=-(-layer.inputs // context),
        outputs=-(-layer.outputs // context),
    )


def recomputed(layer: ModelLayer, recompute: Recompute) -> ModelLayer | None:
    """Returns the part of a layer that the backward pass computes again, if any.

    `selective` repeats the products of activations: the scores and weighted sums of attention
    (Korthikanti et al. 2022). `full` repeats the layer.
    """
    if recompute == "none":
        return None
    if recompute == "full":
        return layer
    products = tuple(gemm for gemm in layer.gemms if not gemm.weights)
    return replace(layer, gemms=products, parameters=0) if products else None


@dataclass(frozen=True)
class Transfers:
    """The collectives of each layer, for a number of samples.

    Attributes:
        parallelism: The degrees of parallelism.
        placement: Their rings.
        layers: The undivided layers.
        samples: The samples of a pass.
        bytes: Bytes of an activation, a weight and a gradient.
        dispatched: Copies of a token that dispatch sends per selected expert; less than 1 if
            experts of the same NPU or domain share a copy.
        units: The unit of each layer, whose weights ZeRO 3 gathers together; empty if each layer is
            one.
    """

    parallelism: Parallelism
    placement: Placement
    layers: Sequence[ModelLayer]
    samples: int
    bytes: tuple[int, int, int]
    dispatched: float = 1.0
    units: Sequence[int] = ()

    @cached_property
    def _shares(self) -> list[ModelLayer]:
        """The layers with the tokens of an NPU."""
        return [_with_tokens(layer, self.parallelism.context) for layer in self.layers]

    def of(self, index: int) -> LayerTransfers:
        """Returns the collectives of a layer."""
        before, backward, gradients = self.weights(index)
        forward = (*self._tensor_forward(index), *self._experts_forward(index))
        again = forward if self._is_repeated(index) else ()
        back = (*self._tensor_back(index), *self._experts_back(index))
        gather = self._context(index, "all_gather")
        both = self._context(index, "all_gather", "reduce_scatter")
        is_ring = self.parallelism.cp_comm_type == "p2p"
        return LayerTransfers(
            before_forward=before,
            before_backward=backward,
            with_forward=gather if is_ring else (),
            with_backward=both if is_ring else (),
            after_forward=(*(() if is_ring else gather), *forward),
            after_input_gradient=(*(() if is_ring else both), *again, *back),
            after_weight_gradient=gradients,
        )

    def _is_repeated(self, index: int) -> bool:
        """Whether the backward pass repeats the forward pass of a layer."""
        return self.parallelism.recompute == "full" and 0 < index < len(self.layers) - 1

    def _context(self, index: int, *collectives: str) -> tuple[Transfer, ...]:
        """Returns exchanges of keys and values; the backward pass gathers them again."""
        elements, rings = self.layers[index].context, self.placement.context
        if not rings or not elements:
            return ()
        share = -(-elements // self.parallelism.tensor)
        return tuple(self._exchange(collective, share, rings) for collective in collectives)

    def weights(self, index: int) -> tuple[Transfer | None, Transfer | None, Transfer | None]:
        """Returns the gathers of a layer's weights before its passes, and its gradients'.

        With units, the first layer of a unit gathers the weights of all of them, and the last
        layer gathers them again for the backward pass, whose end reduces the gradients.
        """
        zero, rings = self.parallelism.zero, self._replicas(index)
        first, last, count = self._together(index)
        if count == 0 or not rings:
            return None, None, None
        _, weight, gradient = self.bytes
        if zero == 0:
            return None, None, Transfer("all_reduce", count * gradient, rings)
        gather = Transfer("all_gather", count * weight, rings)
        scatter = Transfer("reduce_scatter", count * gradient, rings)
        return (
            gather if first else None,
            gather if zero == 3 and last else None,
            scatter if first else None,
        )

    def _replicas(self, index: int) -> tuple[str, ...]:
        """Returns the rings of the NPUs that share the weights of a layer."""
        placement = self.placement
        experts = () if self.layers[index].experts > 1 else placement.expert
        return placement.context + experts + placement.data

    def _parameters(self, index: int) -> int:
        return self.parallelism.part(self.layers[index], context=False).parameters

    def _together(self, index: int) -> tuple[bool, bool, int]:
        """Returns whether a layer is the first and the last of its unit, and its parameters.

        A unit has the layers whose weights are sharded among the same NPUs.
        """
        own = self._parameters(index)
        if not own or not self.units:
            return True, True, own
        members = self._members[self.units[index], self._replicas(index)]
        return index == members[0], index == members[-1], sum(map(self._parameters, members))

    @cached_property
    def _members(self) -> dict[tuple[int, tuple[str, ...]], list[int]]:
        """The layers with weights of each unit and rings."""
        found: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for at, unit in enumerate(self.units):
            if self._parameters(at):
                found.setdefault((unit, self._replicas(at)), []).append(at)
        return found

    def _exchange(self, collective: str, elements: int, rings: tuple[str, ...]) -> Transfer:
        return Transfer(collective, elements * self.samples * self.bytes[0], rings)

    def _reduced(
        self, elements: int, rings: tuple[str, ...], *, gathered: bool = True
    ) -> tuple[Transfer, ...]:
        """Returns the collectives that reduce activations over a tensor group."""
        parts = ("reduce_scatter", "all_gather") if self.parallelism.sequence else ("all_reduce",)
        if not gathered:
            parts = parts[:1]
        return tuple(self._exchange(collective, elements, rings) for collective in parts)

    def _tensor_forward(self, index: int) -> tuple[Transfer, ...]:
        layer, rings = self._shares[index], self.placement.tensor
        if not rings:
            return ()
        if self._is_undivided(index):
            if index + 1 == len(self.layers) or self._is_undivided(index + 1):
                return ()
            return (self._exchange("all_gather", self._shares[index + 1].inputs, rings),)
        if layer.by_rows:
            gathered = not self._is_undivided(index + 1)
            return self._reduced(layer.outputs, rings, gathered=gathered)
        if index + 1 == len(self.layers) or self._shares[index + 1].by_rows:
            return ()
        return (self._exchange("all_gather", layer.outputs, rings),)

    def _tensor_back(self, index: int) -> tuple[Transfer, ...]:
        layer, rings = self._shares[index], self.placement.tensor
        if not rings or layer.first:
            return ()
        if self._is_undivided(index):
            if self._is_undivided(index - 1):
                return ()
            return (self._exchange("all_gather", self._shares[index - 1].outputs, rings),)
        if not layer.by_rows:
            gathered = not self._is_undivided(index - 1)
            return self._reduced(layer.inputs, rings, gathered=gathered)
        if self._shares[index - 1].by_rows:
            return (self._exchange("all_gather", layer.inputs, rings),)
        return ()

    def _is_undivided(self, index: int) -> bool:
        """Whether a layer has experts that tensor parallelism does not divide."""
        inside = 0 <= index < len(self.layers)
        return self.parallelism.undivided_experts and inside and self._shares[index].experts > 1

    @property
    def _expert_rings(self) -> tuple[str, ...]:
        """The rings of the NPUs that have different experts."""
        tensor = self.placement.tensor if self.parallelism.undivided_experts else ()
        return tensor + self.placement.expert

    def _is_expert(self, index: int) -> bool:
        inside = 0 <= index < len(self.layers)
        return bool(self._expert_rings) and inside and self._shares[index].experts > 1

    def _all_to_all(self, elements: int, *, returns: bool) -> tuple[Transfer, ...]:
        """Returns the all-to-all of the copies of an NPU's tokens, to experts or back.

        The busiest NPU receives more than the mean.
        """
        kinds = self.parallelism
        shares = kinds.tensor if kinds.undivided_experts else 1
        sent = math.ceil(elements / shares * self.dispatched * kinds.expert_imbalance)
        size = sent * self.samples * self.bytes[0]
        if kinds.dispatch_format and not returns:
            # Elements are those of complete tokens.
            hidden = self._hidden
            size = math.ceil(
                sent * self.samples / hidden * token_bytes(hidden, kinds.dispatch_format)
            )
        return (Transfer("all_to_all", size, self._expert_rings),)

    @cached_property
    def _hidden(self) -> int:
        """The elements of a token at experts: the inputs of their first layer."""
        layer = next(one for one in self.layers if one.experts > 1)
        return layer.gemms[0].n if layer.by_rows else layer.gemms[0].k

    def _experts_forward(self, index: int) -> tuple[Transfer, ...]:
        """Returns the all-to-all before the first layer of experts, or after the last."""
        if self._is_expert(index) == self._is_expert(index + 1):
            return ()
        if self._is_expert(index):
            return self._all_to_all(self._shares[index].outputs, returns=True)
        return self._all_to_all(self._shares[index + 1].inputs, returns=False)

    def _experts_back(self, index: int) -> tuple[Transfer, ...]:
        """Returns the all-to-all of gradients: they reach experts as tokens do."""
        if self._is_expert(index) == self._is_expert(index - 1) or self._shares[index].first:
            return ()
        if self._is_expert(index):
            return self._all_to_all(self._shares[index].inputs, returns=True)
        return self._all_to_all(self._shares[index - 1].outputs, returns=False)
