"""Local processes as workers.

Workers do not import the main module, so that scripts need no guard and workers load only the
simulator. They ignore Ctrl-C, which the sweep handles, and exit with the sweep in any case.
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

from tutti.base.child_processes import no_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

_LOADED = "tutti.sweeps.ready"
"""Preloaded in the fork server."""

START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""Workers are forks of the fork server, if the platform has one."""

_swapping = threading.Lock()


def prepare(*modules: str) -> None:
    """Starts the fork server, which preloads the modules of workers in the background.

    Args:
        modules: Modules to preload in addition to the simulator.
    """
    if START_METHOD != "forkserver":
        return
    multiprocessing.get_context("forkserver").set_forkserver_preload([_LOADED, *modules])
    with no_interrupts():
        ensure_running()


class Processes:
    """A crew of processes.

    Attributes:
        workers: The number of processes.
    """

    def __init__(self, workers: int, initialise: Callable[[], object] | None = None) -> None:
        """Starts the processes in the background.

        Args:
            workers: The number of processes.
            initialise: An additional function that each process calls first.
        """
        self.workers = workers
        self._initialise = initialise
        self._background = ThreadPoolExecutor(1)
        self._starting = self._background.submit(_Pool, workers, initialise)

    @property
    def executor(self) -> _Pool:
        """The pool."""
        return self._starting.result()

    def renew(self) -> None:
        """Replaces a pool whose workers died."""
        self.stop()
        self._starting = self._background.submit(_Pool, self.workers, self._initialise)

    def stop(self) -> None:
        """Stops the processes immediately, without waiting for simulations."""
        self.executor.stop()

    def close(self) -> None:
        """Waits for the processes to exit."""
        with self._background:
            self.executor.shutdown(wait=True, cancel_futures=True)


class _Pool(ProcessPoolExecutor):
    """Workers that exit when this end of a pipe is closed: by `stop`, or with the sweep."""

    def __init__(self, workers: int, initialise: Callable[[], object] | None) -> None:
        prepare()
        context = multiprocessing.get_context(START_METHOD)
        self._theirs, self._ours = context.Pipe(duplex=False)
        arguments = (self._theirs, initialise)
        super().__init__(workers, mp_context=context, initializer=_start, initargs=arguments)
        for _ in range(workers):
            self.submit(os.getpid)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Submits a call; workers start on demand, without the main module of the program."""
        with _no_main_module():
            return super().submit(fn, *args, **kwargs)

    def stop(self) -> None:
        """Stops all workers immediately."""
        self.shutdown(wait=False, cancel_futures=True)
        self._ours.close()


def _start(alive: Connection, more: Callable[[], object] | None) -> None:
    """Initialises a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    if more is not None:
        more()


def _end_with(alive: Connection) -> None:
    alive.poll(None)  # Returns when the other end is closed, as nothing is ever sent.
    os._exit(1)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hides the main module from starting processes, which would import it again."""
    with _swapping:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
