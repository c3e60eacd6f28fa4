"""Formats times, sizes, rates, shares, counts and estimates for people.

Only display: parsing is the core's. Times come in whole picoseconds, sizes in bytes, rates in bytes
per second; nothing here is read back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.noc import Estimate

_Units = tuple[tuple[int, str], ...]
_TIME_UNITS: _Units = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_SIZE_UNITS: _Units = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_RATE_UNITS: _Units = (
    (10**12, "TB/s"), (10**9, "GB/s"), (10**6, "MB/s"), (10**3, "kB/s"), (1, "B/s")
)  # fmt: skip


def _digits(value: float, significant: int = 4) -> str:
    """`value` with `significant` digits, without an exponent or idle zeros."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value))))
    text = f"{value:.{max(significant - whole, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, units: _Units, significant: int = 4) -> str:
    for factor, unit in units:
        if abs(value) >= factor:
            return f"{_digits(value / factor, significant)} {unit}"
    return f"{_digits(value, significant)} {units[-1][1]}"


def format_time(ps: float) -> str:
    """A time in picoseconds as text: `1_340_000` is `1.34 us`."""
    return "0 ns" if ps == 0 else _scaled(ps, _TIME_UNITS)


def format_size(size_bytes: float) -> str:
    """Bytes as text, in powers of two: `65536` is `64 KiB`; uneven sizes keep four digits."""
    return _scaled(size_bytes, _SIZE_UNITS)


def format_rate(bytes_per_s: float) -> str:
    """Bytes per second as text, in powers of ten: `1.25e9` is `1.25 GB/s`."""
    return _scaled(bytes_per_s, _RATE_UNITS)


def format_share(ratio: float) -> str:
    """A fraction as per cent: `0.274` is `27 %`; below a tenth it keeps a decimal."""
    percent = ratio * 100
    if 0 < percent < 0.05:
        return "under 0.1 %"
    return f"{_digits(percent, 2)} %" if percent < 10 else f"{percent:.0f} %"


def format_shares(ratios: Sequence[float]) -> list[str]:
    """The parts of one whole as per cent with a decimal, rounded so that they add up to theirs.

    What rounding down leaves of the sum goes to those that lose most by it: three thirds are
    `33.4 %`, `33.3 %` and `33.3 %`.
    """
    exact = [1000 * ratio for ratio in ratios]
    tenths = [math.floor(value) for value in exact]
    left = round(sum(exact)) - sum(tenths)
    lost = sorted(range(len(exact)), key=lambda place: tenths[place] - exact[place])
    for place in lost[:left]:
        tenths[place] += 1
    return [f"{tenth / 10:.1f} %" for tenth in tenths]


def format_limit(of_limit: float | None) -> str:
    """How much of what is possible is reached, in per cent without the sign: `0.953` is `95.3`.

    Only the limit itself is 100: what falls just short of it is rounded down.
    """
    if of_limit is None:
        return "-"
    return f"{math.floor(of_limit * 1000) / 10:g}"


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def counted(text: str, noun: str) -> str:
    """The same of a count that is a text, such as a mean: `1 message`, `1.5 messages`."""
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def count(value: int) -> str:
    """A count with its thousands apart: `12,345`."""
    return f"{value:,}"


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e" in text and abs(value) >= 1 else text


def estimate(value: Estimate) -> str:
    """A mean ± its 95 % CI half-width; the mean alone where the interval is unknown."""
    if math.isnan(value.half_width):
        return number(value.mean)
    return f"{number(value.mean)} ± {number(value.half_width, 2)}"


def mean(value: Estimate) -> str:
    """The mean of an estimate."""
    return number(value.mean)


def three(value: float | Estimate) -> str:
    """A number, or the mean of an estimate, with three digits."""
    return number(value if isinstance(value, int | float) else value.mean, 3)


def half_width(value: Estimate) -> float:
    """The half-width to draw as an error bar: 0 where the interval is unknown."""
    return 0.0 if math.isnan(value.half_width) else value.half_width


def span(values: Sequence[int], show: Callable[[int], str] = count) -> str:
    """`8 B`, or `8 B to 4 KiB`."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def sentence(text: str) -> str:
    """A statement as a sentence."""
    return text[:1].upper() + text[1:] + "."


def time_unit(largest_ps: float) -> tuple[int, str]:
    """The unit for an axis that reaches `largest_ps`: (picoseconds per unit, name)."""
    return _axis_unit(largest_ps, _TIME_UNITS)


def rate_unit(largest: float) -> tuple[int, str]:
    """The unit for an axis that reaches `largest` bytes per second: (bytes/s per unit, name)."""
    return _axis_unit(largest, _RATE_UNITS)


def _axis_unit(largest: float, units: _Units) -> tuple[int, str]:
    return next((unit for unit in units if largest >= 2 * unit[0]), units[-1])


def size_ticks(sizes: Iterable[int], most: int = 9) -> list[int]:
    """At most `most` of the sizes, evenly chosen from the smallest on, for the ticks of an axis."""
    ordered = sorted({size for size in sizes if size > 0})
    stride = max(-(-len(ordered) // most), 1)
    return ordered[::stride]
