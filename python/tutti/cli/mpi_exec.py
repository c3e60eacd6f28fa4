"""`tutti mpi exec`: an unmodified MPI program whose collectives are schedules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tutti.cli import mpi_options
from tutti.cli.console import remark

if TYPE_CHECKING:
    from tutti.mpi.command import Command
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.underneath import Mpi

_SECONDS_BETWEEN_LOOKS: Final = 0.5
_GRACE_SECONDS: Final = 3.0
"""For a launcher to end by itself where a rank has not begun."""

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] COMMAND...", help="What starts the program, such as mpiexec."),
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", "-p", help="The plan file.", show_default=False)
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Also write the report into this file, as JSON.")
]
Counts = Annotated[
    bool, typer.Option("--counts", help="Count messages and bytes between each two ranks.")
]
OtherRanks = Annotated[
    bool,
    typer.Option(
        "--other-ranks", help="Allow a plan for smaller communicators than the program's first."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no report.")]


def exec_(
    command: Words = None,
    plan: PlanFile = None,
    report: ReportFile = None,
    counts: Counts = False,
    emulate: mpi_options.Emulate = None,
    mpicc: mpi_options.Mpicc = None,
    other_ranks: OtherRanks = False,
    quiet: Quiet = False,
) -> None:
    """Run an MPI program as it is, with the schedules of a plan behind its collectives.

    The library stands before the MPI of the program (LD_PRELOAD, Linux) and is compiled for it at
    the first time. The plan's schedules are proved again before anything is started, once for each
    file. Launchers are mpiexec of Open MPI and MPICH, srun, flux run, aprun, jsrun and similar.
    Put `--` before the program where the launcher has options besides -n. What the plan
    does not cover goes to that MPI and stands in the report, which is written to stderr when the
    program has ended. The exit code is the program's.

    \b
    Examples:
      tutti mpi exec --plan plan.tutti -- mpiexec -n 4 python app.py
      tutti mpi exec --plan plan.tutti --report calls.json -- \\
        mpiexec -n 4 --bind-to none -- python app.py
      tutti mpi exec --plan plan.tutti \\
        --emulate pipelining_postal:alpha_p=4ms,alpha_r=1ms -- \\
        mpiexec -n 4 python app.py
    """
    from tutti.mpi.command import read_command
    from tutti.mpi.launch import common_folder
    from tutti.mpi.proof import read_proved

    file = _named(plan)
    asked = read_command(command or [])
    variables = {"TUTTI_MPI_PLAN": str(file.absolute())} | _distance(emulate)
    variables |= {"TUTTI_MPI_COUNTS": "1"} if counts else {}
    variables |= {"TUTTI_MPI_RANKS": "any"} if other_ranks else {}
    proved = read_proved(file, starting=lambda: remark(f"proving {file} again, once ..."))
    _check_ranks(file, proved, asked, any_counts=other_ranks)
    mpi = _mpi(asked, mpicc)
    library = _library(mpi)
    with common_folder("exec", here=asked.is_here) as folder:
        prefix = folder / "report"
        code = _run(asked, mpi, library, variables | {"TUTTI_MPI_REPORT": str(prefix)}, folder)
        _tell(prefix.with_suffix(".json"), report, quiet=quiet)
    raise typer.Exit(code)


def _named(plan: Path | None) -> Path:
    if plan is None:
        from tutti.files.mistakes import mistake

        raise mistake("no plan", source="tutti mpi exec", expected="--plan FILE",
                      hint="`tutti mpi plan` writes one")  # fmt: skip
    return plan


def _distance(emulate: str | None) -> dict[str, str]:
    if emulate is None:
        return {}
    from tutti.mpi.distance import EMULATE

    found = mpi_options.distance(emulate)
    return {EMULATE: found.variable} if found else {}


def _check_ranks(path: Path, plan: CollectivePlan, command: Command, *, any_counts: bool) -> None:
    """Refuses a plan that has nothing for the ranks of the program, as far as those are known."""
    from tutti.errors import LaunchError, PlanError

    ranks, known = command.ranks, plan.ranks
    if ranks is not None and ranks < 1:
        message = f"{' '.join(command.argv)}: {ranks} ranks: a job has at least 1"
        raise LaunchError(message, kind="no_ranks")
    fits = ranks is None or ranks in known or (any_counts and known[0] <= ranks)
    if fits:
        return
    counts = ", ".join(map(str, known))
    message = f"{path}: has rules for {counts} ranks, and the program is started with {ranks}"
    hint = f"write one: `tutti mpi plan --ranks {ranks} --for-every usual --out ranks{ranks}.tutti`"
    if ranks == 1:  # no plan is for one rank, which exchanges nothing
        hint = f"start it with {counts}, or without a plan"
    elif ranks is not None and known[0] < ranks:
        hint += ", or say --other-ranks if the program's own communicators are smaller"
    fields = {"ranks": ranks, "known": counts}
    raise PlanError(message, kind="ranks", hint=hint, fields=fields)


def _mpi(command: Command, mpicc: str | None) -> Mpi:
    """The MPI of the command, in which its programs can be run with the library."""
    from tutti.mpi.program import check_program
    from tutti.mpi.underneath import find_mpi

    mpi = find_mpi(mpicc, command.launcher)
    for program in command.programs:
        check_program(program, mpi)
    return mpi


def _library(mpi: Mpi) -> Path:
    """The library, compiled now if need be."""
    from tutti.mpi.library import built

    made = built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return made.library


def _run(command: Command, mpi: Mpi, library: Path, variables: dict[str, str], folder: Path) -> int:
    """Runs it with this terminal as its own; Ctrl-C reaches it as well, so it is waited for."""
    from tutti.errors import LaunchError
    from tutti.mpi.launch import ended_by_signals, guard, preloaded

    preload, sign = preloaded(library), folder / "lacking"
    before = guard(preload["LD_PRELOAD"], mpi.machine, sign)
    if not command.places:  # programs that a file names cannot be told one by one
        variables, before = variables | preload, []
    argv, environment = command.with_variables(variables, before=before)
    sys.stdout.flush()
    try:
        process = subprocess.Popen(argv, env=dict(os.environ) | environment)  # noqa: S603
    except OSError as error:
        message = f"{argv[0]}: cannot be started: {error.strerror}"
        raise LaunchError(message, kind="no_launcher", fields={"launcher": argv[0]}) from None
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_by_signals(process.terminate):
            code = _waited(process, sign)
    finally:
        signal.signal(signal.SIGINT, interrupt)
    if sign.is_file():
        said = sign.read_text("utf-8", errors="replace").splitlines()
        raise LaunchError(said[0] if said else "a host lacks the library", kind="lacking")
    return code if code >= 0 else 128 - code


def _waited(process: subprocess.Popen[bytes], sign: Path) -> int:
    """Its exit code; it is ended where a rank has not begun, for which the others might wait."""
    until: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_SECONDS_BETWEEN_LOOKS)
        if until is None and sign.is_file():
            until = time.monotonic() + _GRACE_SECONDS
        if until is not None and time.monotonic() > until:
            process.terminate()


def _tell(written: Path, to: Path | None, *, quiet: bool) -> None:
    """Shows what the library did, and keeps it where it is wanted."""
    from tutti.cli.mpi_report import show_report
    from tutti.mpi.report import Report

    if not written.is_file():
        remark("no report: no rank ended with MPI_Finalize while the library was loaded")
        return
    report = Report.read(written)
    report.data["proved"] = True  # or nothing would have been started
    if to is not None:
        report.write(to)
    if not quiet:
        show_report(report)
