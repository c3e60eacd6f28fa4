"""Shapes of decoders (large language models), with the weights and FLOPs that follow from them.

Norms, biases, rotary embeddings and routers are left out: together they are less than 0.1 % of the
weights of the built-in models.

Examples:
    >>> shape = Decoder(layers=80, hidden=8192, heads=64, kv_heads=8, wide=28672, vocabulary=128256)
    >>> f"{shape.parameters / 1e9:.2f}"
    '70.55'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_LAYERS: Final = 4096
"""The most blocks of a decoder that a file may state: thirty times those of published models."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """The experts of a mixture-of-experts layer.

    Attributes:
        routed: The number of routed experts.
        top: The number of routed experts that each token passes.
        wide: The width of an expert.
        shared: The number of experts that every token passes.
        dense: The number of first blocks without experts.
        every: Of the other blocks, every n-th has experts, from the n-th.
        groups: Groups of consecutive routed experts.
        most_groups: The most groups of a token's experts; all by default.
    """

    routed: int
    top: int
    wide: int
    shared: int = 0
    dense: int = 0
    every: int = 1
    groups: int = 1
    most_groups: int | None = None

    def are_in(self, block: int) -> bool:
        """Returns whether a block (from 0) has experts."""
        return block >= self.dense and (block - self.dense + 1) % self.every == 0


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, 2024): low-rank queries, keys and values.

    Attributes:
        query: The rank of queries; 0 if they are not compressed.
        key_value: The rank of keys and values.
        rotary: Elements per head of the rotary part, which all heads share in keys.
        plain: Elements per head of the other part of queries and keys.
        value: Elements per head of values.
    """

    query: int
    key_value: int
    rotary: int
    plain: int
    value: int


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """The shape of a decoder.

    Attributes:
        layers: The number of blocks of attention and feed-forward.
        hidden: The width of a token.
        heads: The number of query heads.
        kv_heads: The number of heads of keys and values (grouped-query attention).
        wide: The width of a feed-forward layer without experts.
        vocabulary: The number of tokens of the vocabulary.
        tied: Whether the classifier shares the weights of the embedding.
        gated: Whether feed-forward layers have a gate (SwiGLU): three matrices instead of two.
        causal: Whether a token attends to earlier tokens only, which halves the work.
        experts: The experts, if any.
        latent: Latent attention, if any.
        tokens: The sequence length.
        head: Elements of a head; by default the width over the number of heads.
        window: Tokens to which a token attends in blocks with a sliding window; 0 for all.
        full_every: Every n-th block, from the n-th, attends to all tokens instead; 0 for none.
        mtp: The number of modules of multi-token prediction after the last block: a projection of
            two tokens, a block and the scores of one more token (DeepSeek-V3, section 2.2).
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    wide: int
    vocabulary: int
    tied: bool = False
    gated: bool = True
    causal: bool = True
    experts: Experts | None = None
    latent: Latent | None = None
    tokens: int = 8192
    head: int | None = None
    window: int = 0
    full_every: int = 2
    mtp: int = 0

    @property
    def queries(self) -> int:
        """Elements of a token's queries, and of its keys as the heads see them."""
        if self.latent:
            return self.heads * (self.latent.plain + self.latent.rotary)
        return self.heads * self.head_width

    @property
    def head_width(self) -> int:
        """Elements of a head of queries, keys or values without latent attention."""
        return self.head or self.hidden // self.heads

    @property
    def values(self) -> int:
        """Elements of a token's weighted sums of all heads."""
        return self.heads * (self.latent.value if self.latent else self.head_width)

    @property
    def keys_values(self) -> int:
        """Elements of a token's keys and values, which context parallelism exchanges.

        Those of latent attention are those of all heads, as in Megatron-Core.
        """
        if self.latent:
            return self.queries + self.values
        return 2 * self.kv_heads * self.head_width

    @property
    def attended(self) -> int:
        """The mean number of tokens to which a token attends, rounded up."""
        return (self.tokens + 1) // 2 if self.causal else self.tokens

    def attended_in(self, block: int) -> int:
        """Returns the mean number of attended tokens of a block (from 0), rounded up."""
        is_full = self.full_every > 0 and (block + 1) % self.full_every == 0
        window = 0 if is_full else self.window
        if not 0 < window < self.tokens:
            return self.attended
        if not self.causal:
            return window
        return -(-(window * (window + 1) // 2 + (self.tokens - window) * window) // self.tokens)

    @property
    def depth(self) -> int:
        """The number of blocks, with those of multi-token prediction."""
        return self.layers + self.mtp

    @property
    def _merging(self) -> int:
        """Weights of the projections of multi-token prediction."""
        return self.mtp * 2 * self.hidden * self.hidden

    @property
    def projections(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of the projections to queries, keys and values."""
        if self.latent is None:
            return ((self.hidden, self.queries + self.keys_values),)
        one = self.latent
        queries = ((self.hidden, one.query), (one.query, self.queries))
        return (
            *(queries if one.query else ((self.hidden, self.queries),)),
            (self.hidden, one.key_value + one.rotary),
            (one.key_value, self.heads * (one.plain + one.value)),
        )

    @property
    def matrices(self) -> int:
        """The number of matrices of a feed-forward layer."""
        return 3 if self.gated else 2

    @property
    def attention(self) -> int:
        """Weights of the attention of a block."""
        inside = sum(inputs * outputs for inputs, outputs in self.projections)
        return inside + self.values * self.hidden

    def feed_forward(self, block: int, *, active: bool = False) -> int:
        """Returns the weights of the feed-forward layers of a block (from 0).

        With `active`, routed experts that a token does not pass are left out.
        """
        one = self.experts
        if one is None or not one.are_in(block):
            return self.matrices * self.hidden * self.wide
        experts = one.shared + (one.top if active else one.routed)
        return self.matrices * self.hidden * one.wide * experts

    @property
    def blocks(self) -> int:
        """Weights of all blocks."""
        each = (self.attention + self.feed_forward(at) for at in range(self.depth))
        return sum(each) + self._merging

    @property
    def parameters(self) -> int:
        """Weights of the blocks, the embedding and the classifier."""
        return self.blocks + (1 if self.tied else 2) * self.vocabulary * self.hidden

    @property
    def active(self) -> int:
        """Weights that a token passes, with the embedding and the classifier."""
        passed = sum(
            self.attention + self.feed_forward(at, active=True) for at in range(self.depth)
        )
        return passed + self._merging + (1 if self.tied else 2) * self.vocabulary * self.hidden

    @property
    def flops(self) -> int:
        """FLOPs per token of a forward and backward pass: 6 per weight, and attention.

        The embedding has none. Attention has two products of all heads with the attended tokens.
        """
        scores = self.vocabulary * self.hidden
        embedding = (0 if self.tied else scores) - self.mtp * scores
        attended = sum(self.attended_in(block) for block in range(self.depth))
        return 6 * (self.active - embedding + attended * (self.queries + self.values))
