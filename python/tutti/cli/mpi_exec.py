"""`tutti mpi exec`: runs an unmodified MPI program with schedules for its collectives."""

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
from tutti.study.console import remark
from tutti.study.document import active

if TYPE_CHECKING:
    from tutti.mpi.command import Command
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.underneath import Mpi

_POLL_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 3.0
"""Time for a launcher to exit by itself if a rank could not start."""

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] COMMAND...", help="Command that starts ranks, such as mpiexec."),
]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="The plan file.", show_default=False)]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Output file of the report, as JSON; `-` means stderr."
    ),
]
Counts = Annotated[
    bool, typer.Option("--counts", help="Count messages and bytes for each pair of ranks.")
]
OtherRanks = Annotated[
    bool,
    typer.Option("--other-ranks", help="Allow a plan for communicators smaller than the job only."),
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
    """Run an unmodified MPI program with the schedules of a plan for its collectives.

    The library is preloaded in front of the program's MPI library (LD_PRELOAD, Linux); the first
    run compiles it. The first run of a plan also verifies its schedules. Launchers are mpiexec of
    Open MPI and MPICH, srun, flux run, aprun, jsrun and similar. Put `--` before the program if the
    launcher has other options than -n. Calls that the plan does not cover go to the MPI library.
    They are listed in the report on stderr after the program has ended. The exit code is that of
    the program.

    \b
    Examples:
      tutti mpi exec --plan plan.tutti -- mpiexec -n 4 python app.py
      tutti mpi exec --plan plan.tutti --out calls.json -- \\
        mpiexec -n 4 --bind-to none -- python app.py
      tutti mpi exec --plan plan.tutti \\
        --emulate pipelining_postal:alpha_p=4ms,alpha_r=1ms -- \\
        mpiexec -n 4 python app.py
    """
    _refuse_json()
    from tutti.mpi.command import read_command
    from tutti.mpi.launch import common_folder
    from tutti.mpi.proof import read_proved

    file = _named(plan)
    parsed = read_command(command or [])
    variables = {"TUTTI_MPI_PLAN": str(file.absolute())} | _distance(emulate)
    variables |= {"TUTTI_MPI_COUNTS": "1"} if counts else {}
    variables |= {"TUTTI_MPI_RANKS": "any"} if other_ranks else {}
    proved = read_proved(file, starting=lambda: remark(f"verifying {file}, once ..."))
    _check_ranks(file, proved, parsed, any_counts=other_ranks)
    mpi = _mpi(parsed, mpicc)
    library = _library(mpi)
    with common_folder("exec", here=parsed.is_here) as folder:
        prefix = folder / "report"
        code = _run(parsed, mpi, library, variables | {"TUTTI_MPI_REPORT": str(prefix)}, folder)
        _show_report(prefix.with_suffix(".json"), report, quiet=quiet)
    raise typer.Exit(code)


def _refuse_json() -> None:
    """Refuses `--json`: stdout belongs to the program."""
    if active():
        from tutti.base.files.mistakes import mistake

        raise mistake("is not possible here: stdout belongs to the program", source="--json",
                      expected="no --json before the program",
                      hint="--out FILE writes the report as JSON")  # fmt: skip


def _named(plan: Path | None) -> Path:
    if plan is None:
        from tutti.base.files.mistakes import mistake

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
    """Rejects a plan without rules for the ranks of the program, if their number is known."""
    from tutti.mpi.errors import LaunchError, PlanError

    ranks, known = command.ranks, plan.ranks
    if ranks is not None and ranks < 1:
        message = f"{' '.join(command.argv)}: {ranks} ranks: expected at least 1"
        raise LaunchError(message, kind="no_ranks")
    fits = ranks is None or ranks in known or (any_counts and known[0] <= ranks)
    if fits:
        return
    counts = ", ".join(map(str, known))
    message = f"{path}: has rules for {counts} ranks, but the program is started with {ranks}"
    hint = f"write one: `tutti mpi plan --ranks {ranks} --for-every usual --out ranks{ranks}.tutti`"
    if ranks == 1:  # a single rank sends no messages, so no plan is for it
        hint = f"start it with {counts}, or without a plan"
    elif ranks is not None and known[0] < ranks:
        hint += ", or use --other-ranks if the program's communicators are smaller"
    fields = {"ranks": ranks, "known": counts}
    raise PlanError(message, kind="ranks", hint=hint, fields=fields)


def _mpi(command: Command, mpicc: str | None) -> Mpi:
    """Finds the MPI library of the command, and checks that libtutti_mpi can run with it."""
    from tutti.mpi.program import check_program
    from tutti.mpi.underneath import find_mpi

    mpi = find_mpi(mpicc, command.launcher)
    for program in command.programs:
        check_program(program, mpi)
    return mpi


def _library(mpi: Mpi) -> Path:
    """Returns the library; compiles it if necessary."""
    from tutti.mpi.library import built

    made = built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return made.library


def _run(command: Command, mpi: Mpi, library: Path, variables: dict[str, str], folder: Path) -> int:
    """Runs the command on this terminal. It handles Ctrl-C itself, so it is waited for."""
    from tutti.mpi.errors import LaunchError
    from tutti.mpi.launch import ended_by_signals, guard, preloaded

    preload, sign = preloaded(library), folder / "lacking"
    before = guard(preload["LD_PRELOAD"], mpi.machine, sign)
    if not command.places:  # the programs are named in a file, and cannot be guarded individually
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
        problem = sign.read_text("utf-8", errors="replace").splitlines()
        raise LaunchError(
            problem[0] if problem else "a host cannot read libtutti_mpi", kind="lacking"
        )
    return code if code >= 0 else 128 - code


def _waited(process: subprocess.Popen[bytes], sign: Path) -> int:
    """Returns the exit code; ends the command if a rank could not start, as others would hang."""
    until: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_SECONDS)
        if until is None and sign.is_file():
            until = time.monotonic() + _GRACE_SECONDS
        if until is not None and time.monotonic() > until:
            process.terminate()


def _show_report(written: Path, to: Path | None, *, quiet: bool) -> None:
    """Prints the report of the library, and stores it if requested."""
    from tutti.cli.mpi_report import show_report
    from tutti.mpi.report import Report

    if not written.is_file():
        remark("no report: no rank called MPI_Finalize with the library loaded")
        return
    report = Report.read(written)
    report.data["proved"] = True  # the run required it
    if to == Path("-"):
        sys.stderr.write(report.to_json())
    elif to is not None:
        report.write(to)
    if not quiet:
        show_report(report)
