"""Processes of this machine as workers.

They start without the program that started the sweep: a script needs no guard, and a worker loads
nothing but the simulator. They ignore Ctrl-C, which is the sweep's to answer, and end with it,
however it ends.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import sys
import threading
import types
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    from multiprocessing.forkserver import ensure_running

    multiprocessing.get_context("forkserver").set_forkserver_preload([_LOADED, *modules])
    with _no_main_module():
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
        self._starting = self._beside.submit(self._pool)

    @property
    def executor(self) -> ProcessPoolExecutor:
        """The pool."""
        return self._starting.result()

    def renew(self) -> None:
        """Puts a new pool in the place of one whose workers have died."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self._starting = self._beside.submit(self._pool)

    def stop(self) -> None:
        """Ends the processes at once: a simulation may take longer than anybody waits."""
        running = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()

    def close(self) -> None:
        """Lets the processes end."""
        with self._beside:
            self.executor.shutdown(wait=True, cancel_futures=True)

    def _pool(self) -> ProcessPoolExecutor:
        prepare()
        forked = START_METHOD == "forkserver"
        pool = ProcessPoolExecutor(
            self.workers,
            mp_context=_ForkServerContext() if forked else multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._begin,),
        )
        for _ in range(self.workers):
            pool.submit(os.getpid)
        return pool


def _begin(more: Callable[[], object] | None) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if more is not None:
        more()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Worker(multiprocessing.context.ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: ANN401, N802 - as its base has it
        with _no_main_module():
            return multiprocessing.context.ForkServerProcess._Popen(process_obj)


class _ForkServerContext(multiprocessing.context.ForkServerContext):
    Process = _Worker


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
