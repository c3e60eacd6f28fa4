"""Builds the operations of a rank from its timeline."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tutti.base.files.limits import MOST
from tutti.workloads.operations import Kind, Operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.formats.kineto.communication import Communication
    from tutti.formats.kineto.timeline import Timeline
    from tutti.workloads.operations import CollectiveCall

_PS = 1000
"""Picoseconds in a nanosecond."""
_NOTHING = (Kind.COMPUTE, 0, 0, -1, 0)


class Numbered(NamedTuple):
    """A collective with a sequence number.

    Attributes:
        call: The collective.
        number: Its process group and sequence number.
        duration: The recorded time in ps.
    """

    call: CollectiveCall
    number: tuple[str, int]
    duration: int


_Row = tuple[int, int, int, int, int]
"""Kind, size, duration, peer and tag of an operation."""


class _Columns:
    """The columns of the operations of a rank while they are built."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._first, self._after, self._early = array("q", [0]), array("q"), array("b")
        self._names: list[str] = []

    def add(
        self, row: _Row, place: tuple[str, int], after: Sequence[int], early: Sequence[int] = ()
    ) -> int:
        """Adds an operation and returns its index.

        Args:
            row: Its values.
            place: Its name and stream.
            after: The operations that it waits for.
            early: The operations whose start it waits for.
        """
        name, stream = place
        self._rows.append((*row, stream))
        self._names.append(name)
        self._after.extend((*after, *early))
        self._early.extend([0] * len(after) + [1] * len(early))
        self._first.append(len(self._after))
        return len(self._rows) - 1

    def operations(self) -> Operations:
        """Returns the operations."""
        kinds, sizes, durations, peers, tags, streams = np.array(self._rows, np.int64).T
        return Operations(
            kinds=kinds.astype(np.uint8),
            sizes=sizes.copy(),
            durations=durations.copy(),
            peers=peers.astype(np.int32),
            tags=tags.copy(),
            streams=streams.astype(np.int32),
            first_dependency=np.array(self._first, np.int64),
            dependencies=np.array(self._after, np.int64),
            on_start=np.array(self._early, bool),
            names=tuple(self._names),
        )


class Placement:
    """The operations of a rank while they are built, in the order of time.

    Attributes:
        cpu: The stream of the CPU.
        idle: Time in ns before activities that no dependency explains.
        numbered: The collectives with a sequence number, by operation.
    """

    def __init__(
        self,
        timeline: Timeline,
        communications: Sequence[Communication | None],
        collectives: dict[CollectiveCall, int],
    ) -> None:
        self._timeline, self._communications = timeline, communications
        self._collectives = collectives
        self._columns, self.idle = _Columns(), 0
        self.cpu = max(timeline.lanes) + 1
        self.numbered: dict[int, Numbered] = {}
        self._start = timeline.start
        self._spans: list[tuple[int, int]] = []
        self._ready: list[int] = []
        self._points: list[int] = []

    def operations(self) -> Operations:
        """Returns the operations."""
        timeline = self._timeline
        order = [(point.time, 0, number) for number, point in enumerate(timeline.points)]
        order += [(each.start, 1, number) for number, each in enumerate(timeline.activities)]
        for _, is_activity, number in sorted(order):
            if is_activity:
                self._spans.append(self._activity(number))
            else:
                self._points.append(self._point(number))
        return self._columns.operations()

    def _point(self, number: int) -> int:
        """Adds a point of the CPU: a computation since the point before it, or since a wait."""
        points, activities = self._timeline.points, self._timeline.activities
        point = points[number]
        times = [points[number - 1].time if number else self._start]
        times += [min(activities[one].end, point.time) for one in point.after]
        after = self._points[-1:] + [self._spans[one][1] for one in point.after]
        row = (Kind.COMPUTE, 0, _picoseconds(point.time - max(times)), -1, 0)
        return self._columns.add(row, (point.name, self.cpu), after)

    def _activity(self, number: int) -> tuple[int, int]:
        """Adds an activity; returns its first and its last operation."""
        timeline = self._timeline
        each, launch = timeline.activities[number], timeline.launched[number]
        done, early = timeline.waits(number)
        after = [self._spans[one][1] for one in done]
        times = [timeline.activities[one].end for one in done]
        times += [self._ready[one] for one in early]
        if launch >= 0:
            after.append(self._points[launch])
            times.append(timeline.points[launch].time)
        dependencies = after, [self._spans[one][0] for one in early]
        ready = min(max(times, default=self._start), each.start)
        self._ready.append(ready)
        place = (each.name, timeline.lanes[number])
        communication = self._communications[number]
        if communication is not None:
            span = self._communication(communication, place, dependencies)
            if communication.call is not None and communication.number is not None:
                duration = _picoseconds(each.end - each.start)
                numbered = Numbered(communication.call, communication.number, duration)
                self.numbered[span[0]] = numbered
            return span
        idle = each.start - ready
        self.idle += idle
        row = (Kind.COMPUTE, 0, _picoseconds(each.end - each.start + idle), -1, 0)
        index = self._columns.add(row, place, *dependencies)
        return index, index

    def _communication(
        self,
        communication: Communication,
        place: tuple[str, int],
        dependencies: tuple[list[int], list[int]],
    ) -> tuple[int, int]:
        """Adds a collective, or messages between an empty first and an empty last computation."""
        add, call = self._columns.add, communication.call
        if call is not None:
            which = self._collectives.setdefault(call, len(self._collectives))
            row = (Kind.COLLECTIVE, communication.size, 0, which, 0)
            index = add(row, place, *dependencies)
            return index, index
        first = add(_NOTHING, place, *dependencies)
        parts = []
        for message in communication.messages:
            kind = Kind.SEND if message.sends else Kind.RECEIVE
            row = (kind, message.size, 0, message.peer, message.tag)
            parts.append(add(row, place, (first,)))
        return first, add(_NOTHING, place, parts or (first,))


def _picoseconds(nanoseconds: int) -> int:
    return min(max(nanoseconds, 0) * _PS, MOST)
