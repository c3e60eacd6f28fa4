"""How far something is: a bar with the time left in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from rich import progress

from tutti.cli.console import err, remark

if TYPE_CHECKING:
    from types import TracebackType

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Progress of some work, of which each part is a share."""

    def __init__(self, name: str, *, work: int | None = None, total: int | None = None) -> None:
        """Shows nothing yet.

        Args:
            name: What is going on.
            work: How much there is to do, in any unit; None until that is known.
            total: How many measurements that is; None to count none.
        """
        self._name = name
        self._work = None if work is None else max(work, 1)
        self._total = total
        self._done = self._finished = 0
        self._started = time.monotonic()
        self._is_shown = err().is_terminal
        self._left = threading.Event()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.fields[count]}"),
            progress.TimeRemainingColumn(compact=True),
            console=err(),
            transient=True,
            disable=not self._is_shown,
        )

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._bar.start()
        self._task = self._bar.add_task(self._name, total=self._work, count=self._count)
        if not self._is_shown:
            # Lines come on time also where a single part takes longer than that.
            threading.Thread(target=self._tell_now_and_then, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        self._bar.stop()

    def advance(self, work: int, finished: int = 0) -> None:
        """Some of the work is done, and so many measurements are finished."""
        self.reach(self._done + work, self._work, finished)

    def reach(self, done: int, work: int | None, finished: int = 0) -> None:
        """So much is done of so much work, and so many measurements are finished."""
        self._done, self._work, self._finished = done, work, finished
        if self._is_shown:
            self._bar.update(self._task, completed=done, total=work, count=self._count)

    def _tell_now_and_then(self) -> None:
        while not self._left.wait(_SECONDS_BETWEEN_LINES):
            remark(self._line())

    def _line(self) -> str:
        took = time.monotonic() - self._started
        said = [self._count] if self._total else []
        if self._done and self._work:
            said.append(f"about {_duration(took * (self._work - self._done) / self._done)} left")
        else:
            said.append(f"{_duration(took)} so far")
        return f"{self._name}: {', '.join(said)}"

    @property
    def _count(self) -> str:
        return f"{self._finished:,}/{self._total:,}" if self._total else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
