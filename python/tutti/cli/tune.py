"""`tutti tune`: selects the fastest schedules, writes them for an MPI library, and checks them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from tutti.base.datatypes import DATATYPES
from tutti.base.files.mistakes import mistake
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.cli.mpi_options import Emulate, Launcher, LauncherOptions, Mpicc, distance
from tutti.cli.tune_shown import prove, show
from tutti.collectives.frames import write
from tutti.collectives.sizes import growing, part_bytes
from tutti.measured.errors import TuningError
from tutti.measured.tune import TARGETS, Question, by_measurement, by_model, fastest, write_all
from tutti.measured.tune.decisions import table
from tutti.measured.tune.measure import COLLECTIVES, METHODS, notations
from tutti.measured.tune.mpich import Stock, stock, stock_of_file
from tutti.mpi.bench import Settings
from tutti.mpi.errors import MpiError
from tutti.mpi.library import built
from tutti.mpi.provenance import provenance
from tutti.mpi.underneath import find_mpi
from tutti.platforms import platform
from tutti.study.console import remark
from tutti.study.files import folder
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from tutti.measured.tune import Written
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform as Machine

_MEASURING = "Measuring"
_WRITING = "Writing"


@dataclass
class TuningInput:
    """What to tune, and how."""

    collectives: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTIVE]...", help="What to tune; default: all_reduce."),
    ] = None
    ranks: Annotated[
        str, typer.Option("--ranks", "-r", help="Rank counts: a list 4,8,12 or a range 4:64.")
    ] = "4"
    smallest: Annotated[
        str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")
    ] = "8"
    end: Annotated[str, typer.Option("-e", "--end", metavar="SIZE", help="Largest size.")] = "1M"
    factor: Annotated[
        int, typer.Option("-f", "--factor", min=2, help="Factor between consecutive sizes.")
    ] = 4
    by: Annotated[
        str, typer.Option("--by", help="model, measurement, or both (measures the model's best).")
    ] = "model"
    platform: options.Platform = None
    model: options.Model = None
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAME[:ARG]",
            help="Algorithm to consider; may be repeated. Default: all.",
        ),
    ] = None
    datatype: Annotated[
        str, typer.Option("-d", "--datatype", help="Datatype, such as float32 or int64.")
    ] = "float32"


@dataclass
class Measuring:
    """How to measure over MPI."""

    blocks: Annotated[
        int, typer.Option("-n", "--repetitions", min=1, rich_help_panel=_MEASURING,
                          help="Number of repetitions: blocks per case, whose median is used.")
    ] = 50  # fmt: skip
    each: Annotated[
        int, typer.Option("--each", min=1, rich_help_panel=_MEASURING,
                          help="Back-to-back collectives in a block; 1 for rooted ones.")
    ] = 10  # fmt: skip
    most: Annotated[
        int, typer.Option("--most", min=1, rich_help_panel=_MEASURING,
                          help="With --by both: candidates per size and library.")
    ] = 4  # fmt: skip
    emulate: Emulate = None
    mpicc: Mpicc = None
    launcher: Launcher = None
    launcher_option: LauncherOptions = None


@dataclass
class Writing:
    """What to write, and whether to check it."""

    targets: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="LIBRARY", rich_help_panel=_WRITING,
                     help="plan, openmpi, openmpi6, mpich or ucc; may be repeated; default: all."),
    ] = None  # fmt: skip
    csel_base: Annotated[
        Path | None, typer.Option("--csel-base", metavar="FILE", rich_help_panel=_WRITING,
                                  help="MPICH's generic.json; default: from its library.")
    ] = None  # fmt: skip
    rules_version: Annotated[
        int, typer.Option("--rules-version", min=1, max=2, rich_help_panel=_WRITING,
                          help="Version of Open MPI's classic file; 2 needs 5.0.7.")
    ] = 1  # fmt: skip
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Check the files: run with them, and compare message counts."),
    ] = False
    to: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder.")] = (
        Path("out/tune")
    )


@grouped
def tune(request: TuningInput, measuring: Measuring, writing: Writing) -> None:
    """Find the fastest schedule for each size, and write it for the libraries that run it.

    Writes plan.tutti for libtutti_mpi, openmpi.rules for Open MPI 5 and openmpi6.json for 6 (with
    rules of han), mpich.json and mpich_device.json (MPICH's stock selection trees with the rules
    added). Each has an .env file with the variables that enable it; UCC has no other file.
    times.parquet contains all times, decisions.csv the decisions. Rules for an MPI library use only
    measurements taken on it, or the model. If a library lacks the fastest schedule, the slowdown is
    printed. With --prove the collectives run with the files, and the messages and bytes of each
    pair of ranks are compared with those of the schedule; exit code 3 if they differ, 1 if
    something could not be checked.

    \b
    Examples:
      tutti tune --ranks 4,6,8 --platform cray_xc30 -e 64K
      tutti tune all_reduce all_gather --ranks 2 --by measurement \\
        -b 64K -e 64K -a ring -n 3
      tutti tune --ranks 3 --platform cray_xc30 -a ring -e 8 --for openmpi --prove
      tutti tune --ranks 3 --by both --platform cray_xc30 -e 8 --for plan \\
        --prove -a ring -a recursive_multiplying:a3 -n 3 --each 1 \\
        --emulate 'pipelining_postal:alpha_p=2 ms,alpha_r=1 ms'
    """
    chosen = _targets(writing.targets)
    questions = _questions(request, chosen)
    machine = _machine(request)
    mpi = _mpi(measuring, needed=request.by != "model" or writing.prove)
    folder(writing.to)
    frames = [_times(question, request, measuring, machine, mpi) for question in questions]
    written = _written(frames, chosen, writing, mpi, machine)
    show(written)
    if writing.prove and mpi is not None:
        prove(written, mpi, measuring.launcher_option or [])


# --- input ----------------------------------------------------------------------------------------


def _targets(named: list[str] | None) -> list[str]:
    for name in named or []:
        if name not in TARGETS:
            known = ", ".join(TARGETS)
            message = f"unknown library `{name}`: expected one of {known}"
            fields = {"name": name, "known": known}
            raise TuningError(message, kind="unknown_target", fields=fields)
    return list(dict.fromkeys(named or TARGETS))


def _machine(request: TuningInput) -> Machine | None:
    if request.by not in METHODS:
        expected = f"one of {', '.join(METHODS)}"
        raise mistake("unknown method", source="--by", value=request.by, expected=expected)
    if request.platform is None and request.by != "measurement":
        raise mistake(
            f"--by {request.by} needs a platform",
            source="tutti tune",
            expected="--platform NAME or FILE",
            hint="`tutti calibrate --live` writes one; or measure: --by measurement",
        )
    if request.platform is None:
        return None
    return platform(request.platform, model=request.model)


def _mpi(measuring: Measuring, *, needed: bool) -> Mpi | None:
    """Finds the MPI library; without one, rules can still be written by a model."""
    try:
        return find_mpi(measuring.mpicc, measuring.launcher)
    except MpiError:
        if needed or measuring.mpicc is not None:
            raise
        return None


def _settings(measuring: Measuring) -> Settings:
    return Settings(
        blocks=measuring.blocks,
        each=measuring.each,
        distance=distance(measuring.emulate),
        options=measuring.launcher_option or [],
    )


def _questions(request: TuningInput, targets: list[str]) -> list[Question]:
    collectives = request.collectives or ["all_reduce"]
    name = options.datatype(request.datatype) or request.datatype
    if name not in DATATYPES:
        raise mistake("unknown datatype", source="-d", value=request.datatype,
                      expected=", ".join(DATATYPES))  # fmt: skip
    for collective in collectives:
        if collective not in COLLECTIVES:
            expected = f"one of {', '.join(COLLECTIVES)}"
            raise mistake("cannot be tuned", source="COLLECTIVE", value=collective,
                          expected=expected)  # fmt: skip
    return [
        Question(
            collective, count, _sizes(request, collective, count, DATATYPES[name]), name, targets
        )
        for collective in collectives
        for count in options.expanded_ranks(request.ranks)
    ]


def _sizes(request: TuningInput, collective: str, ranks: int, width: int) -> list[int]:
    """Returns sizes with an element for each part; a barrier has size 0."""
    if collective == "barrier":
        return [0]
    first, last = (Size.parse(options.size(text, name)).bytes
                   for text, name in ((request.smallest, "-b"), (request.end, "-e")))  # fmt: skip
    if last < first or first < 1:
        raise mistake("invalid range of sizes", source="-b and -e", value=f"{first} to {last}",
                      expected="1 byte or more, and the smaller size first")  # fmt: skip
    unit = part_bytes(collective, ranks, width)
    sizes = [-(-size // unit) * unit for size in growing(first, last, request.factor)]
    if sizes[0] != first:
        remark(f"{collective} on {ranks} ranks: sizes rounded up to multiples of {unit} B")
    return sorted(set(sizes))


# --- times ----------------------------------------------------------------------------------------


def _times(
    question: Question,
    request: TuningInput,
    measuring: Measuring,
    machine: Machine | None,
    mpi: Mpi | None,
) -> pl.DataFrame:
    """Returns times by a model, by measurement, or by both."""
    only = request.algorithm or []
    modelled, names = None, []
    if machine is not None and request.by != "measurement":
        total = len(question.sizes)
        with Progress(_label(question), work=total, total=total) as progress:
            modelled = by_model(question, machine, only, progress.advance)
        names = fastest(modelled, question, measuring.most)
    if modelled is not None and (request.by == "model" or mpi is None):
        return modelled
    if mpi is None:  # unreachable: `_mpi` has raised an error
        return pl.DataFrame()
    measured = _measured(question, measuring, mpi, names or notations(question, only))
    return measured if modelled is None else pl.concat([measured, modelled])


def _measured(question: Question, measuring: Measuring, mpi: Mpi, names: list[str]) -> pl.DataFrame:
    built(mpi, starting=lambda: remark(f"compiling the library for {mpi}"))
    total = measuring.blocks * (len(names) + 1) * len(question.sizes)
    with Progress(_label(question), work=total, total=total, handles_interrupts=True) as progress:
        found = by_measurement(
            question, mpi, _settings(measuring), names,
            done=lambda seen, expected: progress.reach(seen, expected, seen),
        )  # fmt: skip
    _remark_late(question, found)
    return found


def _remark_late(question: Question, measured: pl.DataFrame) -> None:
    """Reports the number of discarded blocks, and cases without any other blocks."""
    never = measured.filter(pl.col("late") >= pl.col("blocks"), pl.col("late") > 0)
    dropped = int(measured["late"].sum()) - int(never["late"].sum())
    if dropped:
        every = int(measured["blocks"].sum()) + dropped
        remark(f"{_label(question)}: {dropped} of {every} blocks started late and were discarded")
    if not never.is_empty():
        remark(f"{_label(question)}: all blocks of {len(never)} of {len(measured)} cases started "
               "late: their times are those of a busy machine")  # fmt: skip


def _label(question: Question) -> str:
    return f"{question.collective} on {question.ranks} ranks"


# --- output ---------------------------------------------------------------------------------------


def _written(
    frames: list[pl.DataFrame],
    targets: list[str],
    writing: Writing,
    mpi: Mpi | None,
    machine: Machine | None,
) -> list[Written]:
    times, strict = pl.concat(frames), bool(writing.targets)
    origin = provenance(sys.argv[1:], platform=machine.name if machine else None)
    stock = _stock(mpi, writing.csel_base, strict=strict) if "mpich" in targets else None
    written, left = write_all(times, targets, writing.to, provenance=origin, stock=stock,
                              second=writing.rules_version == 2)  # fmt: skip
    write(times, writing.to / "times.parquet")
    for target, reason in left.items():
        if strict:
            raise TuningError(f"{target}: {reason}", kind="nothing")
        remark(f"nothing for {target}: {reason}")
    rows = [table(one.decisions).with_columns(pl.lit(one.target).alias("target"))
            for one in written]  # fmt: skip
    if rows:
        write(pl.concat(rows, how="vertical_relaxed"), writing.to / "decisions.csv")
    return written


def _stock(mpi: Mpi | None, base: Path | None, *, strict: bool) -> Stock | None:
    """Returns MPICH's stock selections, from a file or from the library of an MPICH."""
    if base is not None:
        return Stock(stock_of_file(base))
    if mpi is None or mpi.kind != "mpich":
        return None
    try:
        return stock(mpi)
    except TuningError:
        if strict:
            raise
        return None
