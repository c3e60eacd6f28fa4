"""`tutti mpi exec`: an unmodified MPI program whose collectives are schedules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.console import remark

if TYPE_CHECKING:
    from tutti.mpi.command import Command
    from tutti.mpi.host import Host
    from tutti.mpi.plan import Plan

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] COMMAND...", help="What starts the program, such as mpiexec."),
]


def exec_(
    command: Words = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", "-p", help="The plan file.", show_default=False),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Also write the report into this file, as JSON."),
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Count messages and bytes between each two ranks.")
    ] = False,
    emulate: Annotated[
        str | None,
        typer.Option(
            "--emulate",
            metavar="MODEL",
            help="Keep messages under way as on a cluster: pipelining_postal:alpha_p=1ms,...",
        ),
    ] = None,
    mpicc: Annotated[
        str | None,
        typer.Option("--mpicc", help="The compiler wrapper of the program's MPI, if not beside."),
    ] = None,
    other_ranks: Annotated[
        bool,
        typer.Option(
            "--other-ranks", help="Allow a plan for smaller communicators than the program's first."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no report.")] = False,
) -> None:
    """Run an MPI program as it is, with the schedules of a plan behind its collectives.

    The library stands before the MPI of the program (LD_PRELOAD, Linux) and is compiled for it at
    the first time. What the plan does not cover goes to that MPI and stands in the report, which is
    written to stderr when the program has ended. The exit code is the program's.

    \b
    Examples:
      tutti mpi exec --plan plan.tutti -- mpiexec -n 8 ./app
      tutti mpi exec --plan plan.tutti --report calls.json -- mpiexec -n 4 python app.py
      tutti mpi exec --plan plan.tutti --emulate pipelining_postal:alpha_p=4ms,alpha_r=1ms -- \\
        mpiexec -n 16 ./app
    """
    from tutti.config.mistakes import mistake
    from tutti.mpi.command import read_command
    from tutti.mpi.plan import Plan

    if plan is None:
        raise mistake("no plan", source="tutti mpi exec", expected="--plan FILE",
                      hint="`tutti mpi plan` writes one")  # fmt: skip
    asked = read_command(command or [])
    variables = {"TUTTI_MPI_PLAN": str(plan.absolute())} | _distance(emulate)
    _check_ranks(plan, Plan.read(plan), asked, any_counts=other_ranks)
    variables |= _library(asked, mpicc)
    variables |= {"TUTTI_MPI_COUNTS": "1"} if counts else {}
    with tempfile.TemporaryDirectory(prefix="tutti-") as folder:
        prefix = Path(folder) / "report"
        code = _run(asked, variables | {"TUTTI_MPI_REPORT": str(prefix)})
        _tell(prefix.with_suffix(".json"), report, quiet=quiet)
    raise typer.Exit(code)


def _distance(emulate: str | None) -> dict[str, str]:
    if emulate is None:
        return {}
    from tutti.mpi.distance import EMULATE, Distance

    return {EMULATE: Distance.parse(emulate).variable}


def _check_ranks(path: Path, plan: Plan, command: Command, *, any_counts: bool) -> None:
    """Refuses a plan that has nothing for the ranks of the program, as far as those are known."""
    from tutti.errors import PlanError

    ranks, known = command.ranks, plan.ranks
    fits = ranks is None or ranks in known or (any_counts and known[0] <= ranks)
    if fits:
        return
    counts = ", ".join(map(str, known))
    message = f"{path}: has rules for {counts} ranks, and the program is started with {ranks}"
    hint = f"write one for {ranks}: `tutti mpi plan --ranks {ranks}`"
    if ranks is not None and known[0] < ranks:
        hint += ", or say --other-ranks if the program's own communicators are smaller"
    fields = {"ranks": ranks, "known": counts}
    raise PlanError(message, kind="ranks", hint=hint, fields=fields)


def _library(command: Command, mpicc: str | None) -> dict[str, str]:
    """LD_PRELOAD with the library for the MPI of the command, compiled now if need be."""
    from tutti.mpi.host import find_host
    from tutti.mpi.launch import preloaded
    from tutti.mpi.library import built
    from tutti.mpi.program import check_program

    host: Host = find_host(mpicc, command.launcher)
    for program in command.programs:
        check_program(program, host)
    made = built(host, starting=lambda: remark(f"compiling the library for {host}, once ..."))
    return preloaded(made.library)


def _run(command: Command, variables: dict[str, str]) -> int:
    """Runs it with this terminal as its own; Ctrl-C reaches it as well, so it is waited for."""
    from tutti.errors import LaunchError

    argv, environment = command.with_variables(variables)
    sys.stdout.flush()
    try:
        process = subprocess.Popen(argv, env=dict(os.environ) | environment)  # noqa: S603
    except OSError as error:
        message = f"{argv[0]}: cannot be started: {error.strerror}"
        raise LaunchError(message, kind="no_launcher", fields={"launcher": argv[0]}) from None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminate = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, terminate)
    return code if code >= 0 else 128 - code


def _tell(written: Path, to: Path | None, *, quiet: bool) -> None:
    """Shows what the library did, and keeps it where it is wanted."""
    from tutti.cli.mpi_report import show_report
    from tutti.mpi.report import Report

    if not written.is_file():
        remark("no report: no rank ended with MPI_Finalize while the library was loaded")
        return
    report = Report.read(written)
    if to is not None:
        report.write(to)
    if not quiet:
        show_report(report)
