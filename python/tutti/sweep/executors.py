"""What carries a sweep out: executors of `concurrent.futures`, and how each is started and ended.

The sweep itself knows only the interface. A crew is an executor with what the interface lacks: how
many work at once, how to begin anew when workers have died, and how to end at once.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from tutti.config.mistakes import did_you_mean
from tutti.errors import ExecutorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

__all__ = ["EXECUTORS", "Crew", "crew"]


class Crew(Protocol):
    """Workers behind an executor."""

    @property
    def executor(self) -> Executor:
        """What takes the work."""

    @property
    def workers(self) -> int:
        """How many work at once."""

    def renew(self) -> None:
        """Puts a new executor in the place of one whose workers have died."""

    def stop(self) -> None:
        """Ends all work at once, finished or not."""


def crew(
    executor: str | Executor, workers: int | None = None, address: str | None = None
) -> AbstractContextManager[Crew | None]:
    """Workers of that kind, which are there within the context.

    Args:
        executor: One of `EXECUTORS`, or an executor of your own.
        workers: How many; without it one per core that this process may use.
        address: Of a Dask scheduler that is already there.

    Returns:
        A context of the crew; of None in a process that has itself been a worker until the end.

    Raises:
        ExecutorError: There is none, it is not installed, not started, or does not answer.
    """
    if address is not None and executor != "dask":
        problem = f"there is no scheduler to connect to with the executor {executor}"
        hint = "a scheduler's address goes with dask"
        raise ExecutorError(problem, kind="option", hint=hint)
    if isinstance(executor, Executor):
        return nullcontext(_Given(executor, workers or _cores()))
    if executor not in EXECUTORS:
        problem = f"there is no executor `{executor}`: expected one of {', '.join(EXECUTORS)}"
        raise ExecutorError(problem, kind="unknown", hint=did_you_mean(str(executor), EXECUTORS))
    return EXECUTORS[executor](workers, address)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Given:
    """An executor that somebody else owns; it is neither renewed nor ended."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor = executor
        self.workers = workers

    def renew(self) -> None:
        pass

    def stop(self) -> None:
        pass


@contextmanager
def _processes(workers: int | None, _address: str | None) -> Iterator[Crew | None]:
    from tutti.sweep.processes import Processes

    started = Processes(workers or _cores())
    try:
        yield started
    finally:
        started.close()


class _Dask:
    def __init__(self, client: Client) -> None:
        self.executor: Executor = client.get_executor()  # type: ignore[no-untyped-call]
        running = client.scheduler_info(n_workers=-1)["workers"].values()
        self.workers = sum(worker["nthreads"] for worker in running)
        self._client = client

    def renew(self) -> None:
        """Dask itself starts workers anew."""

    def stop(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _dask(workers: int | None, address: str | None) -> Iterator[Crew | None]:
    try:
        from distributed import Client
    except ImportError:
        raise _missing("dask", "Dask's `distributed`", "tutti[dask]") from None
    with _cluster(workers, address) as to:
        try:
            client = Client(to, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            problem = f"no Dask scheduler answers at {address}: {error}"
            raise ExecutorError(problem, kind="unreachable") from None
        with client:
            if address is not None:
                client.wait_for_workers(1, timeout=60)
                _check_versions(client)
            yield _Dask(client)


@contextmanager
def _cluster(workers: int | None, address: str | None) -> Iterator[object]:
    """The address that is given, or a cluster of this machine."""
    if address is not None:
        yield address
        return
    import dask
    from distributed import LocalCluster

    # One death is enough: the sweep itself tries again.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers or _cores(),
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster


def _check_versions(client: Client) -> None:
    from tutti.sweep.version import simulator

    other = {
        worker: version
        for worker, version in client.run(simulator).items()
        if version != simulator()
    }
    if other:
        worker, version = min(other.items())
        problem = (
            f"the worker {worker} runs tutti {version}, and this is {simulator()}"
            f"{f'; {len(other) - 1} more differ' if len(other) > 1 else ''}"
        )
        raise ExecutorError(problem, kind="other_version")


_MPI_START = "mpiexec -n 5 tutti sweep FILE --executor mpi: one process gives out work, four do it"


@contextmanager
def _mpi(workers: int | None, _address: str | None) -> Iterator[Crew | None]:
    if workers is not None:
        problem = "with the executor mpi the number of workers is that of mpiexec, less one"
        raise ExecutorError(problem, kind="option", hint=_MPI_START)
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError):
        raise _missing("mpi", "mpi4py, or an MPI library for it,", "tutti[mpi]") from None
    if MPI.COMM_WORLD.Get_size() < 2:
        problem = "the executor mpi has no workers: this is the only process of its MPI world"
        raise ExecutorError(problem, kind="not_started", hint=f"start it as {_MPI_START}")
    world: AbstractContextManager[Any] = MPICommExecutor(MPI.COMM_WORLD, root=0)
    with world as executor:
        if executor is None:
            yield None
        else:
            yield _Given(executor, executor.num_workers)


def _missing(name: str, what: str, extra: str) -> ExecutorError:
    problem = f"the executor {name} needs {what} and it is not installed"
    return ExecutorError(problem, kind="missing", hint=f"pip install '{extra}'")


EXECUTORS: dict[str, Callable[[int | None, str | None], AbstractContextManager[Crew | None]]] = {
    "processes": _processes,
    "dask": _dask,
    "mpi": _mpi,
}
"""By name: what starts a crew of so many workers, or at an address."""
