"""Determines times of candidate schedules: by a model, by measurement, or both."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.datatypes import DATATYPES
from tutti.measured.errors import TuningError
from tutti.measured.tune.late import in_time
from tutti.measured.tune.library_defaults import default_of, default_schedules
from tutti.measured.tune.targets import counterparts
from tutti.measured.tune.times import (
    DEFAULT,
    EMULATED,
    ESTIMATED,
    MEASURED,
    MODELLED,
    OWN,
    TIMES,
    mpi_of,
)
from tutti.mpi.usual import LEAST_GAIN, to_beat, untuned
from tutti.schedules.bits import bits_differ, is_exact
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.schedules.ir import Schedule, candidates, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tutti.mpi.bench import BenchCandidate
    from tutti.mpi.bench_job import Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform

COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier",
)  # fmt: skip
"""Collectives that can be tuned."""

METHODS = ("model", "measurement", "both")

CROWDED = "more ranks than cores"
SEVERAL_HOSTS = re.compile(r", (\d+) hosts, rank 0 on ")

ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Their root starts the next of several back-to-back calls before other ranks finish one."""

LONG = 256 << 10
"""Size in bytes above which one call takes long enough to be timed alone."""

_NOT_REAL = frozenset({"in_network"})
"""Algorithms that the network reduces for: no MPI library runs on such a network."""


@dataclass(frozen=True)
class Question:
    """A collective on a number of ranks, and the sizes to tune.

    Attributes:
        collective: name of the collective.
        ranks: number of ranks.
        sizes: in bytes, by the convention of nccl-tests, ascending; multiples of an element for
            each part.
        datatype: datatype of the elements.
        targets: libraries with algorithms to consider.
    """

    collective: str
    ranks: int
    sizes: Sequence[int]
    datatype: str = "float32"
    targets: Sequence[str] = ("plan",)


def notations(question: Question, only: Sequence[str] = ()) -> list[str]:
    """Returns the candidate algorithms: the named ones, or all.

    Raises:
        AlgorithmError: No named algorithm supports the collective and ranks.
        TuningError: A named algorithm gives ranks different bits.
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
    """Whether all ranks get the same bits for the tuned datatype."""
    return is_exact(question.datatype) or not differ(notation, question.collective, question.ranks)


@functools.cache
def differ(notation: str, collective: str, ranks: int) -> bool:
    """Returns whether an all_reduce gives ranks different bits; other collectives do not.

    Cached, as it takes as long as a verification and is needed for every size.
    """
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
    *,
    least_gain: float = LEAST_GAIN,
) -> pl.DataFrame:
    """Predicts the time of every algorithm at every size.

    Args:
        question: the collective, ranks and sizes.
        platform: the platform.
        only: consider only these algorithms.
        done: called with 1 after each size.
        least_gain: the predicted gain over the native collective that a plan needs.

    Returns:
        A row for each, with the columns of :data:`tutti.measured.tune.times.TIMES`.

    Raises:
        TuningError: No algorithm supports a size.
    """
    rows: list[dict[str, Any]] = []
    listed = notations(question, only)
    on = f", {platform.routes.topology.name}" if platform.routes else ""
    known = {"method": MODELLED, "conditions": f"{platform.name}{on}: {platform.model.core}"}
    laid_out: dict[str, Schedule | None] = {}
    for size in question.sizes:
        found = _modelled(question, platform, size, listed, laid_out, search=not only)
        rows += [times_row(question, size, one, time, known) for one, time in found]
        if found and "plan" in question.targets:
            rows += _estimated(question, platform, size, known, laid_out, least_gain=least_gain)
        rows += _defaults(question, platform, size, known) if found else []
        if done is not None:
            done(1)
    return _some(rows, question)


def _estimated(
    question: Question,
    platform: Platform,
    size: int,
    known: dict[str, Any],
    laid_out: dict[str, Schedule | None],
    *,
    least_gain: float,
) -> list[dict[str, Any]]:
    """Estimates the native collective by the MPICH default, which a plan's schedule has to beat."""
    name = next(
        name
        for name, (first, last) in untuned(question.collective, question.ranks)
        if first <= size and (last is None or size <= last)
    )
    found = _modelled(question, platform, size, [name], laid_out, search=False)
    estimate = known | {"method": ESTIMATED}
    return [
        times_row(question, size, None, to_beat(time, least_gain), estimate) for _, time in found
    ]


def _defaults(
    question: Question, platform: Platform, size: int, known: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yields what libraries select by themselves; the parts of a composition run in turn."""
    for library in filter(None, dict.fromkeys(map(default_of, question.targets))):
        parts = default_schedules(
            *library, question.collective, question.ranks, size,
            element=DATATYPES[question.datatype],
        )  # fmt: skip
        time = 0
        for collective, notation in parts or ():
            part = replace(question, collective=collective)
            times = predicted(part, platform, size, [notation])
            if not times:
                break
            time += times[notation]
        else:
            if parts:
                own = {"method": DEFAULT, "mpi": " ".join(library)}
                yield times_row(question, size, None, time, known | own)


def _modelled(
    question: Question,
    platform: Platform,
    size: int,
    listed: Sequence[str],
    known: dict[str, Schedule | None],
    *,
    search: bool,
) -> list[tuple[Schedule, int]]:
    """Returns the algorithms that support a size, each with its time in picoseconds.

    Schedules are verified at their first use and cached in `known`.
    """
    from tutti.base.units import Size
    from tutti.collectives.case import CaseBuilder, measured
    from tutti.collectives.schedule_search import winners
    from tutti.schedules.proving import verify

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
    """Measures algorithms and the native collective over MPI: medians of blocks.

    The native collective is measured without rules, and stays where it is the fastest. Blocks of
    rooted collectives have one call each. Blocks in which a rank started late are discarded, unless
    all of them are late.

    Args:
        question: the collective, ranks and sizes.
        mpi: the MPI library.
        settings: how to measure.
        names: the algorithms.
        done: called with (measured, expected) blocks.

    Returns:
        A row for each, with the columns of :data:`tutti.measured.tune.times.TIMES`.

    Raises:
        BenchError: The run failed, or a result was wrong.
    """
    from tutti.mpi.bench import BenchCandidate

    laid_out = {one.name: one for name in names if (one := _laid_out(name, question, strict=True))}
    # Messages of the MPI library cannot be delayed.
    own = [] if settings.distance is not None else [BenchCandidate("own")]
    chosen = own + [BenchCandidate("schedule", one) for one in laid_out.values()]
    frame = right_blocks(question, mpi, settings, chosen, done)
    tolerance = settings.tolerance_s(question.ranks, crowded=bool(frame["crowded"].any()))
    known = _known(mpi, settings, frame) | {"mpi": mpi_of(mpi)}
    rows = [
        times_row(question, row["size_bytes"], laid_out.get(row["schedule"]), row["time_ps"],
             known | {"blocks": row["blocks"], "late": row["late"]})
        for row in in_time(frame, tolerance).iter_rows(named=True)
    ]  # fmt: skip
    return _some(rows, question)


def right_blocks(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    chosen: Sequence[BenchCandidate] | Mapping[int, Sequence[BenchCandidate]],
    done: Callable[[int, int], object] | None,
) -> pl.DataFrame:
    """Measures candidates, as :func:`tutti.mpi.bench.measure` does.

    Blocks of rooted collectives have one call, and so have those above :data:`LONG`, in a run of
    their own: ten calls of 16 MiB take so long that a comparison would take minutes.

    Raises:
        BenchError: The run failed, or a result was wrong.
    """
    if not isinstance(chosen, Mapping):
        chosen = dict.fromkeys(question.sizes, chosen)
    parts: dict[int, dict[int, Sequence[BenchCandidate]]] = {}
    for size, listed in chosen.items():
        parts.setdefault(_calls_of_a_block(question, size, settings), {})[size] = listed
    expected = settings.blocks * sum(map(len, chosen.values()))
    frames: list[pl.DataFrame] = []
    for each, part in parts.items():
        before = sum(map(len, frames))

        def advance(more: int, _: int, before: int = before) -> None:
            if done is not None:
                done(before + more, expected)

        frames.append(_blocks(question, mpi, replace(settings, each=each), part, advance))
    return pl.concat(frames)


def _calls_of_a_block(question: Question, size: int, settings: Settings) -> int:
    is_long = size > LONG and settings.distance is None
    return 1 if is_long or question.collective in ROOTED else settings.each


def _blocks(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    chosen: Mapping[int, Sequence[BenchCandidate]],
    done: Callable[[int, int], object],
) -> pl.DataFrame:
    from tutti.mpi.bench import Benchmark, measure
    from tutti.mpi.errors import BenchError

    benchmark = Benchmark(question.collective, question.ranks, list(chosen), question.datatype)
    frame = measure(mpi, benchmark, chosen, settings, done=done)
    if frame["wrong"].sum():
        message = f"results of {question.collective} on {question.ranks} ranks were wrong"
        raise BenchError(message, kind="failed")
    return frame


def _known(mpi: Mpi, settings: Settings, frame: pl.DataFrame) -> dict[str, str]:
    if settings.distance is not None:
        return {"method": EMULATED, "conditions": str(settings.distance)}
    return {"method": MEASURED, "conditions": conditions_of(mpi, frame)}


def conditions_of(mpi: Mpi, frame: pl.DataFrame) -> str:
    """Returns the MPI library and the hosts of measured blocks, and whether ranks shared cores."""
    crowded = f", {CROWDED}" if frame["crowded"].any() else ""
    return f"{mpi}, {', '.join(frame['host'].unique().sort())}{crowded}"


def cautions(conditions: Iterable[str]) -> Iterator[str]:
    """Yields what limits measurements under these conditions."""
    listed = list(conditions)
    if any(one.endswith(CROWDED) for one in listed):
        yield "ranks outnumber the cores: the times are for such runs, not for a core per rank"
    if not any(SEVERAL_HOSTS.search(one) for one in listed):
        yield "all ranks ran on one host: the times are not for ranks on several hosts"


def predicted(
    question: Question, platform: Platform, size: int, names: Iterable[str]
) -> dict[str, int]:
    """Returns predicted times in ps of those algorithms that support the size, by notation."""
    laid_out: dict[str, Schedule | None] = {}
    times = {}
    for name in names:
        for _, time in _modelled(question, platform, size, [name], laid_out, search=False):
            times[name] = time
    return times


def fastest(times: pl.DataFrame, question: Question, most: int) -> list[str]:
    """Selects the algorithms to measure: the fastest of each size, for each target.

    Args:
        times: by a model.
        question: the collective, ranks and sizes.
        most: maximum number for each size and target.
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


def times_row(
    question: Question, size: int, laid_out: Schedule | None, time_ps: int, known: dict[str, Any]
) -> dict[str, Any]:
    """Returns a row of :data:`tutti.measured.tune.times.TIMES`, by default of the own algorithm."""
    return dict.fromkeys(TIMES) | {
        "collective": question.collective,
        "ranks": question.ranks,
        "size_bytes": size,
        "datatype": question.datatype,
        "schedule": laid_out.name if laid_out else OWN,
        "time_ps": time_ps,
        "moves_chunks": laid_out.moves_chunks if laid_out else False,
        "same_on_all": not (
            laid_out and differ(laid_out.name, laid_out.collective, laid_out.ranks)
        ),
        **known,
    }


def _some(rows: list[dict[str, Any]], question: Question) -> pl.DataFrame:
    if not rows:
        message = f"no algorithm performs {question.collective} on {question.ranks} ranks"
        raise TuningError(message, kind="nothing")
    return pl.DataFrame(rows, schema=TIMES, orient="row")
