"""Native Perfetto traces (TrackEvent protobuf) of a run, for ui.perfetto.dev and trace_processor.

A track per rank, and per channel if channels progress concurrently, holds steps with their ops.
Below it are the messages in flight from it, on as many tracks as overlap. An arrow (flow) leads
from each send through its message to the receive. The clock of the trace counts nanoseconds:
timestamps are rounded down, which preserves order and nesting. The arguments of each slice have the
exact picoseconds.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from tutti.view.track_events import (
    Encoder,
    Event,
    Track,
    flow,
    flow_end,
    lanes,
    write_events,
)

from .timeline import ARROW_COLUMNS, Arrow, Bar, arrows, bars, label, steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    encoder, ends = Encoder(), _Ends(ops, sent)
    numbers = {arrow: number for number, arrow in enumerate(sent, start=1)}
    first = 0  # of the ops of the rank
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
        own = programs.get(at, [])
        events += _Program(encoder, home.uuid, ends, at).events(own, first)
        first += len(own)
        for number, lane in enumerate(lanes(outgoing.get(at, []), *_FLIGHT)):
            track = Track(len(tracks) + 1, f"messages {number}", home.uuid, number)
            tracks.append(track)
            events += _in_flight(encoder, track.uuid, lane, numbers)
    # The events of each track are sorted, and the sort is stable.
    events.sort(key=itemgetter(0))
    return tracks, events


_FLIGHT = (attrgetter("sent_ps"), attrgetter("arrival_ps"))

_Place = tuple[int, int]
"""A rank and a channel."""


class _Ends:
    """Where the arrows of messages, numbered from 1 in the order of sending, start and end.

    Attributes:
        flows: The encoded arrows of an op, by its index.
        loose: The messages whose receive takes no time, by destination.
    """

    def __init__(self, ops: Sequence[Bar], sent: Sequence[Arrow]) -> None:
        self.flows: dict[int, bytes] = defaultdict(bytes)
        self.loose: dict[_Place, list[tuple[int, int, Arrow]]] = defaultdict(list)
        sends: dict[tuple[_Place, int | None, int], int] = {}
        recvs: dict[tuple[_Place, int | None, int], int] = {}
        for index, (rank, channel, _, _, kind, start, end, peer, _) in enumerate(ops):
            if kind == "send":
                sends[(rank, channel), peer, start] = index
            elif kind == "recv" and end > start:
                recvs[(rank, channel), peer, end] = index
        for number, arrow in enumerate(sent, start=1):
            source, destination = (arrow.source, arrow.channel), (arrow.destination, arrow.channel)
            received = arrow.received_ps
            send = sends.pop((source, arrow.destination, arrow.sent_ps), None)
            if send is None:
                send = sends.get((source, None, arrow.sent_ps))  # A multicast.
            if send is not None:
                self.flows[send] += flow(number)
            recv = recvs.pop((destination, arrow.source, received), None)
            if recv is not None:
                self.flows[recv] += flow_end(number)
            else:
                self.loose[destination].append((received, number, arrow))


class _Program:
    """The events of the track of a rank, or of its channel, in order of time."""

    def __init__(self, encoder: Encoder, track: int, ends: _Ends, at: _Place) -> None:
        self._encoder, self._track, self._ends = encoder, track, ends
        self._loose = sorted(ends.loose.get(at, []), reverse=True)
        self._described = lru_cache(None)(self._describe)
        self._made: list[Event] = []

    def events(self, ops: list[Bar], first: int) -> list[Event]:
        """Returns the steps of the rank with their ops, and an instant per instant receive.

        Args:
            ops: The ops of the rank.
            first: The index of the first of them among all ops.
        """
        event, argument, made = self._encoder.event, self._encoder.argument, self._made
        end, index, flows = self._encoder.end(self._track), first, self._ends.flows
        for step, group in steps(ops):
            of_step = argument("step", step.step) + argument("step_name", step.name)
            self._marks_before(step.start_ps)
            times = argument("start_ps", step.start_ps), argument("end_ps", step.end_ps)
            opened = self._encoder.start(self._track, "step", step.name or str(step.step))
            made.append(event(step.start_ps, of_step, *times, opened))
            for bar in group:
                *_, kind, start, until, peer, size = bar
                arguments, opened = self._described(kind, peer, size)
                self._marks_before(start + 1)
                times = argument("start_ps", start), argument("end_ps", until)
                made.append(event(start, of_step, arguments, *times, opened, flows.get(index, b"")))
                self._marks_before(until)
                made.append(event(until, end))
                index += 1
            self._marks_before(step.end_ps + 1)
            made.append(event(step.end_ps, end))
        while self._loose:
            self._mark(*self._loose.pop())
        return made

    def _describe(self, kind: str, peer: int | None, size: int | None) -> tuple[bytes, bytes]:
        """Encodes the arguments that follow those of the step, and the start of a slice."""
        given = [("peer", peer), ("bytes", size)]
        arguments = [self._encoder.argument(*one) for one in given if one[1] is not None]
        return b"".join(arguments), self._encoder.start(self._track, kind, label(kind, peer))

    def _marks_before(self, time_ps: int) -> None:
        while self._loose and self._loose[-1][0] < time_ps:
            self._mark(*self._loose.pop())

    def _mark(self, received_ps: int, number: int, arrow: Arrow) -> None:
        event, argument = self._encoder.event, self._encoder.argument
        source, size = arrow.source, arrow.bytes
        named = self._encoder.instant(self._track, "recv", f"recv from {source}")
        self._made.append(event(
            received_ps, argument("peer", source), argument("bytes", size),
            argument("at_ps", received_ps), named, flow_end(number),
        ))  # fmt: skip


_ARGUMENTS = attrgetter(*ARROW_COLUMNS)


def _in_flight(
    encode: Encoder, track: int, lane: Iterable[Arrow], numbers: Mapping[Arrow, int]
) -> Iterator[Event]:
    event, argument, end = encode.event, encode.argument, encode.end(track)
    for arrow in lane:
        arguments = map(argument, ARROW_COLUMNS, _ARGUMENTS(arrow))
        named = encode.start(track, "message", f"to {arrow.destination}")
        yield event(arrow.sent_ps, *arguments, named, flow(numbers[arrow]))
        yield event(arrow.arrival_ps, end)
