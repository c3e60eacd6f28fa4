"""`tutti mpi`: plans for the MPI library, programs run with it, and the MPI implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import mpi_options, options

app = options.group("Run and benchmark schedules over MPI, also under unmodified programs.")

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.", show_default=False)]


@app.command()
def info(
    mpicc: mpi_options.Mpicc = None,
    launcher: mpi_options.Launcher = None,
    build: Annotated[
        bool, typer.Option("--compile", help="Compile the library for it now, if it is not.")
    ] = False,
    start: Annotated[
        bool, typer.Option("--start", help="Start two ranks, which report their MPI library.")
    ] = False,
) -> None:
    """Show the MPI implementation, why it was selected, and whether the library is compiled for it.

    The default is the one with the first mpiexec on PATH, or in the environment of this Python.

    \b
    Examples:
      tutti mpi info
      tutti mpi info --start
      tutti mpi info --mpicc /opt/mpich/bin/mpicc --compile
    """
    from tutti.mpi.plan_study import show_mpi

    show_mpi(mpicc, launcher, build=build, start=start)


@app.command("plan")
def plan_(
    rules: mpi_options.Rules = None,
    ranks: mpi_options.Ranks = "",
    for_every: mpi_options.ForEvery = None,
    exact_types: mpi_options.ExactTypes = False,
    to: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Output file.")] = Path(
        "plan.tutti"
    ),
) -> None:
    """Write a plan: which schedule performs which collective, for which ranks and sizes.

    If several rules match a call, the one with the narrowest size range whose schedule can perform
    the call applies; among equal ranges, the first. Sizes of all_gather and reduce_scatter are the
    total over all ranks. A bare number is bytes, and K, M, G stand for KiB, MiB, GiB. Every
    schedule is verified before it is written. An all_reduce schedule whose floating-point results
    can differ in bits between ranks is rejected: programs rely on identical results.

    \b
    Examples:
      tutti mpi plan --ranks 8 all_reduce=ring \\
        all_reduce:0-4K=recursive_multiplying:a8
      tutti mpi plan --ranks 2-16 --for-every mpich-not-slower --out plan.tutti
      tutti mpi plan --ranks 6 broadcast=binomial all_reduce=mine.schedule
    """
    from tutti.mpi.plan_study import write_plan
    from tutti.mpi.rules import RuleRequest

    request = RuleRequest.read(rules or [], for_every or [])
    write_plan(request, ranks, to, exact_types=exact_types)


@app.command()
def show(
    file: PlanFile,
    prove: Annotated[
        bool, typer.Option("--prove", help="Check its schedules again, from the file's bytes.")
    ] = False,
) -> None:
    """Show the rules of a plan in order of precedence, and its origin.

    Each schedule is listed with the number of steps of rank 0. A star marks schedules for
    commutative operations only, because they do not combine in rank order. A plus marks schedules
    with sends that complete in a later step. An exclamation mark marks schedules for exact
    operations only, because other results can differ in bits between ranks.

    \b
    Examples:
      tutti mpi show plan.tutti
      tutti mpi show --prove plan.tutti
    """
    from tutti.mpi.plan_study import show_plan

    show_plan(file, is_verified=prove)
