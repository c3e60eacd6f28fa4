"""Progress: a bar with the remaining time in a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self

from tutti.study.console import err
from tutti.study.interrupts import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bar

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
        self._part = ""
        self._work = None if work is None else max(work, 1)
        self._total = total
        self._writes = writes
        self._handles = handles_interrupts
        self._done = self._finished = 0
        self._context = ExitStack()
        self._bar = _bar() if _is_terminal() else None

    def __enter__(self) -> Self:
        if not self._writes:
            self._context.enter_context(bounded(self._stop, handles=self._handles))
        if self._bar is None:
            self._context.enter_context(self._lines())
        else:
            self._context.enter_context(self._bar)
            self._task = self._bar.add_task(self._name, total=self._work, count=self._count)
        return self

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def advance(self, work: int, finished: int = 0) -> None:
        """Adds `work` and sets the number of finished measurements."""
        self.reach(self._done + work, self._work, finished)

    def name(self, part: str) -> None:
        """Names the part that is running."""
        self._part = part
        if self._bar is not None:
            self._bar.update(self._task, description=f"{self._name} {part}")

    def reach(self, done: int, work: int | None, finished: int = 0) -> None:
        """Sets the work done, the total work and the number of finished measurements."""
        self._done, self._work, self._finished = done, work, finished
        if self._bar is not None:
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
        # A share of 0 % has no information; the part that is running has.
        share = f"{100 * self._done // self._work} %" if self._work and self._done else ""
        parts = [part for part in (self._count or share, f"{seconds:.0f} s") if part]
        return f"{self._name}{self._part and f' {self._part}'}: {', '.join(parts)}"

    @property
    def _count(self) -> str:
        return f"{self._finished:,}/{self._total:,}" if self._total else ""


_FORCING = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables with which rich treats a file as a terminal."""


def _is_terminal() -> bool:
    """Returns whether stderr is a terminal. rich decides, but is loaded only if it can be one."""
    can_be = sys.stderr.isatty() or any(name in os.environ for name in _FORCING)
    return (can_be or "rich.console" in sys.modules) and err().is_terminal


def _bar() -> Bar:
    from rich import progress  # as most of it is only for terminals

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=None),
        progress.TextColumn("{task.fields[count]}"),
        progress.TimeRemainingColumn(compact=True),
        console=err(),
        transient=True,
    )
