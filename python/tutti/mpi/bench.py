"""Measures collectives over MPI: schedules, the native collective, and a model's prediction.

The method is that of Ruefenacht et al. 2017, section 5.2: blocks of back-to-back collectives that
all ranks start together; minimum, quartiles and median over the blocks. Candidates take turns block
by block, and every result is checked in the same run.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti import _core
from tutti.base.datatypes import DATATYPES
from tutti.base.units import Size
from tutti.collectives.frames import commit
from tutti.collectives.simulation import simulate
from tutti.collectives.sizes import part_bytes
from tutti.mpi.bench_job import OPERATIONS, TYPES, Group, Job, Settings
from tutti.mpi.errors import BenchError
from tutti.mpi.plan import COLLECTIVES, CollectivePlan, Rule
from tutti.schedules.bits import bits_differ, is_exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule

ORIGIN: Final[dict[str, type[pl.DataType]]] = {
    "model": pl.String,
    "emulated": pl.Boolean,
    "crowded": pl.Boolean,
    "clock_error_ps": pl.Int64,
    "mpi": pl.String,
    "host": pl.String,
    "started": pl.String,
    "version": pl.String,
    "commit": pl.String,
}
"""The columns that state the origin of measured rows."""
BLOCKS: Final[dict[str, type[pl.DataType]]] = {
    "collective": pl.String,
    "schedule": pl.String,
    "implementation": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "count": pl.Int64,
    "datatype": pl.String,
    "operation": pl.String,
    "root": pl.Int64,
    "each": pl.Int64,
    "block": pl.Int64,
    "time_ps": pl.Int64,
    "first_ps": pl.Int64,
    "mean_ps": pl.Int64,
    "late_ps": pl.Int64,
    "tries": pl.Int64,
    "wrong": pl.Int64,
    "model_ps": pl.Int64,
    **ORIGIN,
}
"""The columns of measured blocks, one row each.

``schedule`` is empty for the MPI library, and the name of a forced algorithm. ``implementation`` is
schedule, own (the MPI library), call (an application's call that a rule covers) or forced (an
algorithm of the MPI library). Times are per collective: the block's time over
``each``, until the last rank finished (``time_ps``), until the first (``first_ps``), and on average
(``mean_ps``). ``late_ps`` is how late the last rank started the block, which was measured ``tries``
times. ``model_ps`` is the model's prediction for the same block. ``emulated``: the model emulated
the distance between ranks, and no network was measured. ``crowded``: ranks outnumbered the cores of
a host. ``clock_error_ps`` bounds the error of the clocks of several hosts; 0 on one host.
"""

_PS_PER_NS: Final = 1000


@dataclass(frozen=True)
class BenchCandidate:
    """An implementation to measure.

    Attributes:
        implementation: "schedule", "own" for the MPI library, "call" for an application's call
            that the library performs by the schedule, or "forced" for an algorithm of the MPI
            library.
        schedule: None for the MPI library.
        algorithm: Name of the forced algorithm.
        controls: Control variables of the MPI library (MPI_T) that force it, values by name.
    """

    implementation: str
    schedule: Schedule | None = None
    algorithm: str = ""
    controls: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the schedule or algorithm, or "own"."""
        return self.schedule.name if self.schedule else self.algorithm or "own"


@dataclass(frozen=True)
class Benchmark:
    """A collective and its sizes.

    Attributes:
        collective: Name of the collective.
        ranks: Number of ranks.
        sizes: In bytes, by the convention of nccl-tests.
        datatype: Datatype of the elements.
        operation: Operation of reductions.
        root: Root of rooted collectives.
    """

    collective: str
    ranks: int
    sizes: Sequence[int]
    datatype: str = "float32"
    operation: str = "sum"
    root: int = 0

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
            BenchError: A name is unknown, or a size does not divide into parts.
        """
        _known("collective", self.collective, COLLECTIVES)
        _known("datatype", self.datatype, TYPES)
        _known("operation", self.operation, OPERATIONS)
        if not 0 <= self.root < self.ranks:
            raise BenchError(
                f"root {self.root}: expected one of the {self.ranks} ranks", kind="request"
            )
        for size in self.sizes:
            if size % self.part:
                message = (
                    f"{self.collective} of {size} bytes on {self.ranks} ranks: expected a multiple "
                    f"of {self.part} bytes, an element of {self.datatype} for each part"
                )
                raise BenchError(message, kind="request")

    @property
    def part(self) -> int:
        """The size of one element for each part, in bytes: sizes are multiples of it."""
        return part_bytes(self.collective, self.ranks, DATATYPES[self.datatype])

    def count(self, size: int) -> int:
        """Returns the number of elements of a size."""
        return size // DATATYPES[self.datatype]


def measure(
    mpi: Mpi,
    benchmark: Benchmark,
    candidates: Sequence[BenchCandidate] | Mapping[int, Sequence[BenchCandidate]],
    settings: Settings,
    *,
    model: Platform | None = None,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """Measures candidates on every size, in one run of the ranks.

    Args:
        mpi: The MPI library.
        benchmark: The collective and its sizes.
        candidates: The implementations to compare: at every size, or those at each size.
        settings: How to measure.
        model: Platform that predicts the times; by default the emulated one.
        done: Called with (measured, expected) blocks.

    Returns:
        A row for each block, with the columns of :data:`BLOCKS`.

    Raises:
        BenchError: The candidates do not fit the benchmark, or the run failed.
        PlanError: A schedule cannot be executed.
        LaunchError: The ranks could not be started.
    """
    if not isinstance(candidates, Mapping):
        candidates = dict.fromkeys(benchmark.sizes, candidates)
    every = list({id(one): one for listed in candidates.values() for one in listed}.values())
    _check(benchmark, every, settings)
    origin = origin_now()
    info, samples = _job(benchmark, candidates, every, settings).run(mpi, done=done)
    machine = model or (settings.distance.platform if settings.distance else None)
    rows = {
        (group, case): _row(benchmark, size, one, settings, machine)
        for group, size in enumerate(benchmark.sizes)
        for case, one in enumerate(candidates[size])
    }
    found = (
        rows[one["group"], one["case"]]
        | _times(one, settings.each)
        | info.columns(one["group"])
        | origin
        for one in samples
    )
    return pl.DataFrame(list(found), schema=BLOCKS, orient="row")


def origin_now() -> dict[str, str | None]:
    """Returns the columns that state the time and the version of tutti."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"started": started, "version": _core.__version__, "commit": commit()}


def _job(
    benchmark: Benchmark,
    candidates: Mapping[int, Sequence[BenchCandidate]],
    every: Sequence[BenchCandidate],
    settings: Settings,
) -> Job:
    plan, numbers = _plan(benchmark, every)
    controls = [one.controls for one in every if one.implementation == "forced"]
    numbered = {id(one): number for one, number in zip(every, numbers, strict=True)}
    groups = [
        Group(
            benchmark.collective,
            benchmark.count(size),
            benchmark.datatype,
            benchmark.operation,
            benchmark.root,
            [(one.implementation, numbered[id(one)]) for one in candidates[size]],
        )
        for size in benchmark.sizes
    ]
    return Job(benchmark.ranks, settings, plan, groups, controls=controls)


def _check(benchmark: Benchmark, candidates: Sequence[BenchCandidate], settings: Settings) -> None:
    if not candidates:
        raise BenchError("nothing to measure: expected at least one algorithm", kind="request")
    calls = [one for one in candidates if one.implementation == "call"]
    if len(calls) > 1:
        message = f"{len(calls)} schedules with call: expected at most one in a run"
        raise BenchError(message, kind="request")
    if settings.distance is not None and any(one.implementation == "own" for one in candidates):
        message = "own with emulated distance: expected schedules, which alone can be emulated"
        raise BenchError(message, kind="request")
    for one in candidates:
        if one.schedule and (one.schedule.collective, one.schedule.ranks) != (
            benchmark.collective, benchmark.ranks,
        ):  # fmt: skip
            message = (
                f"{one.name} performs {one.schedule.collective} on {one.schedule.ranks} ranks: "
                f"expected {benchmark.collective} on {benchmark.ranks}"
            )
            raise BenchError(message, kind="request")
        if one.schedule and not is_exact(benchmark.datatype) and bits_differ(one.schedule):
            message = (
                f"{one.name}: sums on {benchmark.ranks} ranks differ in bits between ranks for "
                f"{benchmark.datatype}, so the call is forwarded to the MPI library"
            )
            raise BenchError(message, kind="request", hint="measure it with integers: -d int32")


def _plan(
    benchmark: Benchmark, candidates: Sequence[BenchCandidate]
) -> tuple[CollectivePlan | None, list[int]]:
    """Returns the plan and each candidate's schedule; a called schedule has the first rule.

    The number of a forced algorithm is that of its control variables.
    """
    order = sorted(
        range(len(candidates)), key=lambda place: candidates[place].implementation != "call"
    )
    placed = [(place, one) for place in order if (one := candidates[place].schedule) is not None]
    numbers = [0] * len(candidates)
    forced = [place for place, one in enumerate(candidates) if one.implementation == "forced"]
    for number, place in enumerate(forced):
        numbers[place] = number
    if not placed:
        return None, numbers
    rules = [Rule(benchmark.collective, benchmark.ranks, one) for _, one in placed]
    plan = CollectivePlan(rules, {"made by": "tutti mpi bench"})
    for (place, _), rule in zip(placed, plan.rules, strict=True):
        numbers[place] = plan.schedules.index(rule.schedule)  # type: ignore[arg-type] # a plan's are planned
    return plan, numbers


def _row(
    benchmark: Benchmark,
    size: int,
    one: BenchCandidate,
    settings: Settings,
    machine: Platform | None,
) -> dict[str, Any]:
    """Returns the columns that all blocks of a case share."""
    predicted = None
    if machine is not None and one.schedule is not None:
        predicted = predict(machine, one.schedule, size, benchmark.datatype, settings.each)
    return {
        "collective": benchmark.collective,
        "schedule": one.schedule.name if one.schedule else one.algorithm,
        "implementation": one.implementation,
        "ranks": benchmark.ranks,
        "size_bytes": size,
        "count": benchmark.count(size),
        "datatype": benchmark.datatype,
        "operation": benchmark.operation,
        "root": benchmark.root,
        "each": settings.each,
        "model_ps": predicted,
        "model": str(machine.model) if machine else None,
        "emulated": settings.distance is not None,
    }


def predict(machine: Platform, schedule: Schedule, size: int, datatype: str, each: int) -> int:
    """Predicts the time of one of `each` back-to-back collectives, in picoseconds."""
    row = schedule.repeated(each) if each > 1 else schedule
    run = simulate(row, machine, size=Size(bytes=size), datatype=datatype)
    return run.completion_ps // each


def _times(sample: dict[str, Any], each: int) -> dict[str, int]:
    return {
        "block": sample["block"],
        "time_ps": sample["last_ns"] * _PS_PER_NS // each,
        "first_ps": sample["first_ns"] * _PS_PER_NS // each,
        "mean_ps": sample["mean_ns"] * _PS_PER_NS // each,
        "late_ps": sample["late_ns"] * _PS_PER_NS,
        "tries": sample["tries"],
        "wrong": sample["wrong"],
    }


def summarise(blocks: pl.DataFrame) -> pl.DataFrame:
    """Summarises the blocks of each case, in the order in which they were measured.

    Returns:
        The columns that identify a case, and: blocks, least_ps, lower_quartile_ps, median_ps,
        upper_quartile_ps, most_ps, notch_ps, wrong, algbw_bytes_per_s, busbw_bytes_per_s. The rates
        are those of the median. notch_ps is the 95 % CI half-width of the median: 1.57
        interquartile ranges over the root of the number of blocks.
    """
    of_blocks = ("block", "time_ps", "first_ps", "mean_ps", "late_ps", "tries", "wrong", "started")
    together = [name for name in blocks.columns if name not in of_blocks]
    time = pl.col("time_ps")
    found = blocks.group_by(together, maintain_order=True).agg(
        blocks=pl.len(),
        least_ps=time.min(),
        lower_quartile_ps=time.quantile(0.25, "linear").round().cast(pl.Int64),
        median_ps=time.median().round().cast(pl.Int64),
        upper_quartile_ps=time.quantile(0.75, "linear").round().cast(pl.Int64),
        most_ps=time.max(),
        wrong=pl.col("wrong").sum(),
    )
    spread = pl.col("upper_quartile_ps") - pl.col("lower_quartile_ps")
    rates = [_rates(row) for row in found.iter_rows(named=True)]
    return found.with_columns(
        notch_ps=(1.57 * spread / pl.col("blocks").sqrt()).round().cast(pl.Int64),
        algbw_bytes_per_s=pl.Series([algbw for algbw, _ in rates], dtype=pl.Float64),
        busbw_bytes_per_s=pl.Series([busbw for _, busbw in rates], dtype=pl.Float64),
    )


def _rates(row: dict[str, Any]) -> tuple[float, float]:
    time = max(row["median_ps"], 1)
    case = (row["collective"], row["ranks"], row["size_bytes"])
    return _core.algbw(row["size_bytes"], time), _core.busbw(*case, time)


def _known(what: str, name: str, known: Iterable[str]) -> None:
    listed = ", ".join(known)
    if name not in listed.split(", "):
        message = f"unknown {what} `{name}`: expected one of {listed}"
        raise BenchError(message, kind="request", fields={"name": name, "known": listed})
