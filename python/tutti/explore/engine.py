"""Runs comparisons and single runs for a page, and caches them by content.

A comparison first reports its measurements as they finish. Schedules are verified once, when they
are generated. :meth:`Engine.retime` repeats only the fastest schedules of a known comparison on
changed parameters, which is quick enough to follow a slider.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tutti import _core
from tutti.errors import AlgorithmError, ConfigError
from tutti.experiment import Rows, lay_out, measure, plan, plan_of, prove, run_once
from tutti.explore.state import DEFAULTS
from tutti.report import comparison
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tutti.config import Experiment
    from tutti.experiment import ExperimentPlan, LeftOut, TimedSchedule
    from tutti.explore.state import Base
    from tutti.report.comparison import Comparison
    from tutti.simulate import Run

__all__ = ["Cancelled", "Compared", "Engine", "Point"]

Emit = Callable[[str, Any], object]
"""Receives the name of an event and its value."""

_T = TypeVar("_T")

_REPORTS_S = 0.25
"""The time until the first report of unfinished measurements; it doubles after each."""
_KEPT = 3
"""Schedules of each rank count and size that `Engine.retime` repeats."""
_MOST_CACHED = 32
"""Comparisons and runs in the caches."""


class Cancelled(Exception):  # noqa: N818 - not an error
    """Raised in a job that the page has cancelled."""


@dataclass(frozen=True)
class Compared:
    """A comparison, or the finished part of one.

    Attributes:
        plan: Its plan.
        frame: A row per finished measurement.
        case: The same measurements, as reports read them.
        complete: Whether every measurement is finished.
    """

    plan: ExperimentPlan
    frame: pl.DataFrame
    case: Comparison
    complete: bool

    @property
    def key(self) -> str:
        """The hash of the inputs."""
        return self.plan.experiment.config_hash


@dataclass(frozen=True)
class Point:
    """A schedule at a rank count and a size in bytes."""

    schedule: str
    ranks: int
    size: int


class _Cache(Generic[_T]):
    """The most recently used values by key; threads share it."""

    def __init__(self) -> None:
        self._values: OrderedDict[object, _T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object) -> _T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: object, value: _T) -> _T:
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MOST_CACHED:
                self._values.popitem(last=False)
        return value


class Engine:
    """Runs the jobs of pages that share a base experiment."""

    def __init__(self, base: Base, *, threads: int = 0) -> None:
        """Creates empty caches; `threads` is the number of threads of a job, 0 for all cores."""
        self.base = base
        self._threads = threads
        self._compared: _Cache[Compared] = _Cache()
        self._runs: _Cache[Run] = _Cache()

    def compare(self, state: Mapping[str, Any], emit: Emit, stop: threading.Event) -> Compared:
        """Compares the algorithms of a state.

        Args:
            state: The state.
            emit: Receives `progress` (finished, total), and `partial` with a `Compared`.
            stop: Set to cancel the comparison.

        Raises:
            TuttiError: The state is invalid, or a measurement fails.
            Cancelled: `stop` was set.
        """
        experiment = self.base.experiment(state)
        known = self._compared.get(experiment.config_hash)
        if known is not None:
            return known
        if experiment.algorithms is None:
            self._preview({**state, "algorithms": DEFAULTS}, emit, stop)
        found = self._measured_all(experiment, emit, stop)
        return self._compared.put(experiment.config_hash, found)

    def retime(
        self, state: Mapping[str, Any], known: str, emit: Emit, stop: threading.Event
    ) -> Compared:
        """Measures the fastest schedules of a known comparison in another state.

        Args:
            state: The state.
            known: The key of the known comparison; an unknown key compares everything.
            emit: As in `compare`.
            stop: As in `compare`.

        Raises:
            TuttiError: The state is invalid, or a measurement fails.
            Cancelled: `stop` was set.
        """
        experiment = self.base.experiment(state)
        complete = self._compared.get(experiment.config_hash)
        reference = self._compared.get(known)
        if complete is not None or reference is None:
            return complete or self.compare(state, emit, stop)
        laid_out = _fastest(reference, experiment)
        return _compared(laid_out, [self._measured(laid_out, emit, stop)], complete=False)

    def run(self, state: Mapping[str, Any], point: Point) -> Run:
        """Runs one schedule of a state, with a record of its ops and messages.

        Raises:
            TuttiError: The state is invalid, or the schedule does not fit.
        """
        experiment = self.base.experiment(state)
        self._check(experiment, point)
        key = (experiment.config_hash, point)
        known = self._runs.get(key)
        if known is None:
            compared = self._compared.get(experiment.config_hash)
            laid_out = _schedule_of(experiment, point, compared)
            known = run_once(experiment, laid_out, Size(bytes=point.size))
            self._runs.put(key, known)
        return known

    def _check(self, experiment: Experiment, point: Point) -> None:
        if point.ranks not in experiment.ranks:
            message = f"{point.ranks} ranks are not part of the experiment"
            raise ConfigError(message, kind="invalid", hint="select a cell of the decision map")
        if point.size not in [size.bytes for size in experiment.sizes]:
            message = f"{point.size} B is not a size of the experiment"
            raise ConfigError(message, kind="invalid", hint="select a cell of the decision map")

    def _preview(self, state: Mapping[str, Any], emit: Emit, stop: threading.Event) -> None:
        """Reports the comparison of default arguments, which needs no search."""
        found = self.compare(state, emit, stop)
        emit("partial", replace(found, complete=False))

    def _measured_all(self, experiment: Experiment, emit: Emit, stop: threading.Event) -> Compared:
        """Measures an experiment: first algorithms that are generated quickly, then the others."""
        cases: list[TimedSchedule] = []
        left_out: list[LeftOut] = []
        frames: list[pl.DataFrame] = []
        for names in _batches(experiment.algorithms):
            if frames:
                emit("partial", _compared(plan_of(experiment, cases), frames, complete=False))
            part = replace(experiment, algorithms=names)
            found = self._planned(part, emit, stop)
            cases += found.cases
            left_out += found.left_out
            if not found.cases:
                continue
            laid_out = plan_of(experiment, found.cases, left_out)
            frames.append(self._measured(laid_out, emit, stop, frames))
        return _compared(plan_of(experiment, cases, left_out), frames, complete=True)

    def _planned(self, experiment: Experiment, emit: Emit, stop: threading.Event) -> ExperimentPlan:
        """Returns the verified schedules of an experiment, the cheapest first."""

        def check(_: object) -> None:
            if stop.is_set():
                raise Cancelled

        emit("stage", "generating schedules")
        found = plan(experiment, done=check)
        emit("stage", "verifying schedules")
        prove(found, done=check)
        cases = sorted(found.cases, key=lambda case: case.work)
        return plan_of(experiment, cases, found.left_out)

    def _measured(
        self,
        laid_out: ExperimentPlan,
        emit: Emit,
        stop: threading.Event,
        earlier: Sequence[pl.DataFrame] = (),
    ) -> pl.DataFrame:
        """Returns the measurements of a plan, after reporting those that finish first."""
        rows = Rows(laid_out)
        started, wait = time.monotonic(), _REPORTS_S

        def done(_: int) -> None:
            nonlocal started, wait
            if stop.is_set():
                raise Cancelled
            if time.monotonic() - started >= wait and rows.count < len(laid_out.points):
                emit("progress", (rows.count, len(laid_out.points)))
                emit("partial", _compared(laid_out, [*earlier, rows.frame()], complete=False))
                started, wait = time.monotonic(), 2 * wait

        emit("stage", "simulating")
        measure(laid_out, rows, done=done, threads=self._threads)
        return rows.frame()


def _batches(algorithms: tuple[str, ...] | None) -> list[tuple[str, ...] | None]:
    """Returns the algorithms without, then with a graph, whose schedules take long to generate."""
    if algorithms is None:
        return [None]
    for_graphs = {one.name for one in _core.algorithms() if one.for_graphs}
    batches = (
        tuple(one for one in algorithms if (one.partition(":")[0] in for_graphs) == on_graph)
        for on_graph in (False, True)
    )
    return [names for names in batches if names]


def _compared(
    laid_out: ExperimentPlan, frames: Sequence[pl.DataFrame], *, complete: bool
) -> Compared:
    """Returns the measurements of several frames as one comparison.

    Raises:
        ReportError: There are no measurements.
    """
    import polars as pl

    frame = pl.concat(frames) if frames else Rows(laid_out).frame()
    return Compared(laid_out, frame, comparison.only_case(frame), complete)


def _fastest(reference: Compared, experiment: Experiment) -> ExperimentPlan:
    """Returns the plan of the fastest schedules of each rank count and size of a comparison."""
    sizes: dict[tuple[str, int], set[int]] = {}
    best = sorted(reference.case.best().values(), key=lambda one: one.time_ps)
    for ranks in reference.case.ranks:
        for size in reference.case.sizes:
            here = [one for one in best if (one.ranks, one.size_bytes) == (ranks, size)]
            for one in here[:_KEPT]:
                sizes.setdefault((one.schedule, ranks), set()).add(size)
    cases = {(one.schedule.name, one.schedule.ranks): one for one in reference.plan.cases}
    # Schedules for a graph are those of the known topology: generating them takes seconds.
    found = [replace(cases[key], sizes=frozenset(best_at)) for key, best_at in sizes.items()]
    return plan_of(experiment, found, reference.plan.left_out)


def _schedule_of(experiment: Experiment, point: Point, compared: Compared | None) -> Any:  # noqa: ANN401 - a Schedule
    """Returns the schedule of a point: that of a comparison, if there is one."""
    if compared is not None:
        try:
            return compared.plan.schedule(point.schedule, point.ranks)
        except KeyError:
            pass
    if point.schedule.endswith(".schedule"):
        raise AlgorithmError(f"unknown schedule {point.schedule!r}", kind="other")
    return lay_out(experiment, point.schedule, point.ranks)
