"""Options of `tutti advise`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import known_word, mistake
from tutti.base.ranges import RANK_NOTATION, expanded_ranks, size_bytes
from tutti.cli import options
from tutti.measured.advise import AdviceRequest, library_family
from tutti.measured.advise.questions import CANDIDATES

_measured = partial(typer.Option, rich_help_panel="Measurements")
_larger = partial(typer.Option, rich_help_panel="Larger job")
_writing = partial(typer.Option, rich_help_panel="Writing")


@dataclass
class MeasuredInput:
    """Files, and what they do not state."""

    files: Annotated[
        list[Path] | None, typer.Argument(
            metavar="[FILE]...", show_default=False,
            help="CSV files of PICO or OSU, logs of OSU, IMB or nccl-tests, results of "
            "`tutti mpi bench`; folders of them, or quoted patterns such as 'logs/*.txt'.")
    ] = None  # fmt: skip
    manifest: Annotated[
        Path | None, _measured(
            "--manifest", metavar="FILE",
            help="TOML or CSV file that lists files, and what they do not state: collective, "
            "ranks, ranks_per_node, library, algorithm, system.")
    ] = None  # fmt: skip
    allocations: Annotated[
        Path | None, _measured(
            "--allocations", metavar="FILE",
            help="CSV file with the host of each rank of the measured jobs: system, timestamp, "
            "rank, host, and group unless host names state it. Messages between groups of the "
            "network then take longer.")
    ] = None  # fmt: skip
    algorithm: Annotated[
        list[str] | None, _measured(
            "--algorithm", "-a", metavar="[FILE=]NAME",
            help="Algorithm of the rows of a file, or of all files, that state none.")
    ] = None  # fmt: skip
    measured_ranks: Annotated[
        int | None, _measured("--measured-ranks", min=2, max=RANKS,
                              help="Rank count of rows that do not state it.")
    ] = None  # fmt: skip
    system: Annotated[
        str | None, _measured("--system", metavar="NAME",
                              help="System to decide for; default: the most frequent.")
    ] = None  # fmt: skip
    library: Annotated[
        str | None, _measured("--library", help="MPI library, such as openmpi or mpich; default: "
                              "the most frequent.")
    ] = None  # fmt: skip
    platform: Annotated[
        str | None, _measured("--platform", "-p", help="Name of the platform of that "
                              "system, its file or a topology: the calibration starts from its "
                              "nodes and network; default: the one with the system's name.")
    ] = None  # fmt: skip
    memory: Annotated[
        str | None, _measured("--memory", help="Memory of the buffers: host or gpu; default: the "
                              "most frequent.")
    ] = None  # fmt: skip


@dataclass
class LargerJob:
    """What to decide."""

    ranks: Annotated[
        str | None, _larger("--ranks", "-r", help=f"Rank counts: {RANK_NOTATION}; "
                            "default: 4 and 16 times the largest measured.")
    ] = None  # fmt: skip
    ranks_per_node: Annotated[
        int | None, _larger("--ranks-per-node", min=1, max=RANKS,
                            help="Ranks per node; default: the most frequent. Also those of rows "
                            "that state only nodes.")
    ] = None  # fmt: skip
    shape: Annotated[
        list[str] | None, _larger("--shape", help="Sides of a torus in nodes, such as 8x8x8; may "
                                  "be repeated.")
    ] = None  # fmt: skip
    collective: Annotated[
        list[str] | None, _larger("--collective", "-c", help="Collective; may be repeated; "
                                  "default: all measured. Of files that state none, theirs.")
    ] = None  # fmt: skip
    begin: Annotated[
        str | None, _larger("-b", "--begin", metavar="SIZE",
                            help="Smallest size; default: the sizes measured.")
    ] = None  # fmt: skip
    end: Annotated[
        str | None, _larger("-e", "--end", metavar="SIZE", help="Largest size.")
    ] = None  # fmt: skip
    factor: Annotated[
        int | None, _larger("-f", "--factor", min=2,
                            help="Factor between consecutive sizes; default: 4.")
    ] = None  # fmt: skip
    algorithms: Annotated[
        str, _larger("--algorithms", help="measured, library (those of them that the library has), "
                     "or known (also those that the library has, but that were not measured).")
    ] = "measured"  # fmt: skip


@dataclass
class AdviceOutput:
    """What to write."""

    to: Annotated[
        Path | None, _writing("--out", "-o", metavar="FOLDER", help="Output folder of "
                              "predictions, report and rules. Default: none.")
    ] = None  # fmt: skip
    csel_base: Annotated[
        Path | None, _writing("--csel-base", metavar="FILE",
                              help="MPICH's generic.json; default: from its library.")
    ] = None  # fmt: skip
    extend: Annotated[
        bool, _writing("--extend", help="Rules also hold below the smallest and above the largest "
                       "predicted size; default: only between them.")
    ] = False  # fmt: skip


def request_of(measured: MeasuredInput, job: LargerJob) -> AdviceRequest:
    """Returns what to decide.

    Raises:
        ConfigError: An option is invalid.
    """
    if measured.memory is not None:
        known_word(measured.memory, ("host", "gpu"), source="--memory")
    known_word(job.algorithms, CANDIDATES, source="--algorithms")
    ranks = expanded_ranks(job.ranks) if job.ranks is not None else None
    return AdviceRequest(
        ranks=ranks,
        shapes=[part.strip() for text in job.shape or [] for part in text.split(",")] or None,
        ranks_per_node=job.ranks_per_node,
        collectives=job.collective,
        algorithms=job.algorithms,
        system=measured.system,
        library=library_family(measured.library) if measured.library else None,
        memory=measured.memory,
        platform=measured.platform,
        **_sizes(job),
    )


def _sizes(job: LargerJob) -> dict[str, Any]:
    """Returns the sizes of the request: generated, or a part of those measured."""
    if job.begin is not None and job.end is not None:
        return {"sizes": options.growing_sizes(job.begin, job.end, job.factor or 4)}
    if job.factor is not None:
        raise mistake("needs the smallest and the largest size", source="-f",
                      value=str(job.factor), expected="also -b and -e",
                      hint="without them, the sizes are those measured")  # fmt: skip
    return {
        "smallest": size_bytes(job.begin, "-b", 0),
        "largest": size_bytes(job.end, "-e", 1 << 62),
    }
