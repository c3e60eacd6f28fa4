"""Progress of long computations, reported to a watcher of the caller, and parallel threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Watcher = Callable[[str, int], AbstractContextManager[Callable[[], object]]]

_T = TypeVar("_T")
_Found = TypeVar("_Found")
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Reports the progress of exhibits within the context.

    Args:
        watcher: Takes a description and the number of parts, and returns a context of a function
            that is called after each part.
    """
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched(what: str, parts: Sequence[_T]) -> Iterator[_T]:
    """Yields the parts of a long computation, and reports progress to the watcher."""
    watcher = _watcher.get()
    if watcher is None:
        yield from parts
        return
    with watcher(what, len(parts)) as done:
        for part in parts:
            yield part
            done()


def at_once(
    work: Callable[[_T], _Found],
    items: Iterable[_T],
    what: str | None = "runs",
    done: Callable[[_Found], None] | None = None,
) -> dict[_T, _Found]:
    """Applies a function to all items in parallel threads; the core releases the GIL.

    Args:
        work: The function.
        items: The items.
        what: The description for the watcher; None reports no progress.
        done: Receives each result, in order.
    """
    items, results = list(items), {}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = watched(what, items) if what else items
        for part, result in zip(parts, pool.map(work, items), strict=True):
            results[part] = result
            if done is not None:
                done(result)
    return results
