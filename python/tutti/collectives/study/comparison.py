"""The study of a comparison: the schedules of an experiment, verified, timed and ranked."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tutti.base.files.extras import installed, requires
from tutti.base.units import Size
from tutti.collectives.bounds import bound_without_multicast
from tutti.collectives.case import has_energy
from tutti.collectives.comparison import cases
from tutti.collectives.experiment import Rows, measure, parts, plan, prove, run_once
from tutti.collectives.library import one_adapter, with_baselines
from tutti.collectives.view.comparison import comparison_view
from tutti.schedules.bits import bits_differ, is_exact
from tutti.schedules.proving import remarks
from tutti.study.console import remark
from tutti.study.interrupts import end_soon
from tutti.study.progress import Progress
from tutti.study.study import Study
from tutti.view.quantity import format_limit, format_size, format_time, plural
from tutti.view.view import Data, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.collectives.comparison import Measurement, Region
    from tutti.collectives.experiment import ExperimentPlan
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.result import Run
    from tutti.schedules.proving import Unverified

_DRAWN_RANKS = 64
"""Ranks above which no timeline is drawn: it would be unreadable."""
_DRAWN_MESSAGES = 30_000
"""Messages above which no timeline is drawn: its trace would take longer than the comparison."""
_MOST_REPEATED = 500_000
"""Most messages of a run that is repeated for the parts of its time: two runs of up to 1 s."""


def compare(
    experiment: Experiment,
    *,
    top: int = 20,
    threads: int = 0,
    verify: bool = True,
    report: bool | None = None,
    prune: bool = True,
) -> None:
    """Compares the algorithms of an experiment, and shows and writes the comparison.

    Args:
        experiment: The experiment.
        top: The number of rows in the terminal; 0 for all.
        threads: The number of threads; 0 for one per core.
        verify: Whether to verify schedules before they are timed.
        report: Whether to write the report and the trace; None if the extra is installed.
        prune: Whether to leave out large schedules that cannot be among the two fastest.

    Raises:
        ConfigError: A named algorithm fits none of the rank counts, or the output folder cannot be
            created.
        LayoutError: No algorithm supports the parts of every size.
        VerificationError: A schedule is incorrect.
        SimulationError: A run cannot finish.
        Exit: Ctrl-C interrupted the measurement; what is finished was written.
    """
    for text in (*experiment.remarks, *experiment.machine().remarks):
        remark(text)
    with Progress("laying out", work=parts(experiment)) as progress:
        laid_out = plan(experiment, done=progress.advance, running=progress.name, prune=prune)
    study: Study[Any] = Study(experiment.output, "measurement", extra=None)
    unverified = _prove(study, laid_out, skip=not verify)
    rows = _measured(study, laid_out, threads)
    frame = with_baselines(laid_out, rows.frame())
    if study.is_interrupted:
        _end_interrupted(study, laid_out, frame)
    compared, is_reported = cases(frame), installed("reports") if report is None else report
    regions = [region for case in compared for region in case.regions()]
    drawn = _example(regions)
    view = comparison_view(
        frame,
        experiment.facts(),
        cases=compared,
        plan=laid_out,
        run=functools.cache(lambda: _run(laid_out, drawn)) if drawn else None,
        title=experiment.title or "",
        remarks=[_drawn(laid_out, drawn)],
        top=top,
        report=is_reported,
        energies=rows.energies(),
    )
    study.present(view)
    texts = [*_differing_bits(regions, laid_out), *remarks(laid_out, unverified)]
    texts += [] if drawn else [_drawn(laid_out, None)]
    texts += _multicasts(laid_out, regions[-1].decisions[-1].winner)
    for text in texts + _of_library(laid_out, frame):
        remark(text)
    if not is_reported and report is None:
        remark(f"no report is written: it {requires('reports')}")


def _end_interrupted(study: Study[Any], plan: ExperimentPlan, frame: pl.DataFrame) -> None:
    """Writes the finished measurements, and exits.

    Raises:
        Exit: Always.
    """
    study.present(View(data=[Data("results", lambda: frame, ["results.parquet", "results.csv"])]))
    if has_energy(plan.request.platform):
        end_soon()  # runs in threads of Python do not notice Ctrl-C
    study.end(frame.height, len(plan.points))


def _of_library(plan: ExperimentPlan, frame: pl.DataFrame) -> list[str]:
    """Returns where rows differ from the library's own model, and rings on one adapter."""
    if plan.library is None:
        return []
    experiment = plan.experiment
    single = [
        text
        for name in experiment.algorithms or ()
        if (text := one_adapter(plan.library.model, name, experiment.ranks[-1]))
    ]
    differences = []
    if plan.request.is_repeatable:
        differences = plan.library.differences(frame, functools.partial(_repeated, plan))
    bounds = dict(
        zip(frame.select("ranks", "size_bytes").iter_rows(), frame["bound_ps"], strict=True)
    )
    return [*single, *plan.library.notes, *differences, *plan.library.beyond(bounds)]


def _multicasts(plan: ExperimentPlan, fastest: Measurement) -> list[str]:
    """Returns the bound of an all_gather without multicasts, if the fastest has none."""
    case = plan.case(fastest.schedule, fastest.ranks, fastest.size_bytes)
    size, experiment = Size(bytes=fastest.size_bytes), plan.experiment
    given = (case.schedule, experiment.machine(), size, experiment.datatype)
    bound = bound_without_multicast(*given)
    if not bound or not fastest.bound_ps or not fastest.bound_ps < bound <= fastest.time_ps:
        return []
    text = f"switches can multicast: the bound of {fastest.ranks} ranks at {size} is "
    text += f"{format_time(fastest.bound_ps)}. Without multicasts it is {format_time(bound)}, "
    return [f"{text}{format_limit(bound / fastest.time_ps)} % of {fastest.schedule}"]


def _repeated(plan: ExperimentPlan, name: str, ranks: int, size: int) -> Run | str:
    """Returns the run of a result, or the command that repeats it if it takes long."""
    case = plan.case(name, ranks, size)
    if (case.messages or 0) > _MOST_REPEATED:
        where = f"{ranks} ranks and {format_size(size)}"
        return f"`tutti run {name}` with {where} shows the parts of the difference"
    return run_once(plan.experiment, case, Size(bytes=size), verify=False)


def _prove(study: Study[Any], plan: ExperimentPlan, *, skip: bool) -> list[Unverified]:
    """Verifies the schedules; returns the schedules that were not verified."""
    if skip:
        return prove(plan, skip=True)

    def took(seconds: float) -> str:
        verified = sum(case.schedule.base.is_verified for case in plan.cases)
        return f"{plural(verified, 'schedule')} verified in {seconds:.1f} s"

    _, unverified = study.several(
        "verifying",
        lambda done: prove(plan, done=done),
        planned=len(plan.cases),
        work=sum(case.work for case in plan.cases),
        work_of=lambda case: case.work,
        took=took,
    )
    study.end(0, len(plan.points))
    return unverified or []


def _measured(study: Study[Any], plan: ExperimentPlan, threads: int) -> Rows:
    """Returns the finished measurements."""
    rows, total = Rows(plan), len(plan.points)
    remark(plural(total, "measurement"))
    study.several(
        "simulating",
        lambda done: measure(plan, rows, done=done, threads=threads),
        planned=total,
        work=plan.work,
        work_of=int,
        took=lambda seconds: f"{rows.messages:,} messages simulated in {seconds:.1f} s",
    )
    return rows


def _run(plan: ExperimentPlan, drawn: Measurement) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the timeline and the messages of a measurement, whose schedule is verified."""
    case, size = plan.case(drawn.schedule, drawn.ranks, drawn.size_bytes), drawn.size_bytes
    run = run_once(plan.experiment, case, Size(bytes=size), verify=False, record=True)
    return run.timeline, run.messages_frame


def _example(regions: Sequence[Region]) -> Measurement | None:
    """Returns the run to draw: the largest lead on at most 64 ranks, else the fewest ranks.

    None if all have too many messages.
    """
    few = [one for one in regions if (one.clearest.winner.messages or 0) <= _DRAWN_MESSAGES]
    small = [region for region in few if region.ranks <= _DRAWN_RANKS]
    if small:
        return max(small, key=lambda region: region.clearest.margin or 0.0).clearest.winner
    return min(few, key=lambda region: region.ranks).clearest.winner if few else None


def _drawn(plan: ExperimentPlan, one: Measurement | None) -> str:
    if one is None:
        most = f"{_DRAWN_MESSAGES:,} messages"
        return f"no timeline is drawn: each winner has more than {most}; `tutti run` draws them"
    size, case = Size(bytes=one.size_bytes), plan.case(one.schedule, one.ranks, one.size_bytes)
    return f"the timeline shows {case.title} on {one.ranks} ranks with {size}"


def _differing_bits(regions: Sequence[Region], plan: ExperimentPlan) -> list[str]:
    """Returns verified winners whose results differ between ranks: MPI requires identical bits."""
    if plan.experiment.collective != "all_reduce" or is_exact(plan.experiment.datatype):
        return []
    winners = [region.clearest.winner for region in regions]
    names = sorted({(winner.schedule, winner.ranks) for winner in winners})
    schedules = [plan.schedule(*name) for name in names]
    return [
        f"{schedule.name} on {schedule.ranks} ranks: results differ in bits between ranks; `tutti "
        f"mpi plan` and `tutti tune` refuse it for {plan.experiment.datatype}"
        for schedule in schedules
        if schedule.is_verified and bits_differ(schedule)
    ]
