"""Packets of native Perfetto traces as columns: many events at once, by NumPy.

The bytes are those of :mod:`tutti.view.track_events`, which encodes one event after another. A part
of a packet has matrices of bytes with a row per event, and masks, as numbers have 1 to 10 bytes.
"""

from __future__ import annotations

from itertools import accumulate, chain, pairwise
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
        values: Matrices of bytes, shape (events, width).
        used: Which of the bytes a packet has, of the same shapes.
        lengths: The bytes of each event.
    """

    values: tuple[NDArray[np.uint8], ...]
    used: tuple[NDArray[np.bool_], ...]
    lengths: Integers

    @classmethod
    def of(cls, values: NDArray[np.uint8], used: NDArray[np.bool_]) -> Part:
        """Returns a part of one matrix."""
        return cls((values,), (used,), used.sum(axis=1))


def joined(*parts: Part) -> Part:
    """Returns parts in sequence."""
    values, used, lengths = zip(*parts, strict=True)
    return Part(tuple(chain(*values)), tuple(chain(*used)), np.sum(lengths, axis=0))


def optional(part: Part, present: NDArray[np.bool_]) -> Part:
    """Returns a part that only some of the events have."""
    used = tuple(one & present[:, None] for one in part.used)
    return Part(part.values, used, part.lengths * present)


def choice(table: Sequence[bytes], codes: Integers) -> Part:
    """Returns bytes by their index in a table."""
    width = max(map(len, table), default=0)
    lengths = np.array([len(one) for one in table], np.int64)
    values = np.frombuffer(b"".join(one.ljust(width) for one in table), np.uint8)
    used = np.arange(width) < lengths[:, None]
    return Part.of(values.reshape(len(table), width)[codes], used[codes])


def argument(key: str, values: Integers) -> Part:
    """Returns a `DebugAnnotation` with an integer (`TrackEvent.debug_annotations`)."""
    held = joined(_number(4, values), _constant(field_bytes(10, key.encode()), len(values)))
    return _sized(4, held)


def flow(field: int, numbers: Integers) -> Part:
    """Returns a flow id: `fixed64`."""
    size = len(numbers)
    values = numbers.astype("<u8").view(np.uint8).reshape(size, 8)
    numbered = Part.of(values, np.ones((size, 8), np.bool_))
    return joined(_constant(field_key(field, 1), size), numbered)


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
    ends = accumulate(packet.lengths.tolist(), initial=0)
    data = np.hstack(packet.values)[np.hstack(packet.used)].tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def _constant(value: bytes, size: int) -> Part:
    row = np.frombuffer(value, np.uint8)
    used = np.broadcast_to(np.ones(len(row), np.bool_), (size, len(row)))
    return Part((np.broadcast_to(row, used.shape),), (used,), np.full(size, len(row)))


def _number(field: int, values: Integers) -> Part:
    return joined(_constant(field_key(field, 0), len(values)), _varint(values))


def _sized(field: int, part: Part) -> Part:
    """Returns a field of bytes: key, length and bytes."""
    size = len(part.lengths)
    return joined(_constant(field_key(field, 2), size), _varint(part.lengths), part)


def _varint(values: Integers) -> Part:
    """Returns numbers in groups of 7 bits, the lowest first; all but the last have the bit 128."""
    bits = values.astype(np.int64).view(np.uint64)
    largest = int(bits.max()) if len(bits) else 0
    groups = np.arange(min(_GROUPS, max(1, -(-largest.bit_length() // 7))), dtype=np.uint64)
    rest = bits[:, None] >> (np.uint64(7) * groups)
    used = (rest > 0) | (groups == 0)
    more = np.roll(used, -1, axis=1)
    more[:, -1] = False
    return Part.of((rest & np.uint64(127) | more * np.uint64(128)).astype(np.uint8), used)
