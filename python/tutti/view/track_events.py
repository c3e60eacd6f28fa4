"""Events on tracks, written as native Perfetto traces (TrackEvent protobuf).

The clock of a trace counts nanoseconds: timestamps are rounded down, which preserves order and
nesting. The wire format is written here: a run has 10 events per message, and objects of the
perfetto package take 7 us each. Events are joined from encoded parts, most of which recur. Tests
compare the bytes with those of the package.
"""

from __future__ import annotations

from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Item = TypeVar("Item")
SEQUENCE = 1
"""All packets belong to one writer sequence."""


class Track(NamedTuple):
    """A track: its parent, if any, and its position among the children of the parent."""

    uuid: int
    name: str
    parent: int | None
    order: int


Event = tuple[int, bytes]
"""The time of an event in picoseconds, by which events are sorted, and its packet."""


def write_events(path: str | Path, tracks: Sequence[Track], events: Iterable[Event]) -> Path:
    """Writes a trace.

    Args:
        path: The file to write; its folder must exist.
        tracks: The tracks, parents before their children.
        events: The events of an `Encoder`, in order of time.

    Returns:
        The path written.
    """
    target = Path(path)
    with target.open("wb") as file:
        file.writelines(_described(track, first=number == 0) for number, track in enumerate(tracks))
        file.writelines(map(itemgetter(1), events))
    return target


def lanes(
    items: Iterable[Item], start: Callable[[Item], int], end: Callable[[Item], int]
) -> list[list[Item]]:
    """Assigns items, in order of their starts, to the fewest lanes without overlap."""
    found: list[list[Item]] = []
    ends: list[int] = []
    for one in items:
        first = start(one)
        for number, last in enumerate(ends):
            if last <= first:
                found[number].append(one)
                ends[number] = end(one)
                break
        else:
            found.append([one])
            ends.append(end(one))
    return found


_START, _END, _INSTANT = 1, 2, 3
"""`TrackEvent.Type`: `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT`."""
_INCREMENTAL_STATE_CLEARED = 1
_EXPLICIT = 3
"""`TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`."""
_REPEATED = 1 << 16
"""Cached encodings, such as those of arguments: most ranks repeat them."""


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


_PACKET = _key(1, 2)
_TIME = _key(8, 0)
_SEQUENCE = _key(10, 0) + _varint(SEQUENCE)
_EVENT = _key(11, 2)
_ARGUMENT, _INTEGER, _TEXT, _ARGUMENT_NAME = _key(4, 2), _key(4, 0), _key(6, 2), _key(10, 2)
_TYPE, _TRACK, _CATEGORY, _NAME = _key(9, 0), _key(11, 0), _key(22, 2), _key(23, 2)
_FLOW, _FLOW_END = _key(47, 1), _key(48, 1)


class Encoder:
    """Encodes events. Their parts follow each other in the order of their fields' numbers.

    Attributes:
        argument: Encodes an argument, a name and an integer or text (`debug_annotations`).
        start: Encodes the start of a slice: the track, and perhaps category and name.
        end: Encodes the end of a slice: the track.
        instant: Encodes an event without duration, as `start`.
    """

    def __init__(self) -> None:
        repeated = lru_cache(_REPEATED)
        self.argument = repeated(_argument)
        self.start = partial(repeated(_type_and_names), _START)
        self.end = partial(repeated(_type_and_names), _END)
        self.instant = partial(repeated(_type_and_names), _INSTANT)
        self._time, self._lengths = repeated(_time), repeated(_lengths)

    def event(self, at_ps: int, *parts: bytes) -> Event:
        """Encodes an event from its arguments, type and track, and arrows.

        Returns:
            The time, and a `Trace` with one `TracePacket`: traces are concatenated.
        """
        body, head = b"".join(parts), self._time(at_ps // 1000)
        packet, event = self._lengths(len(head), len(body))
        return at_ps, b"".join((packet, head, event, body))


def flow(number: int) -> bytes:
    """Encodes an arrow that starts at an event, or continues (`flow_ids`)."""
    return _FLOW + number.to_bytes(8, "little")


def flow_end(number: int) -> bytes:
    """Encodes an arrow that ends at an event (`terminating_flow_ids`)."""
    return _FLOW_END + number.to_bytes(8, "little")


def _time(nanoseconds: int) -> bytes:
    """Encodes the fields of a packet up to the length of its event."""
    return _number(_TIME, nanoseconds) + _SEQUENCE + _EVENT


def _lengths(head: int, event: int) -> tuple[bytes, bytes]:
    """Encodes what precedes a packet, and the length of its event, from lengths in bytes."""
    size = _varint(event)
    return _PACKET + _varint(head + len(size) + event), size


def _argument(name: str, value: int | str) -> bytes:
    held = _number(_INTEGER, value) if isinstance(value, int) else _bytes(_TEXT, value.encode())
    return _bytes(_ARGUMENT, held + _bytes(_ARGUMENT_NAME, name.encode()))


def _type_and_names(kind: int, track: int, category: str = "", name: str = "") -> bytes:
    named = (_bytes(_CATEGORY, category.encode()) if category else b"") + (
        _bytes(_NAME, name.encode()) if name else b""
    )
    return _number(_TYPE, kind) + _number(_TRACK, track) + named


def _described(track: Track, *, first: bool) -> bytes:
    """Encodes a `TrackDescriptor`; the first packet clears the state of the sequence."""
    fields = [_number(_key(1, 0), track.uuid), _bytes(_key(2, 2), track.name.encode())]
    if track.parent is not None:
        fields.append(_number(_key(5, 0), track.parent))
    fields += [_number(_key(11, 0), _EXPLICIT), _number(_key(12, 0), track.order)]
    flags = _number(_key(13, 0), _INCREMENTAL_STATE_CLEARED) if first else b""
    return _bytes(_PACKET, _SEQUENCE + flags + _bytes(_key(60, 2), b"".join(fields)))


def _number(key: bytes, value: int) -> bytes:
    # Negative numbers have the 64 bits of their two's complement.
    return key + _varint(value & (1 << 64) - 1)


def _bytes(key: bytes, value: bytes) -> bytes:
    return b"%b%b%b" % (key, _varint(len(value)), value)
