"""Packets of native Perfetto traces as columns: many events at once, by NumPy.

The bytes are those of :mod:`tutti.view.track_events`, which encodes one event after another. A part
of a packet is a matrix of bytes with a row per event, and a mask, since numbers have 1 to 10 bytes.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tutti.view.track_events import SEQUENCE, TYPES, field_bytes, field_key, field_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = ["Part", "argument", "choice", "flow", "joined", "optional", "packets"]

_GROUPS: Final = 10
"""The most bytes of a number: groups of 7 bits of 64."""


class Part(NamedTuple):
    """A part of packets.

    Attributes:
        values: Bytes, shape (events, width).
        used: Which of them a packet has, of the same shape.
    """

    values: NDArray[np.uint8]
    used: NDArray[np.bool_]


def joined(*parts: Part) -> Part:
    """Returns parts one after the other."""
    values, used = zip(*parts, strict=True)
    return Part(np.hstack(values), np.hstack(used))


def optional(part: Part, present: NDArray[np.bool_]) -> Part:
    """Returns a part that only some of the events have."""
    return Part(part.values, part.used & present[:, None])


def choice(table: Sequence[bytes], codes: Sequence[int] | Integers) -> Part:
    """Returns bytes by their index in a table."""
    width = max(map(len, table), default=0)
    lengths = np.array([len(one) for one in table])
    values = np.frombuffer(b"".join(one.ljust(width) for one in table), np.uint8)
    rows = np.asarray(codes)
    return Part(
        values.reshape(len(table), width)[rows], (np.arange(width) < lengths[:, None])[rows]
    )


def argument(key: str, values: Integers) -> Part:
    """Returns a `DebugAnnotation` with an integer (`TrackEvent.debug_annotations`)."""
    held = joined(_number(4, values), _constant(field_bytes(10, key.encode()), len(values)))
    return _sized(4, held)


def flow(field: int, numbers: Integers) -> Part:
    """Returns a flow id: `fixed64`."""
    size = len(numbers)
    values = numbers.astype("<u8").view(np.uint8).reshape(size, 8)
    return joined(_constant(field_key(field, 1), size), Part(values, np.ones((size, 8), np.bool_)))


def packets(
    at_ps: Integers, kind: str, tracks: Integers, *, before: Part | None, after: Part | None
) -> list[bytes]:
    """Returns the packet of each event, as `Trace` messages.

    Args:
        at_ps: The time of each event.
        kind: The type of all events.
        tracks: The tracks.
        before: The arguments.
        after: Categories, names and flows.
    """
    size = len(at_ps)
    of_type = _constant(field_number(9, TYPES[kind]), size)
    body = joined(*(part for part in (before, of_type, _number(11, tracks), after) if part))
    sequence = _constant(field_number(10, SEQUENCE), size)
    packet = _sized(1, joined(_number(8, at_ps // 1000), sequence, _sized(11, body)))
    ends = accumulate(packet.used.sum(axis=1).tolist(), initial=0)
    data = packet.values[packet.used].tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def _constant(value: bytes, size: int) -> Part:
    row = np.frombuffer(value, np.uint8)
    shape = (size, len(row))
    return Part(np.broadcast_to(row, shape), np.ones(shape, np.bool_))


def _number(field: int, values: Integers) -> Part:
    return joined(_constant(field_key(field, 0), len(values)), _varint(values))


def _sized(field: int, part: Part) -> Part:
    """Returns a field of bytes: key, length and bytes."""
    lengths = part.used.sum(axis=1)
    return joined(_constant(field_key(field, 2), len(lengths)), _varint(lengths), part)


def _varint(values: Integers) -> Part:
    """Returns numbers in groups of 7 bits, the lowest first; all but the last have the bit 128."""
    bits = values.astype(np.int64).view(np.uint64)
    largest = int(bits.max()) if len(bits) else 0
    groups = np.arange(min(_GROUPS, max(1, -(-largest.bit_length() // 7))), dtype=np.uint64)
    rest = bits[:, None] >> (np.uint64(7) * groups)
    used = (rest > 0) | (groups == 0)
    more = np.roll(used, -1, axis=1)
    more[:, -1] = False
    return Part((rest & np.uint64(127) | more * np.uint64(128)).astype(np.uint8), used)
