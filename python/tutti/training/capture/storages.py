"""Storages of a GPU: who wrote them last, and what memory they take."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti.training.capture.record import MemoryChange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.training.capture.record import MemoryKind

__all__ = ["Span", "Storages"]


@dataclass(frozen=True)
class Span:
    """A step among the operators of a program.

    Attributes:
        first: Its first operator.
        last: The first operator after it.
        before: The changes of memory before it.
        until: Those up to its end.
    """

    first: int
    last: int
    before: int
    until: int


@dataclass
class _Storage:
    """A storage of the GPU.

    Attributes:
        bytes: Its size.
        place: The module and the phase that allocated it.
        start: The number of operators before its allocation.
        end: That before its release; None while it lives.
        writer: The collective that wrote it last, if it was one.
        gathered: The operators before the last all-gather that wrote it; -1 without one.
        born: The number of changes of memory before its allocation.
        died: That before its release.
    """

    bytes: int
    place: tuple[str, str]
    start: int
    end: int | None = None
    writer: int | None = None
    gathered: int = -1
    born: int = 0
    died: int = 0


class Storages:
    """The storages of a GPU."""

    def __init__(self) -> None:
        """Starts without storages."""
        self._live: dict[int, _Storage] = {}
        self._all: list[_Storage] = []
        self.now, self._changes = 0, 0

    @property
    def count(self) -> int:
        """The number of changes of memory."""
        return self._changes

    def _next(self) -> int:
        """Returns the number of a change of memory."""
        self._changes += 1
        return self._changes

    def allocated(self, tensors: Iterable[Any], place: tuple[str, str], now: int) -> None:
        """Adds the storages of tensors that are new."""
        self.now = now
        for tensor in tensors:
            if tensor.device.type != "cuda":
                continue
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key in self._live:
                continue
            one = _Storage(int(storage.nbytes()), place, now, born=self._next())
            self._live[key] = one
            self._all.append(one)
            weakref.finalize(storage, self._released, key, one).atexit = False

    def _released(self, key: int, one: _Storage) -> None:
        # A resized storage was released before.
        one.end, one.died = (self.now, self._next()) if one.end is None else (one.end, one.died)
        if self._live.get(key) is one:
            del self._live[key]

    def resized(self, storage: Any, size: int) -> None:  # noqa: ANN401 - torch is optional
        """Changes the size of a storage: its memory is released, or allocated again."""
        key = storage._cdata
        one = self._live.get(key)
        if one is None or size == one.bytes:
            return
        one.end, one.died = self.now, self._next()
        again = _Storage(size, one.place, self.now, gathered=one.gathered, born=self._next())
        self._live[key] = again
        self._all.append(again)
        weakref.finalize(storage, self._released, key, again).atexit = False

    def exchanged(self, tensors: Iterable[Any]) -> list[int]:
        """Returns the collectives that wrote these tensors."""
        found = []
        for tensor in tensors:
            one = self._live.get(tensor.untyped_storage()._cdata)
            if one is not None and one.writer is not None:
                found.append(one.writer)
        return found

    def written(self, tensors: Iterable[Any], collective: int | None) -> None:
        """Sets the last writer of tensors: a collective, or None for a kernel."""
        for tensor in tensors:
            one = self._live.get(tensor.untyped_storage()._cdata)
            if one is not None:
                one.writer = collective

    def gathered(self, tensors: Iterable[Any]) -> None:
        """Marks tensors as results of an all-gather."""
        for tensor in tensors:
            one = self._live.get(tensor.untyped_storage()._cdata)
            if one is not None:
                one.gathered = self.now

    def changes(
        self, parameters: set[int], states: set[int], span: Span
    ) -> tuple[MemoryChange, ...]:
        """Returns the changes of memory of a step in order; the first ones precede it.

        Args:
            parameters: The keys of storages of parameters.
            states: Those of states of optimizers.
            span: The step.
        """
        keys = {id(one): key for key, one in self._live.items()}
        found: list[tuple[int, MemoryChange]] = []
        for one in self._all:
            if one.born > span.until or (one.end is not None and one.died <= span.before):
                continue
            within = _within(one, span)
            kind = _kind(within, keys.get(id(one)), parameters, states)
            start = max(within.start, 0)
            found.append((one.born, MemoryChange(start, one.bytes, one.place[0], kind)))
            if within.end is not None:
                change = MemoryChange(within.end, -one.bytes, one.place[0], kind)
                found.append((one.died, change))
        ordered = sorted(found, key=lambda each: each[0])
        return tuple(change for _, change in ordered if change.bytes)


def _within(one: _Storage, span: Span) -> _Storage:
    """Returns a storage with operators counted from the start of a step."""
    end = None if one.end is None or one.died > span.until else max(one.end - span.first, 0)
    return replace(
        one,
        start=one.start - span.first if one.born > span.before else -1,
        end=end,
        gathered=one.gathered if span.first <= one.gathered < span.last else -1,
    )


def _kind(  # noqa: PLR0911 - a case each
    one: _Storage, key: int | None, parameters: set[int], states: set[int]
) -> MemoryKind:
    if key in parameters:
        return "parameters"
    if key in states:
        return "optimizer"
    if one.gathered >= 0:
        return "gathered"
    phase = one.place[1]
    if phase == "optimizer":
        return "temporary"
    if one.start < 0:
        return "other"
    is_short = one.end is not None and one.end - one.start < _SHORT
    if is_short:
        return "temporary"
    return "activations" if phase in {"forward", "recompute"} else "gradients"


_SHORT = 8
"""Operators that a temporary tensor outlives at most."""
