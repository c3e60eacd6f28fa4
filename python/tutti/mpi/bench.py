"""Collectives measured on real ranks: schedules, the MPI's own, and both beside what a model says.

The method is that of Ruefenacht et al. 2017, section 5.2: blocks of collectives in a row, which all
ranks begin at once; the least, quartiles and median over the blocks. What is compared takes turns
block by block, and every result is checked in the same run.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti import _core
from tutti.datatypes import DATATYPES
from tutti.errors import BenchError
from tutti.mpi.bench_job import OPERATIONS, TYPES, Group, Job, Settings
from tutti.mpi.bits import bits_differ, is_exact
from tutti.mpi.plan import COLLECTIVES, CollectivePlan, Rule
from tutti.mpi.sizes import part_bytes
from tutti.results import commit
from tutti.simulate import simulate
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.mpi.underneath import Mpi
    from tutti.platform import Platform
    from tutti.schedule import Schedule

__all__ = ["BLOCKS", "Candidate", "Settings", "measure", "summarise"]

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
"""The columns that say where measured rows come from."""
BLOCKS: Final[dict[str, type[pl.DataType]]] = {
    "collective": pl.String,
    "schedule": pl.String,
    "way": pl.String,
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

``schedule`` is empty for the MPI's own code; ``way`` is schedule, own (the MPI's own) or call (an
application's call, answered by a rule). Times are of one collective, the block's over ``each``:
``time_ps`` until the last rank was done, ``first_ps`` until the first, ``mean_ps`` in the mean.
``late_ps`` is by how much the last rank missed the start of the block, which was measured ``tries``
times until that was little. ``model_ps`` is what the model says of the same block; ``emulated``
says that the ranks were kept apart by that model, and that no network was measured. ``crowded``:
ranks outnumbered the cores of a host. ``clock_error_ps`` is by how much the clocks of several hosts
were at most misjudged meanwhile, and a block's start and time with them; 0 on one host.
"""

_PS_PER_NS: Final = 1000


@dataclass(frozen=True)
class Candidate:
    """What is measured on a size.

    Attributes:
        way: "schedule", "own" for the MPI's own code, or "call" for a call as of an application,
            which the library answers with the schedule.
        schedule: None for the MPI's own.
    """

    way: str
    schedule: Schedule | None = None

    @property
    def name(self) -> str:
        """The schedule's, or "own"."""
        return self.schedule.name if self.schedule else "own"


@dataclass(frozen=True)
class Benchmark:
    """A collective and its sizes.

    Attributes:
        collective: Its name.
        ranks: How many.
        sizes: In bytes, by the convention of nccl-tests.
        datatype: Of its elements.
        operation: Of reductions.
        root: Of rooted collectives.
    """

    collective: str
    ranks: int
    sizes: Sequence[int]
    datatype: str = "float32"
    operation: str = "sum"
    root: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be measured.

        Raises:
            BenchError: It is unknown, or sizes do not fit.
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
        """Bytes that a size is a multiple of."""
        return part_bytes(self.collective, self.ranks, DATATYPES[self.datatype])

    def count(self, size: int) -> int:
        """Elements of a size."""
        return size // DATATYPES[self.datatype]


def measure(
    mpi: Mpi,
    asked: Benchmark,
    candidates: Sequence[Candidate],
    settings: Settings,
    *,
    model: Platform | None = None,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """Measures candidates on every size, in one run of the ranks.

    Args:
        mpi: The MPI.
        asked: Which collective on which sizes.
        candidates: What to compare.
        settings: How to measure.
        model: A machine whose prediction stands beside; the emulated one unless given.
        done: Called with (measured, expected) blocks.

    Returns:
        A row for each block, with the columns of :data:`BLOCKS`.

    Raises:
        BenchError: The candidates do not go together, or the run failed.
        PlanError: A schedule cannot be executed.
        LaunchError: The ranks could not be started.
    """
    _check(asked, candidates, settings)
    origin = origin_now()
    said, samples = _job(asked, candidates, settings).run(mpi, done=done)
    machine = model or (settings.distance.platform if settings.distance else None)
    rows = {
        (group, case): _row(asked, size, one, settings, machine)
        for group, size in enumerate(asked.sizes)
        for case, one in enumerate(candidates)
    }
    found = (
        rows[one["group"], one["case"]]
        | _times(one, settings.each)
        | said.columns(one["group"])
        | origin
        for one in samples
    )
    return pl.DataFrame(list(found), schema=BLOCKS, orient="row")


def origin_now() -> dict[str, str | None]:
    """Columns that say when and with which tutti it was measured."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"started": started, "version": _core.__version__, "commit": commit()}


def _job(asked: Benchmark, candidates: Sequence[Candidate], settings: Settings) -> Job:
    plan, numbers = _plan(asked, candidates)
    cases = [(one.way, number) for one, number in zip(candidates, numbers, strict=True)]
    groups = [
        Group(asked.collective, asked.count(size), asked.datatype, asked.operation, asked.root,
              cases)
        for size in asked.sizes
    ]  # fmt: skip
    return Job(asked.ranks, settings, plan, groups)


def _check(asked: Benchmark, candidates: Sequence[Candidate], settings: Settings) -> None:
    if not candidates:
        raise BenchError("nothing to measure: expected at least one algorithm", kind="request")
    calls = [one for one in candidates if one.way == "call"]
    if len(calls) > 1:
        message = f"{len(calls)} schedules for calls of an application: expected one in a run"
        raise BenchError(message, kind="request")
    if settings.distance is not None and any(one.way == "own" for one in candidates):
        message = "the MPI's own code under emulated distance: only schedules can be kept apart"
        raise BenchError(message, kind="request")
    for one in candidates:
        if one.schedule and (one.schedule.collective, one.schedule.ranks) != (
            asked.collective, asked.ranks,
        ):  # fmt: skip
            message = f"{one.name} is no {asked.collective} on {asked.ranks} ranks"
            raise BenchError(message, kind="request")
        if one.schedule and not is_exact(asked.datatype) and bits_differ(one.schedule):
            message = (
                f"{one.name}: sums on {asked.ranks} ranks differ in bits between ranks for "
                f"{asked.datatype}, so the library leaves the call to the MPI"
            )
            raise BenchError(message, kind="request", hint="measure it with integers: -d int32")


def _plan(
    asked: Benchmark, candidates: Sequence[Candidate]
) -> tuple[CollectivePlan | None, list[int]]:
    """The plan and each candidate's schedule in it; what is called comes first, as a rule does."""
    order = sorted(range(len(candidates)), key=lambda place: candidates[place].way != "call")
    placed = [(place, one) for place in order if (one := candidates[place].schedule) is not None]
    numbers = [0] * len(candidates)
    if not placed:
        return None, numbers
    rules = [Rule(asked.collective, asked.ranks, one) for _, one in placed]
    plan = CollectivePlan(rules, {"made by": "tutti mpi bench"})
    for (place, _), rule in zip(placed, plan.rules, strict=True):
        numbers[place] = plan.schedules.index(rule.schedule)  # type: ignore[arg-type] # a plan's are planned
    return plan, numbers


def _row(
    asked: Benchmark, size: int, one: Candidate, settings: Settings, machine: Platform | None
) -> dict[str, Any]:
    """What all blocks of a case have in common."""
    predicted = None
    if machine is not None and one.schedule is not None:
        predicted = predict(machine, one.schedule, size, asked.datatype, settings.each)
    return {
        "collective": asked.collective,
        "schedule": one.schedule.name if one.schedule else "",
        "way": one.way,
        "ranks": asked.ranks,
        "size_bytes": size,
        "count": asked.count(size),
        "datatype": asked.datatype,
        "operation": asked.operation,
        "root": asked.root,
        "each": settings.each,
        "model_ps": predicted,
        "model": str(machine.model.core) if machine else None,
        "emulated": settings.distance is not None,
    }


def predict(machine: Platform, schedule: Schedule, size: int, datatype: str, each: int) -> int:
    """What a model says of one collective among `each` in a row, in picoseconds."""
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
    """What the blocks of each case come to, in the order in which they were measured.

    Columns, beside those that tell cases apart: blocks, least_ps, lower_quartile_ps, median_ps,
    upper_quartile_ps, most_ps, notch_ps (half the width of a notch: 1.57 interquartile ranges over
    the root of the number of blocks, a 95 % interval of the median), wrong, algbw_bytes_per_s and
    busbw_bytes_per_s of the median.
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
    asked = (row["collective"], row["ranks"], row["size_bytes"])
    return _core.algbw(row["size_bytes"], time), _core.busbw(*asked, time)


def _known(what: str, name: str, known: Iterable[str]) -> None:
    listed = ", ".join(known)
    if name not in listed.split(", "):
        message = f"there is no {what} `{name}` to measure: expected one of {listed}"
        raise BenchError(message, kind="request", fields={"name": name, "known": listed})
