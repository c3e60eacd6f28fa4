"""Runs comparisons and single runs for a page, and caches them by content.

A comparison reports its measurements as they finish. Schedules that do not depend on the topology
are generated and verified once for all parameters. :meth:`Engine.retime` repeats only the fastest
schedules of a known comparison on changed parameters, which is quick enough to follow a slider.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.units import Size
from tutti.collectives import comparison
from tutti.collectives.experiment import (
    Rows,
    TimedSchedule,
    lay_out,
    library_case,
    measure,
    plan,
    plan_of,
    prove,
    run_once,
)
from tutti.collectives.library import with_baselines
from tutti.explore.preview import Preview, fastest, retimed
from tutti.explore.state import DEFAULTS
from tutti.explore.styles import styles_of
from tutti.platforms.library import is_library
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.text import SCHEDULE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tutti.collectives.comparison import Comparison
    from tutti.collectives.experiment import ExperimentPlan, LeftOut
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.library import LibraryPlan
    from tutti.collectives.result import Run
    from tutti.explore.state import Base
    from tutti.schedules.ir import Schedule
    from tutti.view.palette import Style

Emit = Callable[[str, Any], object]
"""Receives the name of an event and its value."""

_T = TypeVar("_T")

_REPORTS_S = 0.12
"""The time until the first report of unfinished measurements; it doubles after each."""
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
        return self.plan.request.config_hash

    @cached_property
    def styles(self) -> dict[str, Style]:
        """The styles of the algorithms."""
        return styles_of(self.case)

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        return self.frame.height

    @cached_property
    def fastest(self) -> dict[tuple[str, int], frozenset[int]]:
        """The fastest schedules of each cell: name and ranks, and the sizes in bytes."""
        return fastest(self.case)


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
        self._unfinished: _Cache[Compared] = _Cache()
        self._states: _Cache[str] = _Cache()
        self._plans: _Cache[ExperimentPlan] = _Cache()
        self._runs: _Cache[Run] = _Cache()
        self._latest: Compared | None = None

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
        key = self._states.put(_text(state), experiment.config_hash)
        known = self._compared.get(key)
        if known is None:
            if experiment.algorithms is None:
                self._preview({**state, "algorithms": DEFAULTS}, emit, stop)
            known = self._measured_all(experiment, self._remembering(emit), stop)
        self._latest = self._compared.put(key, known)
        return known

    def retime(
        self, state: Mapping[str, Any], known: str, emit: Emit, stop: threading.Event
    ) -> Compared | Preview:
        """Measures the fastest schedules of a known comparison in another state.

        Args:
            state: The state.
            known: The key of the known comparison, which may be unfinished; an unknown key compares
                everything.
            emit: Receives `cells` and `partial`, each with a `Preview`.
            stop: As in `compare`.

        Raises:
            TuttiError: The state is invalid, or a measurement fails.
            Cancelled: `stop` was set.
        """
        complete = self._compared.get(self._states.get(_text(state)))
        reference = self._compared.get(known) or self._unfinished.get(known)
        if complete is not None or reference is None:
            return complete or self.compare(state, emit, stop)
        experiment = self.base.experiment(state)
        if _points(reference.plan.experiment) != _points(experiment):
            return self.compare(state, emit, stop)
        return retimed(reference, experiment, emit, lambda: _check(stop), threads=self._threads)

    def run(self, state: Mapping[str, Any], point: Point) -> Run:
        """Runs one schedule of a state, with a record of its ops and messages.

        Raises:
            TuttiError: The state is invalid, or the schedule does not fit.
        """
        experiment = self.base.experiment(state)
        key = (experiment.config_hash, point)
        known = self._runs.get(key)
        if known is None:
            _, case = self._case(state, point)
            size = Size(bytes=point.size)
            known = run_once(experiment, case, size)
            self._runs.put(key, known)
        return known

    def schedule(self, state: Mapping[str, Any], point: Point) -> tuple[Experiment, Schedule]:
        """Returns the experiment of a state, and one of its schedules.

        Raises:
            TuttiError: The state is invalid, or the schedule does not fit.
        """
        experiment, case = self._case(state, point)
        return experiment, case.schedule

    def _case(self, state: Mapping[str, Any], point: Point) -> tuple[Experiment, TimedSchedule]:
        experiment = self.base.experiment(state)
        self._check_point(experiment, point)
        compared = self._compared.get(experiment.config_hash)
        return experiment, _case_of(experiment, point, compared)

    def _check_point(self, experiment: Experiment, point: Point) -> None:
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
        library: LibraryPlan | None = None
        for names in _batches(experiment.algorithms):
            if frames:
                emit("partial", _compared(plan_of(experiment, cases), frames, complete=False))
            part = replace(experiment, algorithms=names)
            found = self._planned(part, emit, stop)
            cases += found.cases
            left_out += found.left_out
            if not found.cases:
                continue
            frames.append(self._measured(found, emit, stop, (cases, frames)))
            library = found.library
        complete = plan_of(experiment, cases, left_out)
        return _compared(replace(complete, library=library), frames, complete=True)

    def _remembering(self, emit: Emit) -> Emit:
        """Returns `emit` that stores unfinished comparisons for `retime`."""

        def remember(name: str, value: object) -> None:
            if isinstance(value, Compared):
                self._unfinished.put(value.key, value)
            emit(name, value)

        return remember

    def _planned(self, experiment: Experiment, emit: Emit, stop: threading.Event) -> ExperimentPlan:
        """Returns the verified schedules: those that were fastest before, then the cheapest."""
        key = _key_of_schedules(experiment)
        found = self._plans.get(key) if key else None
        if found is None:
            emit("stage", "generating schedules")
            found = plan(experiment, done=lambda _: _check(stop))
            emit("stage", "verifying schedules")
            prove(found, done=lambda _: _check(stop))
            if key:
                self._plans.put(key, found)
        best = self._latest.fastest if self._latest is not None else {}
        cases = sorted(
            found.cases,
            key=lambda case: ((case.name, case.schedule.ranks) not in best, _work(case)),
        )
        return replace(plan_of(experiment, cases, found.left_out), library=found.library)

    def _measured(
        self,
        laid_out: ExperimentPlan,
        emit: Emit,
        stop: threading.Event,
        every: tuple[Sequence[TimedSchedule], Sequence[pl.DataFrame]],
    ) -> pl.DataFrame:
        """Returns the measurements of a plan, after reporting those that finish first.

        Args:
            laid_out: The plan.
            emit: Receives the reports.
            stop: Set to cancel the measurements.
            every: The schedules of this plan and earlier ones, and the measurements of those.
        """
        cases, earlier = every
        complete = plan_of(laid_out.experiment, cases, laid_out.left_out)
        before = sum(frame.height for frame in earlier)
        rows = Rows(laid_out)
        started, wait = time.monotonic(), _REPORTS_S

        def done(_: int) -> None:
            nonlocal started, wait
            _check(stop)
            if time.monotonic() - started >= wait and rows.count < len(laid_out.points):
                emit("progress", (before + rows.count, len(complete.points)))
                frames = [*earlier, rows.frame(bounds=False)]
                emit("partial", _compared(complete, frames, complete=False))
                started, wait = time.monotonic(), 2 * wait

        emit("stage", "simulating")
        measure(laid_out, rows, done=done, threads=self._threads)
        return rows.frame()


def _batches(algorithms: tuple[str, ...] | None) -> list[tuple[str, ...] | None]:
    """Returns the algorithms without, then with a graph, whose schedules take long to generate."""
    if algorithms is None:
        return [None]
    for_graphs = _on_graphs()
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
    with_library = with_baselines(laid_out, frame)
    return Compared(laid_out, frame, comparison.only_case(with_library), complete)


def _check(stop: threading.Event) -> None:
    """Raises if the job is cancelled.

    Raises:
        Cancelled: `stop` is set.
    """
    if stop.is_set():
        raise Cancelled


def _text(state: Mapping[str, Any]) -> str:
    """Returns a state as text, to find its comparison without reading its platform."""
    return json.dumps(state, sort_keys=True, default=repr)


def _points(experiment: Experiment) -> tuple[object, ...]:
    """Returns what the state of a page determines, except the platform and its parameters."""
    return (
        *(experiment.collective, experiment.model, experiment.datatype),
        *(experiment.ranks, experiment.sizes),
    )


def _key_of_schedules(experiment: Experiment) -> tuple[object, ...] | None:
    """Returns what determines schedules that do not depend on the topology; None for others."""
    names = experiment.algorithms
    on_graphs = _on_graphs()
    if names is None or any(
        one.endswith(SCHEDULE_SUFFIX) or one.partition(":")[0] in on_graphs or is_library(one)
        for one in names
    ):
        return None
    return (
        *(names, experiment.collective, experiment.root, str(experiment.blocks)),
        *(experiment.ranks, experiment.messages_limit),
    )


def _on_graphs() -> set[str]:
    """Returns the algorithms for graphs."""
    return {one.name for one in _core.algorithms() if one.for_graphs}


def _work(case: TimedSchedule) -> int:
    """Returns the messages of a schedule: of its verification, or approximately."""
    laid_out = case.schedule
    return laid_out.verify().messages if laid_out.is_verified else case.work


def _case_of(experiment: Experiment, point: Point, compared: Compared | None) -> TimedSchedule:
    """Returns the schedule of a point: that of a comparison, if there is one."""
    if compared is not None:
        try:
            return compared.plan.case(point.schedule, point.ranks, point.size)
        except KeyError:
            pass
    if point.schedule.endswith(SCHEDULE_SUFFIX):
        raise AlgorithmError(f"unknown schedule {point.schedule!r}", kind="other")
    if is_library(point.schedule):
        size = Size(bytes=point.size)
        return library_case(experiment, point.schedule, point.ranks, size)
    laid_out = lay_out(experiment, point.schedule, point.ranks)
    return TimedSchedule(laid_out.name, laid_out, None, point.schedule)
