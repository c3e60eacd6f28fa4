"""Sizes of collectives, by the convention of nccl-tests.

The size of an all_gather, a reduce_scatter, a gather or a scatter is that of all shards together.
That of an all_to_all is what one rank sends to all. The size of the other collectives is the
payload of one rank. A barrier has none.
"""

from __future__ import annotations

from typing import Final

from tutti.base.units import Size

DEALT_OUT: Final = frozenset({"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all"})
"""Collectives with a size that is divided among the ranks."""


def part_bytes(collective: str, ranks: int, width: int) -> int:
    """Returns the size of one element of `width` bytes for each part: sizes are multiples of it.

    Examples:
        >>> part_bytes("all_gather", 6, 4), part_bytes("all_reduce", 6, 4)
        (24, 4)
    """
    return width * ranks if collective in DEALT_OUT else width


def growing(first: int, last: int, factor: int) -> list[int]:
    """Returns sizes from the first to the last, each `factor` times the previous one.

    Examples:
        >>> growing(8, 100, 4), growing(0, 100, 2)
        ([8, 32], [0])
    """
    sizes = [first]
    while first and sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    return sizes


def unreached(sizes: list[int], last: int, factor: int) -> str:
    """Returns a remark if growing sizes end before the last one; empty if they do not.

    Examples:
        >>> unreached(growing(8, 100, 4), 100, 4)
        'the last size is 32 B: 100 B is not 8 B times a power of 4'
        >>> unreached(growing(8, 128, 4), 128, 4)
        ''
    """
    if sizes[-1] == last:
        return ""
    ends = Size(bytes=sizes[-1]), Size(bytes=last), Size(bytes=sizes[0])
    return "the last size is {}: {} is not {} times a power of {}".format(*ends, factor)
