"""The synthetic traffic of gem5 as patterns of tutti.

Source: gem5 `GarnetSyntheticTraffic.cc` (`generatePkt`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ON_A_GRID: Final = frozenset({"bit_complement", "neighbor", "transpose", "tornado"})
_ON_BITS: Final = frozenset({"bit_reverse"})


def _reverse(node: int, nodes: int) -> int:
    bits = nodes.bit_length() - 1
    return int(f"{node:0{bits}b}"[::-1], 2) if bits else node


def _grid(step: Callable[[int, int, int], tuple[int, int]]) -> Callable[[int, int], int]:
    def destination(node: int, nodes: int) -> int:
        radix = math.isqrt(nodes)
        x, y = step(node % radix, node // radix, radix)
        return y * radix + x

    return destination


_DESTINATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "bit_complement": _grid(lambda x, y, radix: (radix - x - 1, radix - y - 1)),
    "bit_reverse": _reverse,
    "bit_rotation": lambda node, nodes: node // 2 + (nodes // 2 if node % 2 else 0),
    "neighbor": _grid(lambda x, y, radix: ((x + 1) % radix, y)),
    "shuffle": lambda node, nodes: 2 * node if node < nodes // 2 else 2 * node - nodes + 1,
    # gem5 divides integers, so that `ceil` has no effect for an odd radix.
    "tornado": _grid(lambda x, y, radix: ((x + radix // 2 - 1) % radix, y)),
    "transpose": _grid(lambda x, y, _: (y, x)),
}
PATTERNS: Final = ("uniform_random", *_DESTINATIONS)
"""The names of gem5."""


def needed(pattern: str, nodes: int) -> str:
    """Returns the number of nodes that a pattern needs, or an empty text if it has it."""
    if pattern in _ON_A_GRID and math.isqrt(nodes) ** 2 != nodes:
        return "a square number of nodes"
    if pattern in _ON_BITS and nodes & (nodes - 1):
        return "a power of two"
    if pattern in {"bit_rotation", "shuffle"} and nodes % 2:
        return "an even number of nodes"
    return ""


def destinations(pattern: str, nodes: int) -> list[int]:
    """Returns the destination of each node."""
    return [_DESTINATIONS[pattern](node, nodes) for node in range(nodes)]
