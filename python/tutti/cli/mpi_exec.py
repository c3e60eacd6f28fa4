"""`tutti mpi exec`: runs an unmodified MPI program with schedules for its collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.mistakes import mistake
from tutti.cli import mpi_options

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] COMMAND...", help="Command that starts ranks, such as mpiexec."),
]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="The plan file.", show_default=False)]
ReportFile = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE",
        help="Output file of the report, as JSON; `-` means stderr.")
]  # fmt: skip
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
    if plan is None:
        raise mistake("no plan", source="tutti mpi exec", expected="--plan FILE",
                      hint="`tutti mpi plan` writes one")  # fmt: skip
    from tutti.mpi.command import read_command
    from tutti.mpi.exec_study import run_with_plan

    code = run_with_plan(
        read_command(command or []), plan, distance=mpi_options.distance(emulate), mpicc=mpicc,
        counts=counts, other_ranks=other_ranks, report=report, quiet=quiet,
    )  # fmt: skip
    raise typer.Exit(code)
