"""`tutti sweep`: runs a file over a grid of parameters, and resumes an interrupted sweep."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.grouped import grouped


class Executor(enum.StrEnum):
    """What executes the sweep."""

    PROCESSES = "processes"
    DASK = "dask"
    MPI = "mpi"


@dataclass
class WorkerOptions:
    """What executes a sweep, and which results it reuses."""

    executor: Annotated[
        Executor,
        typer.Option(help="Executor: processes of this machine, Dask, or the ranks of mpiexec."),
    ] = Executor.PROCESSES
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Workers. Default: one per core."),
    ] = None
    dask_address: Annotated[
        str | None,
        typer.Option(
            "--dask-address",
            metavar="ADDRESS",
            help="A Dask scheduler, such as tcp://host:8786. Default: start one.",
        ),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of finished measurements. Default: OUT/cache."),
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore the cache: measure everything again.")
    ] = False


@grouped
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The sweep file (TOML).", show_default=False)
    ],
    by: WorkerOptions,
    *,
    status: Annotated[
        bool, typer.Option("--status", help="Print how much is finished, and exit.")
    ] = False,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Run a sweep: an experiment, a training step or a network with several values of some keys.

    Writes results.parquet and results.csv to the output folder: a row per measurement, and a
    column `sweep.KEY` for each swept key. Each finished measurement is cached at once. Run an
    interrupted sweep again to simulate only the missing measurements.

    \b
    Examples:
      tutti sweep sweep.toml
      tutti sweep sweep.toml --workers 2 --out out/sweep --cache out/cache
      tutti sweep sweep.toml --status
      tutti plot out/sweep/results.parquet --kind sweep --key ranks
      mpiexec -n 5 tutti sweep sweep.toml --executor mpi
    """
    from tutti.sweeps.executors import crew, prepare

    if not status:
        prepare(by.executor.value, by.dask_address)

    from tutti.sweeps import study
    from tutti.sweeps.files import load_sweep

    read = load_sweep(file, {"output": str(to)} if to else {})
    stored = by.cache or read.output / "cache"
    if status:
        study.show_status(read, stored, verify=verify)
        return
    workers = crew(by.executor.value, by.workers, by.dask_address)
    study.run(read, workers, stored, is_fresh=by.fresh, verify=verify)
