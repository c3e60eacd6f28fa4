"""Activities of a profile by stream and by the thread that launched them, in order of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.formats.kineto.profile import Activity, Call, Stream

Thread = tuple[object, object]


@dataclass
class Ordered:
    """Activities in the order of times: those of their launches, or their ends."""

    times: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)

    def last_before(self, time: int) -> int | None:
        """Returns the last activity before a time."""
        at = bisect_left(self.times, time)
        return self.members[at - 1] if at else None

    def first_after(self, time: int) -> int | None:
        """Returns the first activity after a time."""
        at = bisect_right(self.times, time)
        return self.members[at] if at < len(self.members) else None


class Launches:
    """Finds activities by the time of their launch, and by their end.

    Attributes:
        call_of: The call with a correlation.
        times: When each activity was launched; without a call, when it started.
        of_stream: Activities of each stream by launch.
        of_thread: Activities that each thread launched, by launch; communications apart.
    """

    def __init__(self, activities: Sequence[Activity], calls: Iterable[Call]) -> None:
        self._activities = activities
        self.call_of: dict[int, Call] = {}
        for call in calls:
            if call.correlation >= 0:
                self.call_of.setdefault(call.correlation, call)
        launching = [self.call_of.get(each.correlation) for each in activities]
        self.times = [
            each.start if call is None else call.start
            for each, call in zip(activities, launching, strict=True)
        ]
        self.of_stream: dict[Stream, Ordered] = {}
        self.of_thread: dict[tuple[Thread, bool], Ordered] = {}
        for index in sorted(range(len(activities)), key=self.times.__getitem__):
            each, launch = activities[index], launching[index]
            ordered = [self.of_stream.setdefault(each.stream, Ordered())]
            if launch is not None:
                key = launch.thread, each.communicates
                ordered.append(self.of_thread.setdefault(key, Ordered()))
            for one in ordered:
                one.times.append(self.times[index])
                one.members.append(index)
        self._by_end: dict[tuple[Stream, bool], Ordered] = {}
        for index in sorted(range(len(activities)), key=lambda index: activities[index].end):
            each = activities[index]
            one = self._by_end.setdefault((each.stream, each.communicates), Ordered())
            one.times.append(each.end)
            one.members.append(index)

    def last_in(self, stream: Stream, time: int) -> int | None:
        """Returns the last activity of a stream that was launched before a time."""
        return self.of_stream.get(stream, Ordered()).last_before(time)

    def by_thread(self, thread: Thread, *, communicates: bool) -> Ordered:
        """Returns what a thread launched: communications, or other activities."""
        return self.of_thread.get((thread, communicates), Ordered())

    def last_ended(
        self,
        until: int,
        launched_before: int,
        *,
        other_than: Stream | None = None,
        communicates: bool = False,
    ) -> int | None:
        """Returns the activity that ended last.

        Args:
            until: Its latest end.
            launched_before: The time before which it was launched.
            other_than: A stream that does not count.
            communicates: Whether only communications count.
        """
        found: tuple[int, int] | None = None
        for (stream, is_communication), ordered in self._by_end.items():
            if stream == other_than or (communicates and not is_communication):
                continue
            for at in range(bisect_right(ordered.times, until) - 1, -1, -1):
                if self.times[ordered.members[at]] < launched_before:
                    found = max(found or (0, -1), (ordered.times[at], ordered.members[at]))
                    break
        return None if found is None else found[1]
