"""Formulas of the network models in real numbers, for choosing parameters and for figures.

Simulations do not use them; simulations count integer picoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core

if TYPE_CHECKING:
    from tutti.base.units import Time


def b_opt(alpha_p: str | Time, alpha_r: str | Time) -> float | None:
    """Returns the optimal number of overlapping messages in each stage of a small all_reduce.

    Equation (5) of Ruefenacht et al. 2017, with Lambert's W:
    exp(W((alpha_p - alpha_r) / (e alpha_r)) + 1) - 1. None if alpha_r is zero, as then one stage is
    optimal.

    Examples:
        >>> round(b_opt("1 us", "0.25 us"), 2)
        3.97

    Raises:
        UnitError: A time cannot be parsed.
    """
    return _core.b_opt(_ps(alpha_p), _ps(alpha_r))


def time_of_uniform_stages(
    alpha_p: str | Time, alpha_r: str | Time, b: float, ranks: float
) -> float:
    """Returns the time of a small all_reduce whose stages each send b messages, in ps.

    Equation (4) of Ruefenacht et al. 2017: (alpha_p + b alpha_r) log_(b + 1) N; exact if N is a
    power of b + 1, interpolated otherwise.

    Examples:
        >>> time_of_uniform_stages("1 us", "0.25 us", b=3, ranks=16) / 1e6
        3.5

    Raises:
        UnitError: A time cannot be parsed.
        ModelError: b is not positive, or `ranks` is less than 1.
    """
    return _core.time_of_uniform_stages(_ps(alpha_p), _ps(alpha_r), b, ranks)


def _ps(time: str | Time) -> int:
    return _core.parse_time(time) if isinstance(time, str) else time.ps
