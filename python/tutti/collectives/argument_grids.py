"""The arguments that are tried for each algorithm."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_RADICES = range(2, 17)
_SEGMENTS = (2, 4, 8, 16, 32, 64)
_MOST_LEVELS = 8
"""Most splits of the ranks into two and into three levels, the most balanced ones."""
_MOST_GROUPS = 16
"""Most sizes of equal groups, the smallest ones."""
_OF_LEVELS = ("ring", "direct", "recursive_halving_doubling", "recursive_exchange")
_OF_LEADERS = ("binomial", "direct", "knomial")
"""Algorithms of one level, the default first."""


def grid(name: str, collective: str, ranks: int) -> list[str]:
    """Returns the notations of an algorithm with each argument to try, the default first.

    Args:
        name: The algorithm.
        collective: The collective.
        ranks: The number of ranks, at least 2.
    """
    arguments = _GRIDS[name](collective, ranks) if name in _GRIDS else ()
    return [name, *(f"{name}:{argument}" for argument in arguments)]


def other_levels(notation: str) -> Iterator[str]:
    """Yields the notations with another algorithm on one level, if it has levels."""
    name, _, argument = notation.partition(":")
    if not argument or _GRIDS.get(name) is not _levels:
        return
    choices = _OF_LEADERS if name == "hierarchical_leader" else _OF_LEVELS
    sizes, _, named = argument.partition(":")
    count = sizes.count("x") + 1
    algorithms = named.split("/") if named else [choices[0]]
    algorithms *= count // len(algorithms)
    for level, other in itertools.product(range(count), choices):
        if algorithms[level] != other:
            varied = [*algorithms[:level], other, *algorithms[level + 1 :]]
            yield f"{name}:{sizes}:{'/'.join(varied)}"


def _levels(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the splits of the ranks into two and three levels."""
    for count in (2, 3):
        splits = sorted(_factorings(ranks, count), key=lambda split: max(split) / min(split))
        for split in splits[:_MOST_LEVELS]:
            sizes = "x".join(str(size) for size in split)
            yield sizes
            yield f"{sizes}:direct"


def _factorings(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yields the ordered factorings of a number into `count` factors of at least 2."""
    if count == 1:
        if number >= 2:
            yield (number,)
        return
    for factor in range(2, number // 2 ** (count - 1) + 1):
        if number % factor == 0:
            yield from ((factor, *rest) for rest in _factorings(number // factor, count - 1))


def _numbers(values: Iterable[int]) -> Callable[[str, int], Iterator[str]]:
    values = tuple(values)

    def arguments(_collective: str, ranks: int) -> Iterator[str]:
        return (str(value) for value in values if value <= max(ranks, 2))

    return arguments


def _segments(*prefixes: str) -> Callable[[str, int], Iterator[str]]:
    """Returns the grid of segments, alone and behind each prefix."""

    def arguments(_collective: str, _ranks: int) -> Iterator[str]:
        for prefix in ("", *prefixes):
            if prefix:
                yield prefix
            for count in _SEGMENTS:
                yield f"{prefix},segments={count}" if prefix else f"segments={count}"

    return arguments


def _shards(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the powers of two below the rank count."""
    return (str(1 << bit) for bit in range((ranks - 1).bit_length()))


def _groups(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the sizes of equal groups of ranks; one group, or one rank each, is a ring."""
    sizes = (size for size in range(2, ranks // 2 + 1) if ranks % size == 0)
    return map(str, itertools.islice(sizes, _MOST_GROUPS))


def _named(*arguments: str) -> Callable[[str, int], Iterator[str]]:
    return lambda _collective, _ranks: iter(arguments)


_GRIDS: dict[str, Callable[[str, int], Iterator[str]]] = {
    "binary_tree": _segments(),
    "bine": _segments("latency_optimal", "block_by_block", "two_blocks", "send"),
    "blue_connect": _levels,
    "bruck": _numbers(_RADICES),
    "chain": _segments("fanout=2", "fanout=4"),
    "direct": _named("two_step"),
    "dissemination": _numbers(_RADICES),
    "double_binary_tree": _numbers(_SEGMENTS),
    "elimination": _named("3-2_overlapping", "2-1"),
    "hierarchical": _levels,
    "hierarchical_leader": _levels,
    "hierarchical_local": _levels,
    "k_ring": _groups,
    "kary_tree": _segments("fanout=3", "fanout=4", "fanout=8"),
    "knomial": _numbers(_RADICES),
    "pat": _shards,
    "recursive_exchange": _numbers(_RADICES),
    "recursive_halving_doubling": _segments("2-1", "3-2", "binary_blocks"),
    "reduce_scatter_gather": _named("ring"),
    "ring": _segments(),
    "scatter_all_gather": _named("dissemination", "recursive_doubling"),
    "scatter_destination": _numbers((1, 2, 4, 8, 16, 64)),
    "split_binary_tree": _segments(),
    "swing": _named("latency_optimal"),
}
"""The arguments of each algorithm, beyond the default."""
