"""Processes of this machine as workers.

They start without the program that started the sweep: a script needs no guard, and a worker loads
nothing but the simulator. They ignore Ctrl-C, which is the sweep's to answer, and end with it,
however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.forkserver import ensure_running
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

_LOADED = "tutti.sweep.ready"
"""Loaded once, before workers are forked off."""

START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""Where there is a fork server, workers are its forks."""

_swapping = threading.Lock()


def prepare(*modules: str) -> None:
    """Has another process load what workers need, while this one goes on; workers are its forks.

    Args:
        modules: What they need besides the simulator.
    """
    if START_METHOD != "forkserver":
        return
    multiprocessing.get_context("forkserver").set_forkserver_preload([_LOADED, *modules])
    ensure_running()


class Processes:
    """A crew of processes.

    Attributes:
        workers: How many processes there are.
    """

    def __init__(self, workers: int, begin: Callable[[], object] | None = None) -> None:
        """Starts them, while the sweep is still being read.

        Args:
            workers: How many.
            begin: What each does first, besides what it must.
        """
        self.workers = workers
        self._begin = begin
        self._beside = ThreadPoolExecutor(1)
        self._starting = self._beside.submit(_Pool, workers, begin)

    @property
    def executor(self) -> _Pool:
        """The pool."""
        return self._starting.result()

    def renew(self) -> None:
        """Puts a new pool in the place of one whose workers have died."""
        self.stop()
        self._starting = self._beside.submit(_Pool, self.workers, self._begin)

    def stop(self) -> None:
        """Ends the processes at once: a simulation may take longer than anybody waits."""
        self.executor.stop()

    def close(self) -> None:
        """Lets the processes end."""
        with self._beside:
            self.executor.shutdown(wait=True, cancel_futures=True)


class _Pool(ProcessPoolExecutor):
    """Workers that exit once this end of a pipe is closed: by `stop`, or with the sweep."""

    def __init__(self, workers: int, begin: Callable[[], object] | None) -> None:
        prepare()
        context = multiprocessing.get_context(START_METHOD)
        self._theirs, self._ours = context.Pipe(duplex=False)
        arguments = (self._theirs, begin)
        super().__init__(workers, mp_context=context, initializer=_begin, initargs=arguments)
        for _ in range(workers):
            self.submit(os.getpid)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Starts workers as they are needed: they load neither the program nor its main module."""
        with _no_main_module():
            return super().submit(fn, *args, **kwargs)

    def stop(self) -> None:
        """Ends all workers, whatever they do."""
        self.shutdown(wait=False, cancel_futures=True)
        self._ours.close()


def _begin(alive: Connection, more: Callable[[], object] | None) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    if more is not None:
        more()


def _end_with(alive: Connection) -> None:
    alive.poll(None)  # nothing is ever sent: the other end has been closed
    os._exit(1)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hides the program's main module from a process that starts, which would load it again."""
    with _swapping:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
