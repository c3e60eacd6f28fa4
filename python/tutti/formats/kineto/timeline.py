"""The activities of a profile and the points of its CPU, with what each of them waits for.

- An activity follows the one before it in its stream, and the call that launched it.
- A stream that waits for an event follows what had been launched, when the event was recorded, in
  the stream of the event.
- The CPU is one sequence of calls, in recorded order over its threads: PyTorch runs the backward
  pass on a thread that the main thread waits for. A call that waits for the GPU follows that work.

Each activity and point lasts from the end of the last of what it waits for to its recorded end, so
that recorded times are reproduced where nothing changes.

By default, PyTorch records that a stream waits, but not for which event. Then a wait is inferred.
Within the CPU operation of a communication, the communication waits for the latest activity of the
stream in which its thread launches. After ``wait`` of a communication, the next activity of that
stream waits for that communication (by its sequence number, otherwise the last that had ended).
Elsewhere, it waits for the last activity of other streams that had ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.formats.formats import INFERRED
from tutti.formats.kineto.launches import Launches, Ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.formats.kineto.profile import Activity, Call, Profile, Record, Stream, Sync

TOLERANCE = 1_000
"""ns by which times of one clock may contradict each other: old profiles have full us."""
_STREAM_WAIT = "StreamWaitEvent"
_STREAM_SYNC, _EVENT_SYNC = "StreamSynchronize", "EventSynchronize"
_DEVICE_SYNC = ("DeviceSynchronize", "CtxSynchronize")
_WAITED = {"Stream Sync": _STREAM_SYNC, "Context Sync": _DEVICE_SYNC[0], "Event Sync": _EVENT_SYNC}


class Point(NamedTuple):
    """A time at which the CPU has launched something, or has waited for the GPU.

    Attributes:
        name: The call.
        time: The time in ns.
        after: The activities that the CPU waited for.
    """

    name: str
    time: int
    after: tuple[int, ...] = ()


@dataclass
class Timeline:
    """The order of a rank.

    Attributes:
        profile: The profile.
        counts: Numbers of inferred, contradictory and missing dependencies, by remark.
        activities: The activities by start.
        lanes: The stream of each: a number, for streams with simultaneous activities several.
        points: The points of the CPU by time.
        after: The activities that each activity waits for; those whose start suffices are negative:
            ``-1 - index``.
        launched: The index of the point that launched each activity, or -1.
    """

    profile: Profile
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.activities = sorted(self.profile.activities, key=lambda each: each.start)
        self.launches = Launches(self.activities, self.profile.calls)
        self.after: list[set[int]] = [set() for _ in self.activities]
        self.lanes = self._streams()
        self._add_waits()
        self.points, self.launched = self._launches()

    @property
    def start(self) -> int:
        """When the first call or activity starts, in ns."""
        first = self.activities[0].start
        return min([first, *(call.start for call in self.profile.calls)])

    def waits(self, index: int) -> tuple[list[int], list[int]]:
        """Returns the activities whose end, and those whose start, an activity waits for."""
        after = sorted(self.after[index])
        return [one for one in after if one >= 0], [-1 - one for one in after if one < 0]

    def _streams(self) -> list[int]:
        """Returns the stream of each activity, and adds the order of streams.

        Activities of a stream that overlap, such as those of a CUDA graph, are distributed over
        several streams; the later one follows the start of the earlier one.
        """
        streams = sorted({each.stream for each in self.activities})
        numbers = {each: at for at, each in enumerate(streams)}
        if streams[0][0] == streams[-1][0] and 0 <= streams[0][1] <= streams[-1][1] < 1 << 30:
            numbers = {each: each[1] for each in streams}  # of one GPU: as the profile shows them
        following = max(numbers.values()) + 1
        lanes: dict[Stream, list[list[int]]] = {}
        found = []
        for index, each in enumerate(self.activities):
            own = lanes.setdefault(each.stream, [[numbers[each.stream], -1]])
            free = None
            for lane in own:
                before = lane[1]
                if before < 0 or self.activities[before].end <= each.start + TOLERANCE:
                    free = free or lane
                    self.after[index].update({before} if before >= 0 else ())
                else:
                    self.after[index].add(-1 - before)
            if free is None:
                free = [following, -1]
                own.append(free)
                following += 1
            text = "activities overlap others of their stream: they follow the start of these"
            self.counts[text] += any(one < 0 for one in self.after[index])
            found.append(free[0])
            free[1] = index
        return found

    # --- waits of streams ---

    def _add_waits(self) -> None:
        """Adds what streams wait for: recorded, or otherwise inferred."""
        waits = [sync for sync in self.profile.syncs if sync.kind == "Stream Wait Event"]
        for sync in waits:
            source = self._recorded(sync)
            call = self.launches.call_of.get(sync.correlation)
            stream = self.launches.of_stream.get(sync.stream, Ordered())
            target = stream.first_after(call.start if call else sync.start)
            if source is not None and target is not None:
                self._connect(source, target)
        if not waits:
            for call in self.profile.calls:
                if _STREAM_WAIT in call.name:
                    self._infer(call)

    def _recorded(self, sync: Sync) -> int | None:
        """Returns the last activity before the event of a wait."""
        call = self.launches.call_of.get(sync.recorded)
        if call is None:
            self.counts["waits for events recorded before the profile have no effect"] += 1
            return None
        return self.launches.last_in(sync.on_stream, call.start)

    def _infer(self, wait: Call) -> None:
        """Adds what the stream of a call waits for."""
        record, start = self._enclosing(wait), wait.start
        ours = self.launches.by_thread(wait.thread, communicates=False)
        near = [ours.last_before(start), ours.first_after(start)]
        if record is not None and record.communication.get("Collective name") != "wait":
            issued = self.launches.by_thread(wait.thread, communicates=True)
            target = issued.first_after(start)
            stream = self._stream_of(near)
            source = None if stream is None else self.launches.last_in(stream, start)
        else:
            # The backward pass may wait for what the main thread launches next.
            stream = self._stream_of(near[::-1])
            launched = None if stream is None else self.launches.of_stream[stream]
            target = None if launched is None else launched.first_after(start)
            source = None if target is None else self._waited(wait, record, target)
        if source is not None and target is not None:
            self._connect(source, target)
            text = f"{INFERRED}waits of streams, from recorded times: the profile has no events"
            self.counts[text] += 1

    def _stream_of(self, candidates: Iterable[int | None]) -> Stream | None:
        """Returns the stream of the first activity that exists."""
        found = (self.activities[one].stream for one in candidates if one is not None)
        return next(found, None)

    def _waited(self, wait: Call, record: Record | None, target: int) -> int | None:
        """Returns the activity that the next activity of a thread waits for."""
        if record is not None and "Seq" in record.communication:
            source = self._numbered.get(_number(record.communication))
            if source is not None:
                return source
        each = self.activities[target]
        return self.launches.last_ended(
            each.start + TOLERANCE,
            wait.start,
            other_than=each.stream,
            communicates=record is not None,
        )

    @cached_property
    def _numbered(self) -> dict[tuple[object, object], int]:
        """The communication with a process group and a sequence number."""
        return {
            _number(each.communication): index
            for index, each in enumerate(self.activities)
            if "Seq" in each.communication
        }

    @cached_property
    def _records_by_thread(self) -> dict[tuple[object, object], tuple[list[int], list[Record]]]:
        found: dict[tuple[object, object], tuple[list[int], list[Record]]] = {}
        for record in sorted(self.profile.records, key=lambda each: each.start):
            starts, members = found.setdefault(record.thread, ([], []))
            starts.append(record.start)
            members.append(record)
        return found

    def _enclosing(self, call: Call) -> Record | None:
        """Returns the communication whose CPU operation contains a call; they nest two deep."""
        starts, records = self._records_by_thread.get(call.thread, ([], []))
        at = bisect_right(starts, call.start)
        inside = (
            record for record in records[max(at - 3, 0) : at][::-1] if call.start <= record.end
        )
        return next(inside, None)

    def _connect(self, source: int, target: int) -> None:
        """Adds a dependency, unless recorded times contradict it."""
        before, after = self.activities[source], self.activities[target]
        if before.end > after.start + TOLERANCE or source >= target:
            self.counts["waits contradict recorded times and have no effect"] += 1
        else:
            self.after[target].add(source)

    # --- the CPU ---

    def _launches(self) -> tuple[list[Point], list[int]]:
        """Returns the points of the CPU, and which of them launched each activity."""
        launched: dict[int, list[int]] = {}
        for index, each in enumerate(self.activities):
            if each.correlation in self.launches.call_of:
                launched.setdefault(each.correlation, []).append(index)
        points: list[tuple[Point, list[int]]] = []
        for correlation, members in launched.items():
            call = self.launches.call_of[correlation]
            first = min(self.activities[index].start for index in members)
            text = "activities start before their launch: the clocks of CPU and GPU differ"
            self.counts[text] += first + TOLERANCE < call.start
            points.append((Point(call.name, min(call.end, first)), members))
            copied = [one for one in members if self._blocks(call, self.activities[one])]
            if copied:
                points.append((Point(call.name, call.end, tuple(copied)), []))
        points += [(point, []) for point in self._blocking()]
        points.sort(key=lambda each: each[0].time)
        of = [-1] * len(self.activities)
        for number, (_, members) in enumerate(points):
            for index in members:
                of[index] = number
        return [point for point, _ in points], self._without_launch(of, points)

    def _without_launch(self, of: list[int], points: list[tuple[Point, list[int]]]) -> list[int]:
        """Gives activities whose launch was not recorded the last point before their start."""
        times = [point.time for point, _ in points]
        for index, number in enumerate(of):
            if number < 0:
                of[index] = bisect_right(times, self.activities[index].start) - 1
                self.counts["activities have no recorded launch"] += 1
        return of

    @staticmethod
    def _blocks(call: Call, activity: Activity) -> bool:
        """Whether a call returned only after the copy that it launched."""
        is_blocking = "Pageable" in activity.name or "Async" not in call.name
        has_ended = activity.end <= call.end and activity.start < call.end
        return activity.kind == "memcpy" and is_blocking and has_ended

    def _blocking(self) -> Iterable[Point]:
        """Yields the points at which the CPU waited for the GPU."""
        recorded = {sync.correlation: sync for sync in self.profile.syncs if sync.kind in _WAITED}
        for call in self.profile.calls:
            known = (_STREAM_SYNC, _EVENT_SYNC, *_DEVICE_SYNC)
            kind = next((each for each in known if each in call.name), None)
            if kind is None:
                continue
            sync = recorded.get(call.correlation)
            found = self._exact(call, sync) if sync is not None else self._guessed(call, kind)
            after = [one for one in found if self._ended(one, call)]
            yield Point(call.name, call.end, tuple(after))

    def _ended(self, index: int, call: Call) -> bool:
        each = self.activities[index]
        return each.end <= call.end + TOLERANCE and each.start < call.end

    def _exact(self, call: Call, sync: Sync) -> list[int]:
        """Returns the activities that a recorded synchronisation waits for."""
        if sync.kind == "Event Sync":
            source = self._recorded(sync)
            return [] if source is None else [source]
        streams = list(self.launches.of_stream)
        if sync.kind == "Stream Sync" and sync.stream[1] >= 0:
            streams = [sync.stream]
        return self._last_of(streams, call.start)

    def _guessed(self, call: Call, kind: str) -> list[int]:
        """Returns the activities that a call waits for whose stream or event was not recorded."""
        if kind in _DEVICE_SYNC:
            return self._last_of(self.launches.of_stream, call.start)
        self.counts[f"{INFERRED}waits of the CPU, from recorded times"] += 1
        if kind == _EVENT_SYNC:
            last = self.launches.last_ended(call.end, call.start)
            return [] if last is None else [last]
        launched = (
            self.launches.by_thread(call.thread, communicates=one).last_before(call.start)
            for one in (False, True)
        )
        found = [one for one in launched if one is not None]
        return sorted(found, key=self.launches.times.__getitem__)[-1:]

    def _last_of(self, streams: Iterable[Stream], time: int) -> list[int]:
        """Returns the last activity of each stream that was launched before a time."""
        last = (self.launches.last_in(stream, time) for stream in streams)
        return [one for one in last if one is not None]


def _number(communication: Mapping[str, Any]) -> tuple[object, object]:
    """Returns the process group and the sequence number of a communication."""
    return str(communication.get("Process Group Name")), str(communication.get("Seq"))
