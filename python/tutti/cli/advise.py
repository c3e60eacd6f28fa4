"""`tutti advise`: algorithms for larger jobs, from measurements of a few nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from tutti.base.files.extras import check_extra
from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.advise_shown import remarks_of_files, show, show_rules, show_usage
from tutti.cli.grouped import grouped
from tutti.collectives.frames import write
from tutti.collectives.sizes import growing
from tutti.formats.measurements import Measurements, read_measurements
from tutti.measured.advise import AdviceRequest, decision_frame, write_rules
from tutti.measured.advise import advise as decide
from tutti.measured.advise.questions import CANDIDATES
from tutti.measured.advise.rules import TARGETS_OF
from tutti.measured.advise.scope import library_family
from tutti.measured.errors import TuningError
from tutti.measured.tune.mpich import Stock, stock, stock_of_file
from tutti.mpi.errors import MpiError
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark, wrote
from tutti.study.files import folder
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from tutti.measured.advise import Advice

_MEASURED = "Measurements"
_LARGER = "Larger job"
_WRITING = "Writing"
_FACTOR = 4


@dataclass
class MeasuredInput:
    """Files, and what they do not state."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="CSV files of PICO or OSU, logs of OSU, IMB or nccl-tests, results of "
            "`tutti mpi bench`.",
            show_default=False,
        ),
    ]
    algorithm: Annotated[
        list[str] | None,
        typer.Option("--algorithm", "-a", metavar="[FILE=]NAME", rich_help_panel=_MEASURED,
                     help="Algorithm of the rows of a file, or of all files, that state none."),
    ] = None  # fmt: skip
    measured_ranks: Annotated[
        int | None,
        typer.Option("--measured-ranks", min=2, max=RANKS, rich_help_panel=_MEASURED,
                     help="Rank count of rows that do not state it."),
    ] = None  # fmt: skip
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="NAME", rich_help_panel=_MEASURED,
                     help="System to decide for; default: the most frequent."),
    ] = None  # fmt: skip
    library: Annotated[
        str | None,
        typer.Option("--library", rich_help_panel=_MEASURED,
                     help="MPI library, such as openmpi or mpich; default: the most frequent."),
    ] = None  # fmt: skip
    memory: Annotated[
        str | None,
        typer.Option("--memory", rich_help_panel=_MEASURED,
                     help="Memory of the buffers: host or gpu; default: the most frequent."),
    ] = None  # fmt: skip


@dataclass
class LargerJob:
    """What to decide."""

    ranks: Annotated[
        str | None,
        typer.Option("--ranks", "-r", rich_help_panel=_LARGER,
                     help="Rank counts: a list 64,1024 or a range 64:1024; default: 4 and 16 times "
                     "the largest measured."),
    ] = None  # fmt: skip
    ranks_per_node: Annotated[
        int | None,
        typer.Option("--ranks-per-node", min=1, max=RANKS, rich_help_panel=_LARGER,
                     help="Ranks per node; default: the most frequent. Also those of rows that "
                     "state only nodes."),
    ] = None  # fmt: skip
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", rich_help_panel=_LARGER,
                     help="Sides of a torus in nodes, such as 8x8x8; may be repeated."),
    ] = None  # fmt: skip
    collective: Annotated[
        list[str] | None,
        typer.Option("--collective", "-c", rich_help_panel=_LARGER,
                     help="Collective; may be repeated; default: all measured. Of files that "
                     "state none, theirs."),
    ] = None  # fmt: skip
    begin: Annotated[
        str | None,
        typer.Option("-b", "--begin", metavar="SIZE", rich_help_panel=_LARGER,
                     help="Smallest size; default: the sizes measured."),
    ] = None  # fmt: skip
    end: Annotated[
        str | None,
        typer.Option("-e", "--end", metavar="SIZE", rich_help_panel=_LARGER, help="Largest size."),
    ] = None  # fmt: skip
    factor: Annotated[
        int | None,
        typer.Option("-f", "--factor", min=2, rich_help_panel=_LARGER,
                     help="Factor between consecutive sizes; default: 4."),
    ] = None  # fmt: skip
    algorithms: Annotated[
        str,
        typer.Option("--algorithms", rich_help_panel=_LARGER,
                     help="measured, library (those of them that the library has), or known (also "
                     "those that the library has, but that were not measured)."),
    ] = "measured"  # fmt: skip


@dataclass
class AdviceOutput:
    """What to write."""

    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", rich_help_panel=_WRITING,
                     help="Output folder of predictions, report and rules. Default: none."),
    ] = None  # fmt: skip
    csel_base: Annotated[
        Path | None, typer.Option("--csel-base", metavar="FILE", rich_help_panel=_WRITING,
                                  help="MPICH's generic.json; default: from its library.")
    ] = None  # fmt: skip


@grouped
def advise(measured: MeasuredInput, job: LargerJob, output: AdviceOutput) -> None:
    """Choose algorithms for larger jobs from measurements of a few nodes.

    A model of the machine is calibrated on the measured collectives, and predicts each algorithm at
    larger rank counts. For each collective and rank count, the table lists ranges of sizes with the
    fastest algorithm, its time with the 90 % interval, the confidence (the probability that it is
    within 5 % of the fastest) and the runner-up. `gain` is how much longer the library's default
    would take, if it was measured. Rows that cannot be used are counted with the reason.

    With --out, writes advice.parquet and .csv (all predictions), decisions.csv, report.html and the
    rules of Open MPI or MPICH; algorithms for which the library has no rule are named.

    \b
    Examples:
      tutti advise examples/22_advise/cluster.csv --ranks 64,256
      tutti advise examples/22_advise/cluster.csv --ranks 128 --algorithms library \\
        --collective all_reduce -b 1K -e 1M --out out/advise
    """
    check_extra("calibrate")
    if output.to is not None:
        check_extra("reports")
    request = _request(measured, job)
    found = _read(measured, job)
    remarks_of_files(found)
    with Progress("fitting and predicting"):
        advice = decide(found.rows, request)
    show_usage(found, advice)
    show(advice)
    if output.to is not None:
        _write(advice, folder(output.to), output.csel_base)


# --- input ----------------------------------------------------------------------------------------


def _request(measured: MeasuredInput, job: LargerJob) -> AdviceRequest:
    _check_word("--memory", measured.memory, ("host", "gpu"))
    _check_word("--algorithms", job.algorithms, CANDIDATES)
    ranks = options.expanded_ranks(job.ranks) if job.ranks is not None else None
    return AdviceRequest(
        ranks=ranks,
        shapes=[part.strip() for one in job.shape or [] for part in one.split(",")] or None,
        ranks_per_node=job.ranks_per_node,
        collectives=job.collective,
        algorithms=job.algorithms,
        system=measured.system,
        library=library_family(measured.library) if measured.library else None,
        memory=measured.memory,
        **_sizes(job),
    )


def _check_word(option: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise mistake("unknown value", source=option, value=shown(value),
                      expected=f"one of {', '.join(known)}")  # fmt: skip


def _sizes(job: LargerJob) -> dict[str, Any]:
    """Returns the sizes of the request: generated, or a part of those measured."""
    first, last = (
        None if text is None else Size.parse(options.size(text, option)).bytes
        for text, option in ((job.begin, "-b"), (job.end, "-e"))
    )
    if first is not None and last is not None:
        if last < first or first < 1:
            raise mistake("invalid range of sizes", source="-b and -e", value=f"{first} to {last}",
                          expected="1 byte or more, and the smaller size first")  # fmt: skip
        return {"sizes": growing(first, last, job.factor or _FACTOR)}
    if job.factor is not None:
        raise mistake("needs the smallest and the largest size", source="-f",
                      value=str(job.factor), expected="also -b and -e",
                      hint="without them, the sizes are those measured")  # fmt: skip
    return {"smallest": first or 0, "largest": 1 << 62 if last is None else last}


def _read(measured: MeasuredInput, job: LargerJob) -> Measurements:
    """Reads the files, and names the algorithms that they do not state."""
    one = job.collective[0] if job.collective and len(job.collective) == 1 else None
    found = read_measurements(
        measured.files,
        ranks=measured.measured_ranks,
        ranks_per_node=job.ranks_per_node,
        collective=one,
    )
    name, rows = pl.col("library_algorithm"), found.rows
    # Names for one file have precedence over a name for all files.
    given = sorted(_of_files(measured), key=lambda pair: pair[0] is None)
    for path, algorithm in given:
        mine = name.is_null() if path is None else name.is_null() & (pl.col("file") == path)
        rows = rows.with_columns(
            pl.when(mine).then(pl.lit(algorithm)).otherwise(name).alias("library_algorithm")
        )
    return Measurements(rows, found.omitted)


def _of_files(measured: MeasuredInput) -> list[tuple[str | None, str]]:
    """Returns file and name of each --algorithm; a name, too, may contain an equals sign."""
    files = {str(path) for path in measured.files}
    found: list[tuple[str | None, str]] = []
    for text in measured.algorithm or []:
        path, _, name = text.rpartition("=")
        while path and path not in files:
            path, _, more = path.rpartition("=")
            name = f"{more}={name}"
        found.append((path, name) if path else (None, text))
    return found


# --- output ---------------------------------------------------------------------------------------


def _write(advice: Advice, to: Path, csel_base: Path | None) -> None:
    from tutti.measured.advise.view import write_advice_report

    paths = [write(advice.predictions, to / f"advice.{suffix}") for suffix in ("parquet", "csv")]
    paths.append(write(decision_frame(advice.ranges), to / "decisions.csv"))
    paths.append(write_advice_report(to / "report.html", advice))
    wrote(*paths)
    formats = TARGETS_OF.get(advice.scope.library, ())
    if not formats:
        library = advice.scope.library or "an unknown library"
        remark(f"no rules written: tutti knows no rules of {library}; --library names another")
    trees = _stock(csel_base) if "mpich" in formats else None
    show_rules([write_rules(advice.predictions, one, to, stock=trees) for one in formats])


def _stock(base: Path | None) -> Stock | None:
    """Returns MPICH's stock selections, from a file or from the library of this machine."""
    if base is not None:
        return Stock(stock_of_file(base))
    try:
        mpi = find_mpi(None, None)
        return stock(mpi) if mpi.kind == "mpich" else None
    except (MpiError, TuningError):
        return None
