"""Sweeps: an experiment asked many times over, on all cores or on a cluster, and resumed.

`tutti.config.sweep` reads the file; `plan` lays out every measurement, `keys` names it by all that
it depends on, `cache` keeps what is finished, `carry_out` hands batches to the workers that
`executors` starts, `worker` does them, and `frame` makes one table of it all.
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
    asked: str | Path | Mapping[str, Any],
    *,
    executor: str | Executor = "processes",
    workers: int | None = None,
    dask_address: str | None = None,
    cache: str | Path | None = None,
    done: Callable[[int, int], object] | None = None,
    verify: bool = True,
    remark: Callable[[str], object] | None = None,
) -> pl.DataFrame:
    """Carries out a sweep: an experiment, and keys of it that take several values.

    Args:
        asked: a sweep file, or what would stand in it; relative paths in it then start from the
            working folder.
        executor: ``"processes"`` of this machine, ``"dask"``, ``"mpi"``, or any executor of
            ``concurrent.futures``, whose workers must be able to import tutti. No result depends on
            it.
        workers: how many; one per core unless given.
        dask_address: of a Dask scheduler; without it one is started on this machine.
        cache: a folder that keeps what is finished, so that another sweep, or this one after it was
            killed, does not do it again; without it nothing is kept.
        done: called with (finished, total) after each measurement.
        verify: whether to verify the schedules first, each once in all the sweep; the column
            ``verified`` states which were.
        remark: called with a line for each schedule that is left out or not verified, as
            :func:`tutti.compare` takes it.

    Returns:
        A row per measurement, in the order of the points: the columns of
        :data:`tutti.results.MEASUREMENTS`, and ``sweep.KEY`` for each swept key.

    Raises:
        ConfigError: the sweep or a point of it cannot be used; the message names the point.
        ExecutorError: there is no such executor, or it is not as it should be.
        CacheError: the cache cannot be used.
        VerificationError: a schedule does not do what it is meant to do.
        SimulationError: a measurement gives no result; the others are in the cache.
        WorkerError: a worker died twice at the same measurement; the others are in the cache.
    """
    from tutti.sweep.executors import crew, prepare

    prepare(executor, dask_address)

    from tutti.config.sweep import load_sweep, resolve_sweep
    from tutti.sweep.plan import plan_sweep
    from tutti.sweep.session import Session

    if isinstance(asked, str | Path):
        read = load_sweep(Path(asked))
    else:
        read = resolve_sweep(asked, source="sweep", folder=Path())
    with crew(executor, workers, dask_address) as at_work:
        if at_work is None:  # this process has been a worker, and is done
            raise SystemExit(0)
        plan = plan_sweep(read, verify=verify)
        session = Session(plan, None if cache is None else Path(cache))
        total = len(session.missing.measurements)
        finished = 0

        def heard(item: Any) -> None:  # noqa: ANN401 - an item of the plan
            nonlocal finished
            finished += item.size_bytes is not None
            if done is not None and item.size_bytes is not None:
                done(finished, total)

        session.run(at_work, heard)
    for _, error in session.failures:
        raise error
    for line in session.remarks(skipped=not verify):
        (remark or _LOG.warning)(line)
    return session.frame()
