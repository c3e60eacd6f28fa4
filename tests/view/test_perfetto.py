"""Reads traces back with the protobuf classes of the perfetto package."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.collectives.view.perfetto import write_trace
from tutti.view.errors import ReportError
from tutti.view.track_events import END, INSTANT, START, Event, Track, lanes, write_events

if TYPE_CHECKING:
    from pathlib import Path

Frames = tuple[pl.DataFrame, pl.DataFrame]


def read(path: Path) -> list[Any]:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


def events(packets: list[Any]) -> list[tuple[int, Any]]:
    return [(p.timestamp, p.track_event) for p in packets if p.HasField("track_event")]


def arguments(event: Any) -> dict[str, Any]:
    return {a.name: a.string_value or a.int_value for a in event.debug_annotations}


@pytest.fixture
def trace(frames: Frames, tmp_path: Path) -> list[Any]:
    return read(write_trace(tmp_path / "run.pftrace", *frames))


def test_every_rank_has_a_track_and_every_track_a_name(trace: list[Any]) -> None:
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace if not p.timestamp}
    tracks = {uuid: track for uuid, track in tracks.items() if uuid}
    roots = [t.name for t in tracks.values() if not t.HasField("parent_uuid")]
    assert roots == [f"rank {rank}" for rank in range(8)]
    assert {event.track_uuid for _, event in events(trace)} <= set(tracks)


def test_slices_are_monotone_nested_and_balanced(trace: list[Any]) -> None:
    clock = 0
    depth: dict[int, int] = defaultdict(int)
    deepest: dict[int, int] = defaultdict(int)
    for timestamp, event in events(trace):
        assert timestamp >= clock
        clock = timestamp
        if event.type == event.TYPE_SLICE_BEGIN:
            depth[event.track_uuid] += 1
        elif event.type == event.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
        assert depth[event.track_uuid] >= 0
        deepest[event.track_uuid] = max(deepest[event.track_uuid], depth[event.track_uuid])
    assert set(depth.values()) == {0}
    # A step and its ops on the rank's track; messages in flight never overlap on theirs.
    assert set(deepest.values()) == {1, 2}


def test_ops_lie_inside_their_step_to_the_picosecond(trace: list[Any]) -> None:
    open_step: dict[int, dict[str, Any]] = {}
    seen = 0
    for _, event in events(trace):
        if event.type != event.TYPE_SLICE_BEGIN or event.categories[0] == "message":
            continue
        facts = arguments(event)
        if event.categories[0] == "step":
            open_step[event.track_uuid] = facts
            continue
        step = open_step[event.track_uuid]
        assert step["start_ps"] <= facts["start_ps"] <= facts["end_ps"] <= step["end_ps"]
        seen += 1
    assert seen == 8 * (3 + 5)


def test_each_message_has_a_flow_from_its_send_to_its_receive(
    trace: list[Any], frames: Frames
) -> None:
    started: dict[int, list[tuple[int, str]]] = defaultdict(list)
    ended: dict[int, int] = {}
    for timestamp, event in events(trace):
        for number in event.flow_ids:
            started[number].append((timestamp, event.categories[0]))
        for number in event.terminating_flow_ids:
            assert number not in ended
            ended[number] = timestamp
    assert len(ended) == frames[1].height
    assert set(started) == set(ended)
    for number, points in started.items():
        assert sorted(kind for _, kind in points) == ["message", "send"]
        assert all(timestamp <= ended[number] for timestamp, _ in points)


def test_a_recv_that_takes_time_is_where_its_message_ends(frames: Frames, tmp_path: Path) -> None:
    timeline = pl.DataFrame(
        {
            "rank": [0, 1, 1],
            "step": [0, 0, 0],
            "name": ["s", "s", "s"],
            "kind": ["send", "wait", "recv"],
            "start_ps": [0, 0, 1500],
            "end_ps": [1000, 1500, 2500],
            "peer": [1, 0, 0],
            "bytes": [8, 8, 8],
        }
    )
    messages = pl.DataFrame([(0, 1, 0, 8, 0, 1500, 2500)], orient="row", schema=frames[1].schema)
    packets = read(write_trace(tmp_path / "t.pftrace", timeline, messages))
    ends = [event for _, event in events(packets) if event.terminating_flow_ids]
    assert [(e.name, arguments(e)["start_ps"]) for e in ends] == [("recv from 0", 1500)]


def test_the_same_run_gives_the_same_bytes(frames: Frames, tmp_path: Path) -> None:
    first = write_trace(tmp_path / "a.pftrace", *frames).read_bytes()
    shuffled = (frames[0].sample(fraction=1, shuffle=True, seed=1), frames[1].reverse())
    assert write_trace(tmp_path / "b.pftrace", *shuffled).read_bytes() == first


def by_package(tracks: list[Track], events: list[Event]) -> bytes:
    """Returns the trace that the perfetto package writes."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket

    written = b""
    for number, track in enumerate(tracks):
        packet = TracePacket(trusted_packet_sequence_id=1)
        if number == 0:
            packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        described = packet.track_descriptor
        described.uuid, described.name = track.uuid, track.name
        described.sibling_order_rank = track.order
        described.child_ordering = described.EXPLICIT
        if track.parent is not None:
            described.parent_uuid = track.parent
        written += Trace(packet=[packet]).SerializeToString()
    for event in events:
        packet = TracePacket(trusted_packet_sequence_id=1, timestamp=event.at_ps // 1000)
        slot = packet.track_event
        slot.track_uuid, slot.type = event.track, event.type
        if event.name:
            slot.name = event.name
        if event.category:
            slot.categories.append(event.category)
        for key, value in event.arguments:
            held = {"int_value" if isinstance(value, int) else "string_value": value}
            slot.debug_annotations.add(name=key, **held)
        written += Trace(packet=[packet]).SerializeToString()
    return written


def test_the_bytes_are_those_of_the_perfetto_package(frames: Frames, tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    numbers = [0, 1, 127, 128, 16383, 16384, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, -1, -(1 << 63)]
    arguments: tuple[tuple[str, int | str], ...] = (
        *((f"n{one}", one) for one in numbers),
        ("text", "héllo"),
        ("none", ""),
    )
    long = tuple((f"key {index}", "x" * index) for index in range(200))
    tracks = [Track(1, "rank 0", None, 0), Track(1 << 40, "messages", 1, 300)]
    events = [
        Event(0, 1, START),
        Event(999, 1, START, "send", "send to 1", arguments),
        Event(1 << 62, 1 << 40, INSTANT, "", "recv", long),
        Event(1 << 62, 1, END, "only a category"),
    ]
    path = write_events(tmp_path / "t.pftrace", tracks, events)
    assert path.read_bytes() == by_package(tracks, events)
    # The trace of a run has arrows, too.
    written = write_trace(tmp_path / "run.pftrace", *frames).read_bytes()
    assert Trace.FromString(written).SerializeToString() == written


def test_items_are_in_the_first_free_lane() -> None:
    spans = [(0, 5), (1, 2), (1, 9), (2, 2), (2, 3), (5, 6), (5, 7), (9, 9), (9, 10)]
    found = lanes(spans, itemgetter(0), itemgetter(1))
    assert found == [
        [(0, 5), (5, 6), (9, 9), (9, 10)],
        [(1, 2), (2, 2), (2, 3), (5, 7)],
        [(1, 9)],
    ]


def test_frames_without_columns_are_refused(frames: Frames, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="lacks the columns kind"):
        write_trace(tmp_path / "t.pftrace", frames[0].drop("kind"))
