"""Sizes of collectives, by the convention of nccl-tests.

The size of an all_gather, a reduce_scatter, a gather or a scatter is that of all shards together.
That of an all_to_all is what one rank sends to all. The size of the other collectives is the
payload of one rank. A barrier has none.
"""

from __future__ import annotations

from typing import Final

DEALT_OUT: Final = frozenset({"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all"})
"""Collectives with a size that is divided among the ranks."""


def part_bytes(collective: str, ranks: int, width: int) -> int:
    """Returns the size of one element of `width` bytes for each part: sizes are multiples of it.

    Examples:
        >>> part_bytes("all_gather", 6, 4), part_bytes("all_reduce", 6, 4)
        (24, 4)
    """
    return width * ranks if collective in DEALT_OUT else width
