"""Sizes of collectives, by the convention of nccl-tests.

The size of an all_gather, a reduce_scatter, a gather or a scatter is that of all shards together,
that of an all_to_all what one rank sends to all: ranks have equal parts of it. The size of the
others is what one rank has. A barrier has none.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DEALT_OUT", "growing", "part_bytes"]

DEALT_OUT: Final = frozenset({"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all"})
"""Collectives whose size is dealt out to the ranks."""


def part_bytes(collective: str, ranks: int, width: int) -> int:
    """Bytes that a size is a multiple of: an element of `width` bytes for each part.

    >>> part_bytes("all_gather", 6, 4), part_bytes("all_reduce", 6, 4)
    (24, 4)
    """
    return width * ranks if collective in DEALT_OUT else width


def growing(first: int, last: int, factor: int) -> list[int]:
    """Sizes from the first on, each `factor` times the one before, up to the last.

    >>> growing(8, 100, 4), growing(0, 100, 2)
    ([8, 32], [0])
    """
    sizes = [first]
    while first and sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    return sizes
