"""Messages, bytes and reproducibility classes stated by the algorithm pages in docs/models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24)
MACHINE = tutti.Platform(name="any", model=tutti.Postal(alpha="1 us"))


def full_payload(messages: int, n: int) -> tuple[int, int]:
    """Returns the counts of messages that each carry the full payload."""
    return messages, n * messages


def powers(n: int) -> tuple[int, int, int]:
    """Returns f, P = 2^f, the largest power of two that is at most n, and r = n - P."""
    f = n.bit_length() - 1
    return f, 1 << f, n - (1 << f)


def doubling(n: int) -> tuple[int, int]:
    f, p, r = powers(n)
    return full_payload(f * p + 2 * r, n)


def three_two(n: int) -> tuple[int, int]:
    f, p, r = powers(n)
    return full_payload(f * p + 3 * r if 2 * r <= p else (f + 1) * p + r, n)


def overlapping(n: int) -> tuple[int, int]:
    f, _, r = powers(n)
    return full_payload(sum(2**z * ((n >> z) + (n >> z) % 2) for z in range(f)) + r, n)


def halving_doubling(n: int) -> tuple[int, int]:
    f, p, r = powers(n)
    return 2 * f * p + 2 * r, 2 * n * (n - 1)


def long_elimination(n: int) -> tuple[int, int]:
    f, p, r = powers(n)
    return 2 * f * p + 4 * r, 2 * n * (n - 1)


def binary_blocks(n: int) -> tuple[int, int]:
    """Each block halves and doubles; each exchanges twice with the next smaller one."""
    logs = [log for log in range(n.bit_length()) if n >> log & 1]
    inside = sum(2 * log << log for log in logs)
    return inside + sum(2 << log for log in logs[1:]), 2 * n * (n - 1)


def halving(n: int) -> tuple[int, int]:
    """A reduce_scatter or all_gather: surplus ranks send the payload and receive a shard."""
    f, p, r = powers(n)
    return f * p + 2 * r, n * (n - 1) + r


def disseminated(n: int, ports: int) -> tuple[int, int]:
    """An all_reduce: one round per digit of n - 1; the first digit counts separately."""
    rest, stages, first = n - 1, 0, 0
    while rest:
        rest, first = divmod(rest, ports + 1)
        stages += 1
    return full_payload(n * (first + ports * (stages - 1)), n)


def dissemination_gather(n: int, ports: int) -> tuple[int, int]:
    """A message per peer and stage, one more for every range that wraps around the last rank."""
    known, peers = 1, 0
    while known < n:
        peers += min(ports, (n - 1) // known)
        known *= ports + 1
    return (peers + 1) * (n - 1), n * (n - 1)


def crossings(n: int, radix: int) -> tuple[int, int]:
    """Every shard crosses a level of the tree for each non-zero digit of its rank."""

    def digits(rank: int) -> int:
        return (rank % radix > 0) + digits(rank // radix) if rank else 0

    return n - 1, sum(digits(rank) for rank in range(n))


def bruck_gather(n: int, ports: int) -> tuple[int, int]:
    """Full rounds of all ports, and a last one that divides the missing blocks evenly."""
    known, messages = 1, 0
    while known < n:
        share = min(known, -(-(n - known) // ports))
        messages += min(ports, -(-(n - known) // share))
        known += min(n - known, ports * share)
    return n * messages, n * (n - 1)


def bruck_exchange(n: int, ports: int) -> tuple[int, int]:
    """A message for each non-zero digit of the numbers below n at each position."""
    weight, messages = 1, 0
    while weight < n:
        messages += min(ports, (n - 1) // weight)
        weight *= ports + 1
    return n * messages, n * crossings(n, ports + 1)[1]


def two_rings(n: int) -> tuple[int, int]:
    """Two dimensions of nearly equal size; n is not a prime."""
    inner = max(size for size in range(1, n) if n % size == 0 and size * size <= n)
    return 2 * n * (inner - 1 + n // inner - 1), 2 * n * (n - 1)


def swings(n: int) -> int:
    """Returns the steps of one phase: log2 n rounded up."""
    return (n - 1).bit_length()


def misplaced(n: int) -> int:
    """Returns the ranks whose label, their path from rank 0 in a butterfly, is another number."""
    found = 0
    for label in range(n):
        rank = 0
        for step in range(swings(n)):
            distance = (1 - (-2) ** (step + 1)) // 3 * (-1) ** rank
            rank = (rank + distance * (label >> (swings(n) - 1 - step) & 1)) % n
        found += rank != label
    return found


def exchanged(n: int, radix: int, collective: str) -> tuple[int, int]:
    """Exchanges among the largest power of the radix; the extra ranks send first and last."""
    power, stages = 1, 0
    while power * radix <= n:
        power, stages = power * radix, stages + 1
    messages = power * stages * (radix - 1)
    if collective == "all_reduce":
        return 2 * messages + 2 * (n - power), 2 * n * (n - 1)
    return messages + 2 * (n - power), n * (n - 1) + n - power


def segmented_halving(n: int) -> tuple[int, int]:
    """Four messages in each step of the reduce_scatter."""
    f, p, r = powers(n)
    return 5 * f * p + 2 * r, 2 * n * (n - 1)


# Messages of all ranks, and their bytes in n-ths of the size, on n ranks.
COUNTS: dict[tuple[str, str], Callable[[int], tuple[int, int]]] = {
    ("bine", "all_reduce"): lambda n: (2 * n * swings(n), 2 * n * (n - 1)),
    ("bine", "reduce_scatter"): lambda n: (n * swings(n), n * (n - 1)),
    ("bine", "all_gather"): lambda n: (n * swings(n), n * (n - 1)),
    ("bine", "broadcast"): lambda n: full_payload(n - 1, n),
    ("bine", "reduce"): lambda n: full_payload(n - 1, n),
    ("bine", "gather"): lambda n: (n - 1, n * swings(n) // 2),
    ("bine", "scatter"): lambda n: (n - 1, n * swings(n) // 2),
    ("bine", "all_to_all"): lambda n: (n * swings(n), n * n * swings(n) // 2),
    ("bine:latency_optimal", "all_reduce"): lambda n: full_payload(n * swings(n), n),
    ("bine:block_by_block", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("bine:block_by_block", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("bine:two_blocks", "reduce_scatter"): lambda n: (
        n * (swings(n) + 1) - 2 * swings(n),
        n * (n - 1),
    ),
    ("bine:send", "reduce_scatter"): lambda n: (
        n * swings(n) + misplaced(n),
        n * (n - 1) + misplaced(n),
    ),
    ("bine:scatter_all_gather", "broadcast"): lambda n: (n * swings(n), n * (n - 1)),
    ("bine:reduce_scatter_gather", "reduce"): lambda n: (
        n * swings(n) + n - 1,
        n * (n - 1) + n * swings(n) // 2,
    ),
    ("bine:segments=4", "all_reduce"): lambda n: (5 * n * swings(n), 2 * n * (n - 1)),
    ("ring", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("ring", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("ring", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("ring:bidirectional", "all_reduce"): lambda n: (4 * n * (n - 1), 2 * n * (n - 1)),
    ("ring:bidirectional", "all_gather"): lambda n: (2 * n * (n - 1), n * (n - 1)),
    ("ring", "all_to_all"): lambda n: (n * (n - 1), n * n * (n - 1) // 2),
    ("ring:bidirectional", "all_to_all"): lambda n: (
        n * (n - 1),
        n * (n // 2 * (n // 2 + 1) + (n - 1) // 2 * ((n - 1) // 2 + 1)) // 2,
    ),
    ("ring:blockwise", "all_to_all"): lambda n: (n * n * (n - 1) // 2, n * n * (n - 1) // 2),
    ("ring:segments=3", "all_reduce"): lambda n: (4 * n * (n - 1), 2 * n * (n - 1)),
    ("ring:node=2,channels=3", "all_reduce"): lambda n: (6 * n * (n - 1), 2 * n * (n - 1)),
    ("multi_ring", "all_reduce"): two_rings,
    ("multi_ring", "all_to_all"): lambda n: (two_rings(n)[0] // 2, n * two_rings(n)[0] // 4),
    ("hierarchical", "all_to_all"): lambda n: (two_rings(n)[0] // 2, n * two_rings(n)[0] // 4),
    ("recursive_doubling", "all_to_all"): lambda n: (powers(n)[0] * n, powers(n)[0] * n * n // 2),
    ("pairwise", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("pairwise", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("blue_connect", "all_reduce"): two_rings,
    ("hierarchical_local", "all_reduce"): two_rings,
    ("swing", "all_reduce"): lambda n: (2 * n * swings(n), 2 * n * (n - 1)),
    ("swing", "reduce_scatter"): lambda n: (n * swings(n), n * (n - 1)),
    ("swing:latency_optimal", "all_reduce"): lambda n: full_payload(n * swings(n), n),
    ("recursive_doubling", "all_reduce"): doubling,
    ("recursive_doubling", "all_gather"): lambda n: (powers(n)[0] * n, n * (n - 1)),
    ("recursive_halving_doubling", "all_reduce"): halving_doubling,
    ("recursive_halving_doubling:segments=4", "all_reduce"): segmented_halving,
    ("recursive_halving_doubling:3-2", "all_reduce"): long_elimination,
    ("recursive_halving_doubling:binary_blocks", "all_reduce"): binary_blocks,
    ("recursive_halving_doubling", "all_gather"): halving,
    ("recursive_halving_doubling", "reduce_scatter"): halving,
    ("reduce_scatter_gather", "reduce"): lambda n: (
        halving(n)[0] + n - 1,
        halving(n)[1] + crossings(n, 2)[1],
    ),
    ("reduce_scatter_gather:ring", "reduce"): lambda n: (
        n * n - 1,
        n * (n - 1) + crossings(n, 2)[1],
    ),
    ("elimination", "all_reduce"): three_two,
    ("elimination:3-2_overlapping", "all_reduce"): overlapping,
    ("elimination:2-1", "all_reduce"): doubling,
    ("bruck", "all_gather"): lambda n: (n * (n - 1).bit_length(), n * (n - 1)),
    ("bruck:3", "all_gather"): lambda n: bruck_gather(n, 3),
    ("bruck", "all_to_all"): lambda n: bruck_exchange(n, 1),
    ("bruck:2", "all_to_all"): lambda n: bruck_exchange(n, 2),
    ("direct", "all_reduce"): lambda n: full_payload(n * (n - 1), n),
    ("direct:two_step", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("direct", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("direct", "all_to_all"): lambda n: (n * (n - 1), n * (n - 1)),
    ("direct", "broadcast"): lambda n: full_payload(n - 1, n),
    ("direct", "gather"): lambda n: (n - 1, n - 1),
    ("in_network", "all_reduce"): lambda n: full_payload(2 * (n - 1), n),
    ("in_network:0+1,segments=3", "all_reduce"): lambda n: (12 * (n - 1), 2 * n * (n - 1)),
    ("in_network:all", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("in_network", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("in_network", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("in_network:segments=2", "broadcast"): lambda n: (2 * (n - 1), n * (n - 1)),
    ("in_network", "reduce"): lambda n: full_payload(n - 1, n),
    ("dissemination", "all_reduce"): lambda n: disseminated(n, 1),
    ("dissemination:2", "all_reduce"): lambda n: disseminated(n, 2),
    ("dissemination", "all_gather"): lambda n: dissemination_gather(n, 1),
    ("dissemination:3", "all_gather"): lambda n: dissemination_gather(n, 3),
    ("double_binary_tree", "all_reduce"): lambda n: (4 * (n - 1), 2 * n * (n - 1)),
    ("double_binary_tree:3", "all_reduce"): lambda n: (12 * (n - 1), 2 * n * (n - 1)),
    ("double_binary_tree:nccl", "all_reduce"): lambda n: (4 * (n - 1), 2 * n * (n - 1)),
    ("double_binary_tree:nccl,phased,2", "all_reduce"): lambda n: (8 * (n - 1), 2 * n * (n - 1)),
    ("double_binary_tree:nccl,node=2,channels=2,3", "all_reduce"): lambda n: (
        24 * (n - 1),
        2 * n * (n - 1),
    ),
    ("binary_tree", "broadcast"): lambda n: full_payload(n - 1, n),
    ("binary_tree:segments=3", "reduce"): lambda n: (3 * (n - 1), n * (n - 1)),
    ("binary_tree:in_order", "reduce"): lambda n: full_payload(n, n),
    ("binary_tree:in_order,segments=4", "reduce"): lambda n: (4 * (n - 1) + 1, n * n),
    ("chain:segments=6", "broadcast"): lambda n: (6 * (n - 1), n * (n - 1)),
    ("chain:segments=3,fanout=4", "reduce"): lambda n: (3 * (n - 1), n * (n - 1)),
    ("split_binary_tree", "broadcast"): lambda n: (2 * (n - 1), n * (n - 1)),
    ("split_binary_tree:segments=3", "broadcast"): lambda n: (4 * (n - 1), n * (n - 1)),
    ("binomial", "broadcast"): lambda n: full_payload(n - 1, n),
    ("binomial", "all_reduce"): lambda n: full_payload(2 * (n - 1), n),
    ("binomial", "scatter"): lambda n: crossings(n, 2),
    ("kary_tree", "broadcast"): lambda n: full_payload(n - 1, n),
    ("kary_tree:fanout=3,segments=4", "reduce"): lambda n: (4 * (n - 1), n * (n - 1)),
    ("knomial", "reduce"): lambda n: full_payload(n - 1, n),
    ("knomial:3", "gather"): lambda n: crossings(n, 3),
    ("pairwise", "all_to_all"): lambda n: (n * (n - 1), n * (n - 1)),
    ("neighbor_exchange", "all_gather"): lambda n: (n * (n // 2), n * (n - 1)),
    ("sparbit", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("k_ring", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("k_ring:3", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("k_ring:3", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("recursive_exchange", "all_reduce"): lambda n: exchanged(n, min(4, n), "all_reduce"),
    ("recursive_exchange", "all_gather"): lambda n: exchanged(n, min(4, n), "all_gather"),
    ("recursive_exchange:3", "reduce_scatter"): lambda n: exchanged(n, min(3, n), "reduce_scatter"),
    ("pat", "all_gather"): lambda n: (n * (n - 1).bit_length(), n * (n - 1)),
    ("pat:1", "reduce_scatter"): lambda n: (n * (n - 1), n * (n - 1)),
    ("pat", "reduce_scatter"): lambda n: (n * (n - 1).bit_length(), n * (n - 1)),
    ("scatter_all_gather", "broadcast"): lambda n: (
        n * n - 1,
        crossings(n, 2)[1] + n * (n - 1),
    ),
    ("scatter_all_gather:recursive_doubling", "broadcast"): lambda n: (
        n - 1 + powers(n)[0] * n,
        crossings(n, 2)[1] + n * (n - 1),
    ),
    ("forest", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("forest", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("multi_tree", "all_gather"): lambda n: (n * (n - 1), n * (n - 1)),
    ("multi_tree", "all_reduce"): lambda n: (2 * n * (n - 1), 2 * n * (n - 1)),
    ("scatter_destination", "all_to_all"): lambda n: (n * (n - 1), n * (n - 1)),
    ("scatter_destination:3", "all_to_all"): lambda n: (n * (n - 1), n * (n - 1)),
    ("hierarchical_leader", "all_reduce"): lambda n: full_payload(2 * (n - 1), n),
}

# The same on grids, which few rank counts support.
ON_GRIDS: dict[tuple[str, str, int], tuple[int, int]] = {
    ("ring:4x4", "all_reduce", 16): (2 * 16 * 15, 2 * 16 * 15),
    ("ring:3x4,bidirectional", "all_gather", 12): (2 * 12 * 11, 12 * 11),
    ("mirrored_ring", "all_reduce", 64): (64 * 18, 2 * 64 * 63),
    ("mirrored_ring", "all_gather", 64): (64 * 9, 64 * 63),
    ("mirrored_ring:8x8:4x2,2x4", "all_reduce", 64): (64 * 28, 2 * 64 * 63),
    ("mirrored_ring:bidirectional", "reduce_scatter", 16): (16 * 12, 16 * 15),
    # Within blocks 2 x 4 messages per rank; between them 2 (N/4 - 1) N.
    ("concentrated_multi_tree", "all_reduce", 16): (8 * 16 + 2 * 3 * 16, 2 * 16 * 15),
    ("concentrated_multi_tree", "all_reduce", 64): (8 * 64 + 2 * 15 * 64, 2 * 64 * 63),
    # As in any tree: each rank except the root sends and receives the full payload.
    ("concentrated_multi_tree:4x4,accumulators=1", "all_reduce", 16): (72, 2 * 16 * 15),
    ("concentrated_multi_tree:4x4,accumulators=2", "all_reduce", 16): (96 + 2 * 24, 2 * 16 * 15),
}

EVERY = (True, True, True)
ORDERED = (True, True, False)
SAME = (True, False, False)
NONE = (False, False, False)

# Same on all ranks, in rank order, as the sequential sum.
CLASSES: dict[tuple[str, str], Callable[[int], tuple[bool, bool, bool]]] = {
    ("bine", "all_reduce"): lambda n: (True, n <= 4, n == 2),
    ("bine", "reduce_scatter"): lambda n: (True, n <= 4, n == 2),
    ("bine", "reduce"): lambda n: (True, n == 2, n == 2),
    ("bine:latency_optimal", "all_reduce"): lambda n: (n <= 4, n <= 4, n == 2),
    ("bine:block_by_block", "all_reduce"): lambda n: (True, n <= 4, n == 2),
    ("bine:two_blocks", "all_reduce"): lambda n: (True, n == 2, n == 2),
    ("bine:send", "reduce_scatter"): lambda n: (True, n <= 4, n == 2),
    ("bine:reduce_scatter_gather", "reduce"): lambda n: (True, n == 2, n == 2),
    ("bine:segments=4", "all_reduce"): lambda n: (True, n <= 4, n == 2),
    ("ring", "all_reduce"): lambda n: (True, False, n == 2),
    ("ring", "reduce_scatter"): lambda n: (True, False, n == 2),
    ("recursive_doubling", "all_reduce"): lambda n: (True, True, n <= 3),
    ("recursive_halving_doubling", "all_reduce"): lambda n: (True, True, n <= 3),
    ("recursive_halving_doubling:2-1", "all_reduce"): lambda n: (True, True, n <= 3),
    ("recursive_halving_doubling:3-2", "all_reduce"): lambda n: (True, True, n <= 3),
    ("recursive_halving_doubling:binary_blocks", "all_reduce"): lambda n: (True, True, n <= 3),
    ("recursive_halving_doubling", "reduce_scatter"): lambda n: (True, n <= 3, n <= 3),
    ("reduce_scatter_gather", "reduce"): lambda n: (True, n <= 3, n <= 3),
    ("reduce_scatter_gather:ring", "reduce"): lambda n: (True, False, n == 2),
    ("dissemination", "all_reduce"): lambda n: EVERY if n == 2 else NONE,
    ("dissemination:3", "all_reduce"): lambda n: EVERY if n <= 4 else NONE,
    ("double_binary_tree:nccl", "all_reduce"): lambda n: (True, n % 2 == 0, n == 2),
    ("double_binary_tree:phased", "all_reduce"): lambda n: (True, n % 2 == 0, n == 2),
    ("elimination", "all_reduce"): lambda n: (True, True, n <= 3),
    ("elimination:3-2_overlapping", "all_reduce"): lambda n: (True, True, n <= 3),
    ("direct", "all_reduce"): lambda _: EVERY,
    ("direct:two_step", "all_reduce"): lambda _: EVERY,
    ("direct", "reduce_scatter"): lambda _: EVERY,
    ("direct", "reduce"): lambda _: EVERY,
    ("in_network:0+1,segments=3", "all_reduce"): lambda _: EVERY,
    ("in_network", "reduce_scatter"): lambda _: EVERY,
    ("in_network", "reduce"): lambda _: EVERY,
    ("binomial", "all_reduce"): lambda n: (True, True, n <= 3),
    ("knomial", "all_reduce"): lambda n: (True, True, n <= 5),
    ("knomial:3", "reduce"): lambda n: (True, True, n <= 4),
    ("double_binary_tree:3", "all_reduce"): lambda n: (True, n % 2 == 0, n == 2),
    ("ring:bidirectional", "all_reduce"): lambda n: (True, False, n == 2),
    ("ring:segments=3", "all_reduce"): lambda n: (True, False, n == 2),
    ("binary_tree", "reduce"): lambda n: (True, n <= 3, n <= 3),
    ("binary_tree:in_order,segments=2", "reduce"): lambda n: (True, True, n <= 4),
    ("chain", "reduce"): lambda n: (True, True, n == 2),
    ("chain:segments=2,fanout=4", "reduce"): lambda n: (True, True, n <= 5),
    ("kary_tree:fanout=3,segments=2", "reduce"): lambda n: (True, n <= 4, n <= 4),
    ("multi_ring", "all_reduce"): lambda _: SAME,
    ("multi_tree", "all_reduce"): lambda _: EVERY,
    ("forest", "all_reduce"): lambda _: EVERY,
    ("blue_connect", "all_reduce"): lambda _: SAME,
    ("hierarchical_local", "all_reduce"): lambda _: SAME,
    ("pairwise", "reduce_scatter"): lambda n: (True, False, n == 2),
    ("pat", "reduce_scatter"): lambda n: (True, False, n == 2),
    ("k_ring", "all_reduce"): lambda _: SAME,
    ("k_ring:3", "reduce_scatter"): lambda _: SAME,
    ("recursive_exchange", "all_reduce"): lambda n: (True, True, n < 8),
    ("recursive_exchange:3", "all_reduce"): lambda n: (True, True, n < 6),
    ("recursive_exchange:3", "reduce_scatter"): lambda n: (True, n < 9, n < 6),
    ("double_binary_tree:node=2", "all_reduce"): lambda n: (True, n == 2 or n % 4 == 0, n == 2),
    ("swing", "all_reduce"): lambda n: (True, n <= 4, n == 2),
    ("swing:latency_optimal", "all_reduce"): lambda n: (n <= 4, n <= 4, n == 2),
    ("hierarchical", "all_reduce"): lambda _: SAME,
    ("hierarchical_leader", "all_reduce"): lambda _: ORDERED,
}

NOTATIONS = {
    "a6": EVERY,
    "c3m3,a4,e3m3": EVERY,
    "a3,a2": ORDERED,
    "c6m2,a2,a2,e6m2": ORDERED,
    "m1g2a3,n1g3a2": ORDERED,
    "m3g2a2,n3g2a2": SAME,
}


def laid_out(notation: str, collective: str) -> list[tutti.Schedule]:
    """Returns the schedules for the supported rank counts."""
    found = []
    for ranks in RANKS:
        try:
            found.append(tutti.schedule(notation, collective=collective, ranks=ranks))
        except tutti.schedules.errors.AlgorithmError:
            continue
    assert len(found) >= 4
    return found


@pytest.mark.parametrize(("notation", "collective"), COUNTS)
def test_messages_and_bytes_match_the_page(notation: str, collective: str) -> None:
    for schedule in laid_out(notation, collective):
        n = schedule.ranks
        messages, shards = COUNTS[notation, collective](n)
        # A number of one-byte elements that every number of chunks up to the ranks divides.
        size = n * 2520 * 16
        run = tutti.simulate(schedule, MACHINE, size=tutti.Size(bytes=size), datatype="int8")
        assert (run.messages, run.message_bytes) == (messages, shards * size // n), f"{n} ranks"


@pytest.mark.parametrize(("notation", "collective", "ranks"), ON_GRIDS)
def test_messages_and_bytes_on_grids(notation: str, collective: str, ranks: int) -> None:
    schedule = tutti.schedule(notation, collective=collective, ranks=ranks)
    messages, shards = ON_GRIDS[notation, collective, ranks]
    size = tutti.Size(bytes=ranks * 64)
    run = tutti.simulate(schedule, MACHINE, size=size, datatype="int8")
    assert (run.messages, run.message_bytes) == (messages, shards * 64)


@pytest.mark.parametrize(("notation", "collective"), CLASSES)
def test_reproducibility_classes_match_the_page(notation: str, collective: str) -> None:
    for schedule in laid_out(notation, collective):
        proof = schedule.verify()
        found = proof.same_on_all_ranks, proof.rank_order, proof.sequential
        assert found == CLASSES[notation, collective](schedule.ranks), f"{schedule.ranks} ranks"


@pytest.mark.parametrize("notation", NOTATIONS)
def test_reproducibility_classes_of_recursive_multiplying(notation: str) -> None:
    ranks = {"a6": 6, "c3m3,a4,e3m3": 6, "a3,a2": 6}.get(notation, 7)
    name = f"recursive_multiplying:{notation}"
    proof = tutti.schedule(name, collective="all_reduce", ranks=ranks).verify()
    assert (proof.same_on_all_ranks, proof.rank_order, proof.sequential) == NOTATIONS[notation]
