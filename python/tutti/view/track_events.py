"""Events on tracks, written as native Perfetto traces (TrackEvent protobuf).

The clock of a trace counts nanoseconds: timestamps are rounded down, which preserves order and
nesting. The wire format is written here: a run has 10 events per message, and objects of the
perfetto package take 7 us each. Tests compare the bytes with those of the package.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Item = TypeVar("Item")
SEQUENCE = 1
"""All packets belong to one writer sequence."""


class Event(NamedTuple):
    """One event on a track: the `begin` or `end` of a slice, or an `instant`."""

    at_ps: int
    track: int
    type: str
    name: str = ""
    category: str = ""
    flows: tuple[int, ...] = ()
    ends_flow: bool = False
    arguments: tuple[tuple[str, int | str], ...] = ()


class Track(NamedTuple):
    """A track: its parent, if any, and its position among the children of the parent."""

    uuid: int
    name: str
    parent: int | None
    order: int


def write_events(path: str | Path, tracks: Sequence[Track], events: Iterable[Event]) -> Path:
    """Writes a trace.

    Args:
        path: The file to write; its folder must exist.
        tracks: The tracks, parents before their children.
        events: The events in order of time.

    Returns:
        The path written.
    """
    target = Path(path)
    encode = _Encoder().packet
    with target.open("wb") as file:
        file.writelines(_described(track, first=number == 0) for number, track in enumerate(tracks))
        file.writelines(map(encode, events))
    return target


def lanes(
    items: Iterable[Item], start: Callable[[Item], int], end: Callable[[Item], int]
) -> list[list[Item]]:
    """Assigns items, in order of their starts, to the fewest lanes without overlap."""
    found: list[list[Item]] = []
    for one in items:
        for lane in found:
            if end(lane[-1]) <= start(one):
                lane.append(one)
                break
        else:
            found.append([one])
    return found


_TYPES = {"begin": 1, "end": 2, "instant": 3}
"""`TrackEvent.Type`: `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT`."""
_INCREMENTAL_STATE_CLEARED = 1
_EXPLICIT = 3
"""`TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`."""
_REPEATED = 1 << 16
"""Cached encodings, such as those of arguments: most ranks repeat them."""


class _Encoder:
    """Encodes events as packets of a trace; fields are in the order of their numbers."""

    def __init__(self) -> None:
        self._argument = lru_cache(_REPEATED)(_argument)
        self._begin = lru_cache(_REPEATED)(_type_and_track)
        self._named = lru_cache(_REPEATED)(_category_and_name)
        self._time = lru_cache(_REPEATED)(_time)
        self._length = lru_cache(_REPEATED)(_varint)

    def packet(self, event: Event) -> bytes:
        """Returns a `Trace` with one `TracePacket`: traces are concatenated."""
        at, track, kind, name, category, flows, ends, arguments = event
        body = self._begin(kind, track)
        if arguments:
            body = b"".join(map(self._argument, arguments)) + body
        if name or category:
            body += self._named(category, name)
        if flows:
            body += _flows(flows, ends)
        packet = self._time(at // 1000) + self._length(len(body)) + body
        return b"\x0a" + self._length(len(packet)) + packet


def _time(nanoseconds: int) -> bytes:
    """Encodes the fields of a packet up to the length of its event, field 11."""
    return _number(8, nanoseconds) + _number(10, SEQUENCE) + _key(11, 2)


def _argument(named: tuple[str, int | str]) -> bytes:
    """Encodes a `DebugAnnotation` (`TrackEvent.debug_annotations`)."""
    key, value = named
    held = _number(4, value) if isinstance(value, int) else _bytes(6, value.encode())
    return _bytes(4, held + _bytes(10, key.encode()))


def _type_and_track(kind: str, track: int) -> bytes:
    return _number(9, _TYPES[kind]) + _number(11, track)


def _category_and_name(category: str, name: str) -> bytes:
    return (_bytes(22, category.encode()) if category else b"") + (
        _bytes(23, name.encode()) if name else b""
    )


def _flows(flows: tuple[int, ...], ends: bool) -> bytes:
    """Encodes `terminating_flow_ids` or `flow_ids`: unpacked `fixed64`."""
    key = _TERMINATING_FLOW if ends else _FLOW
    if len(flows) == 1:
        return key + _FIXED64(flows[0])
    return b"".join([key + _FIXED64(flow) for flow in flows])


def _described(track: Track, *, first: bool) -> bytes:
    """Encodes a `TrackDescriptor`; the first packet clears the state of the sequence."""
    fields = [_number(1, track.uuid), _bytes(2, track.name.encode())]
    if track.parent is not None:
        fields.append(_number(5, track.parent))
    fields += [_number(11, _EXPLICIT), _number(12, track.order)]
    flags = _number(13, _INCREMENTAL_STATE_CLEARED) if first else b""
    return _bytes(1, _number(10, SEQUENCE) + flags + _bytes(60, b"".join(fields)))


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _number(field: int, value: int) -> bytes:
    # Negative numbers have the 64 bits of their two's complement.
    return _key(field, 0) + _varint(value & (1 << 64) - 1)


def _bytes(field: int, value: bytes) -> bytes:
    return b"%b%b%b" % (_key(field, 2), _varint(len(value)), value)


def _varint(value: int) -> bytes:
    if value < 128:
        return value.to_bytes(1, "little")
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


_FIXED64 = struct.Struct("<Q").pack
_FLOW, _TERMINATING_FLOW = _key(47, 1), _key(48, 1)
