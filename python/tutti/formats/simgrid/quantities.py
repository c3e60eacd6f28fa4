"""Rates and latencies of SimGrid, such as ``125MBps``, ``1Gibps`` and ``50us``.

Source: ``src/xbt/xbt_parse_units.cpp`` of SimGrid 4.1: a number without a unit is in bytes per
second or in seconds.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tutti.base.errors import UnitError
from tutti.base.units import TimePerByte

if TYPE_CHECKING:
    from tutti.formats.xml_files import Element

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
    value = _value(element.text(name) if text is None else text, _RATES, "Bps")
    if value is None:
        element.refuse(name, "a rate, such as 125MBps or 1Gbps")
    try:
        return TimePerByte.parse(f"{value:f} B/s")
    except UnitError:
        element.refuse(name, "a rate in range that is not zero, such as 125MBps or 1Gbps")


def latency_of(element: Element, name: str, default: str) -> tuple[int, bool]:
    """Returns the latency in an attribute in ps, and whether it is exact.

    Raises:
        ConfigError: It is not a latency.
    """
    seconds = _value(element.text(name, default) or default, _TIMES, "s")
    if seconds is None or seconds * 10**12 > _MOST_PS:
        element.refuse(name, "a latency of at most 53 days, such as 50us")
    ps = int((seconds * 10**12).to_integral_value())
    return ps, ps == seconds * 10**12


def _value(text: str, units: dict[str, Decimal], default: str) -> Decimal | None:
    """Returns a number with its unit in the base unit, or None."""
    found = _VALUE.fullmatch(text)
    if found is None or (not found[1][:1].isdigit() and not found[1][1:2].isdigit()):
        return None
    scale = units.get(found[2] or default)
    return None if scale is None else Decimal(found[1]) * scale
