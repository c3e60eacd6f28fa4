"""Progress: a bar with the remaining time in a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self

from rich import progress

from tutti.study.console import err
from tutti.study.interrupts import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY_SECONDS: Final = 10.0
"""Seconds between the lines of a task without a terminal."""


class Progress:
    """Progress of a task in parts of different weight.

    Ctrl-C ends the process within about a second, also during a long call of the core.
    """

    def __init__(
        self,
        name: str,
        *,
        work: int | None = None,
        total: int | None = None,
        writes: bool = False,
        handles_interrupts: bool = False,
    ) -> None:
        """Prepares the display.

        Args:
            name: The task.
            work: Total work in any unit; None until it is known.
            total: Number of measurements; None to count none.
            writes: Whether the task writes files: Ctrl-C then waits for a call that may write one.
            handles_interrupts: Whether the caller handles KeyboardInterrupt: stores results, or
                ends processes.
        """
        self._name = name
        self._work = None if work is None else max(work, 1)
        self._total = total
        self._writes = writes
        self._handles = handles_interrupts
        self._done = self._finished = 0
        self._context = ExitStack()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.fields[count]}"),
            progress.TimeRemainingColumn(compact=True),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )

    def __enter__(self) -> Self:
        if not self._writes:
            self._context.enter_context(bounded(self._bar.stop, handles=self._handles))
        self._context.enter_context(self._bar)
        if not err().is_terminal:
            self._context.enter_context(self._lines())
        self._task = self._bar.add_task(self._name, total=self._work, count=self._count)
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def advance(self, work: int, finished: int = 0) -> None:
        """Adds `work` and sets the number of finished measurements."""
        self.reach(self._done + work, self._work, finished)

    def reach(self, done: int, work: int | None, finished: int = 0) -> None:
        """Sets the work done, the total work and the number of finished measurements."""
        self._done, self._work, self._finished = done, work, finished
        self._bar.update(self._task, completed=done, total=work, count=self._count)

    @contextmanager
    def _lines(self) -> Iterator[None]:
        """Prints a line every ten seconds."""
        over, started = threading.Event(), time.monotonic()

        def watch() -> None:
            while not over.wait(_EVERY_SECONDS):
                err().print(self._line(time.monotonic() - started), markup=False)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(1.0)

    def _line(self, seconds: float) -> str:
        """Returns what is done after a number of seconds."""
        share = f"{100 * self._done // self._work} %" if self._work else ""
        parts = [part for part in (self._count or share, f"{seconds:.0f} s") if part]
        return f"{self._name}: {', '.join(parts)}"

    @property
    def _count(self) -> str:
        return f"{self._finished:,}/{self._total:,}" if self._total else ""
