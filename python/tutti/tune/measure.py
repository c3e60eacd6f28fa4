"""Times of schedules to choose from: by a model, by measurement, or both."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.errors import AlgorithmError, LayoutError, TuningError
from tutti.mpi.bits import bits_differ, is_exact
from tutti.mpi.usual import to_beat, untuned
from tutti.schedule import Schedule, candidates, schedule
from tutti.tune.targets import counterparts
from tutti.tune.times import EMULATED, ESTIMATED, MEASURED, MODELLED, OWN, TIMES, mpi_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.mpi.bench import Candidate, Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platform import Platform

__all__ = [
    "COLLECTIVES",
    "METHODS",
    "Question",
    "by_measurement",
    "by_model",
    "fastest",
    "in_time",
    "notations",
]

COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier",
)  # fmt: skip
"""What can be tuned."""

METHODS = ("model", "measurement", "both")

_ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Of several in a row the root begins the next before others have ended one."""

_NOT_REAL = frozenset({"in_network"})
"""Algorithms whose folds the network does: no MPI has such a network underneath."""


@dataclass(frozen=True)
class Question:
    """A collective on a number of ranks, and the sizes to look at.

    Attributes:
        collective: which.
        ranks: how many.
        sizes: in bytes, by the convention of nccl-tests, ascending; multiples of what every rank
            and element needs.
        datatype: of the elements.
        targets: whose algorithms are looked at besides tutti's own.
    """

    collective: str
    ranks: int
    sizes: Sequence[int]
    datatype: str = "float32"
    targets: Sequence[str] = ("plan",)


def notations(question: Question, only: Sequence[str] = ()) -> list[str]:
    """The algorithms to look at: those that are named, or all that there are.

    Raises:
        AlgorithmError: none of those that are named is for the question.
        TuningError: ranks would get different bits from one that is named.
    """
    if only:
        named = [one for one in only if _laid_out(one, question, strict=len(only) == 1)]
        for one in named:
            if not _keeps_bits(one, question):
                raise _other_bits(one, question)
        return named
    found = dict.fromkeys(candidates(question.collective, question.ranks))
    for target in question.targets:
        others = counterparts(target, question.collective, question.ranks)
        found |= dict.fromkeys(one.schedule for one in others)
    plain = [one for one in found if one.partition(":")[0] not in _NOT_REAL]
    return [
        one
        for one in plain
        if _laid_out(one, question, strict=False) and _keeps_bits(one, question)
    ]


def _keeps_bits(notation: str, question: Question) -> bool:
    """Whether all ranks get the same bits of elements of the type in question."""
    return is_exact(question.datatype) or not _differ(notation, question.collective, question.ranks)


@functools.cache
def _differ(notation: str, collective: str, ranks: int) -> bool:
    """Kept, as it takes as long as a proof, and is asked for every size."""
    if collective != "all_reduce":
        return False
    return bits_differ(schedule(notation, collective=collective, ranks=ranks))


def _other_bits(notation: str, question: Question) -> TuningError:
    message = (
        f"{notation}: sums on {question.ranks} ranks differ in bits between ranks for "
        f"{question.datatype}"
    )
    return TuningError(message, kind="bits", fields={"schedule": notation})


def _laid_out(notation: str, question: Question, *, strict: bool) -> Schedule | None:
    try:
        return schedule(notation, collective=question.collective, ranks=question.ranks)
    except AlgorithmError:
        if strict:
            raise
        return None


def by_model(
    question: Question,
    platform: Platform,
    only: Sequence[str] = (),
    done: Callable[[int], object] | None = None,
) -> pl.DataFrame:
    """What a model says of every algorithm on every size.

    Args:
        question: of what.
        platform: the machine.
        only: these algorithms alone.
        done: called with 1 after each size.

    Returns:
        A row for each, with the columns of :data:`tutti.tune.times.TIMES`.

    Raises:
        TuningError: there is no algorithm for a size.
    """
    rows: list[dict[str, Any]] = []
    listed = notations(question, only)
    known = {"method": MODELLED, "conditions": f"{platform.name}: {platform.model.core}"}
    laid_out: dict[str, Schedule | None] = {}
    for size in question.sizes:
        found = _modelled(question, platform, size, listed, laid_out, search=not only)
        rows += [_row(question, size, one, time, known) for one, time in found]
        if found and "plan" in question.targets:
            rows += _estimated(question, platform, size, known, laid_out)
        if done is not None:
            done(1)
    return _some(rows, question)


def _estimated(
    question: Question,
    platform: Platform,
    size: int,
    known: dict[str, Any],
    laid_out: dict[str, Schedule | None],
) -> list[dict[str, Any]]:
    """What a plan's schedule has to beat: the MPI's own code, as far as a model can say."""
    name = next(
        name
        for name, (first, last) in untuned(question.collective, question.ranks)
        if first <= size and (last is None or size <= last)
    )
    found = _modelled(question, platform, size, [name], laid_out, search=False)
    told = known | {"method": ESTIMATED}
    return [_row(question, size, None, to_beat(time), told) for _, time in found]


def _modelled(
    question: Question,
    platform: Platform,
    size: int,
    listed: Sequence[str],
    known: dict[str, Schedule | None],
    *,
    search: bool,
) -> list[tuple[Schedule, int]]:
    """The algorithms that a size can be laid out for, each with its time in picoseconds.

    Schedules are verified when they are first met and kept in `known`.
    """
    from tutti.cases import CaseBuilder, measured
    from tutti.proving import verify
    from tutti.search import winners
    from tutti.units import Size

    bytes_ = Size(bytes=size)
    best = winners(platform, question.collective, question.ranks, [bytes_]) if search else []
    names = dict.fromkeys([*listed, *best])
    builder = CaseBuilder(platform, datatype=question.datatype)
    cases = {}
    for name in names:
        if name not in known:
            known[name] = _laid_out(name, question, strict=False)
        laid_out = known[name]
        if laid_out is None:
            continue
        verify(laid_out)
        try:
            case = builder.case(laid_out, size=bytes_)
        except LayoutError:
            continue
        cases[laid_out.name] = laid_out, case
    found = measured([case for _, case in cases.values()], 0, None)
    return [
        (laid_out, figures[0]) for (laid_out, _), figures in zip(cases.values(), found, strict=True)
    ]


def by_measurement(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    names: Sequence[str],
    *,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """What algorithms take on real ranks, and the MPI's own code beside them: medians of blocks.

    The MPI's own code is measured as it is where nobody has tuned it, and so it stays wherever it
    turns out to be the fastest. Rooted collectives are measured one by one, however many a block
    was to have. A block that a rank began late does not count, unless there is no other.

    Args:
        question: of what.
        mpi: the MPI.
        settings: how to measure.
        names: the algorithms.
        done: called with (measured, expected) blocks.

    Returns:
        A row for each, with the columns of :data:`tutti.tune.times.TIMES`.

    Raises:
        BenchError: the run failed, or a result was wrong.
    """
    from tutti.mpi.bench import Candidate

    if question.collective in _ROOTED:
        settings = replace(settings, each=1)
    laid_out = {one.name: one for name in names if (one := _laid_out(name, question, strict=True))}
    # Nothing keeps the messages of the MPI's own code apart.
    own = [] if settings.distance is not None else [Candidate("own")]
    chosen = own + [Candidate("schedule", one) for one in laid_out.values()]
    frame = _right_blocks(question, mpi, settings, chosen, done)
    tolerance = settings.tolerance_s(question.ranks, crowded=bool(frame["crowded"].any()))
    known = _known(mpi, settings) | {"mpi": mpi_of(mpi)}
    rows = [
        _row(question, row["size_bytes"], laid_out.get(row["schedule"]), row["time_ps"],
             known | {"blocks": row["blocks"], "late": row["late"]})
        for row in in_time(frame, tolerance).iter_rows(named=True)
    ]  # fmt: skip
    return _some(rows, question)


def _right_blocks(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    chosen: Sequence[Candidate],
    done: Callable[[int, int], object] | None,
) -> pl.DataFrame:
    from tutti.errors import BenchError
    from tutti.mpi.bench import Benchmark, measure

    asked = Benchmark(question.collective, question.ranks, question.sizes, question.datatype)
    frame = measure(mpi, asked, chosen, settings, done=done)
    if frame["wrong"].sum():
        message = f"results of {question.collective} on {question.ranks} ranks were wrong"
        raise BenchError(message, kind="failed")
    return frame


def _known(mpi: Mpi, settings: Settings) -> dict[str, str]:
    from tutti.mpi.machine import this_machine

    if settings.distance is not None:
        return {"method": EMULATED, "conditions": str(settings.distance)}
    return {"method": MEASURED, "conditions": f"{mpi}, {this_machine()}"}


def in_time(blocks: pl.DataFrame, tolerance_s: float) -> pl.DataFrame:
    """The median of each case over the blocks that all ranks began in time.

    Args:
        blocks: of :func:`tutti.mpi.bench.measure`.
        tolerance_s: how late a rank may begin, in seconds.

    Returns:
        Columns: schedule, size_bytes, time_ps, blocks (that count), late (that do not). Where every
        block began late all count, and ``late`` is their number too.
    """
    is_late = pl.col("late_ps") > tolerance_s * 1e12
    counts = ~is_late | (pl.col("late_count") == pl.col("all"))
    case = ["schedule", "size_bytes"]
    told = blocks.with_columns(
        late_count=is_late.sum().over(case).cast(pl.Int64), all=pl.len().over(case)
    )
    return (
        told.filter(counts)
        .group_by(case, maintain_order=True)
        .agg(
            pl.col("time_ps").quantile(0.5, "lower"),
            pl.len().cast(pl.Int64).alias("blocks"),
            pl.col("late_count").first().alias("late"),
        )
    )


def fastest(times: pl.DataFrame, question: Question, most: int) -> list[str]:
    """The algorithms that are worth measuring: the fastest of each size, for each target.

    Args:
        times: by a model.
        question: of what.
        most: how many of each size, for each target.
    """
    found: dict[str, None] = {}
    for target in question.targets:
        others = counterparts(target, question.collective, question.ranks)
        names = [one.schedule for one in others]
        schedules = times.filter(pl.col("schedule") != OWN)
        mine = schedules if target == "plan" else schedules.filter(pl.col("schedule").is_in(names))
        for size in question.sizes:
            at = mine.filter(pl.col("size_bytes") == size).sort("time_ps", maintain_order=True)
            found |= dict.fromkeys(at["schedule"].head(most).to_list())
            spare = at.filter(~pl.col("moves_chunks"))["schedule"].head(1).to_list()
            found |= dict.fromkeys(spare)
    return list(found)


def _row(
    question: Question, size: int, laid_out: Schedule | None, time_ps: int, known: dict[str, Any]
) -> dict[str, Any]:
    return dict.fromkeys(TIMES) | {
        "collective": question.collective,
        "ranks": question.ranks,
        "size_bytes": size,
        "datatype": question.datatype,
        "schedule": laid_out.name if laid_out else OWN,
        "time_ps": time_ps,
        "moves_chunks": laid_out.moves_chunks if laid_out else False,
        "same_on_all": not (
            laid_out and _differ(laid_out.name, laid_out.collective, laid_out.ranks)
        ),
        **known,
    }


def _some(rows: list[dict[str, Any]], question: Question) -> pl.DataFrame:
    if not rows:
        message = f"no algorithm performs {question.collective} on {question.ranks} ranks"
        raise TuningError(message, kind="nothing")
    return pl.DataFrame(rows, schema=TIMES, orient="row")
