"""The study of a sweep: missing measurements, run by workers, shown and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.extras import installed, requires
from tutti.schedules.proving import capped
from tutti.study.console import fail, remark
from tutti.study.document import withhold
from tutti.study.progress import Progress
from tutti.study.study import Study
from tutti.sweeps.designs import DesignPlan
from tutti.sweeps.execution import weight
from tutti.sweeps.plan import plan_sweep
from tutti.sweeps.session import Session
from tutti.sweeps.worker import Item
from tutti.view.quantity import format_share, plural

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tutti.sweeps.executors import Crew
    from tutti.sweeps.files import Sweep
    from tutti.view.view import View

_MOST_ERRORS = 12


def show_status(sweep: Sweep, stored: Path, *, verify: bool = True) -> None:
    """Shows how much of a sweep is finished.

    Args:
        sweep: The sweep.
        stored: The folder of finished measurements.
        verify: Whether schedules are verified before they are timed.

    Raises:
        ConfigError: A point of the sweep is invalid.
        CacheError: The cache cannot be read.
    """
    from tutti.sweeps.view import status_view

    session = Session(plan_sweep(sweep, verify=verify), stored)
    for text in session.found.remarks:
        remark(text)
    Study().present(status_view(session, stored))


def run(
    sweep: Sweep,
    workers: AbstractContextManager[Crew | None],
    stored: Path,
    *,
    is_fresh: bool = False,
    verify: bool = True,
    report: bool = True,
    command: str = "",
) -> None:
    """Runs the missing measurements of a sweep, and shows and writes all.

    Args:
        sweep: The sweep.
        workers: The workers; a context of None in a process that was itself a worker.
        stored: The folder of finished measurements.
        is_fresh: Whether to measure everything again.
        verify: Whether to verify schedules before they are timed.
        report: Whether to write a page, if the sweep has one.
        command: The command that resumes the sweep; by default `tutti sweep` with the file.

    Raises:
        ConfigError: A point of the sweep is invalid, or the output folder cannot be created.
        CacheError: The cache is unusable.
        VerificationError: A schedule is incorrect.
        SimulationError: A measurement failed; the others were written.
        Exit: Ctrl-C interrupted the measurements; what is finished was written.
    """
    with workers as crew:
        if crew is None:
            withhold()
            return
        with Progress("laying out", handles_interrupts=True):
            plan = plan_sweep(sweep, verify=verify)
        study = Study[Item](sweep.output, "measurement", extra=None)
        session = Session(plan, stored, is_fresh=is_fresh)
        _announce(session, stored)
        _run(study, session, crew)
    study.present(_view(session, has_table=not study.is_interrupted, report=report))
    if study.is_interrupted:
        remark(f"finished measurements are in {stored}")
        again = command or f"tutti sweep {sweep.source}"
        remark(f"to resume, run the same command again: {again}")
        study.end(session.finished, session.total)
    for text in session.remarks(skipped=not verify):
        remark(text)
    _raise_failure(session)


def _view(session: Session, *, has_table: bool, report: bool) -> View:
    """Returns what a sweep shows: the fastest schedules, the steps, or designs of networks."""
    plan = session.plan
    if not isinstance(plan, DesignPlan):
        from tutti.sweeps.view import sweep_view

        return sweep_view(session.frame(), plan.sweep, has_table=has_table)
    from tutti.sweeps.design_view import design_view

    is_reported = report and installed("reports")
    if report and not is_reported:
        remark(f"no report is written: it {requires('reports')}")
    return design_view(session.frame(), plan.sweep, has_table=has_table, report=is_reported)


def _announce(session: Session, stored: Path) -> None:
    for texts in (session.plan.remarks, session.found.remarks):
        for text in capped(texts, "remarks"):
            remark(text)
    cached = f", {session.finished:,} of them from {stored}" if session.finished else ""
    points = plural(len(session.plan.sweep.points), "point")
    remark(f"{points}, {plural(session.total, 'measurement')}{cached}")


def _run(study: Study[Item], session: Session, crew: Crew) -> None:
    """Runs the missing items."""
    missing = session.missing
    items = [*missing.proofs, *missing.measurements]
    total = len(missing.measurements)

    def took(seconds: float) -> str:
        share = session.outcome.core_seconds / (seconds * crew.workers)
        workers = plural(crew.workers, "worker")
        return (
            f"{plural(total, 'measurement')} in {seconds:.1f} s by {workers}; simulation and "
            f"verification took {format_share(min(share, 1))} of the worker time"
        )

    if items:
        study.several(
            "sweeping",
            lambda done: session.run(crew, done),
            planned=total,
            work=sum(map(weight, items)),
            work_of=weight,
            counts=lambda item: item.size_bytes is not None,
            took=took,
        )


def _raise_failure(session: Session) -> None:
    """Raises the first error of a measurement, and prints the others, if there are any."""
    failures = [error for _, error in session.failures]
    for error in failures[1:_MOST_ERRORS]:
        fail(error)
    if len(failures) > _MOST_ERRORS:
        remark(f"{len(failures) - _MOST_ERRORS:,} more failed measurements")
    if failures:
        raise failures[0]
