"""Options of `tutti calibrate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.mpi_options import Launcher, LauncherOptions, Mpicc

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
