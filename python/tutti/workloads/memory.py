"""Memory of an NPU in a training step: weights, gradients, optimizer states and activations.

Activations follow Korthikanti et al. 2022, sections 4 and 5, in bytes per token and block, with
other shapes of attention and feed-forward layers. Blocks without a gate (GPT) have dropout, those
with one (Llama) have none. Buffers of libraries and fragmentation are left out.

Examples:
    >>> from tutti.workloads import Parallelism, build
    >>> parallelism = Parallelism(tensor=8, sequence=True, recompute="selective")
    >>> used = memory(build("llama3_70b"), parallelism, data=8, micro_batch=1)
    >>> f"{used.weights / 1e9:.1f} GB, {used.activations / 1e9:.1f} GB"
    '17.6 GB, 23.0 GB'
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.workloads.decoder import Decoder
    from tutti.workloads.model import Model, ModelLayer
    from tutti.workloads.parallel import Parallelism


@dataclass(frozen=True, kw_only=True)
class States:
    """Bytes per weight of the state of training.

    The defaults are those of Adam with BF16 weights and FP32 gradients (Megatron-Core,
    distributed optimizer: 6 + 12 / d bytes per weight with d data-parallel NPUs).

    Attributes:
        weights: Bytes of a weight.
        gradients: Bytes of a gradient.
        optimizer: Bytes of the optimizer: an FP32 weight and two moments.
        activations: Bytes of an activation.
    """

    weights: int = 2
    gradients: int = 4
    optimizer: int = 12
    activations: int = 2


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of the memory of an NPU, by use.

    Attributes:
        weights: Weights.
        gradients: Gradients.
        optimizer: Optimizer states.
        activations: Activations between the forward and the backward pass.
        working: The activations of a block during its recomputation, gathered weights, and with
            ZeRO 2 the gradients of a model chunk before they are reduced.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    working: int = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return self.states + self.activations + self.working

    @property
    def states(self) -> int:
        """Bytes that do not depend on the batch."""
        return self.weights + self.gradients + self.optimizer


def memory(
    model: Model | Pieces,
    parallelism: Parallelism,
    *,
    data: int,
    micro_batch: int = 1,
    states: States | None = None,
) -> Memory:
    """Returns the memory of an NPU of the stage that needs the most.

    Args:
        model: A decoder, or its pieces.
        parallelism: The degrees of parallelism.
        data: The degree of data parallelism, without `expert` and `context`.
        micro_batch: The samples of a micro-batch.
        states: Bytes per weight and activation.

    Raises:
        WorkloadError: The model is not a decoder, or has fewer blocks than stages.
    """
    pieces = model if isinstance(model, Pieces) else Pieces(model)
    plan = _Plan(pieces, parallelism, data, micro_batch, states or States())
    return max(
        (plan.stage(stage) for stage in range(parallelism.pipeline)), key=lambda one: one.total
    )


def in_flight(parallelism: Parallelism, stage: int) -> int:
    """Returns the model chunks of micro-batches whose activations a stage stores at most.

    With 1F1B, stage k of p stores those of p - k micro-batches. Interleaved stages of v chunks
    start 2 (p - k - 1) + (v - 1) p chunks before the first backward pass (Narayanan et al. 2021).
    """
    stages, chunks = parallelism.pipeline, parallelism.interleaved
    most = parallelism.micro_batches * chunks if stages > 1 else 1
    if parallelism.schedule == "gpipe":
        return most
    later = stages - 1 - stage
    ahead = later if chunks == 1 else 2 * later + (chunks - 1) * stages
    return min(ahead + 1, most)


def block_activations(
    decoder: Decoder, block: int, parallelism: Parallelism, element: int = 2
) -> float:
    """Returns the bytes of activations per token of a sequence that a block (from 0) stores.

    Without parallelism and recomputation, GPT has h (34 + 5 a s / h) bytes (Korthikanti et al.
    2022, equation 1). With `full` recomputation only the input of the block is stored.
    """
    one = decoder
    dropout = 0 if one.gated else 1
    inside: float = element * (one.queries + one.keys_values + one.values)
    if one.latent:
        inside += element * (one.latent.query + one.latent.key_value + one.latent.rotary)
    if parallelism.recompute == "none":
        # Softmax; with dropout also its mask and its output.
        inside += one.heads * one.tokens * (element + dropout * (1 + element))
    wide, copies = _feed_forward(one, block, parallelism.expert_imbalance)
    inside += element * wide
    # Inputs of the norms, of attention and of the feed-forward layers, and masks of dropout.
    around = one.hidden * (element * (3 + copies) + 2 * dropout)
    if parallelism.recompute == "full":
        inside, around = 0.0, float(element * one.hidden)
    share = parallelism.tensor if parallelism.sequence else 1
    return (inside / parallelism.tensor + around / share) / parallelism.context


def _feed_forward(decoder: Decoder, block: int, imbalance: float) -> tuple[float, float]:
    """Returns elements per token inside the feed-forward layers, and copies of the token at them.

    The busiest NPU processes `imbalance` times as many tokens of routed experts as the mean.

    Inside are the inputs and the outputs of the activation function. Routed experts store a copy
    of the token at their input and at their output.
    """
    experts = decoder.experts
    if experts is None or block < experts.dense:
        return decoder.matrices * decoder.wide, 1
    routed = experts.top * imbalance
    inside = decoder.matrices * experts.wide * (experts.shared + routed)
    return inside, 2 * routed + (1 if experts.shared else 0)


@dataclass(frozen=True)
class _Plan:
    """The memory of each stage."""

    pieces: Pieces
    parallelism: Parallelism
    data: int
    micro_batch: int
    states: States

    def stage(self, stage: int) -> Memory:
        """Returns the memory of an NPU of a stage."""
        chunks = self._chunks[stage :: self.parallelism.pipeline]
        stored = sum(chunks, Counter[int]())
        weights, gradients, optimizer = (
            sum(self._shards[zero][at] * count for at, count in stored.items())
            for zero in (3, 2, 1)
        )
        if stage == self.parallelism.pipeline - 1 > 0 and self.pieces.decoder.tied:
            # The stage of the classifier has a copy of the weights of the embedding.
            first = self.pieces.model.layers[0]
            weights += self._sharded(first, 3)
            gradients += self._sharded(first, 2)
            optimizer += self._sharded(first, 1)
        return Memory(
            weights=int(self.states.weights * weights),
            gradients=int(self.states.gradients * gradients),
            optimizer=int(self.states.optimizer * optimizer),
            activations=int(self._activations(stored, len(chunks), stage)),
            working=int(self._working(stored) + self._unreduced(chunks)),
        )

    @cached_property
    def _chunks(self) -> list[Counter[int]]:
        return self.pieces.chunks(self.parallelism.pipeline * self.parallelism.interleaved)

    @cached_property
    def _shards(self) -> dict[int, list[float]]:
        """Weights of each distinct piece by the ZeRO stage that partitions their state."""
        return {
            zero: [
                sum(self._sharded(layer, zero) for layer in piece) for piece in self.pieces.distinct
            ]
            for zero in (1, 2, 3)
        }

    def _sharded(self, layer: ModelLayer, zero: int) -> float:
        """Returns the weights of a layer on an NPU, of state that a ZeRO stage partitions."""
        kinds = self.parallelism
        weights = kinds.part(layer, context=False).parameters
        if kinds.zero < zero:
            return weights
        return weights / (kinds.context * self.data * (1 if layer.experts > 1 else kinds.expert))

    @property
    def _tokens(self) -> int:
        return self.micro_batch * self.pieces.decoder.tokens

    def _stored(self, parallelism: Parallelism) -> list[float]:
        """Returns the activations of each distinct piece; the classifier has none."""
        return [
            self._tokens * sum(self._block(layer, parallelism) for layer in piece)
            for piece in self.pieces.distinct
        ]

    @cached_property
    def _each(self) -> list[float]:
        return self._stored(self.parallelism)

    def _block(self, layer: ModelLayer, parallelism: Parallelism) -> float:
        """Returns the bytes per token of a block for its first layer; none for other layers."""
        if not layer.name.endswith("_attention"):
            return 0
        block = int(layer.name.split("_")[1]) - 1
        element = self.states.activations
        return block_activations(self.pieces.decoder, block, parallelism, element)

    def _activations(self, stored: Counter[int], chunks: int, stage: int) -> float:
        each = self._each
        total = sum(each[at] * count for at, count in stored.items())
        total *= in_flight(self.parallelism, stage) / chunks
        if stage == self.parallelism.pipeline - 1:
            total += self._scores()
        return total

    def _scores(self) -> float:
        """Returns the activations of the classifier: two inputs of width h and FP32 scores."""
        kinds, one = self.parallelism, self.pieces.decoder
        share = kinds.tensor if kinds.sequence else 1
        width = 2 * self.states.activations * one.hidden / share + 4 * one.vocabulary / kinds.tensor
        return self._tokens * width / kinds.context

    @cached_property
    def _gathered(self) -> list[int]:
        """The weights of the largest unit in each distinct piece, which ZeRO 3 gathers together."""
        model, kinds = self.pieces.model, self.parallelism
        units = kinds.units(model) or range(len(model.layers))
        found = []
        for start, stop in self.pieces.places:
            counts = Counter[int]()
            for at in range(start, stop):
                counts[units[at]] += kinds.part(model.layers[at], context=False).parameters
            found.append(max(counts.values()))
        return found

    @cached_property
    def _again(self) -> list[float]:
        """The activations of each distinct piece that is computed again."""
        return self._stored(replace(self.parallelism, recompute="selective"))

    def _unreduced(self, chunks: Sequence[Counter[int]]) -> float:
        """Returns the gradients of the largest model chunk of a pipeline before they are reduced.

        With ZeRO 2 a chunk accumulates the gradients of its micro-batches, and reduces them after
        the last. With ZeRO 1 all gradients are stored in full.
        """
        kinds = self.parallelism
        if kinds.zero != 2 or kinds.pipeline == 1:
            return 0.0
        each = [
            sum(kinds.part(one, context=False).parameters for one in piece)
            for piece in self.pieces.distinct
        ]
        most = max(sum(each[at] * count for at, count in chunk.items()) for chunk in chunks)
        return float(self.states.gradients * most)

    def _working(self, stored: Counter[int]) -> float:
        """Returns the memory of a block that is computed again, and of gathered weights."""
        kinds, total = self.parallelism, 0.0
        if kinds.recompute == "full":
            total += max(self._again[at] for at in stored)
        if kinds.zero == 3:
            most = max(self._gathered[at] for at in stored)
            total += (1 + kinds.prefetch) * self.states.weights * most
        return total
