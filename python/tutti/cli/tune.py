"""`tutti tune`: the fastest schedules, written for the library that runs them, and proved."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from tutti.cli import options
from tutti.cli.console import remark
from tutti.cli.files import folder
from tutti.cli.grouped import grouped
from tutti.cli.mpi_options import Emulate, Launcher, LauncherOptions, Mpicc, distance
from tutti.cli.progress import Progress
from tutti.cli.tune_shown import prove, show
from tutti.datatypes import DATATYPES
from tutti.errors import MpiError, TuningError
from tutti.files.mistakes import mistake
from tutti.mpi.bench import Settings
from tutti.mpi.library import built
from tutti.mpi.provenance import provenance
from tutti.mpi.sizes import growing, part_bytes
from tutti.mpi.underneath import find_mpi
from tutti.platforms import platform
from tutti.results import write
from tutti.tune import TARGETS, Question, by_measurement, by_model, fastest, write_all
from tutti.tune.decisions import table
from tutti.tune.measure import COLLECTIVES, METHODS, notations
from tutti.tune.mpich import Stock, stock, stock_of_file
from tutti.units import Size

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi
    from tutti.platform import Platform as Machine
    from tutti.tune import Written

_MEASURING = "Measuring"
_WRITING = "Writing"


@dataclass
class TuningInput:
    """What is to be tuned, and how that is found out."""

    collectives: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTIVE]...", help="What to tune: all_reduce unless given."),
    ] = None
    ranks: Annotated[
        str, typer.Option("--ranks", help="Rank counts: a list 4,8,12 or a range 4:64.")
    ] = "4"
    begin: Annotated[str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")] = (
        "8"
    )
    end: Annotated[str, typer.Option("-e", "--end", metavar="SIZE", help="Largest size.")] = "1M"
    factor: Annotated[
        int, typer.Option("-f", "--factor", min=2, help="Each size is this many times the last.")
    ] = 4
    by: Annotated[
        str, typer.Option("--by", help="model, measurement, or both: what the model finds good.")
    ] = "model"
    platform: options.Platform = None
    model: options.Model = None
    algorithm: Annotated[
        list[str] | None,
        typer.Option("--algorithm", "-a", metavar="NAME[:ARG]", help="Choose from these alone."),
    ] = None
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="Of an element.")] = "float32"


@dataclass
class Measuring:
    """How real ranks are measured."""

    blocks: Annotated[
        int, typer.Option("-n", "--blocks", min=1, rich_help_panel=_MEASURING,
                          help="Blocks of each; the median counts.")
    ] = 50  # fmt: skip
    each: Annotated[
        int, typer.Option("--each", min=1, rich_help_panel=_MEASURING,
                          help="Collectives in a row in a block; of rooted ones always 1.")
    ] = 10  # fmt: skip
    most: Annotated[
        int, typer.Option("--most", min=1, rich_help_panel=_MEASURING,
                          help="With --by both: as many of each size, for each library.")
    ] = 4  # fmt: skip
    emulate: Emulate = None
    mpicc: Mpicc = None
    launcher: Launcher = None
    launcher_option: LauncherOptions = None


@dataclass
class Writing:
    """What is written, and whether it is proved."""

    targets: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="LIBRARY", rich_help_panel=_WRITING,
                     help="plan, openmpi, openmpi6, mpich or ucc; may be repeated; all."),
    ] = None  # fmt: skip
    csel_base: Annotated[
        Path | None, typer.Option("--csel-base", metavar="FILE", rich_help_panel=_WRITING,
                                  help="MPICH's generic.json, instead of what its library holds.")
    ] = None  # fmt: skip
    rules_version: Annotated[
        int, typer.Option("--rules-version", min=1, max=2, rich_help_panel=_WRITING,
                          help="Of Open MPI's classic file; 2 needs 5.0.7.")
    ] = 1  # fmt: skip
    prove: Annotated[
        bool, typer.Option("--prove", help="Run with what was written, and count messages.")
    ] = False
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("out/tune")


@grouped
def tune(asked: TuningInput, measuring: Measuring, writing: Writing) -> None:
    """Find the fastest schedule for each size, and write it for the library that runs it.

    Writes plan.tutti for libtutti_mpi, openmpi.rules for Open MPI 5 and openmpi6.json for 6 (with
    rules of han beside them), mpich.json and mpich_device.json (the stock selections with these
    before them), beside each a .env with the variables that make it take effect (UCC has no other
    file), times.parquet with all that was looked at and decisions.csv. For an MPI's file counts
    what was measured on that MPI, or the model. Other libraries can be told less: what they lack is
    said, with what it costs. With --prove the MPI runs under what was written, and its own counts
    of messages between ranks are held against the schedule's; exit code 3 where they differ, 1
    where something could not be proved.

    \b
    Examples:
      tutti tune --ranks 4,6,8 --platform cray_xc30 -e 64K
      tutti tune all_reduce all_gather --ranks 2 --by measurement -b 64K -e 64K -a ring -n 3
      tutti tune --ranks 3 --platform cray_xc30 -a ring -e 8 --for openmpi --prove
      tutti tune --ranks 3 --by both --platform cray_xc30 -e 8 --for plan --prove \\
        -a ring -a recursive_multiplying:a3 -n 3 --each 1 \\
        --emulate 'pipelining_postal:alpha_p=2 ms,alpha_r=1 ms'
    """
    chosen = _targets(writing.targets)
    questions = _questions(asked, chosen)
    machine = _machine(asked)
    mpi = _mpi(measuring, needed=asked.by != "model" or writing.prove)
    folder(writing.to)
    frames = [_times(question, asked, measuring, machine, mpi) for question in questions]
    written = _written(frames, chosen, writing, mpi, machine)
    show(written)
    if writing.prove and mpi is not None:
        prove(written, mpi, measuring.launcher_option or [])


# --- what is asked --------------------------------------------------------------------------------


def _targets(named: list[str] | None) -> list[str]:
    for name in named or []:
        if name not in TARGETS:
            known = ", ".join(TARGETS)
            message = f"there is no library `{name}` to write for: expected one of {known}"
            fields = {"name": name, "known": known}
            raise TuningError(message, kind="unknown_target", fields=fields)
    return list(dict.fromkeys(named or TARGETS))


def _machine(asked: TuningInput) -> Machine | None:
    if asked.by not in METHODS:
        expected = f"one of {', '.join(METHODS)}"
        raise mistake("there is no such choice", source="--by", value=asked.by, expected=expected)
    if asked.platform is None and asked.by != "measurement":
        raise mistake(
            f"--by {asked.by} needs a machine",
            source="tutti tune",
            expected="--platform NAME or FILE",
            hint="`tutti calibrate --live` writes one; or measure: --by measurement",
        )
    return platform(asked.platform, model=asked.model) if asked.platform is not None else None


def _mpi(measuring: Measuring, *, needed: bool) -> Mpi | None:
    """The MPI; without one, rules can still be written by a model."""
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


def _questions(asked: TuningInput, targets: list[str]) -> list[Question]:
    collectives = asked.collectives or ["all_reduce"]
    name = options.datatype(asked.datatype) or asked.datatype
    if name not in DATATYPES:
        raise mistake("there is no such datatype", source="-d", value=asked.datatype,
                      expected=", ".join(DATATYPES))  # fmt: skip
    for collective in collectives:
        if collective not in COLLECTIVES:
            expected = f"one of {', '.join(COLLECTIVES)}"
            raise mistake("cannot be tuned", source="COLLECTIVE", value=collective,
                          expected=expected)  # fmt: skip
    return [
        Question(
            collective, count, _sizes(asked, collective, count, DATATYPES[name]), name, targets
        )
        for collective in collectives
        for count in options.expanded_ranks(asked.ranks)
    ]


def _sizes(asked: TuningInput, collective: str, ranks: int, width: int) -> list[int]:
    """Sizes that have an element for each rank, where ranks have parts; a barrier has none."""
    if collective == "barrier":
        return [0]
    first, last = (Size.parse(options.size(text, name)).bytes
                   for text, name in ((asked.begin, "-b"), (asked.end, "-e")))  # fmt: skip
    if last < first or first < 1:
        raise mistake("no size to look at", source="-b and -e", value=f"{first} to {last}",
                      expected="1 byte or more, and the smaller first")  # fmt: skip
    unit = part_bytes(collective, ranks, width)
    sizes = [-(-size // unit) * unit for size in growing(first, last, asked.factor)]
    if sizes[0] != first:
        remark(f"{collective} on {ranks} ranks: sizes are multiples of {unit} B")
    return sorted(set(sizes))


# --- how long it takes ----------------------------------------------------------------------------


def _times(
    question: Question,
    asked: TuningInput,
    measuring: Measuring,
    machine: Machine | None,
    mpi: Mpi | None,
) -> pl.DataFrame:
    """By a model, by measurement, or by both: then the model's stand beside what was measured."""
    only = asked.algorithm or []
    modelled, names = None, []
    if machine is not None and asked.by != "measurement":
        total = len(question.sizes)
        with Progress(_label(question), work=total, total=total) as progress:
            modelled = by_model(question, machine, only, progress.advance)
        names = fastest(modelled, question, measuring.most)
    if modelled is not None and (asked.by == "model" or mpi is None):
        return modelled
    if mpi is None:  # it has been found by now, or that has been told
        return pl.DataFrame()
    measured = _measured(question, measuring, mpi, names or notations(question, only))
    return measured if modelled is None else pl.concat([measured, modelled])


def _measured(question: Question, measuring: Measuring, mpi: Mpi, names: list[str]) -> pl.DataFrame:
    built(mpi, starting=lambda: remark(f"compiling the library for {mpi}"))
    total = measuring.blocks * (len(names) + 1) * len(question.sizes)
    with Progress(_label(question), work=total, total=total) as progress:
        found = by_measurement(
            question, mpi, _settings(measuring), names,
            done=lambda seen, expected: progress.reach(seen, expected, seen),
        )  # fmt: skip
    _tell_late(question, found)
    return found


def _tell_late(question: Question, measured: pl.DataFrame) -> None:
    """How many blocks began too late to count, and where there were no others."""
    never = measured.filter(pl.col("late") >= pl.col("blocks"), pl.col("late") > 0)
    dropped = int(measured["late"].sum()) - int(never["late"].sum())
    if dropped:
        every = int(measured["blocks"].sum()) + dropped
        remark(f"{_label(question)}: {dropped} of {every} blocks began late, and do not count")
    if not never.is_empty():
        remark(f"{_label(question)}: every block of {len(never)} of {len(measured)} cases began "
               "late: their times are those of a busy machine")  # fmt: skip


def _label(question: Question) -> str:
    return f"{question.collective} on {question.ranks} ranks"


# --- what is written ------------------------------------------------------------------------------


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
    """MPICH's stock selections: from a file, or out of the library of an MPICH."""
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
