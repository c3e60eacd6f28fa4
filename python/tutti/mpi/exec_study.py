"""Runs an unmodified MPI program with the schedules of a plan, and shows the report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.mpi.distance import EMULATE
from tutti.mpi.errors import LaunchError, PlanError
from tutti.mpi.launch import common_folder, ended_by_signals, guard, preloaded
from tutti.mpi.library import built
from tutti.mpi.program import check_program
from tutti.mpi.proof import read_proved
from tutti.mpi.report import Report
from tutti.mpi.underneath import find_mpi
from tutti.study.console import err, remark
from tutti.view import terminal

from .view.plan import report_view

if TYPE_CHECKING:
    from tutti.mpi.command import Command
    from tutti.mpi.distance import Distance
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.underneath import Mpi

_POLL_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 3.0
"""Time for a launcher to exit by itself if a rank could not start."""


def run_with_plan(
    command: Command,
    file: Path,
    *,
    distance: Distance | None,
    mpicc: str | None,
    counts: bool,
    other_ranks: bool,
    report: Path | None,
    quiet: bool,
) -> int:
    """Runs a program with a plan, shows the report, and returns the program's exit code.

    Args:
        command: The command that starts ranks.
        file: The plan file.
        distance: The emulated distance.
        mpicc: The compiler wrapper of the MPI library; None for that of the command.
        counts: Whether to count messages and bytes for each pair of ranks.
        other_ranks: Whether a plan for smaller communicators is allowed.
        report: The file of the report; `-` is stderr.
        quiet: Whether to print no report.

    Raises:
        PlanError: The file is not a plan, or has no rules for the ranks.
        LaunchError: The command cannot be started.
    """
    variables = {"TUTTI_MPI_PLAN": str(file.absolute())}
    variables |= {EMULATE: distance.variable} if distance else {}
    variables |= {"TUTTI_MPI_COUNTS": "1"} if counts else {}
    variables |= {"TUTTI_MPI_RANKS": "any"} if other_ranks else {}
    proved = read_proved(file, starting=lambda: remark(f"verifying {file}, once ..."))
    _check_ranks(file, proved, command, any_counts=other_ranks)
    mpi = find_mpi(mpicc, command.launcher)
    for program in command.programs:
        check_program(program, mpi)
    library = built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    with common_folder("exec", here=command.is_here) as folder:
        prefix = folder / "report"
        variables["TUTTI_MPI_REPORT"] = str(prefix)
        code = _run(command, mpi, library.library, variables, folder)
        _show_report(prefix.with_suffix(".json"), report, quiet=quiet)
    return code


def _check_ranks(path: Path, plan: CollectivePlan, command: Command, *, any_counts: bool) -> None:
    """Rejects a plan without rules for the ranks of the program, if their number is known."""
    ranks, planned = command.ranks, plan.ranks
    if ranks is not None and ranks < 1:
        message = f"{' '.join(command.argv)}: {ranks} ranks: expected at least 1"
        raise LaunchError(message, kind="no_ranks")
    fits = ranks is None or ranks in planned or (any_counts and planned[0] <= ranks)
    if fits:
        return
    counts = ", ".join(map(str, planned))
    message = f"{path}: has rules for {counts} ranks, but the program is started with {ranks}"
    arguments = f"--ranks {ranks} --for-every mpich-not-slower --out ranks{ranks}.tutti"
    hint = f"write one: `tutti mpi plan {arguments}`"
    if ranks == 1:  # a single rank sends no messages, so no plan is for it
        hint = f"start it with {counts}, or without a plan"
    elif ranks is not None and planned[0] < ranks:
        hint += ", or use --other-ranks if the program's communicators are smaller"
    fields = {"ranks": ranks, "known": counts}
    raise PlanError(message, kind="ranks", hint=hint, fields=fields)


def _run(command: Command, mpi: Mpi, library: Path, variables: dict[str, str], folder: Path) -> int:
    """Runs the command on this terminal. It handles Ctrl-C itself, so it is waited for."""
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
        terminal.show(report_view(report), err())
