"""Quantities that designs of both kinds of networks have."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.energy import Interval
    from tutti.sweeps.worker import Row


def energies(total: Interval, seconds: float, bits: float) -> Row:
    """Returns mean power in W, and energy per bit in pJ with its interval if any bit arrives.

    Args:
        total: The energy in J.
        seconds: The time in which it is taken.
        bits: The bits that arrive.
    """
    row: Row = {"power_w": total.nominal / seconds}
    if bits > 0:
        names = ("energy_low_pj_per_bit", "energy_pj_per_bit", "energy_high_pj_per_bit")
        row |= {name: joules * 1e12 / bits for name, joules in zip(names, total, strict=True)}
    return row


def number(value: float) -> float | None:
    """Returns a number that JSON can represent."""
    return None if isnan(value) else value
