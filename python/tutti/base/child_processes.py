"""Processes that Ctrl-C does not interrupt."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Blocks SIGINT in this thread, and for good in processes that it starts.

    A terminal sends Ctrl-C to all processes. Those that still load modules would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # Its start unblocks SIGINT, so that it comes first.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
