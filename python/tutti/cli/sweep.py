"""`tutti sweep`: an experiment asked many times over, resumed where it was stopped."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.cli.console import fail, out, remark
from tutti.cli.progress import Progress
from tutti.errors import ExitCode

if TYPE_CHECKING:
    import polars as pl

    from tutti.config import Sweep
    from tutti.sweep.executors import Crew
    from tutti.sweep.plan import SweepPlan
    from tutti.sweep.session import Session

_MOST_REMARKS = 12
_MOST_ROWS = 20


class Executor(enum.StrEnum):
    """What carries the sweep out."""

    PROCESSES = "processes"
    DASK = "dask"
    MPI = "mpi"


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The sweep file (TOML).", show_default=False)
    ],
    executor: Annotated[
        Executor,
        typer.Option(
            help="What does the work: processes of this machine, Dask, or the ranks of mpiexec."
        ),
    ] = Executor.PROCESSES,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="How many; one per core, if not given.")
    ] = None,
    dask_address: Annotated[
        str | None,
        typer.Option(
            "--dask-address",
            metavar="ADDRESS",
            help="Of a Dask scheduler, such as tcp://host:8786; one is started, if not given.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps what is finished: OUT/cache, if not given."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure everything again, whatever the cache has.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only say how much is finished.")
    ] = False,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Carry out a sweep: an experiment, and keys of it that take several values each.

    Writes results.parquet and results.csv into the output folder: a row per measurement, and for
    each swept key a column `sweep.KEY`. What is finished is kept at once: run a sweep that was
    stopped or killed again, and only what is missing is simulated.

    \b
    Examples:
      tutti sweep sweep.toml
      tutti sweep sweep.toml --workers 2 --out out/sweep --cache out/cache
      tutti sweep sweep.toml --status
      tutti plot out/sweep/results.parquet --kind sweep --key ranks
      mpiexec -n 5 tutti sweep sweep.toml --executor mpi
    """
    from tutti.sweep.executors import crew, prepare

    if not status:
        prepare(executor.value, dask_address)

    from tutti.cli.files import folder
    from tutti.config.sweep import load_sweep
    from tutti.sweep.plan import plan_sweep
    from tutti.sweep.session import Session

    read = load_sweep(file, {"output": str(to)} if to else {})
    kept = cache or read.output / "cache"
    if status:
        _status(Session(plan_sweep(read, verify=verify), kept), kept)
        return
    with crew(executor.value, workers, dask_address) as at_work:
        if at_work is None:  # a rank of mpiexec that has worked for the one that gave out the work
            return
        plan = plan_sweep(read, verify=verify)
        folder(read.output)
        session = Session(plan, kept, is_fresh=fresh)
        _begin(session, kept)
        interrupted = _run(session, at_work)
    frame = session.frame()
    _write(frame, read)
    if interrupted:
        left = len(session.missing.measurements)
        remark(f"interrupted: {left:,} measurements are missing; the others are in {kept}")
        remark(f"to go on, run the same again: tutti sweep {file}")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    _show(frame, plan)
    for line in session.remarks(skipped=not verify):
        remark(line)
    _report(session)


def _status(session: Session, kept: Path) -> None:
    for text in session.found.remarks:
        remark(text)
    total = len({item.key for item in session.plan.measurements})
    left = len(session.missing.measurements)
    console = out()
    console.print(f"{len(session.plan.sweep.points):,} points, {total:,} measurements")
    console.print(f"{total - left:,} are finished, in {kept}; {left:,} are missing", markup=False)


def _begin(session: Session, kept: Path) -> None:
    _remarks(session.plan.remarks)
    _remarks(session.found.remarks)
    total = len({item.key for item in session.plan.measurements})
    left = len(session.missing.measurements)
    known = f", {total - left:,} of them from {kept}" if left < total else ""
    remark(f"{len(session.plan.sweep.points):,} points, {total:,} measurements{known}")


def _run(session: Session, crew: Crew) -> bool:
    """Does what is missing; whether Ctrl-C came before the last."""
    from tutti.sweep.execution import weight

    missing = session.missing
    items = [*missing.proofs, *missing.measurements]
    if not items:
        return False
    started = time.monotonic()
    total = len(missing.measurements)
    finished = 0
    with Progress("sweeping", work=sum(weight(item) for item in items), total=total) as progress:

        def heard(item: object) -> None:
            nonlocal finished
            finished += item.size_bytes is not None  # type: ignore[attr-defined]
            progress.advance(weight(item), finished)  # type: ignore[arg-type]

        try:
            session.run(crew, heard)
        except KeyboardInterrupt:
            return True
    took = time.monotonic() - started
    share = session.outcome.core_seconds / (took * crew.workers)
    remark(
        f"{total:,} measurements in {took:.1f} s by {crew.workers} workers, "
        f"{min(share, 1):.0%} of whose time went into simulating and verifying"
    )
    return False


def _remarks(texts: list[str]) -> None:
    for text in texts[:_MOST_REMARKS]:
        remark(text)
    if len(texts) > _MOST_REMARKS:
        remark(f"and {len(texts) - _MOST_REMARKS:,} more such remarks")


def _write(frame: pl.DataFrame, read: Sweep) -> None:
    from tutti.results import write

    for name in ("results.parquet", "results.csv"):
        path = write(frame, read.output / name)
        out().print(f"wrote {path}", markup=False)


def _show(frame: pl.DataFrame, plan: SweepPlan) -> None:
    from tutti.cli.swept import swept_table

    if frame.height:
        out().print(swept_table(frame, plan.sweep.keys, _MOST_ROWS))


def _report(session: Session) -> None:
    """Ends with the first of the measurements that gave no result, if there is one."""
    failures = [error for _, error in session.failures]
    if not failures:
        return
    for error in failures[1:_MOST_REMARKS]:
        fail(error)
    if len(failures) > _MOST_REMARKS:
        remark(f"and {len(failures) - _MOST_REMARKS:,} more measurements that gave no result")
    raise failures[0]
