"""Formats times, sizes, rates, shares, counts and estimates for display.

Times are in picoseconds, sizes in bytes, rates in bytes per second, energies in joules. The core
parses quantities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.base.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.networks.flit import Estimate

_Units = tuple[tuple[int, str], ...]
_TIME_UNITS: _Units = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_SIZE_UNITS: _Units = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"))
_RATE_UNITS: _Units = (
    (10**12, "TB/s"), (10**9, "GB/s"), (10**6, "MB/s"), (10**3, "kB/s"), (1, "B/s")
)  # fmt: skip


def _digits(value: float, significant: int = 4) -> str:
    """Returns `value` with `significant` digits, without an exponent or trailing zeros."""
    if value == 0:
        return "0"
    integer_digits = len(str(int(abs(value))))
    text = f"{value:.{max(significant - integer_digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, units: _Units, significant: int = 4) -> str:
    for factor, unit in units:
        if abs(value) >= factor:
            return f"{_digits(value / factor, significant)} {unit}"
    return f"{_digits(value, significant)} {units[-1][1]}"


def format_time(ps: float) -> str:
    """Formats a time in picoseconds: `1_340_000` is `1.34 us`."""
    return "0 ns" if ps == 0 else _scaled(ps, _TIME_UNITS)


def format_size(size_bytes: float) -> str:
    """Formats bytes in powers of two with at most four digits: `65536` is `64 KiB`."""
    return _scaled(size_bytes, _SIZE_UNITS)


def exact_size(size_bytes: int) -> str:
    """Formats bytes without rounding: `4095` is `4095 B`."""
    return str(Size(bytes=size_bytes))


def format_rate(bytes_per_s: float) -> str:
    """Formats bytes per second in powers of ten: `1.25e9` is `1.25 GB/s`."""
    return _scaled(bytes_per_s, _RATE_UNITS)


def format_energy(joules: float) -> str:
    """Formats an energy in joules with three digits: `1.5e-6` is `1.5 uJ`."""
    return _small(joules, "J")


def format_power(watts: float) -> str:
    """Formats a power in watts with three digits: `0.182` is `182 mW`."""
    return _small(watts, "W")


def _small(value: float, unit: str) -> str:
    scale, prefix = next((one for one in _PREFIXES if value >= one[0]), _PREFIXES[-1])
    return f"{value / scale:.3g} {prefix}{unit}"


def format_share(ratio: float) -> str:
    """Formats a fraction as per cent: `0.274` is `27 %`, `0.0274` is `2.7 %`."""
    percent = ratio * 100
    if 0 < percent < 0.05:
        return "under 0.1 %"
    return f"{_digits(percent, 2)} %" if percent < 10 else f"{percent:.0f} %"


def format_shares(ratios: Sequence[float]) -> list[str]:
    """Formats shares of one total as per cent with one decimal, which add up to the rounded total.

    Largest-remainder rounding: three thirds are `33.4 %`, `33.3 %` and `33.3 %`.
    """
    exact = [1000 * ratio for ratio in ratios]
    tenths = [math.floor(value) for value in exact]
    left = round(sum(exact)) - sum(tenths)
    lost = sorted(range(len(exact)), key=lambda place: tenths[place] - exact[place])
    for place in lost[:left]:
        tenths[place] += 1
    return [f"{tenth / 10:.1f} %" for tenth in tenths]


def format_limit(of_limit: float | None) -> str:
    """Formats a share of the lower bound in per cent without the sign: `0.953` is `95.3`.

    Values are rounded down, so that only a schedule that reaches the bound shows 100.
    """
    if of_limit is None:
        return "-"
    return f"{math.floor(of_limit * 1000) / 10:g}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Returns a count with its noun: `1 message`, `2 messages`; `nouns` is an irregular plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or f'{noun}s'}"


def counted(text: str, noun: str) -> str:
    """Returns a formatted number with its noun: `1 message`, `1.5 messages`."""
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def count(value: int) -> str:
    """Formats a count with thousands separators: `12,345`."""
    return f"{value:,}"


def flag(value: bool) -> str:
    """Formats a Boolean."""
    return "yes" if value else "no"


def number(value: float | None, digits: int = 4) -> str:
    """Formats a number with `digits` significant digits; None and NaN are a dash."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e" in text and abs(value) >= 1 else text


def estimate(value: Estimate) -> str:
    """Formats a mean ± its 95 % CI half-width, or the mean if the interval is unknown."""
    if math.isnan(value.half_width):
        return number(value.mean)
    return f"{number(value.mean)} ± {number(value.half_width, 2)}"


def mean(value: Estimate) -> str:
    """Formats the mean of an estimate."""
    return number(value.mean)


def three(value: float | Estimate) -> str:
    """Formats a number, or the mean of an estimate, with three digits."""
    return number(value if isinstance(value, int | float) else value.mean, 3)


def half_width(value: Estimate) -> float:
    """Returns the half-width to draw as an error bar: 0 if the interval is unknown."""
    return 0.0 if math.isnan(value.half_width) else value.half_width


def span(values: Sequence[int], show: Callable[[int], str] = count) -> str:
    """Formats the range of values: `8 B`, or `8 B to 4 KiB`."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def range_text(first: int, last: int | None, show: Callable[[int], str] = count) -> str:
    """Formats a range, perhaps without an end: `8 B to 4 KiB`, or `from 8 B`."""
    if last is None:
        return f"from {show(first)}"
    return show(first) if first == last else f"{show(first)} to {show(last)}"


def sentence(text: str) -> str:
    """Capitalises a text and appends a full stop."""
    return text[:1].upper() + text[1:] + "."


def time_unit(largest_ps: float) -> tuple[int, str]:
    """Returns the unit of an axis that reaches `largest_ps`: (picoseconds per unit, name)."""
    return _axis_unit(largest_ps, _TIME_UNITS)


def rate_unit(largest: float) -> tuple[int, str]:
    """Returns the unit of an axis that reaches `largest` bytes per second: (bytes/s, name)."""
    return _axis_unit(largest, _RATE_UNITS)


def _axis_unit(largest: float, units: _Units) -> tuple[int, str]:
    return next((unit for unit in units if largest >= 2 * unit[0]), units[-1])


def size_ticks(sizes: Iterable[int], most: int = 9) -> list[int]:
    """Returns at most `most` of the sizes, evenly spaced from the smallest, as axis ticks."""
    ordered = sorted({size for size in sizes if size > 0})
    stride = max(-(-len(ordered) // most), 1)
    return ordered[::stride]
