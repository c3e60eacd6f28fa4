"""Rates and latencies of SimGrid, such as ``125MBps``, ``1Gibps`` and ``50us``.

Source: ``src/xbt/xbt_parse_units.cpp`` of SimGrid 4.1: a number without a unit is in bytes per second
or in seconds.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tutti.errors import UnitError
from tutti.units import TimePerByte

if TYPE_CHECKING:
    from tutti.interop.nccl.xml import Element

__all__ = ["latency_of", "rate_of"]

_VALUE: Final = re.compile(r"\s*\+?([0-9]{0,30}\.?[0-9]{0,30}(?:[eE][-+]?[0-9]{1,2})?)([A-Za-z]*)")
_PREFIXES: Final = "kMGTPEZY"
_RATES: Final = {
    f"{prefix}{unit}": Decimal(base**power) / bits
    for unit, bits in (("Bps", 1), ("bps", 8))
    for base, suffix in ((1000, ""), (1024, "i"))
    for power, prefix in enumerate(
        ["", *(("K" if suffix and each == "k" else each) + suffix for each in _PREFIXES)]
    )
}
"""Bytes per second of each unit."""
_TIMES: Final = {
    "w": Decimal(7 * 24 * 3600),
    "d": Decimal(24 * 3600),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
    "ps": Decimal("1e-12"),
}
_MOST_PS: Final = 2**62


def rate_of(element: Element, name: str, text: str | None = None) -> TimePerByte:
    """Returns the rate in an attribute; `text` replaces the attribute's text.

    Raises:
        ConfigError: It is missing, not a rate, or zero.
    """
    value = _value(element, name, _RATES, "Bps", "a rate, such as 125MBps or 1Gbps", text)
    try:
        return TimePerByte.parse(f"{value:f} B/s")
    except UnitError:
        element.refuse(name, "a rate that is not zero, such as 125MBps or 1Gbps")


def latency_of(element: Element, name: str, default: str | None = None) -> tuple[int, bool]:
    """Returns the latency in an attribute in ps, and whether it is exact.

    Raises:
        ConfigError: It is missing without a default, or not a latency.
    """
    text = element.text(name, default) or default
    value = _value(element, name, _TIMES, "s", "a latency, such as 50us", text) * 10**12
    if value > _MOST_PS:
        element.refuse(name, "a latency of at most 53 days")
    whole_ps = int(value.to_integral_value())
    return whole_ps, whole_ps == value


def _value(
    element: Element,
    name: str,
    units: dict[str, Decimal],
    default: str,
    expected: str,
    text: str | None,
) -> Decimal:
    found = _VALUE.fullmatch(element.text(name) if text is None else text)
    if found is None or not found[1].strip(".").strip() or not found[1][:1].strip("eE"):
        element.refuse(name, expected)
    unit = found[2] or default
    if unit not in units:
        element.refuse(name, f"{expected}; units are {', '.join(units)}")
    return Decimal(found[1]) * units[unit]
