"""Ctrl-C while modules load, and during a call of the core that does not check for signals."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tutti.errors import ExitCode

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Callable, Iterator
    from types import FrameType

_GRACE_SECONDS = 1.0
"""A call that checks for signals does so every 50 ms."""


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
def bounded(leave: Callable[[], object]) -> Iterator[None]:
    """Ends the process soon after Ctrl-C, although the main thread is in a call of the core.

    Python raises KeyboardInterrupt when the main thread returns to Python code. If it has not done
    so after a second, the process exits. Within the context, files are not written, so that none
    is truncated. Without effect in other threads, and where SIGINT has another handler.

    Args:
        leave: Called before the process exits in the middle of a call.
    """
    import socket
    import threading

    if not _is_default():
        yield
        return
    handled = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        handled.set()
        signal.default_int_handler(number, frame)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader, handled, leave), daemon=True).start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        writer.close()


def _watch(reader: socket.socket, handled: threading.Event, leave: Callable[[], object]) -> None:
    """Receives the number of each signal, until the other end is closed."""
    import sys

    with reader:
        while number := reader.recv(1):
            if number[0] == signal.SIGINT and not handled.wait(_GRACE_SECONDS):
                leave()
                sys.stdout.flush()
                _end()


def _is_default() -> bool:
    """Returns whether Ctrl-C raises KeyboardInterrupt, and this thread may change that."""
    import threading

    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(ExitCode.INTERRUPTED)
