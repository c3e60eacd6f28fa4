"""Expert parallelism: which tokens each rank sends where, and the bytes of dispatch and combine.

A layer of experts sends every token to `top_k` of its experts, which are distributed over ranks
(dispatch), and returns their outputs (combine). Both are all-to-alls with unequal messages. Two
kinds of kernels exist, as in DeepEP (deepseek-ai/DeepEP):

- `low_latency`: a copy per selected expert, sent directly to its rank.
- `normal`: a copy per node, sent over the network to the rank with the sender's index in that node,
  which forwards a copy over the node's links to each rank that needs it.

Combine reverses the paths of dispatch. docs/models/moe.md has the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_rows
from tutti.workloads.errors import WorkloadError
from tutti.workloads.tokens import Format, token_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Choices = NDArray[np.int64]
    """Experts of each token: shape (ranks, tokens, top_k)."""
    Experts = slice | NDArray[np.int64]
    Matrix = NDArray[np.int64]
    """Copies from each rank (row) to each rank (column)."""

Kernel = Literal["normal", "low_latency"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
Stage = Literal["dispatch", "combine"]
STAGES: tuple[Stage, ...] = get_args(Stage)

_MOST_CHOICES = 1 << 28
"""Limit on tokens x experts of all ranks, which sampling visits."""
_REFUSED = np.uint64(2**64 - 1)
"""Replaces the random integer of an expert that a token may not select."""
_SIZES = ("hidden", "experts", "top_k", "tokens")
_MOST = {"hidden": 1 << 24, "experts": 1 << 16, "tokens": 1 << 24}


@dataclass(frozen=True, kw_only=True)
class ExpertLayer:
    """A layer of experts.

    Attributes:
        hidden: Elements of a token.
        experts: The number of routed experts. Shared experts run on every rank without messages.
        top_k: Experts per token.
        tokens: Tokens per rank.
        dispatch: Format of a dispatched token, as in :func:`token_bytes`.
        combine: Format of a returned token.
        most_nodes: The most nodes of a token's experts; unlimited if None.
        groups: Groups of consecutive experts.
        most_groups: The most groups of a token's experts (group-limited gating, DeepSeek-V3, whose
            8 groups are 8 nodes); all by default.
    """

    hidden: int
    experts: int
    top_k: int
    tokens: int
    dispatch: Format = "fp8"
    combine: Format = "bf16"
    most_nodes: int | None = None
    groups: int = 1
    most_groups: int | None = None

    def __post_init__(self) -> None:
        """Checks the sizes.

        Raises:
            WorkloadError: A size is out of range, or a token has more experts than exist.
        """
        for key in (*_SIZES, "most_nodes", "groups", "most_groups"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise _invalid(f"{key} = {value}: expected 1 or more")
            if value is not None and value > _MOST.get(key, value):
                raise _invalid(f"{key} = {value}: expected at most {_MOST[key]:,}")
        if self.top_k > self.experts:
            raise _invalid(f"top_k = {self.top_k}: expected at most the {self.experts} experts")
        if self.experts % self.groups:
            raise _invalid(f"groups = {self.groups}: expected a divisor of {self.experts} experts")
        if (self.most_groups or self.groups) > self.groups:
            raise _invalid(f"most_groups = {self.most_groups}: expected at most {self.groups}")

    def token_bytes(self, stage: Stage) -> int:
        """Returns the bytes of a copy of a token in a stage."""
        return token_bytes(self.hidden, getattr(self, stage))


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Experts on ranks, and ranks on nodes.

    Attributes:
        ranks: The number of ranks.
        per_node: Ranks per node; consecutive ranks share a node.
        owners: The rank of each expert.
    """

    ranks: int
    per_node: int
    owners: tuple[int, ...]

    @classmethod
    def of(
        cls, experts: int, *, ranks: int, per_node: int, order: Literal["block", "cyclic"] = "block"
    ) -> Placement:
        """Returns a placement of equal numbers of experts on all ranks.

        Args:
            experts: The number of experts, a multiple of `ranks`.
            ranks: The number of ranks.
            per_node: Ranks per node; it divides `ranks`, unless all ranks share a node.
            order: `block` places consecutive experts on a rank, `cyclic` on consecutive ranks.

        Raises:
            WorkloadError: The numbers do not divide.
        """
        if ranks < 1 or experts % ranks:
            divisors = ", ".join(str(n) for n in range(1, experts + 1) if experts % n == 0)
            raise _invalid(f"{experts} experts on {ranks} ranks: expected one of {divisors}")
        each = experts // ranks
        block = order == "block"
        owners = tuple(e // each if block else e % ranks for e in range(experts))
        return cls(ranks=ranks, per_node=min(per_node, ranks), owners=owners)

    def __post_init__(self) -> None:
        """Checks that nodes are full and owners exist.

        Raises:
            WorkloadError: A node has fewer ranks than others, or an owner is not a rank.
        """
        if self.per_node < 1 or self.ranks % self.per_node:
            message = f"{self.ranks} ranks in nodes of {self.per_node}: expected full nodes"
            raise _invalid(message)
        outside = next((rank for rank in self.owners if not 0 <= rank < self.ranks), None)
        if outside is not None:
            raise _invalid(f"an expert is on rank {outside}: expected 0 to {self.ranks - 1}")

    @property
    def nodes(self) -> NDArray[np.int64]:
        """The node of each rank."""
        return np.arange(self.ranks) // self.per_node


# --- routing --------------------------------------------------------------------------------------


def sampled_choices(
    layer: ExpertLayer, placement: Placement, shares: NDArray[np.float64], *, seed: int = 0
) -> Choices:
    """Samples the experts of every token, without repetition within a token.

    Experts are drawn sequentially in proportion to their popularity (Gumbel top-k). With
    `layer.most_groups` or `layer.most_nodes`, the groups or nodes with the largest sums of their
    best `top_k / most` scores are selected first, as in DeepSeek-V3.

    Returns:
        Shape (ranks, tokens, top_k).

    Raises:
        WorkloadError: The sample is too large, or the selected nodes have too few experts.
    """
    _check_sample(layer, placement)
    with np.errstate(divide="ignore"):
        scores = np.log(shares)
    found = np.empty((placement.ranks, layer.tokens, layer.top_k), dtype=np.int64)
    limits = []
    if layer.most_groups is not None:
        group_of = np.arange(layer.experts) // (layer.experts // layer.groups)
        limits.append((group_of, layer.most_groups))
    if layer.most_nodes is not None:
        limits.append((placement.nodes[np.array(placement.owners)], layer.most_nodes))
    is_uniform = bool((shares == shares[0]).all())
    for rank in range(placement.ranks):
        if is_uniform and (least := _uniform_choices(layer, limits, [seed, rank])) is not None:
            found[rank] = least
            continue
        random = np.random.default_rng([seed, rank])
        drawn = scores + random.gumbel(size=(layer.tokens, layer.experts))
        for part_of, most in limits:
            drawn = _limited(layer, drawn, part_of, most)
        found[rank] = np.argpartition(drawn, -layer.top_k, axis=1)[:, -layer.top_k :]
    return found


def _uniform_choices(
    layer: ExpertLayer, limits: Sequence[tuple[NDArray[np.int64], int]], seed: list[int]
) -> NDArray[np.uint64] | None:
    """Returns the experts with the largest Gumbel scores, without computing all scores.

    `Generator.gumbel` transforms the upper 53 bits of a random integer monotonically: the largest
    scores are those of the smallest integers. The number of the expert replaces the lower bits.

    Args:
        layer: The layer.
        limits: The part of each expert, and how many parts a token may select.
        seed: The seed of the integers.

    Returns:
        Shape (tokens, top_k); None if the number of an expert has too many bits, or if `gumbel`
        rejects an integer.
    """
    unused = np.uint64(0x7FF)
    if layer.experts > unused:
        return None
    size = layer.tokens * layer.experts
    drawn = np.random.default_rng(seed).bit_generator.random_raw(size)
    drawn = drawn.reshape(layer.tokens, layer.experts)
    drawn &= ~unused
    drawn |= np.arange(layer.experts, dtype=np.uint64)
    if drawn.min() <= unused:
        return None
    for part_of, most in limits:
        drawn = _limited_integers(layer, drawn, part_of, most)
    if layer.top_k < drawn.shape[1]:
        drawn.partition(layer.top_k - 1, axis=1)
    return drawn[:, : layer.top_k] & unused


def _check_sample(layer: ExpertLayer, placement: Placement) -> None:
    if len(placement.owners) != layer.experts:
        count = len(placement.owners)
        raise _invalid(f"the placement has {count} experts: expected {layer.experts} of the layer")
    size = placement.ranks * layer.tokens * layer.experts
    if size > _MOST_CHOICES:
        message = f"ranks x tokens x experts = {size:,}: expected at most {_MOST_CHOICES:,}"
        raise _invalid(message)


def _limited(
    layer: ExpertLayer, drawn: NDArray[np.float64], part_of: NDArray[np.int64], most: int
) -> NDArray[np.float64]:
    """Returns the scores, minus infinity outside the selected parts of each token."""

    def best_sum(inside: Experts, best: int) -> NDArray[np.float64]:
        return np.asarray(np.sort(drawn[:, inside], axis=1)[:, -best:].sum(axis=1))

    allowed = _allowed(layer, part_of, most, best_sum)
    return drawn if allowed is None else np.where(allowed, drawn, -np.inf)


def _limited_integers(
    layer: ExpertLayer, drawn: NDArray[np.uint64], part_of: NDArray[np.int64], most: int
) -> NDArray[np.uint64]:
    """Returns the integers of scores, `_REFUSED` outside the selected parts of each token."""

    def best_sum(inside: Experts, best: int) -> NDArray[np.float64]:
        least = np.partition(drawn[:, inside], best - 1, axis=1)[:, :best]
        # As `Generator.gumbel` does.
        scores = -np.log(-np.log(1.0 - (least >> np.uint64(11)) * 2.0**-53))
        return np.asarray(np.where(least == _REFUSED, -np.inf, scores).sum(axis=1))

    allowed = _allowed(layer, part_of, most, best_sum)
    return drawn if allowed is None else np.where(allowed, drawn, _REFUSED)


def _allowed(
    layer: ExpertLayer,
    part_of: NDArray[np.int64],
    most: int,
    best_sum: Callable[[Experts, int], NDArray[np.float64]],
) -> NDArray[np.bool_] | None:
    """Returns the experts in the parts with the largest sums of their best scores.

    Args:
        layer: The layer.
        part_of: The node or the group of each expert.
        most: The number of parts that a token selects.
        best_sum: Returns the sum of the best scores of each token, of some experts and so many.

    Returns:
        Shape (tokens, experts); None if a token selects all parts.

    Raises:
        WorkloadError: The selected parts may have fewer experts than `top_k`.
    """
    parts = int(part_of.max()) + 1
    if most >= parts:
        return None
    best = -(-layer.top_k // most)
    if most * int(np.bincount(part_of, minlength=parts).min()) < layer.top_k:
        raise _invalid(f"{most} of {parts} nodes or groups have fewer experts than top_k = "
                       f"{layer.top_k}")  # fmt: skip
    sums = np.stack([best_sum(_experts_of(part_of, part), best) for part in range(parts)])
    chosen = np.argsort(-sums, axis=0, kind="stable")[:most].T
    allowed = np.zeros((layer.tokens, parts), dtype=bool)
    np.put_along_axis(allowed, chosen, values=True, axis=1)
    return allowed[:, part_of]


def _experts_of(part_of: NDArray[np.int64], part: int) -> Experts:
    """Returns the experts of a part: as a slice, which is faster, if they are neighbours."""
    inside = np.flatnonzero(part_of == part)
    first, end = int(inside[0]), int(inside[-1]) + 1
    return slice(first, end) if end - first == len(inside) else inside


def read_counts(path: Path, layer: ExpertLayer, placement: Placement) -> NDArray[np.int64]:
    """Reads the tokens of each rank for each expert: a row per rank, a column per expert, no head.

    Raises:
        ConfigError: The file cannot be read, its shape differs, a cell is not a count up to the
            tokens of a rank, or a row does not sum to tokens x top_k. The message has the line.
    """
    expected = f"a CSV file of {placement.ranks} rows and {layer.experts} columns of token counts"
    rows: list[list[int]] = []
    for line, cells in read_rows(path, expected):
        if any(cells):
            rows.append(_counts(cells, layer, f"{path}, line {line}"))
    if len(rows) != placement.ranks:
        raise mistake(f"has {len(rows)} rows", source=str(path), expected=expected)
    return np.array(rows, dtype=np.int64)


def _counts(cells: list[str], layer: ExpertLayer, place: str) -> list[int]:
    if len(cells) != layer.experts:
        problem, expected = f"has {len(cells)} columns", f"{layer.experts}, one per expert"
        raise mistake(problem, source=place, expected=expected)
    for cell in cells:
        if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell) <= layer.tokens):
            expected = f"an integer from 0 to {layer.tokens}, the tokens of a rank"
            raise mistake(
                "is not a token count", source=place, value=shown(cell), expected=expected
            )
    row = [int(cell) for cell in cells]
    total = layer.tokens * layer.top_k
    if sum(row) != total:
        expected = f"{total}: {layer.tokens} tokens x top-{layer.top_k}"
        raise mistake(f"the counts sum to {sum(row)}", source=place, expected=expected)
    return row


def counted_choices(layer: ExpertLayer, counts: NDArray[np.int64], *, seed: int = 0) -> Choices:
    """Returns experts of every token that match counts per rank and expert exactly.

    Counts do not state which experts share a token. Systematic sampling (Madow 1949) over the
    experts in random order assigns them.

    Args:
        layer: The layer.
        counts: Tokens per rank and expert, shape (ranks, experts), as `read_counts` returns.
        seed: The seed of the orders.

    Returns:
        Shape (ranks, tokens, top_k).
    """
    found = np.empty((len(counts), layer.tokens, layer.top_k), dtype=np.int64)
    for rank, row in enumerate(counts):
        order = np.random.default_rng([seed, rank]).permutation(layer.experts)
        dealt = np.repeat(order, row[order])
        found[rank] = dealt.reshape(layer.top_k, layer.tokens).T
    return found


# --- copies ---------------------------------------------------------------------------------------


def copies(choices: Choices, placement: Placement, kernel: Kernel) -> Matrix:
    """Returns the copies of tokens that dispatch sends from each rank to each rank.

    The diagonal counts copies that stay on a rank; no link carries them. The matrix of combine is
    the transpose, as outputs return on the same paths and relays add them.

    Args:
        choices: The experts of each token, shape (ranks, tokens, top_k).
        placement: The placement of the experts.
        kernel: `low_latency`: a copy per selected expert. `normal`: a copy per node to the rank
            with the sender's index, and from there a copy per rank of the node.

    Returns:
        Shape (ranks, ranks).
    """
    found = np.zeros((placement.ranks, placement.ranks), dtype=np.int64)
    owners = np.array(placement.owners)
    for source, chosen in enumerate(choices):
        ranks = owners[chosen]
        if kernel == "low_latency":
            found[source] += np.bincount(ranks.ravel(), minlength=placement.ranks)
            continue
        for sender, receiver, count in _relayed(source, ranks, placement):
            found[sender, receiver] += count
    return found


def _relayed(
    source: int, ranks: NDArray[np.int64], placement: Placement
) -> Iterator[tuple[int, int, int]]:
    """Yields sender, receiver and copies of the tokens of a source, with a relay per node."""
    each = placement.per_node
    needed = np.zeros((len(ranks), placement.ranks), dtype=bool)
    np.put_along_axis(needed, ranks, values=True, axis=1)
    by_node = needed.reshape(len(ranks), -1, each)
    for node in range(by_node.shape[1]):
        relay = node * each + source % each
        if relay != source:
            yield source, relay, int(by_node[:, node].any(axis=1).sum())
        for index, count in enumerate(by_node[:, node].sum(axis=0)):
            # A copy for the relay itself has arrived.
            if node * each + index != relay or relay == source:
                yield relay, node * each + index, int(count)


def balanced(matrix: Matrix, placement: Placement) -> NDArray[np.float64]:
    """Returns the same copies, spread evenly over pairs of ranks of a kind.

    Kinds are a rank and itself, two ranks of a node, and two ranks of different nodes with the same
    or different indices in their nodes. Shape (ranks, ranks).
    """
    ranks, each = np.arange(placement.ranks), placement.per_node
    node = placement.nodes[:, None] == placement.nodes
    index = ranks[:, None] % each == ranks % each
    kinds = (2 * node + index).ravel()
    sums = np.bincount(kinds, weights=matrix.ravel(), minlength=4)
    means = sums / np.maximum(1, np.bincount(kinds, minlength=4))
    found: NDArray[np.float64] = means[kinds].reshape(matrix.shape)
    return found


def imbalance(matrix: Matrix) -> float:
    """Returns the received copies of the busiest rank, divided by the mean over ranks."""
    received = matrix.sum(axis=0)
    return float(received.max() / received.mean())


def expected_largest(layer: ExpertLayer, *, ranks: int, sources: int) -> float:
    """Returns the expected copies that the busiest rank receives, for uniform routing.

    A token of another rank brings a hypergeometric number of copies. Their sum over the tokens is
    approximately normal, and the sums of ranks nearly independent. The expected maximum of `ranks`
    normal values is Blom's approximation (1958).

    Args:
        layer: The layer; `most_nodes` is ignored.
        ranks: The number of ranks, which all have equal numbers of experts.
        sources: The ranks whose tokens count, such as those of other nodes.
    """
    tokens, share = layer.tokens * sources, 1 / ranks
    mean = tokens * layer.top_k * share
    if ranks == 1:
        return mean
    without = (layer.experts - layer.top_k) / max(1, layer.experts - 1)
    variance = tokens * layer.top_k * share * (1 - share) * without
    return mean + math.sqrt(variance) * NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))


def _invalid(message: str) -> WorkloadError:
    return WorkloadError(f"layer of experts: {message}", kind="experts")
