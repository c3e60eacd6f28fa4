"""Relative popularity of experts or destinations: equal, or by Zipf's law."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tutti.schedules.errors import LayoutError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def popularity(routing: str, experts: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Returns the relative popularity of each expert; the sum is 1.

    Args:
        routing: `uniform`, or `zipf:S`: the expert of popularity rank r has a share proportional
            to r^-S. The seed decides which expert has which rank.
        experts: The number of experts, or of other items.
        seed: The seed of the order.

    Raises:
        LayoutError: The routing is unknown, or its exponent is not from 0 to 10.
    """
    name, _, argument = routing.partition(":")
    if name == "uniform" and not argument:
        return np.full(experts, 1 / experts)
    expected = "expected `uniform` or `zipf:S` with S from 0 to 10, such as zipf:1.0"
    if name != "zipf":
        raise LayoutError(f"unknown routing `{routing}`: {expected}", kind="popularity")
    try:
        exponent = float(argument)
    except ValueError:
        exponent = math.nan
    if not 0 <= exponent <= 10:
        raise LayoutError(f"invalid exponent of routing `{routing}`: {expected}", kind="popularity")
    shares = np.arange(1, experts + 1) ** -exponent
    order = np.random.default_rng([seed, experts]).permutation(experts)
    found: NDArray[np.float64] = shares[order] / shares.sum()
    return found
