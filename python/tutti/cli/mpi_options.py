"""Options of commands that start MPI processes: MPI library, launcher, emulated distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tutti.mpi.distance import Distance

Mpicc = Annotated[
    str | None,
    typer.Option("--mpicc", metavar="PROGRAM", help="Compiler wrapper of the MPI library to use."),
]
Launcher = Annotated[
    str | None,
    typer.Option(
        "--launcher",
        metavar="PROGRAM",
        help="Launcher of the ranks, such as srun; default: mpiexec.",
    ),
]
LauncherOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--launcher-option", metavar="TEXT", help="Additional launcher option; may be repeated."
    ),
]
Emulate = Annotated[
    str | None,
    typer.Option(
        "--emulate",
        metavar="MODEL",
        help="Delay messages by a model: pipelining_postal:alpha_p=1ms,...",
    ),
]


def distance(text: str | None) -> Distance | None:
    """Parses the model of ``--emulate``.

    Raises:
        LaunchError: It cannot be read.
    """
    from tutti.mpi.distance import Distance

    return Distance.parse(text) if text is not None else None
