"""Options of `tutti mpi`: MPI library, launcher, emulated distance, rules of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.ranges import RANK_NOTATION

if TYPE_CHECKING:
    from tutti.mpi.distance import Distance

Mpicc = Annotated[
    str | None,
    typer.Option("--mpicc", metavar="PROGRAM", help="Compiler wrapper of the MPI library to use."),
]
Launcher = Annotated[
    str | None, typer.Option("--launcher", metavar="PROGRAM",
        help="Launcher of the ranks, such as srun; default: mpiexec.")
]  # fmt: skip
LauncherOptions = Annotated[
    list[str] | None, typer.Option("--launcher-option", metavar="TEXT",
        help="Additional launcher option; may be repeated.")
]  # fmt: skip
Emulate = Annotated[
    str | None, typer.Option("--emulate", metavar="MODEL",
        help="Delay messages by a model: pipelining_postal:alpha_p=1ms,...")
]  # fmt: skip


Rules = Annotated[
    list[str] | None, typer.Argument(metavar="[COLLECTIVE[:SIZES]=SCHEDULE]...",
        help="Schedule of a collective: an algorithm, or a .schedule file; optionally for sizes "
             "such as 0-4K or 64K- only, both limits inclusive.")
]  # fmt: skip
Ranks = Annotated[
    str, typer.Option("--ranks", "-r",
        help=f"Rank counts, required: {RANK_NOTATION}.")
]  # fmt: skip
ForEvery = Annotated[
    list[str] | None, typer.Option("--for-every", metavar="ALGORITHM",
        help="A rule for every collective that this algorithm performs, after the given rules; "
             "`mpich`: the MPICH default (its algorithms and thresholds of 2005); "
             "`mpich-not-slower`: the same, without the sizes at which the native collective was "
             "faster. May be repeated.")
]  # fmt: skip
ExactTypes = Annotated[
    bool, typer.Option("--exact-types",
        help="Accept all_reduce schedules whose results can differ in bits between ranks: "
             "libtutti_mpi uses them for exact operations only, such as sums of integers.")
]  # fmt: skip


def distance(text: str | None) -> Distance | None:
    """Parses the model of ``--emulate``.

    Raises:
        LaunchError: It cannot be read.
    """
    from tutti.mpi.distance import Distance

    return Distance.parse(text) if text is not None else None
