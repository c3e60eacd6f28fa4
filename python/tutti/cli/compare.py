"""`tutti compare`: the fastest algorithm at each rank count and size, its lead, and the reason."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.errors import ExitCode
from tutti.base.files.extras import check_extra, installed, requires
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.ranked import ranked_table, region_rows, spread_table, winners
from tutti.collectives.experiment import Rows, measure, parts, plan, prove, run_once
from tutti.collectives.frames import write
from tutti.mpi.bits import bits_differ, is_exact
from tutti.schedules.proving import remarks
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import folder
from tutti.study.progress import Progress
from tutti.view.quantity import plural

if TYPE_CHECKING:
    import polars as pl

    from tutti.collectives.experiment import ExperimentPlan, TimedSchedule
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.view.comparison import Measurement, Region
    from tutti.schedules.proving import Unverified

_DRAWN_RANKS = 64
"""Ranks above which no timeline is drawn: it would be unreadable."""


def compare(
    file: options.OptionalExperiment = None,
    begin: options.Begin = None,
    end: options.End = None,
    factor: options.Factor = None,
    repetitions: options.Repetitions = None,
    datatype: options.Datatype = None,
    ranks: options.Ranks = None,
    algorithm: options.Algorithms = None,
    platform: options.Platform = None,
    collective: options.Collective = None,
    model: options.Model = None,
    changes: options.Changes = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Rows of the table; 0 shows all.")] = 20,
    threads: options.Threads = 0,
    verify: options.Verify = True,
    to: options.Out = None,
    report: Annotated[
        bool | None,
        typer.Option(
            "--report/--no-report",
            help="Write the HTML report and the trace. Default: if tutti[reports] is installed.",
        ),
    ] = None,
) -> None:
    """Compare algorithms: the fastest at each rank count and size, its lead, and the reason.

    Writes results.parquet, results.csv, report.html and a Perfetto trace of one winner's run to
    the output folder. Options override keys of the file. Sizes follow nccl-tests: a bare number is
    bytes, and K, M and G are KiB, MiB and GiB.

    \b
    Examples:
      tutti compare experiment.toml
      tutti compare --platform dgx_h100 --ranks 8 -b 8 -e 1GiB
      tutti compare experiment.toml -b 8 -e 128MiB -f 2 --ranks 4:1024
      tutti compare experiment.toml --algorithm ring --algorithm swing
      tutti compare experiment.toml --platform loggp_cluster --out out/loggp
    """
    if report:
        check_extra("reports")
    overrides = options.Overrides(
        begin=begin,
        end=end,
        factor=factor,
        repetitions=repetitions,
        datatype=datatype,
        ranks=ranks,
        algorithms=algorithm,
        platform=platform,
        collective=collective,
        model=model,
        changes=changes,
        out=to,
    )
    experiment = overrides.load(file)
    for text in experiment.machine().remarks:
        remark(text)
    laid_out = _planned(experiment)
    folder(experiment.output)
    unverified = _prove(laid_out, skip=not verify)
    frame, interrupted = _measured(laid_out, threads)
    record_table("results", frame)
    files = _write_results(frame, experiment.output)
    if interrupted:
        rows = f"{frame.height:,} of {len(laid_out.points):,} measurements"
        remark(f"interrupted: {rows} are finished, in {experiment.output}")
        wrote(*files, wrap=True)
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    found = winners(frame)
    _show(found, laid_out, top)
    for line in remarks(laid_out, unverified):
        remark(line)
    if report is None and not installed("reports"):
        remark(f"no report is written: it {requires('reports')}")
    elif report is None or report:
        with Progress("writing the report", writes=True):
            files += _write_report(frame, found, laid_out)
    wrote(*files, wrap=True)


def _planned(experiment: Experiment) -> ExperimentPlan:
    with Progress("laying out", work=parts(experiment)) as progress:
        return plan(experiment, done=progress.advance)


def _prove(plan: ExperimentPlan, *, skip: bool) -> list[Unverified]:
    """Verifies the schedules; returns the schedules that were not verified."""
    started = time.monotonic()
    finished = 0
    work = sum(case.work for case in plan.cases)
    with Progress("verifying", work=work, total=len(plan.cases)) as progress:

        def done(case: TimedSchedule) -> None:
            nonlocal finished
            finished += 1
            progress.advance(case.work, finished)

        unverified = prove(plan, skip=skip, done=done)
    took = time.monotonic() - started
    if not skip:
        verified = plural(len(plan.cases) - len(unverified), "schedule")
        remark(f"{verified} verified in {took:.1f} s")
    return unverified


def _measured(plan: ExperimentPlan, threads: int) -> tuple[pl.DataFrame, bool]:
    """Returns the rows, in order, and whether Ctrl-C interrupted the measurement."""
    rows = Rows(plan)
    total = len(plan.points)
    remark(plural(total, "measurement"))
    started = time.monotonic()
    with Progress("simulating", work=plan.work, total=total, handles_interrupts=True) as progress:
        try:
            measure(
                plan,
                rows,
                done=lambda work: progress.advance(work, rows.count),
                threads=threads,
            )
        except KeyboardInterrupt:
            return rows.frame(), True
    took = time.monotonic() - started
    remark(f"{rows.messages:,} messages simulated in {took:.1f} s")
    return rows.frame(), False


def _write_results(frame: pl.DataFrame, folder: Path) -> list[Path]:
    return [write(frame, folder / f"results.{suffix}") for suffix in ("parquet", "csv")]


def _show(found: list[Region], plan: ExperimentPlan, top: int) -> None:
    experiment = plan.experiment
    record(
        collective=experiment.collective,
        platform=experiment.platform.name,
        model=experiment.model,
    )
    record_table("fastest", lambda: region_rows(found, plan))
    console = out()
    console.print(
        f"[bold]{experiment.collective}[/] on [bold]{experiment.platform.name}[/], "
        f"model {experiment.model}: fastest by rank count and size"
    )
    order = "largest lead first" if top else "by rank count"
    console.print(
        f"{order}; figures are for the size with the largest lead",
        style="dim",
    )
    console.print(ranked_table(found, plan, top))
    if 0 < top < len(found):
        console.print(f"{len(found) - top} more rows with smaller leads; --top 0 shows all")
    spread = spread_table(found, top)
    if spread is not None:
        console.print(spread)
    _show_bits(found, plan)


def _show_bits(found: list[Region], plan: ExperimentPlan) -> None:
    """Lists verified winners whose results differ between ranks: MPI requires identical bits."""
    if plan.experiment.collective != "all_reduce" or is_exact(plan.experiment.datatype):
        return
    best = {(one.clearest.winner.schedule, one.clearest.winner.ranks) for one in found}
    for name, ranks in sorted(best):
        laid_out = plan.schedule(name, ranks)
        if laid_out.is_verified and bits_differ(laid_out):
            remark(
                f"{name} on {ranks} ranks: results differ in bits between ranks; `tutti mpi plan` "
                f"and `tutti tune` refuse it for {plan.experiment.datatype}"
            )


def _write_report(frame: pl.DataFrame, found: list[Region], plan: ExperimentPlan) -> list[Path]:
    from tutti.collectives.view.comparison_page import write_report
    from tutti.collectives.view.perfetto import write_trace

    experiment = plan.experiment
    shown = _example(found)
    size = Size(bytes=shown.size_bytes)
    laid_out = plan.schedule(shown.schedule, shown.ranks)
    # Verified above, unless skipped.
    run = run_once(experiment, laid_out, size, verify=False, record=True)
    note = f"The timeline shows {shown.schedule} on {shown.ranks} ranks with {size}."
    folder = experiment.output
    report = write_report(
        folder / "report.html",
        frame,
        experiment.facts(),
        timeline=run.timeline,
        messages=run.messages_frame,
        title=experiment.title or None,
        notes=[note],
    )
    trace = write_trace(folder / "winner.pftrace", run.timeline, run.messages_frame)
    return [report, trace]


def _example(found: list[Region]) -> Measurement:
    """Returns the run to draw: the largest lead on at most 64 ranks, else the fewest ranks."""
    small = [region for region in found if region.ranks <= _DRAWN_RANKS]
    if small:
        return max(small, key=lambda region: region.clearest.margin or 0.0).clearest.winner
    return min(found, key=lambda region: region.ranks).clearest.winner
