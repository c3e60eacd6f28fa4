"""`tutti trace`: simulates traces of applications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.collectives.trace_run import simulate_trace
from tutti.collectives.view.trace import trace_view
from tutti.formats.formats import Options
from tutti.formats.study import read_trace
from tutti.nccl.libraries import NAMES, PLATFORM
from tutti.platforms import platform as find
from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.study.study import Study

if TYPE_CHECKING:
    from tutti.collectives.lowering import Algorithm
    from tutti.platforms.machine import Platform
    from tutti.workloads.operations import Trace

app = options.group("Simulate traces of applications.")


@app.callback()
def _group() -> None:
    """Makes typer keep the group although it has a single command."""


@app.command("run")
def run(
    file: Annotated[
        Path, typer.Argument(help="A trace, such as a GOAL file or the Chakra file of a rank.")
    ],
    *,
    platform: Annotated[
        str, typer.Option("--platform", "-p", help="Name or file of a platform.")
    ] = "loggp_cluster",
    model: options.Model = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Format of the file. Default: recognised.")
    ] = None,
    algorithm: options.Expansion = None,
    library: Annotated[
        str | None,
        typer.Option("--library", help="MPI library or nccl, whose choice replaces collectives by "
                     f"messages: {', '.join(NAMES)}. `platform` gives collectives the time that "
                     "the model of the platform's library predicts. A version may follow, as in "
                     "openmpi:4.1, and a system, as in nccl:dgx_h100."),
    ] = None,
    groups: options.Groups = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair faults of the file with a known repair.")
    ] = False,
) -> None:  # fmt: skip
    """Simulate a trace on a platform: the completion time of each rank.

    `--algorithm` or `--library` replaces collectives by messages. By default, collectives take the
    time that the model of the platform's library predicts.

    \b
    Examples:
      tutti trace run app.goal
      tutti trace run app.bin -p loggp_cluster --json
      tutti trace run step.0.et -p dgx_h100_cluster --library platform
      tutti trace run step.0.et -p torus:4x4,rate=25GB/s --algorithm ring
    """
    if algorithm is not None and library is not None:
        raise mistake("excludes --algorithm", source="--library", expected="one of them")
    with Progress("reading"):
        trace, losses = read_trace(file, from_, Options(groups=groups, repair=repair))
    for loss in losses:
        remark(loss)
    machine = find(platform, model=model)
    trace = _expanded(trace, file, machine, algorithm, library)
    with Progress("simulating"):
        result = simulate_trace(trace, machine)
    Study().present(trace_view(trace, result, machine.name))


def _expanded(
    trace: Trace, file: Path, machine: Platform, algorithm: str | None, library: str | None
) -> Trace:
    """Returns a trace without collectives.

    Raises:
        ConfigError: It has collectives and neither an algorithm nor a library, or a library and no
            collectives.
    """
    if not trace.collectives and library is None and algorithm is None:
        return trace
    # Imported here, as other traces do without libraries.
    from tutti.collectives.lowering import expand, timed
    from tutti.nccl.of_platform import LibraryChoice, LibraryTimes, parts_of
    from tutti.platforms.library import is_library

    by_default = library is None and algorithm is None
    times = LibraryTimes.of(machine) if by_default or library == PLATFORM else None
    choice = None if library is None or times else LibraryChoice.of(library, machine)
    if not trace.collectives:
        for name, value in (("--algorithm", algorithm), ("--library", library)):
            if value is not None:
                raise mistake("has no effect", source=name, expected=f"no {name}: {file} has no "
                              "collectives")  # fmt: skip
        return trace
    if times is not None:
        trace = timed(trace, times)
        for line in times.remarks():
            remark(line)
        return trace
    chosen: Algorithm | None = algorithm or choice
    if algorithm is not None and is_library(algorithm):
        chosen = parts_of(machine, algorithm)
    if chosen is None:
        hint = '`tutti train run` with `model = "chakra:PREFIX"` or `"kineto:FILES"` simulates '
        hint += "traces of Chakra or PyTorch on the dimensions of a network"
        raise mistake("has collectives", source=str(file), hint=hint,
                      expected="--algorithm NAME, or --library NAME")  # fmt: skip
    with Progress("replacing collectives"):
        trace = expand(trace, chosen, machine)
    for line in choice.remarks() if choice else ():
        remark(line)
    return trace
