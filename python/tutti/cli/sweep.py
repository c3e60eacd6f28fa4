"""`tutti sweep`: runs an experiment over a grid of parameters, and resumes an interrupted sweep."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.errors import ExitCode
from tutti.cli import options
from tutti.study.console import fail, out, record, record_table, remark, wrote
from tutti.study.document import withhold
from tutti.study.progress import Progress
from tutti.view.quantity import format_share, plural

if TYPE_CHECKING:
    import polars as pl

    from tutti.sweeps.executors import Crew
    from tutti.sweeps.files import Sweep
    from tutti.sweeps.plan import SweepPlan
    from tutti.sweeps.session import Session
    from tutti.sweeps.steps import StepPlan

_MOST_REMARKS = 12
_MOST_ROWS = 20


class Executor(enum.StrEnum):
    """What executes the sweep."""

    PROCESSES = "processes"
    DASK = "dask"
    MPI = "mpi"


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The sweep file (TOML).", show_default=False)
    ],
    executor: Annotated[
        Executor,
        typer.Option(help="Executor: processes of this machine, Dask, or the ranks of mpiexec."),
    ] = Executor.PROCESSES,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Workers. Default: one per core."),
    ] = None,
    dask_address: Annotated[
        str | None,
        typer.Option(
            "--dask-address",
            metavar="ADDRESS",
            help="A Dask scheduler, such as tcp://host:8786. Default: start one.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of finished measurements. Default: OUT/cache."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore the cache: measure everything again.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Print how much is finished, and exit.")
    ] = False,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Run a sweep: an experiment or a training step with several values for some of its keys.

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
        prepare(executor.value, dask_address)

    from tutti.study.files import folder
    from tutti.sweeps.files import load_sweep
    from tutti.sweeps.plan import plan_sweep
    from tutti.sweeps.session import Session

    read = load_sweep(file, {"output": str(to)} if to else {})
    stored = cache or read.output / "cache"
    if status:
        _status(Session(plan_sweep(read, verify=verify), stored), stored)
        return
    with crew(executor.value, workers, dask_address) as at_work:
        if at_work is None:  # a worker rank of mpiexec, whose work is finished
            withhold()
            return
        with Progress("laying out", handles_interrupts=True):
            plan = plan_sweep(read, verify=verify)
        folder(read.output)
        session = Session(plan, stored, is_fresh=fresh)
        _announce(session, stored)
        interrupted = _run(session, at_work)
    frame = session.frame()
    record_table("results", frame)
    _write(frame, read)
    if interrupted:
        left = len(session.missing.measurements)
        remark(f"interrupted: {left:,} measurements are missing; the others are in {stored}")
        remark(f"to resume, run the same command again: tutti sweep {file}")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    _show(frame, plan)
    for line in session.remarks(skipped=not verify):
        remark(line)
    _report(session)


def _status(session: Session, stored: Path) -> None:
    for text in session.found.remarks:
        remark(text)
    total = len({item.key for item in session.plan.measurements})
    left = len(session.missing.measurements)
    record(
        points=len(session.plan.sweep.points),
        measurements=total,
        finished=total - left,
        missing=left,
        cache=stored,
    )
    console = out()
    points = plural(len(session.plan.sweep.points), "point")
    console.print(f"{points}, {plural(total, 'measurement')}")
    console.print(f"{total - left:,} finished, in {stored}; {left:,} missing", markup=False)


def _announce(session: Session, stored: Path) -> None:
    _remarks(session.plan.remarks)
    _remarks(session.found.remarks)
    total = len({item.key for item in session.plan.measurements})
    left = len(session.missing.measurements)
    known = f", {total - left:,} of them from {stored}" if left < total else ""
    remark(f"{len(session.plan.sweep.points):,} points, {total:,} measurements{known}")


def _run(session: Session, crew: Crew) -> bool:
    """Runs the missing items; returns whether Ctrl-C interrupted them."""
    from tutti.sweeps.execution import weight

    missing = session.missing
    items = [*missing.proofs, *missing.measurements]
    if not items:
        return False
    started = time.monotonic()
    total = len(missing.measurements)
    finished = 0
    with Progress(
        "sweeping", work=sum(weight(item) for item in items), total=total, handles_interrupts=True
    ) as progress:

        def count(item: object) -> None:
            nonlocal finished
            finished += item.size_bytes is not None  # type: ignore[attr-defined]
            progress.advance(weight(item), finished)  # type: ignore[arg-type]

        try:
            session.run(crew, count)
        except KeyboardInterrupt:
            return True
    took = time.monotonic() - started
    share = session.outcome.core_seconds / (took * crew.workers)
    remark(
        f"{plural(total, 'measurement')} in {took:.1f} s by {plural(crew.workers, 'worker')}; "
        f"simulation and verification took {format_share(min(share, 1))} of the worker time"
    )
    return False


def _remarks(texts: list[str]) -> None:
    for text in texts[:_MOST_REMARKS]:
        remark(text)
    if len(texts) > _MOST_REMARKS:
        remark(f"{len(texts) - _MOST_REMARKS:,} more remarks")


def _write(frame: pl.DataFrame, read: Sweep) -> None:
    from tutti.collectives.frames import write

    for name in ("results.parquet", "results.csv"):
        wrote(write(frame, read.output / name), wrap=True)


def _show(frame: pl.DataFrame, plan: SweepPlan | StepPlan) -> None:
    from tutti.cli.swept import steps_table, swept_table

    if frame.height:
        table = steps_table if plan.sweep.template.is_training else swept_table
        out().print(table(frame, plan.sweep.keys, _MOST_ROWS))


def _report(session: Session) -> None:
    """Raises the first error of a measurement, and prints the others, if there are any."""
    failures = [error for _, error in session.failures]
    if not failures:
        return
    for error in failures[1:_MOST_REMARKS]:
        fail(error)
    if len(failures) > _MOST_REMARKS:
        remark(f"{len(failures) - _MOST_REMARKS:,} more failed measurements")
    raise failures[0]
