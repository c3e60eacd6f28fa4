"""Finds the best schedule for each range of sizes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tutti.base.errors import ConfigError
from tutti.collectives.schedule_search import KINDS, check_request, search, searcher
from tutti.schedules import proving
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from tutti.base.units import Size
    from tutti.collectives.schedule_search import SearchResult
    from tutti.platforms.machine import Platform


def thresholds(
    platform: Platform,
    *,
    ranks: int,
    start: str | Size,
    end: str | Size,
    datatype: str = "float32",
    kinds: Sequence[str] = KINDS,
    done: Callable[[Size], object] | None = None,
    verify: bool = True,
) -> pl.DataFrame:
    """Finds the best schedule for each range of sizes.

    The sizes are `start` and its doublings, each of which is searched. If all ranks are at equal
    distance and `kinds` excludes `other`, thresholds are exact to an element, unless a schedule
    becomes the best again shortly after another.

    Args:
        platform: The platform.
        ranks: The number of ranks.
        start: The smallest size.
        end: The largest size.
        datatype: The datatype of the elements, whose size divides all sizes.
        kinds: The kinds of :data:`KINDS` to search.
        done: Called with each size up to which the search is complete.
        verify: Whether to verify these schedules, each once.

    Returns:
        A row per schedule, by ascending size, with the columns of
        :data:`tutti.collectives.frames.THRESHOLDS`.

    Raises:
        UnitError: A size cannot be parsed.
        AlgorithmError: The rank count or a kind is invalid.
        LayoutError: A size does not match the datatype.
        ConfigError: The first size exceeds the last.
    """
    from tutti.base.datatypes import DATATYPES
    from tutti.base.units import Size

    first, last = Size.of_any(start), Size.of_any(end)
    if first.bytes > last.bytes:
        message = f"sizes from {first} to {last}: expected an ascending range"
        raise ConfigError(message, kind="invalid")
    for size in (first, last):
        check_request(platform, size, datatype)
    run_search = functools.partial(
        search, platform, ranks=ranks, datatype=datatype, kinds=kinds, top=1, verify=False
    )
    if platform.routes is not None or "other" in kinds:
        joined = _joined(_doublings(run_search, first, last, done))
        return _threshold_frame(joined, ranks, verify=verify)
    unit = DATATYPES[datatype]
    rows = []
    at = first.bytes
    while at <= last.bytes:
        found = run_search(size=Size(bytes=at))
        to = _furthest(platform, run_search, found, last.bytes, unit)
        notation = found.schedule.name.split(":", 1)[1]
        time, _ = searcher(platform, Size(bytes=to)).score(notation)
        gap = max(found.gap, run_search(size=Size(bytes=to)).gap)
        name, kind = found.schedule.name, found.frame["kind"][0]
        rows.append((at, to, name, kind, found.time_ps, time, gap))
        at = to + unit
        if done is not None:
            done(Size(bytes=to))
    return _threshold_frame(rows, ranks, verify=verify)


_Threshold = tuple[int, int, str, str, int, int, float]
"""First and last size, schedule, kind, times at both, and gap."""


def _threshold_frame(rows: list[_Threshold], ranks: int, *, verify: bool) -> pl.DataFrame:
    """Returns the rows with the family, and whether each schedule is verified."""
    import polars as pl

    from tutti.collectives.frames import THRESHOLDS

    verified = {
        name: proving.verify(schedule(name, ranks=ranks), skip=not verify) is None
        for name in dict.fromkeys(row[2] for row in rows)
    }
    complete = [(*row, row[2].split(":", 1)[0], verified[row[2]]) for row in rows]
    return pl.DataFrame(complete, schema=THRESHOLDS, orient="row")


def _furthest(
    platform: Platform,
    run_search: Callable[..., SearchResult],
    found: SearchResult,
    last: int,
    unit: int,
) -> int:
    """Returns the largest size up to which a schedule remains the best."""
    from tutti.base.units import Size

    notation = found.schedule.name.split(":", 1)[1]

    def holds(size: int) -> bool:
        core = searcher(platform, Size(bytes=size))
        return core.score(notation)[0] <= run_search(size=Size(bytes=size)).time_ps

    good, step = found.size.bytes, unit
    while good + step <= last and holds(good + step):
        good, step = good + step, 2 * step
    bad = good + step
    if bad > last:
        if holds(last):
            return last
        bad = last
    while bad - good > unit:
        middle = good + (bad - good) // unit // 2 * unit
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _doublings(
    run_search: Callable[..., SearchResult],
    first: Size,
    last: Size,
    done: Callable[[Size], object] | None,
) -> Iterator[tuple[int, SearchResult]]:
    from tutti.base.units import Size

    size = first.bytes
    while size <= last.bytes:
        yield size, run_search(size=Size(bytes=size))
        if done is not None:
            done(Size(bytes=size))
        size *= 2


def _joined(searched: Iterator[tuple[int, SearchResult]]) -> list[_Threshold]:
    """Merges neighbouring sizes with the same best schedule."""
    rows: list[_Threshold] = []
    for size, found in searched:
        name, kind, time = found.schedule.name, found.frame["kind"][0], found.time_ps
        if rows and rows[-1][2] == name:
            start, *_, first_time, _, gap = rows[-1]
            rows[-1] = (start, size, name, kind, first_time, time, max(gap, found.gap))
        else:
            rows.append((size, size, name, kind, time, time, found.gap))
    return rows
