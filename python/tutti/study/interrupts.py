"""Ctrl-C while modules load, and during a call of the core that does not check for signals."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tutti.base.errors import ExitCode

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Callable, Iterator
    from types import FrameType

_GRACE_SECONDS = 1.0
"""Calls that check for signals do so every 50 ms, and then stop their threads."""


@contextmanager
def at_once() -> Iterator[None]:
    """Ends the process at Ctrl-C while modules load: some libraries discard KeyboardInterrupt."""
    if not _is_default():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def bounded(leave: Callable[[], object], *, handles: bool) -> Iterator[None]:
    """Ends the process a second after Ctrl-C, if a call of the core in the context goes on.

    Python raises KeyboardInterrupt when the main thread executes Python code again. Within the
    context, files are not written, so that none is truncated. Without effect in other threads, and
    where SIGINT has another handler.

    Args:
        leave: Called before the process exits in the middle of a call.
        handles: Whether the caller handles KeyboardInterrupt: the process then exits only if it is
            not raised.
    """
    import socket
    import threading

    if not _is_default():
        yield
        return
    over = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if handles:
            over.set()
        signal.default_int_handler(number, frame)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader, over, leave), daemon=True).start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        over.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        writer.close()


def end_soon() -> None:
    """Ends the process in a second, even if threads still compute that Ctrl-C does not end."""
    import threading

    timer = threading.Timer(_GRACE_SECONDS, _flush_and_exit)
    timer.daemon = True
    timer.start()


def _watch(reader: socket.socket, over: threading.Event, leave: Callable[[], object]) -> None:
    """Receives the number of each signal, until the other end is closed."""
    import sys

    with reader:
        while number := reader.recv(1):
            if number[0] == signal.SIGINT and not over.wait(_GRACE_SECONDS):
                leave()
                sys.stdout.flush()
                _end()


def _is_default() -> bool:
    """Returns whether Ctrl-C raises KeyboardInterrupt, and this thread may change that."""
    import threading

    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _flush_and_exit() -> None:
    import sys

    sys.stdout.flush()
    os._exit(ExitCode.INTERRUPTED)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(ExitCode.INTERRUPTED)
