"""Formulas of the network models in real numbers: for choosing parameters and drawing figures.

Simulations never use them; they count whole picoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core

if TYPE_CHECKING:
    from tutti.units import Time

__all__ = ["b_opt", "time_of_uniform_stages"]


def b_opt(alpha_p: str | Time, alpha_r: str | Time) -> float | None:
    """How many messages should overlap in each stage of a small all_reduce.

    Equation (5) of Ruefenacht et al. 2017, with Lambert's W:
    exp(W((alpha_p - alpha_r) / (e alpha_r)) + 1) - 1. None where alpha_r is zero: then one stage is
    best.

    >>> round(b_opt("1 us", "0.25 us"), 2)
    3.97

    Raises:
        UnitError: A time cannot be read.
    """
    return _core.b_opt(_ps(alpha_p), _ps(alpha_r))


def time_of_uniform_stages(
    alpha_p: str | Time, alpha_r: str | Time, b: float, ranks: float
) -> float:
    """Time in picoseconds of a small all_reduce whose stages all send b messages.

    Equation (4) of Ruefenacht et al. 2017: (alpha_p + b alpha_r) log_(b + 1) N; exact where N is a
    power of b + 1, a continuation elsewhere.

    >>> time_of_uniform_stages("1 us", "0.25 us", b=3, ranks=16) / 1e6
    3.5

    Raises:
        UnitError: A time cannot be read.
        ModelError: b is not positive, or there is less than one rank.
    """
    return _core.time_of_uniform_stages(_ps(alpha_p), _ps(alpha_r), b, ranks)


def _ps(time: str | Time) -> int:
    return _core.parse_time(time) if isinstance(time, str) else time.ps
