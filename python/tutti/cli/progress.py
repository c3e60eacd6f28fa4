"""Progress: a bar with the remaining time in a terminal, else a line every ten seconds."""

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
    """Progress of a task in parts of different weight."""

    def __init__(self, name: str, *, work: int | None = None, total: int | None = None) -> None:
        """Prepares the display.

        Args:
            name: The task.
            work: Total work in any unit; None until it is known.
            total: Number of measurements; None to count none.
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
            # A thread, so that lines appear on time while a single part takes longer.
            threading.Thread(target=self._print_regularly, daemon=True).start()
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
        """Adds `work` and sets the number of finished measurements."""
        self.reach(self._done + work, self._work, finished)

    def reach(self, done: int, work: int | None, finished: int = 0) -> None:
        """Sets the work done, the total work and the number of finished measurements."""
        self._done, self._work, self._finished = done, work, finished
        if self._is_shown:
            self._bar.update(self._task, completed=done, total=work, count=self._count)

    def _print_regularly(self) -> None:
        while not self._left.wait(_SECONDS_BETWEEN_LINES):
            remark(self._line())

    def _line(self) -> str:
        took = time.monotonic() - self._started
        parts = [self._count] if self._total else []
        if self._done and self._work:
            parts.append(f"about {_duration(took * (self._work - self._done) / self._done)} left")
        else:
            parts.append(f"{_duration(took)} so far")
        return f"{self._name}: {', '.join(parts)}"

    @property
    def _count(self) -> str:
        return f"{self._finished:,}/{self._total:,}" if self._total else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
