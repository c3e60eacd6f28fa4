"""Native Perfetto traces (TrackEvent protobuf) of a run, for ui.perfetto.dev and trace_processor.

A track per rank, and per channel if channels progress concurrently, holds steps with their ops.
Below it are the messages in flight from it, on as many tracks as overlap. An arrow (flow) leads
from each send through its message to the receive. The clock of the trace counts nanoseconds:
timestamps are rounded down, which preserves order and nesting. The arguments of each slice have the
exact picoseconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from tutti.view.track_events import Event, Track, lanes, write_events

from .timeline import ARROW_COLUMNS, Arrow, Bar, arrows, bars, steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl


def write_trace(
    path: str | Path, timeline: pl.DataFrame, messages: pl.DataFrame | None = None
) -> Path:
    """Writes the trace of a run to `path` (conventionally `.pftrace`).

    Args:
        path: The file to write; its folder must exist.
        timeline: The timeline frame of a run, times in picoseconds.
        messages: The message frame of the same run, for arrows.

    Returns:
        The path written.

    Raises:
        ReportError: A frame lacks columns.
    """
    return write_events(path, *_layout(bars(timeline), arrows(messages)))


def _layout(ops: Sequence[Bar], sent: Sequence[Arrow]) -> tuple[list[Track], list[Event]]:
    """Returns the tracks, and all events in order of time."""
    flows = {arrow: number for number, arrow in enumerate(sent, start=1)}
    starts, ends, loose = _ends_of_flows(ops, sent)
    programs = {at: list(group) for at, group in groupby(ops, key=attrgetter("rank", "channel"))}
    outgoing = defaultdict(list)
    for arrow in sent:
        outgoing[arrow.source, arrow.channel].append(arrow)
    tracks: list[Track] = []
    events: list[Event] = []
    arrived = {(arrow.destination, arrow.channel) for arrow in sent}
    several = any(channel for _, channel in programs)
    for order, at in enumerate(sorted({*programs, *outgoing, *arrived})):
        rank, channel = at
        name = f"rank {rank}, channel {channel}" if several else f"rank {rank}"
        home = Track(len(tracks) + 1, name, None, order if several else rank)
        tracks.append(home)
        program = _Program(home.uuid, flows, starts[at], ends[at], loose[at])
        events += program.events(programs.get(at, []))
        for number, lane in enumerate(lanes(outgoing.get(at, []), *_FLIGHT)):
            track = Track(len(tracks) + 1, f"messages {number}", home.uuid, number)
            tracks.append(track)
            for arrow in lane:
                events += _in_flight(track.uuid, arrow, flows[arrow])
    # The events of each track are sorted, and the sort is stable.
    events.sort(key=itemgetter(0))
    return tracks, events


_FLIGHT = (attrgetter("sent_ps"), attrgetter("arrival_ps"))
_Place = tuple[int, int]
"""A rank and a channel."""
_Sides = dict[_Place, dict[Bar, list[Arrow]]]


def _ends_of_flows(
    ops: Sequence[Bar], sent: Sequence[Arrow]
) -> tuple[_Sides, _Sides, dict[_Place, list[Arrow]]]:
    """Returns messages by their send and recv op per rank, and messages with an instant recv."""
    sends = {(b.rank, b.channel, b.peer, b.start_ps): b for b in ops if b.kind == "send"}
    received = [bar for bar in ops if bar.kind == "recv" and bar.duration_ps > 0]
    recvs = {(b.rank, b.channel, b.peer, b.end_ps): b for b in received}
    starts: _Sides = defaultdict(lambda: defaultdict(list))
    ends: _Sides = defaultdict(lambda: defaultdict(list))
    loose: dict[_Place, list[Arrow]] = defaultdict(list)
    for arrow in sent:
        source, destination = (arrow.source, arrow.channel), (arrow.destination, arrow.channel)
        send = sends.pop((*source, arrow.destination, arrow.sent_ps), None)
        send = send or sends.get((*source, None, arrow.sent_ps))  # A multicast.
        if send is not None:
            starts[source][send].append(arrow)
        recv = recvs.pop((*destination, arrow.source, arrow.received_ps), None)
        if recv is not None:
            ends[destination][recv].append(arrow)
        else:
            loose[destination].append(arrow)
    return starts, ends, loose


class _Program:
    """The events of one rank's track, in order of time."""

    def __init__(
        self,
        track: int,
        flows: dict[Arrow, int],
        starts: dict[Bar, list[Arrow]],
        ends: dict[Bar, list[Arrow]],
        loose: list[Arrow],
    ) -> None:
        self._track = track
        self._flows = flows
        self._starts = starts
        self._ends = ends
        self._loose = deque(sorted(loose, key=lambda arrow: (arrow.received_ps, flows[arrow])))
        self._made: list[Event] = []

    def events(self, ops: list[Bar]) -> list[Event]:
        """Returns the steps of the rank with their ops, and an instant per instant receive."""
        for step, group in steps(ops):
            self._marks_before(step.start_ps)
            self._made.append(
                _slice_start(self._track, step._replace(name=step.name or str(step.step)))
            )
            for bar in group:
                self._marks_before(bar.start_ps + 1)
                moved = self._starts.get(bar) or self._ends.get(bar) or ()
                flows = tuple(self._flows[arrow] for arrow in moved)
                self._made.append(_slice_start(self._track, bar, flows, bar in self._ends))
                self._marks_before(bar.end_ps)
                self._made.append(Event(bar.end_ps, self._track, "end"))
            self._marks_before(step.end_ps + 1)
            self._made.append(Event(step.end_ps, self._track, "end"))
        while self._loose:
            self._mark(self._loose.popleft())
        return self._made

    def _marks_before(self, time_ps: int) -> None:
        while self._loose and self._loose[0].received_ps < time_ps:
            self._mark(self._loose.popleft())

    def _mark(self, arrow: Arrow) -> None:
        arguments = (("peer", arrow.source), ("bytes", arrow.bytes), ("at_ps", arrow.received_ps))
        name, flows = f"recv from {arrow.source}", (self._flows[arrow],)
        self._made.append(
            Event(arrow.received_ps, self._track, "instant", name, "recv", flows, True, arguments)
        )


def _slice_start(track: int, bar: Bar, flows: tuple[int, ...] = (), ends: bool = False) -> Event:
    arguments: list[tuple[str, int | str]] = [("step", bar.step), ("step_name", bar.name)]
    if bar.peer is not None:
        arguments.append(("peer", bar.peer))
    if bar.bytes is not None:
        arguments.append(("bytes", bar.bytes))
    arguments += [("start_ps", bar.start_ps), ("end_ps", bar.end_ps)]
    name = bar.name if bar.kind == "step" else bar.label
    return Event(bar.start_ps, track, "begin", name, bar.kind, flows, ends, tuple(arguments))


_ARGUMENTS = attrgetter(*ARROW_COLUMNS)


def _in_flight(track: int, arrow: Arrow, flow: int) -> tuple[Event, Event]:
    arguments = tuple(zip(ARROW_COLUMNS, _ARGUMENTS(arrow), strict=True))
    name = f"to {arrow.destination}"
    return (
        Event(arrow.sent_ps, track, "begin", name, "message", (flow,), False, arguments),
        Event(arrow.arrival_ps, track, "end"),
    )
