"""Starts and stops the executors of a sweep, which implement `concurrent.futures`.

A crew adds to an executor the number of workers, a restart after workers died, and an immediate
stop.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from tutti.base.files.extras import check_extra
from tutti.sweeps import processes
from tutti.sweeps.errors import ExecutorError
from tutti.sweeps.version import simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

_LOADED_BY_DASK = ("distributed.nanny", "numpy.random", "tutti.cli")
"""Modules that Dask workers import, preloaded in the fork server."""


class Crew(Protocol):
    """Workers behind an executor."""

    @property
    def executor(self) -> Executor:
        """The executor that receives work."""

    @property
    def workers(self) -> int:
        """The number of concurrent workers."""

    def renew(self) -> None:
        """Replaces an executor whose workers died."""

    def stop(self) -> None:
        """Stops all work immediately, finished or not."""


def prepare(executor: str | Executor, address: str | None = None) -> None:
    """Starts slow initialisation that does not depend on the sweep, and returns immediately.

    Args:
        executor: As for `crew`; calling `crew` afterwards is optional.
        address: As for `crew`.
    """
    if executor == "processes":
        processes.prepare()
    elif executor == "dask" and address is None:
        processes.prepare(*_LOADED_BY_DASK)


def crew(
    executor: str | Executor, workers: int | None = None, address: str | None = None
) -> AbstractContextManager[Crew | None]:
    """Starts workers for the duration of a context.

    Args:
        executor: One of `EXECUTORS`, or an executor object.
        workers: The number of workers; by default one per core available to this process.
        address: The address of a running Dask scheduler.

    Returns:
        A context of the crew, or of None in a process that was itself a worker.

    Raises:
        ExecutorError: The executor is unknown, not installed, not started or unreachable.
    """
    if address is not None and executor != "dask":
        problem = f"the executor {executor} does not connect to a scheduler"
        hint = "a scheduler address requires the executor dask"
        raise ExecutorError(problem, kind="option", hint=hint)
    if isinstance(executor, Executor):
        return nullcontext(_Given(executor, workers or _cores()))
    if executor not in EXECUTORS:
        from tutti.base.files.mistakes import did_you_mean

        problem = f"unknown executor `{executor}`: expected one of {', '.join(EXECUTORS)}"
        raise ExecutorError(problem, kind="unknown", hint=did_you_mean(str(executor), EXECUTORS))
    return EXECUTORS[executor](workers, address)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Given:
    """An executor that the caller owns; it is neither replaced nor stopped."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor = executor
        self.workers = workers

    def renew(self) -> None:
        pass

    def stop(self) -> None:
        pass


@contextmanager
def _processes(workers: int | None, _address: str | None) -> Iterator[Crew | None]:
    started = processes.Processes(workers or _cores())
    try:
        yield started
    finally:
        started.close()


class _Dask:
    """Dask workers, which may still be starting; access to them waits."""

    def __init__(self, starting: Future[Client]) -> None:
        self._starting = starting

    @cached_property
    def _client(self) -> Client:
        return self._starting.result()

    @cached_property
    def executor(self) -> Executor:
        made: Executor = self._client.get_executor()  # type: ignore[no-untyped-call]
        return made

    @cached_property
    def workers(self) -> int:
        running = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["nthreads"] for worker in running)

    def renew(self) -> None:
        """Does nothing: Dask restarts workers."""

    def stop(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _dask(workers: int | None, address: str | None) -> Iterator[Crew | None]:
    check_extra("sweep")
    with ThreadPoolExecutor(1) as background, ExitStack() as to_close:
        if address is None:
            prepare("dask")
            starting = background.submit(_local_client, workers or _cores(), to_close)
        else:
            starting = Future()
            starting.set_result(_client_of(address, to_close))
        try:
            yield _Dask(starting)
        finally:
            starting.exception()  # Wait: a cluster that is still starting cannot be closed.


def _client_of(address: str, to_close: ExitStack) -> Client:
    """Returns a client of a running scheduler."""
    from distributed import Client

    try:
        client = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        problem = f"no Dask scheduler responds at {address}: {error}"
        raise ExecutorError(problem, kind="unreachable") from None
    to_close.enter_context(client)
    client.wait_for_workers(1, timeout=60)
    _check_versions(client)
    return client


_LOCAL_DASK = {
    # The sweep retries, so that Dask does not.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.worker.multiprocessing-method": processes.START_METHOD,
    # A worker always has the next batch queued.
    "distributed.scheduler.worker-saturation": float("inf"),
    # Profiling and dashboards are unused, and would take time of the cores of the workers.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    "distributed.admin.tick.interval": "1s",
}


def _local_client(workers: int, to_close: ExitStack) -> Client:
    """Returns a client of a local cluster."""
    import dask
    from distributed import Client, LocalCluster

    to_close.enter_context(dask.config.set(_LOCAL_DASK))
    cluster = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=50,
    )
    to_close.enter_context(cluster)
    client = Client(cluster, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    to_close.enter_context(client)
    return client


def _check_versions(client: Client) -> None:
    other = {
        worker: version
        for worker, version in client.run(simulator).items()
        if version != simulator()
    }
    if other:
        worker, version = min(other.items())
        problem = (
            f"the worker {worker} runs tutti {version}: expected {simulator()}"
            f"{f'; {len(other) - 1} more differ' if len(other) > 1 else ''}"
        )
        raise ExecutorError(problem, kind="other_version")


_MPI_START = "mpiexec -n 5 tutti sweep FILE --executor mpi, for one coordinator and four workers"


@contextmanager
def _mpi(workers: int | None, _address: str | None) -> Iterator[Crew | None]:
    if workers is not None:
        problem = "the executor mpi takes the number of workers from mpiexec, minus one"
        raise ExecutorError(problem, kind="option", hint=_MPI_START)
    check_extra("mpi")
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError):
        problem = "the executor mpi cannot load an MPI library"
        hint = "load the module of your cluster's MPI library"
        raise ExecutorError(problem, kind="not_started", hint=hint) from None
    if MPI.COMM_WORLD.Get_size() < 2:
        problem = "the executor mpi has no workers: MPI_COMM_WORLD has one process"
        raise ExecutorError(problem, kind="not_started", hint=f"start it as {_MPI_START}")
    world: AbstractContextManager[Any] = MPICommExecutor(MPI.COMM_WORLD, root=0)
    with world as executor:
        if executor is None:
            yield None
        else:
            yield _Given(executor, executor.num_workers)


EXECUTORS: dict[str, Callable[[int | None, str | None], AbstractContextManager[Crew | None]]] = {
    "processes": _processes,
    "dask": _dask,
    "mpi": _mpi,
}
"""Functions that start a crew with a number of workers or at an address, by name."""
