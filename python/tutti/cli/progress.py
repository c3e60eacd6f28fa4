"""How far something is: a bar with the time left in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from tutti.cli.console import err, remark

if TYPE_CHECKING:
    from types import TracebackType

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Progress of some work, of which each part is a share."""

    def __init__(self, name: str, *, work: int, total: int) -> None:
        """Shows nothing yet.

        Args:
            name: What is going on.
            work: How much there is to do, in any unit.
            total: How many measurements that is.
        """
        from rich import progress

        self._name = name
        self._work = max(work, 1)
        self._total = total
        self._done = 0
        self._started = self._told = time.monotonic()
        self._is_shown = err().is_terminal
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
        self._bar.start()
        self._task = self._bar.add_task(self._name, total=self._work, count=self._count(0))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def advance(self, work: int, finished: int) -> None:
        """Some of the work is done, and so many measurements are finished."""
        self._done += work
        self._bar.update(self._task, advance=work, count=self._count(finished))
        now = time.monotonic()
        if not self._is_shown and now - self._told > _SECONDS_BETWEEN_LINES:
            self._told = now
            left = (now - self._started) * (self._work - self._done) / self._done
            remark(f"{self._name}: {self._count(finished)}, about {_duration(left)} left")

    def _count(self, finished: int) -> str:
        return f"{finished:,}/{self._total:,}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
