"""Streams and events of a device that is only named: their order is recorded, nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Order"]


class Order:
    """The order that streams and events impose on operators.

    An operator runs after the previous one of its stream, and after what the stream waits for.
    """

    def __init__(self) -> None:
        """Starts with idle streams."""
        self._last: dict[int, int] = {}
        self._waits: dict[int, set[int]] = {}

    def issue(self, operator: int, stream: int, reads: Iterable[int] = ()) -> tuple[int, ...]:
        """Returns what an operator on a stream waits for, and adds it to the stream."""
        after = set(self.point(stream)) | set(reads)
        self._waits.pop(stream, None)
        self._last[stream] = operator
        return tuple(sorted(after))

    def point(self, stream: int) -> frozenset[int]:
        """Returns the operators that an event recorded on a stream completes after."""
        last = self._last.get(stream)
        waits = self._waits.get(stream, set())
        return frozenset(waits if last is None else {last, *waits})

    def wait(self, stream: int, point: Iterable[int]) -> None:
        """Lets later operators of a stream wait for a point of another."""
        self._waits.setdefault(stream, set()).update(point)

    def follow(self, stream: int, operator: int) -> None:
        """Lets later operators of a stream wait for one that waits for all before it."""
        self._last[stream] = operator
        self._waits.pop(stream, None)
