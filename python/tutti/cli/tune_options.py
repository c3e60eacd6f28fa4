"""Options of `tutti tune`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.datatypes import DATATYPES
from tutti.base.files.mistakes import mistake
from tutti.base.ranges import expanded_ranks
from tutti.cli import options
from tutti.cli.mpi_options import Emulate, Launcher, LauncherOptions, Mpicc, distance
from tutti.collectives.sizes import part_bytes
from tutti.measured.errors import TuningError
from tutti.measured.tune import TARGETS, Question
from tutti.measured.tune.measure import COLLECTIVES, METHODS
from tutti.measured.tune.nodes import check_full_nodes, platform_cautions
from tutti.measured.tune.study import Tuning
from tutti.mpi.bench_job import Settings
from tutti.mpi.errors import MpiError
from tutti.mpi.underneath import find_mpi
from tutti.mpi.usual import LEAST_GAIN
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import check_fits, chosen_model, find_platform
from tutti.platforms.nodes import ranks_per_node, with_ranks_per_node
from tutti.schedules.mpi_names import collective_name
from tutti.study.console import remark

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.platforms.machine import Platform as Machine

_measuring = partial(typer.Option, rich_help_panel="Measuring")
_writing = partial(typer.Option, rich_help_panel="Writing")


@dataclass
class TuningInput:
    """What to tune, and how."""

    collectives: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTIVE]...", help="What to tune; default: all_reduce."),
    ] = None
    ranks: options.Ranks = "4"
    begin: options.Begin = "8"
    end: options.End = "512K"
    factor: Annotated[
        int, typer.Option("-f", "--factor", min=2, help="Factor between consecutive sizes.")
    ] = 4
    ranks_per_node: Annotated[
        int | None, typer.Option("--ranks-per-node", min=1, help="Ranks on each node of the jobs; "
                                 "default: that of the platform.")
    ] = None  # fmt: skip
    by: Annotated[
        str, typer.Option("--by", help="model, measurement, or both (measures the model's best).")
    ] = "model"
    platform: options.Platform = None
    model: options.Model = None
    algorithm: Annotated[
        list[str] | None, typer.Option("--algorithm", "-a", metavar="NAME[:ARG]",
                                       help="Algorithm to consider; may be repeated; default: all.")
    ] = None  # fmt: skip
    datatype: options.Datatype = "float32"


@dataclass
class Measuring:
    """How to measure over MPI."""

    blocks: Annotated[
        int, _measuring("-n", "--repetitions", min=1,
                        help="Number of repetitions: blocks per case, whose median is used.")
    ] = 50  # fmt: skip
    each: Annotated[
        int, _measuring("--each", min=1,
                        help="Back-to-back collectives in a block; 1 for rooted ones, and above "
                             "256 KiB.")
    ] = 10  # fmt: skip
    most: Annotated[
        int, _measuring("--most", min=1,
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
        list[str] | None, _writing("--for", metavar="LIBRARY", help="plan, openmpi (5), openmpi4 "
                                   "(4.1), openmpi6, mpich or ucc; may be repeated; default: all.")
    ] = None  # fmt: skip
    csel_base: Annotated[
        Path | None, _writing("--csel-base", metavar="FILE",
                              help="MPICH's generic.json; default: from its library.")
    ] = None  # fmt: skip
    rules_version: Annotated[
        int, _writing("--rules-version", min=1, max=2,
                      help="Version of the classic file of Open MPI 5; 2 needs 5.0.7.")
    ] = 1  # fmt: skip
    extend: Annotated[
        bool, _writing("--extend", help="Rules also hold below the smallest and above the largest "
                       "tuned size; default: only between them.")
    ] = False  # fmt: skip
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Check the files: run with them, and compare message counts."),
    ] = False
    to: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder.")] = (
        Path("out/tune")
    )


def tuning_of(request: TuningInput, measuring: Measuring, writing: Writing) -> Tuning:
    """Returns what to tune.

    Raises:
        ConfigError: An option is invalid.
        TuningError: A library is unknown.
        MpiError: No MPI library was found, and one is needed.
    """
    targets, raw = _targets(writing.targets), _platform(request)
    if writing.rules_version == 2 and "openmpi" not in targets:
        raise mistake("applies to Open MPI 5 only", source="--rules-version", value="2",
                      expected="also --for openmpi")  # fmt: skip
    questions = _questions(request, targets)
    per_node = request.ranks_per_node or (ranks_per_node(raw) if raw else None)
    counts = [question.ranks for question in questions]
    if per_node is not None:
        check_full_nodes(counts, per_node)
    platform = _machine(request, raw)
    if raw is not None and platform is not None and platform.routes is not None:
        check_fits(raw, max(counts), platform.routes, source="--ranks", key="")
    for caution in platform_cautions(raw, counts, per_node) if raw else ():
        remark(caution)
    error = raw.calibration.share if raw and raw.calibration else 0.0
    return Tuning(
        questions=questions,
        by=request.by,
        algorithms=request.algorithm or [],
        machine=platform,
        mpi=_mpi(measuring, needed=request.by != "model" or writing.prove),
        settings=Settings(
            blocks=measuring.blocks,
            each=measuring.each,
            distance=distance(measuring.emulate),
            options=measuring.launcher_option or [],
        ),
        most=measuring.most,
        targets=targets,
        strict=bool(writing.targets),
        base=writing.csel_base,
        second=writing.rules_version == 2,
        extend=writing.extend,
        ranks_per_node=per_node,
        least_gain=max(LEAST_GAIN, error),
    )


def _targets(named: list[str] | None) -> list[str]:
    for name in named or []:
        if name not in TARGETS:
            known = ", ".join(TARGETS)
            message = f"unknown library `{name}`: expected one of {known}"
            fields = {"name": name, "known": known}
            raise TuningError(message, kind="unknown_target", fields=fields)
    return list(dict.fromkeys(named or TARGETS))


def _platform(request: TuningInput) -> RawPlatform | None:
    """Returns the file of the platform, with nodes of the requested number of ranks."""
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
    raw = find_platform(str(request.platform), folder=Path())
    if request.ranks_per_node is None:
        return raw
    return with_ranks_per_node(raw, request.ranks_per_node, source="--ranks-per-node")


def _machine(request: TuningInput, raw: RawPlatform | None) -> Machine | None:
    if raw is None:
        return None
    source = str(request.platform)
    return machine(raw, chosen_model(raw, request.model, source=source), source=source)


def _mpi(measuring: Measuring, *, needed: bool) -> Mpi | None:
    """Finds the MPI library; without one, rules can still be written by a model."""
    try:
        return find_mpi(measuring.mpicc, measuring.launcher)
    except MpiError:
        if needed or measuring.mpicc is not None:
            raise
        return None


def _questions(request: TuningInput, targets: list[str]) -> list[Question]:
    collectives = [collective_name(one) for one in request.collectives or ["all_reduce"]]
    name = options.datatype(request.datatype) or "float32"
    if name not in DATATYPES:
        raise mistake("unknown datatype", source="-d", value=name,
                      expected=", ".join(DATATYPES))  # fmt: skip
    for collective in collectives:
        if collective not in COLLECTIVES:
            expected = f"one of {', '.join(COLLECTIVES)}"
            raise mistake("cannot be tuned", source="COLLECTIVE", value=collective,
                          expected=expected)  # fmt: skip
    counts = expanded_ranks(request.ranks or "4")
    if counts[0] < 2:
        raise mistake("a collective of one rank has no messages", source="--ranks",
                      value=request.ranks or "", expected="2 ranks or more")  # fmt: skip
    sizes = options.growing_sizes(request.begin, request.end, request.factor)
    return [
        Question(
            collective, count, _sizes(sizes, collective, count, DATATYPES[name]), name, targets
        )
        for collective in collectives
        for count in counts
    ]


def _sizes(sizes: list[int], collective: str, ranks: int, width: int) -> list[int]:
    """Returns sizes with an element for each part; a barrier has size 0."""
    if collective == "barrier":
        return [0]
    unit = part_bytes(collective, ranks, width)
    rounded = [-(-size // unit) * unit for size in sizes]
    if rounded[0] != sizes[0]:
        remark(f"{collective} on {ranks} ranks: sizes rounded up to multiples of {unit} B")
    return sorted(set(rounded))
