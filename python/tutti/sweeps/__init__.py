"""Parameter sweeps of experiments, training steps or networks, with a cache to resume from.

A sweep uses all cores or a cluster.

`tutti.sweeps.files` reads the file. `plan` lists all measurements, `keys` derives their cache keys,
and `cache` stores results. `execution` submits batches to the workers of `executors`, `worker` runs
them, and `frame` builds the result table. `steps` has the parts for training steps, `designs` and
`pareto` those for networks of routers.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    import polars as pl

__all__ = ["sweep"]

_LOG = logging.getLogger("tutti")


def sweep(
    source: str | Path | Mapping[str, Any],
    *,
    executor: str | Executor = "processes",
    workers: int | None = None,
    dask_address: str | None = None,
    cache: str | Path | None = None,
    done: Callable[[int, int], object] | None = None,
    verify: bool = True,
    remark: Callable[[str], object] | None = None,
) -> pl.DataFrame:
    """Runs a sweep: an experiment, a training step or a network with several values of some keys.

    Args:
        source: A sweep file, or its content. Relative paths in a mapping start from the working
            folder.
        executor: ``"processes"`` of this machine, ``"dask"``, ``"mpi"``, or an executor of
            ``concurrent.futures`` whose workers can import tutti. Results do not depend on it.

        workers: The number of workers. By default one per core.
        dask_address: The address of a Dask scheduler. By default, a local one is started.
        cache: The folder of cached results, which a later sweep reuses. By default, nothing is
            cached.

        done: Called with (finished, total) after each measurement.
        verify: Whether to verify each schedule once before timing. The column ``verified`` states
            the result.
        remark: Called with a line per schedule that is omitted or not verified, as in
            :func:`tutti.compare`.

    Returns:
        A row per measurement, in the order of the points: the columns of
        :data:`tutti.collectives.frames.MEASUREMENTS`, or for training steps of
        :func:`tutti.training.step.frame`; and ``sweep.KEY`` for each swept key. For networks a row
        per design, with the columns of :func:`tutti.sweeps.design_view.design_columns`.

    Raises:
        ConfigError: The sweep or a point of it is invalid. The message names the point.
        ExecutorError: The executor is unknown or unusable.
        CacheError: The cache is unusable.
        VerificationError: A schedule is incorrect.
        SimulationError: A measurement failed. The cache has the other results.
        WorkerError: A worker died twice at a measurement. The cache has the other results.
    """
    from tutti.sweeps.executors import crew, prepare

    prepare(executor, dask_address)

    from tutti.sweeps.files import load_sweep, resolve_sweep
    from tutti.sweeps.plan import plan_sweep
    from tutti.sweeps.session import Session

    if isinstance(source, str | Path):
        read = load_sweep(Path(source))
    else:
        read = resolve_sweep(source, source="sweep", folder=Path())
    with crew(executor, workers, dask_address) as at_work:
        if at_work is None:  # This process was a worker, and its work is finished.
            raise SystemExit(0)
        plan = plan_sweep(read, verify=verify)
        session = Session(plan, None if cache is None else Path(cache))
        session.run(at_work, _counter(done, len(session.missing.measurements)))
    for _, error in session.failures:
        raise error
    for line in session.remarks(skipped=not verify):
        (remark or _LOG.warning)(line)
    return session.frame()


def _counter(done: Callable[[int, int], object] | None, total: int) -> Callable[[Any], None]:
    """Returns a function that counts the measurements among items of a plan."""
    finished = 0

    def count(item: Any) -> None:  # noqa: ANN401 - an item of the plan
        nonlocal finished
        finished += item.size_bytes is not None
        if done is not None and item.size_bytes is not None:
            done(finished, total)

    return count
