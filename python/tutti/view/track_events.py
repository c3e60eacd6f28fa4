"""Events on tracks, written as native Perfetto traces (TrackEvent protobuf).

The clock of a trace counts nanoseconds: timestamps are rounded down, which preserves order and
nesting. The core encodes the events: a run has 10 events per message, and objects of the perfetto
package take 7 us each. Tests compare the bytes with those of the package.
"""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tutti import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Item = TypeVar("Item")
START: Final = 1
END: Final = 2
INSTANT: Final = 3
"""The types of events: a slice starts or ends, or an event has no duration."""


class Track(NamedTuple):
    """A track: its parent, if any, and its position among the children of the parent."""

    uuid: int
    name: str
    parent: int | None
    order: int


class Event(NamedTuple):
    """An event: its time, track and type; its category, name and arguments, if any."""

    at_ps: int
    track: int
    type: int
    category: str = ""
    name: str = ""
    arguments: Sequence[tuple[str, int | str]] = ()


def write_events(path: str | Path, tracks: Sequence[Track], events: Sequence[Event]) -> Path:
    """Writes a trace.

    Args:
        path: The file to write; its folder must exist.
        tracks: The tracks, parents before their children.
        events: The events; those of equal times in order.

    Returns:
        The path written.
    """
    target = Path(path)
    target.write_bytes(_core.track_events(tracks, events))
    return target


def lanes(
    items: Iterable[Item], start: Callable[[Item], int], end: Callable[[Item], int]
) -> list[list[Item]]:
    """Assigns items, in order of their starts, to the fewest lanes without overlap.

    Each item is in the first lane that is free.
    """
    found: list[list[Item]] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for one in items:
        first = start(one)
        while busy and busy[0][0] <= first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, len(found))
            found.append([])
        lane = heapq.heappop(free)
        found[lane].append(one)
        heapq.heappush(busy, (end(one), lane))
    return found
