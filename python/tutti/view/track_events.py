"""Events on tracks, written as native Perfetto traces (TrackEvent protobuf).

The clock of a trace counts nanoseconds: timestamps are rounded down, which preserves order and
nesting.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

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
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    target = Path(path)
    with target.open("wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for packet in _packets(builder, tracks, events):
            builder.write_packet(packet)
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


def _packets(
    builder: StreamingTraceProtoBuilder, tracks: Sequence[Track], events: Iterable[Event]
) -> Iterator[TracePacket]:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor

    for number, track in enumerate(tracks):
        packet = builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        if number == 0:
            packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        packet.track_descriptor.uuid = track.uuid
        packet.track_descriptor.name = track.name
        packet.track_descriptor.sibling_order_rank = track.order
        packet.track_descriptor.child_ordering = TrackDescriptor.EXPLICIT
        if track.parent is not None:
            packet.track_descriptor.parent_uuid = track.parent
        yield packet
    for event in events:
        yield _packet(builder.create_packet(), event)


def _packet(packet: TracePacket, event: Event) -> TracePacket:
    packet.trusted_packet_sequence_id = SEQUENCE
    packet.timestamp = event.at_ps // 1000
    slot = packet.track_event
    slot.track_uuid = event.track
    slot.type = getattr(slot, _TYPES[event.type])
    if event.name:
        slot.name = event.name
    if event.category:
        slot.categories.append(event.category)
    (slot.terminating_flow_ids if event.ends_flow else slot.flow_ids).extend(event.flows)
    for key, value in event.arguments:
        annotation = slot.debug_annotations.add()
        annotation.name = key
        if isinstance(value, int):
            annotation.int_value = value
        else:
            annotation.string_value = value
    return packet


_TYPES = {"begin": "TYPE_SLICE_BEGIN", "end": "TYPE_SLICE_END", "instant": "TYPE_INSTANT"}
