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

from tutti._core import sample_experts
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_rows
from tutti.workloads.errors import WorkloadError
from tutti.workloads.tokens import Format, token_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Choices = NDArray[np.int64]
    """Experts of each token: shape (ranks, tokens, top_k)."""
    Matrix = NDArray[np.int64]
    """Copies from each rank (row) to each rank (column)."""

Kernel = Literal["normal", "low_latency"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
Stage = Literal["dispatch", "combine"]
STAGES: tuple[Stage, ...] = get_args(Stage)

_MOST_CHOICES = 1 << 28
"""Limit on tokens x experts of all ranks, which sampling visits."""
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
    generators = [np.random.PCG64([seed, rank]).state["state"] for rank in range(placement.ranks)]
    chosen = sample_experts(
        shares.tolist(),
        layer.tokens,
        layer.top_k,
        _limits(layer, placement),
        [(generator["state"], generator["inc"]) for generator in generators],
    )
    sampled = np.frombuffer(chosen, dtype="<u4").astype(np.int64)
    return sampled.reshape(placement.ranks, layer.tokens, layer.top_k)


def _limits(layer: ExpertLayer, placement: Placement) -> list[tuple[list[int], int]]:
    """Returns the group or node of each expert, and how many of them a token selects.

    Raises:
        WorkloadError: The selected groups or nodes may have fewer experts than `top_k`.
    """
    limits = []
    if layer.most_groups is not None:
        group_of = np.arange(layer.experts) // (layer.experts // layer.groups)
        limits.append((group_of, layer.most_groups))
    if layer.most_nodes is not None:
        limits.append((placement.nodes[np.array(placement.owners)], layer.most_nodes))
    for part_of, most in limits:
        sizes = np.bincount(part_of)
        if most < len(sizes) and most * int(sizes.min()) < layer.top_k:
            raise _invalid(f"{most} of {len(sizes)} nodes or groups have fewer experts than "
                           f"top_k = {layer.top_k}")  # fmt: skip
    return [(part_of.tolist(), most) for part_of, most in limits if most <= part_of.max()]


def _check_sample(layer: ExpertLayer, placement: Placement) -> None:
    if len(placement.owners) != layer.experts:
        count = len(placement.owners)
        raise _invalid(f"the placement has {count} experts: expected {layer.experts} of the layer")
    size = placement.ranks * layer.tokens * layer.experts
    if size > _MOST_CHOICES:
        message = f"ranks x tokens x experts = {size:,}: expected at most {_MOST_CHOICES:,}"
        raise _invalid(message)


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
        _add_relayed(found, source, ranks, placement.per_node)
    return found


def _add_relayed(found: Matrix, source: int, ranks: NDArray[np.int64], each: int) -> None:
    """Adds the copies of a source's tokens, each with one relay per node of `each` ranks.

    Args:
        found: The copies from rank to rank.
        source: The rank of the tokens.
        ranks: The owners of each token's experts, shape (tokens, top_k).
        each: The ranks of a node.
    """
    ranks = np.sort(ranks, axis=1)
    receivers = np.arange(len(found))
    relays = receivers - receivers % each + source % each
    to_ranks, to_nodes = (_different(of, len(found)) for of in (ranks, ranks - ranks % each))
    # A copy for the relay itself has arrived; the source's own node needs no relay.
    is_sent = (receivers != relays) | (relays == source)
    found[relays[is_sent], receivers[is_sent]] += to_ranks[is_sent]
    nodes = receivers[::each][relays[::each] != source]
    found[source, relays[nodes]] += to_nodes[nodes]


def _different(values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Returns how many rows have each value below `count`; rows are sorted."""
    is_new = np.ones(values.shape, dtype=bool)
    np.not_equal(values[:, 1:], values[:, :-1], out=is_new[:, 1:])
    return np.bincount(values[is_new], minlength=count)


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
