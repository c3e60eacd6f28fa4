"""Times of schedules to choose from: by a model, by measurement, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tutti.errors import AlgorithmError, LayoutError, TuningError
from tutti.schedule import Schedule, candidates, schedule
from tutti.tune.decisions import HOST, TIMES
from tutti.tune.targets import counterparts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.mpi.bench import Settings
    from tutti.mpi.host import Host
    from tutti.platform import Platform

__all__ = [
    "COLLECTIVES",
    "METHODS",
    "Question",
    "by_measurement",
    "by_model",
    "fastest",
    "notations",
]

COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier",
)  # fmt: skip
"""What can be tuned."""

METHODS = ("model", "measurement", "both")

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
    """
    if only:
        return [one for one in only if _laid_out(one, question, strict=len(only) == 1)]
    found = dict.fromkeys(candidates(question.collective, question.ranks))
    for target in question.targets:
        others = counterparts(target, question.collective, question.ranks)
        found |= dict.fromkeys(one.schedule for one in others)
    plain = [one for one in found if one.partition(":")[0] not in _NOT_REAL]
    return [one for one in plain if _laid_out(one, question, strict=False)]


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
        A row for each, with the columns of :data:`TIMES`.

    Raises:
        TuningError: there is no algorithm for a size.
    """
    from tutti.search import winners
    from tutti.simulate import make_case, measured
    from tutti.units import Size

    listed = notations(question, only)
    rows = []
    for size in question.sizes:
        bytes_ = Size(bytes=size)
        best = [] if only else winners(platform, question.collective, question.ranks, [bytes_])
        every = {name: _laid_out(name, question, strict=False) for name in [*listed, *best]}
        cases = {}
        for laid_out in every.values():
            if laid_out is None:
                continue
            try:
                case = make_case(laid_out, platform, size=bytes_, datatype=question.datatype)
            except LayoutError:
                continue
            cases[laid_out.name] = laid_out, case
        found = measured([case for _, case in cases.values()], 0, None)
        rows += [
            _row(question, size, laid_out, figures[0], "model")
            for (laid_out, _), figures in zip(cases.values(), found, strict=True)
        ]
        if done is not None:
            done(1)
    return _some(rows, question)


def by_measurement(
    question: Question,
    host: Host,
    settings: Settings,
    names: Sequence[str],
    *,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """What algorithms take on real ranks, and the MPI's own code beside them: medians of blocks.

    Args:
        question: of what.
        host: the MPI.
        settings: how to measure.
        names: the algorithms.
        done: called with (measured, expected) blocks.

    Returns:
        A row for each, with the columns of :data:`TIMES`.

    Raises:
        BenchError: the run failed, or a result was wrong.
    """
    from tutti.errors import BenchError
    from tutti.mpi.bench import Asked, Candidate, measure

    asked = Asked(question.collective, question.ranks, question.sizes, question.datatype)
    laid_out = {one.name: one for name in names if (one := _laid_out(name, question, strict=True))}
    own = [] if settings.distance is not None else [Candidate(HOST)]
    chosen = [Candidate("schedule", one) for one in laid_out.values()]
    frame = measure(host, asked, own + chosen, settings, done=done)
    if frame["wrong"].sum():
        message = f"results of {question.collective} on {question.ranks} ranks were wrong"
        raise BenchError(message, kind="failed")
    medians = frame.group_by("schedule", "size_bytes", maintain_order=True).agg(
        pl.col("time_ps").quantile(0.5, "lower")
    )
    rows = [
        _row(question, row["size_bytes"], laid_out.get(row["schedule"]), row["time_ps"],
             "measurement")
        for row in medians.iter_rows(named=True)
    ]  # fmt: skip
    return _some(rows, question)


def fastest(times: pl.DataFrame, question: Question, most: int) -> list[str]:
    """The algorithms that are worth measuring: the fastest of each size, for each target.

    Args:
        times: by a model.
        question: of what.
        most: how many of each size, for each target.
    """
    found: dict[str, None] = {}
    for target in question.targets:
        names = {one.schedule for one in counterparts(target, question.collective, question.ranks)}
        mine = times if target == "plan" else times.filter(pl.col("schedule").is_in(list(names)))
        for size in question.sizes:
            at = mine.filter(pl.col("size_bytes") == size).sort("time_ps", maintain_order=True)
            found |= dict.fromkeys(at["schedule"].head(most).to_list())
            spare = at.filter(~pl.col("moves_chunks"))["schedule"].head(1).to_list()
            found |= dict.fromkeys(spare)
    return list(found)


def _row(
    question: Question, size: int, laid_out: Schedule | None, time_ps: int, method: str
) -> dict[str, object]:
    return {
        "collective": question.collective,
        "ranks": question.ranks,
        "size_bytes": size,
        "schedule": laid_out.name if laid_out else HOST,
        "time_ps": time_ps,
        "method": method,
        "moves_chunks": laid_out.moves_chunks if laid_out else False,
    }


def _some(rows: list[dict[str, object]], question: Question) -> pl.DataFrame:
    if not rows:
        message = f"no algorithm performs {question.collective} on {question.ranks} ranks"
        raise TuningError(message, kind="nothing")
    return pl.DataFrame(rows, schema=TIMES, orient="row")
