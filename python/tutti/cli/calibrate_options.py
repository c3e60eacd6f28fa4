"""Options of `tutti calibrate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.mpi_options import Launcher, LauncherOptions, Mpicc
from tutti.measured.calibrate.live import one_rank_per_host
from tutti.measured.calibrate.sources import RESULTS, Sources, by_place, require_hosts
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = "calibrated"


@dataclass
class CalibrationInput:
    """Measured data, or a live measurement."""

    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", show_default=False,
            help="Output of OSU, IMB or nccl-tests, or results of `tutti mpi bench`.")
    ] = None  # fmt: skip
    live: Annotated[
        bool, typer.Option("--live", help="Measure now, between two MPI processes.")
    ] = False
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-r", min=2, max=RANKS,
            help="Rank count, if a file does not state it.")
    ] = None  # fmt: skip
    collective: Annotated[
        str | None,
        typer.Option("--collective", "-c", help="Collective, if a file does not state it."),
    ] = None
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", "-a", metavar="NAME[:ARG]",
            help="Algorithm of the files' collectives.")
    ] = None  # fmt: skip
    window: Annotated[
        int, typer.Option("--window", min=1, help="Messages in flight of osu_bw (its -W).")
    ] = 64
    ranks_per_node: Annotated[
        int | None, typer.Option("--ranks-per-node", min=2, max=RANKS,
            help="Ranks on a node of the platform: it gets nodes, from files within a node and "
                 "between nodes, or with --live on two hosts.")
    ] = None  # fmt: skip
    between: Annotated[
        list[Path] | None, typer.Option("--between", metavar="FILE",
            help="File that was measured between nodes, if it does not state it; may be repeated.")
    ] = None  # fmt: skip
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=2, max=RANKS,
            help="Nodes of the platform, with --ranks-per-node; default: 64.")
    ] = None  # fmt: skip
    begin: options.Begin = None
    end: options.End = None
    samples: Annotated[
        int, typer.Option("--samples", min=3, help="Samples per configuration, with --live.")
    ] = 100
    mpicc: Mpicc = None
    launcher: Launcher = None
    launcher_option: LauncherOptions = None
    machine: Annotated[
        str | None, typer.Option("--machine", help="Description of the files' machine.")
    ] = None


@dataclass
class Fitting:
    """What to fit, what to validate against, and where to write."""

    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="MODEL",
            help="Model to fit; may be repeated; default: all.")
    ] = None  # fmt: skip
    against: Annotated[
        Path | None, typer.Option("--against", metavar="FILE",
            help="Results of `tutti mpi bench` to validate the fitted model against; or output of "
                 "OSU, IMB or nccl-tests: the collectives of a library, to compare with the "
                 "fastest schedules.")
    ] = None  # fmt: skip
    joint: Annotated[
        bool, typer.Option("--joint",
            help="Fit one model to all collectives and algorithms of the files.")
    ] = False  # fmt: skip
    name: Annotated[str, typer.Option("--name", help="The platform's name.")] = _NAME
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER",
            help="Output folder, or a platform file NAME.toml in it.")
    ] = Path("out/calibrate")  # fmt: skip


def destination(fitting: Fitting) -> tuple[Path, str]:
    """Returns the folder, and the platform's name: --out may also name the platform file.

    Raises:
        ConfigError: --out and --name state different names.
    """
    if fitting.to.suffix != ".toml":
        return fitting.to, fitting.name
    if fitting.name not in (_NAME, fitting.to.stem):
        raise mistake("differs from --name", source="--out", value=str(fitting.to),
                      expected=f"a folder, or {fitting.name}.toml in a folder")  # fmt: skip
    return fitting.to.parent, fitting.to.stem


def refuse_with_joint(measured: CalibrationInput, fitting: Fitting) -> None:
    """Refuses options that a joint fit does not honour.

    Raises:
        ConfigError: There is one.
    """
    options_given = {
        "--live": measured.live,
        "--algorithm": measured.algorithm,
        "--model": fitting.model,
        "--against": fitting.against,
        "-b": measured.begin,
        "-e": measured.end,
        "--machine": measured.machine,
        "--ranks-per-node": measured.ranks_per_node,
        "--between": measured.between,
        "--nodes": measured.nodes,
        "--mpicc": measured.mpicc,
        "--launcher": measured.launcher,
        "--launcher-option": measured.launcher_option,
    }
    for name, value in options_given.items():
        if value:
            raise mistake(
                f"{name} does not apply to --joint",
                source="tutti calibrate",
                expected="files whose rows name the algorithm of the library",
            )


_NODES = 64


def nodes_of(measured: CalibrationInput, fitting: Fitting) -> int:
    """Returns the number of nodes of the platform.

    Raises:
        ConfigError: An option has no effect, or the platform is too large.
    """
    nodes, each = measured.nodes or _NODES, measured.ranks_per_node
    if each is None:
        for name, value in {"--between": measured.between, "--nodes": measured.nodes}.items():
            if value:
                raise mistake("needs the number of ranks on a node", source=name,
                              expected="also --ranks-per-node")  # fmt: skip
    elif fitting.against is not None and fitting.against.suffix == RESULTS:
        raise mistake("does not apply to --ranks-per-node", source="--against",
                      value=str(fitting.against),
                      expected="output of a benchmark of a library's collectives",
                      hint="results of `tutti mpi bench` do not state nodes")  # fmt: skip
    elif nodes * each > RANKS:
        raise mistake("too many ranks", source="--nodes", value=f"{nodes:,}",
                      expected=f"at most {RANKS:,} ranks on all nodes")  # fmt: skip
    return nodes


def sources_of(
    measured: CalibrationInput, files: Sequence[Path], to: Path, *, agree: bool
) -> Sources:
    """Reads the measurements of files, and measures if --live is given.

    Args:
        measured: The options.
        files: The files.
        to: The folder for samples of a live run.
        agree: Whether --ranks must not differ from what the files state.

    Raises:
        ConfigError: A file cannot be read.
        MpiError: There is no MPI library to measure.
    """
    sources = Sources()
    _add_files(sources, measured, files, agree=agree)
    if measured.live:
        mpi = find_mpi(measured.mpicc, measured.launcher)
        options = measured.launcher_option or []
        sources.add_live(mpi, measured.samples, options, to / "probe.parquet")
    if {1, 2} <= sources.hosts:
        remark("files of one host and of two are in one fit: --ranks-per-node makes a platform "
               "with nodes of them")  # fmt: skip
    return sources


def nodes_sources(measured: CalibrationInput, to: Path, *, agree: bool) -> tuple[Sources, Sources]:
    """Reads or measures messages within a node and between nodes; `agree` as in `sources_of`.

    Raises:
        ConfigError: Files of one place are missing, or a live run was in the other place.
        MpiError: There is no MPI library to measure.
    """
    within, between = Sources(), Sources()
    if measured.live:
        if measured.files or measured.between:
            raise mistake("files and a live run in one fit", source="tutti calibrate --live",
                          expected="--ranks-per-node with one of both")  # fmt: skip
        mpi = find_mpi(measured.mpicc, measured.launcher)
        given, apart = measured.launcher_option or [], one_rank_per_host(mpi.starts)
        within.add_live(mpi, measured.samples, given, to / "probe.parquet")
        require_hosts(within, 1)
        between.add_live(mpi, measured.samples, [*given, *apart], to / "probe_between.parquet")
        require_hosts(between, 2)
        return within, between
    inner, outer = by_place(measured.files or [], measured.between or [])
    _add_files(within, measured, inner, agree=agree)
    _add_files(between, measured, outer, agree=agree)
    return within, between


def _add_files(
    sources: Sources, measured: CalibrationInput, files: Sequence[Path], *, agree: bool
) -> None:
    sources.add_files(
        files, ranks=measured.ranks, collective=measured.collective, agree=agree,
        algorithm=measured.algorithm, window=measured.window,
    )  # fmt: skip
