"""Series of measured times of one collective, and what is suspicious in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tutti import _core
from tutti.base.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tutti.nccl.evidence import Row, Selected

_DIFFERENCE: Final = 0.15
"""Relative difference of in place and out of place that is reported."""
_FALL: Final = 1.1
"""Growth of time, relative to that of the size, from which bandwidth falls."""
_STEEP: Final = 1.5
"""The same, from which a fall at large sizes is a problem."""
_PLATEAU: Final = 1.2
"""Growth of time per doubling below which a choice changes, if it grew by more than before."""
_GREW: Final = 1.5
_FASTER: Final = 0.9
"""Ratio of times from which a larger size is reported as faster."""
_LARGE: Final = 1 << 20
_MOST: Final = 6

Level = Literal["problem", "warning", "note"]


class Finding(NamedTuple):
    """A finding: how serious it is, what it is about, what was seen and what to do."""

    level: Level
    subject: str
    seen: str
    do: str = ""


class Point(NamedTuple):
    """The median time at a size, out of place or else in place; and the other, if measured."""

    size_bytes: int
    time_us: float
    in_place_us: float | None

    @property
    def steady_us(self) -> float:
        """The shorter of both times, which compares choices with less noise."""
        return min(self.time_us, self.in_place_us or self.time_us)


@dataclass(frozen=True)
class Series:
    """The times of a collective on one communicator; without `forced`, NCCL chose."""

    collective: str
    ranks: int
    nodes: int
    forced: Selected | None
    files: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        """Collective, ranks, nodes and choice."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        choice = "" if self.forced is None else f", {self.forced}"
        return f"{self.collective}, {self.ranks} ranks on {nodes}{choice}"

    def bus_bytes_per_s(self, point: Point) -> float:
        """Returns the bus bandwidth of a point, by the convention of nccl-tests."""
        factor = _core.busbw_factor(self.collective, self.ranks)
        return factor * point.size_bytes / point.time_us * 1e6


def size(point: Point) -> str:
    """Returns the size of a point as text."""
    return str(Size(bytes=point.size_bytes))


def time(point: Point) -> str:
    """Returns the time of a point as text."""
    us = point.time_us
    return f"{us:,.1f} us" if us < 1e5 else f"{us / 1e3:,.0f} ms"


def rate(bytes_per_s: float) -> str:
    """Returns a rate as text."""
    return f"{bytes_per_s / 1e9:.3g} GB/s"


def share(ratio: float) -> str:
    """Returns a share as text."""
    return f"{100 * ratio:.0f} %"


def series_of(rows: Iterable[Row]) -> list[Series]:
    """Returns the series of rows of collectives, NCCL's choice first; several runs are merged."""
    known = set(_core.collectives())
    groups: dict[tuple[str, int, int, Selected | None], list[Row]] = {}
    for row in rows:
        if row.collective in known and row.time_us > 0 and row.size_bytes > 0 and row.ranks > 1:
            key = (row.collective, row.ranks, row.nodes or 1, row.forced)
            groups.setdefault(key, []).append(row)
    found = [
        Series(*key, tuple(dict.fromkeys(row.file for row in some)), tuple(_points(some)))
        for key, some in groups.items()
    ]
    return sorted(
        found, key=lambda one: (one.collective, one.ranks, one.nodes, str(one.forced or ""))
    )


def _points(rows: Sequence[Row]) -> Iterator[Point]:
    for size in sorted({row.size_bytes for row in rows}):
        some = [row for row in rows if row.size_bytes == size]
        out = [row.time_us for row in some if not row.in_place]
        inside = [row.time_us for row in some if row.in_place]
        yield Point(size, median(out or inside), median(inside) if out and inside else None)


def suspicious(series: Series, choices: Mapping[int, str] | None = None) -> Iterator[Finding]:
    """Yields what is suspicious in the times of a series.

    Args:
        series: The series.
        choices: The known or guessed choices by size in bytes.
    """
    plateaus = partial(_plateaus, choices=choices or {})
    for check in (_differences, _falls, plateaus, _faster):
        found = list(check(series))
        yield from found[:_MOST]
        if len(found) > _MOST:
            yield Finding(
                "note", series.title, f"{len(found) - _MOST} further findings of this type"
            )


def _differences(series: Series) -> Iterator[Finding]:
    """Out of place and in place run the same algorithm: a difference is noise or a slow rank."""
    apart = [
        (one, ratio)
        for one in series.points
        if one.in_place_us and abs((ratio := one.time_us / one.in_place_us) - 1) > _DIFFERENCE
    ]
    if not apart:
        return
    worst, ratio = max(apart, key=lambda one: abs(one[1] - 1))
    large = any(one.size_bytes >= _LARGE for one, _ in apart)
    sizes = ", ".join(size(one) for one, _ in apart[:_MOST])
    most = share(abs(ratio - 1))
    yield Finding(
        "warning" if large else "note",
        series.title,
        f"out of place and in place differ by {most} at {size(worst)}"
        if len(apart) == 1
        else f"out of place and in place differ by more than {share(_DIFFERENCE)} at {sizes}; "
        f"at {size(worst)} by {most}",
        "repeat with more iterations (-n 100): noise disappears, a slow rank or link remains"
        if large
        else "small sizes: usually noise",
    )


def _falls(series: Series) -> Iterator[Finding]:
    """Bandwidth that falls with size: congestion, a slow rail, or a wrong choice."""
    for a, b in pairwise(series.points):
        growth = _growth(a, b)
        if growth > _FALL:
            slow, fast = (rate(series.bus_bytes_per_s(one)) for one in (b, a))
            yield Finding(
                "problem" if growth > _STEEP and b.size_bytes >= _LARGE else "warning",
                series.title,
                f"busbw falls from {fast} at {size(a)} to {slow} at {size(b)}",
                "the choice of the smaller size, or a single slow rail or rank: force the choice "
                "with NCCL_ALGO and NCCL_PROTO, and compare",
            )


def _growth(a: Point, b: Point) -> float:
    """Returns the growth of the time from a size to the next, relative to that of the size."""
    return b.time_us / a.time_us * a.size_bytes / b.size_bytes


def _plateaus(series: Series, *, choices: Mapping[int, str]) -> Iterator[Finding]:
    """Time that hardly grows with size, after it grew: NCCL or the network changed its method."""
    for (a, b), (c, d) in pairwise(pairwise(series.points)):
        doubles = d.size_bytes >= 2 * c.size_bytes and b.size_bytes <= 2 * a.size_bytes
        grew = b.time_us / a.time_us >= _GREW and _growth(a, b) <= _FALL
        if doubles and grew and 1 / _PLATEAU < d.time_us / c.time_us < _PLATEAU:
            before = (b.size_bytes - a.size_bytes) / (b.time_us - a.time_us) * 1e6
            yield Finding(
                "warning",
                series.title,
                f"plateau: {size(c)} takes {time(c)} "
                f"and {size(d)} {time(d)}; below, "
                f"another byte costs as at {rate(before)}",
                _after_plateau(c, d, choices),
            )


def _after_plateau(small: Point, large: Point, choices: Mapping[int, str]) -> str:
    """Returns what to do about a plateau."""
    before, after = choices.get(small.size_bytes), choices.get(large.size_bytes)
    if before is not None and before == after:
        return (
            f"NCCL uses {before} at both sizes: look for a threshold of the network plugin, and "
            "compare with NCCL_PROTO and NCCL_BUFFSIZE set"
        )
    changed = "probably changes its choice" if before is None else f"changes to {after}"
    return (
        f"NCCL {changed} between them: measure the sizes up to {size(small)} with "
        "NCCL_PROTO=LL128 and with NCCL_PROTO=Simple"
    )


def _faster(series: Series) -> Iterator[Finding]:
    """A larger size that is faster: the choice of the smaller size is wrong."""
    for a, b in pairwise(series.points):
        if b.time_us < _FASTER * a.time_us and (a.in_place_us or a.time_us) > b.time_us:
            yield Finding(
                "warning",
                series.title,
                f"{size(b)} is faster than {size(a)}: {time(b)} and {time(a)}",
                f"use the choice of {size(b)} for the smaller size, too",
            )
