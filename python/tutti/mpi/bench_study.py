"""The study of a benchmark: measures collectives or multicasts over MPI, and shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import typer

from tutti.base.errors import ExitCode
from tutti.mpi.bench import measure, summarise
from tutti.mpi.bench_candidates import candidates_of
from tutti.mpi.bench_multicast import fit, measure_multicasts
from tutti.mpi.library import built
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark
from tutti.study.study import Study

from .view.bench import blocks_view, multicasts_view, statistics_view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.mpi.bench import Benchmark
    from tutti.mpi.bench_job import Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform


def prepared(mpicc: str | None, launcher: str | None, settings: Settings) -> Mpi:
    """Finds the MPI library, prints it, and compiles the library.

    Raises:
        MpiError: None was found.
    """
    mpi = find_mpi(mpicc, launcher)
    remark(f"{mpi}" + (f"; {settings.distance.note}" if settings.distance else ""))
    built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return mpi


def bench_collectives(
    mpi: Mpi,
    benchmarks: Sequence[Benchmark],
    names: Sequence[str],
    settings: Settings,
    *,
    machine: Platform | None,
    output: Path,
) -> None:
    """Measures each benchmark, and shows and writes the times.

    Args:
        mpi: The MPI library.
        benchmarks: A collective and its sizes, for each rank count.
        names: The candidates, as of `tutti.mpi.bench_candidates.candidates_of`.
        settings: How to measure.
        machine: The platform that predicts the times; None for no predictions.
        output: The folder for files.

    Raises:
        BenchError: A candidate or a size is invalid, or the job fails.
        Exit: Results were wrong.
    """
    study = Study[pl.DataFrame](output)

    def measured(benchmark: Benchmark) -> pl.DataFrame:
        chosen = candidates_of(
            list(names), collective=benchmark.collective, ranks=benchmark.ranks,
            size=benchmark.sizes[0], machine=machine,
        )  # fmt: skip
        blocks = study.measured(
            f"{benchmark.ranks} ranks",
            lambda done: measure(mpi, benchmark, chosen, settings, model=machine, done=done),
            work=settings.blocks * len(chosen) * len(benchmark.sizes),
        )
        study.present(statistics_view(blocks, summarise(blocks), settings))
        return blocks

    every = pl.concat(map(measured, benchmarks))
    summary = summarise(every)
    study.present(blocks_view(every, summary))
    if summary["wrong"].sum():
        raise typer.Exit(int(ExitCode.FAILED))


def bench_multicasts(mpi: Mpi, peers: int, settings: Settings, output: Path) -> None:
    """Measures multicasts to 1 to `peers` peers, and shows and writes times and a fitted model.

    Raises:
        BenchError: The job fails.
    """
    study = Study[pl.DataFrame](output)
    multicasts = study.measured(
        "multicasts", lambda done: measure_multicasts(mpi, peers, settings, done=done),
        work=settings.blocks * peers * 2,
    )  # fmt: skip
    fitted = fit(multicasts) if peers > 1 else None
    study.present(multicasts_view(multicasts, fitted, settings))
