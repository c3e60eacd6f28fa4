"""Runs a batch of measurements or proofs in a worker, and returns the rows.

A worker receives the values of the sweep file, resolves them, and compares the resulting keys with
those of the plan. This detects files that changed in the meantime.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.units import Size
from tutti.collectives.case import limit_of, timed
from tutti.collectives.experiment import (
    MeasurementPoint,
    TimedSchedule,
    lay_out,
    library_case,
    plan_of,
)
from tutti.platforms.library import is_library
from tutti.schedules.proving import verify
from tutti.sweeps.errors import WorkerError
from tutti.sweeps.keys import Questions, proof_key
from tutti.sweeps.version import simulator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.collectives.case import Figures
    from tutti.collectives.experiment import ExperimentPlan
    from tutti.collectives.files.resolve import Experiment
    from tutti.sweeps.files import Template

Row = dict[str, Any]


class Item(NamedTuple):
    """One measurement or proof.

    Attributes:
        key: The key in the cache.
        point: The point of the sweep, from 0.
        notation: The schedule, as an algorithm or a file.
        ranks: The number of ranks.
        size_bytes: The size; None for a proof.
        repetition: The repetition, from 0.
        messages: The approximate number of messages, for progress; None if unknown.
        laid_out_for: The size that selects the schedule of an algorithm of a library.
    """

    key: str
    point: int
    notation: str
    ranks: int
    size_bytes: int | None
    repetition: int
    messages: int | None
    laid_out_for: int = 0


@dataclass(frozen=True)
class Batch:
    """Items that a worker runs together.

    Attributes:
        template: Builds experiments from values.
        values: The values of the items' points, by point.
        items: The items.
        simulator: The simulator of the sweep.
    """

    template: Template
    values: Mapping[int, Mapping[str, Any]]
    items: Sequence[Item]
    simulator: str


@dataclass(frozen=True)
class Done:
    """The results of a batch.

    Attributes:
        results: A row or an error per item, in order.
        core_seconds: Time in the core, for simulations or proofs.
    """

    results: list[Row | TuttiError]
    core_seconds: float


def run_batch(batch: Batch) -> Done:
    """Runs all items of a batch.

    Raises:
        WorkerError: The worker has another version of tutti than the sweep.
    """
    check_version(batch)
    return _Work(batch).done()


def check_version(batch: Batch) -> None:
    """Raises a `WorkerError` if the worker has another version of tutti than the sweep."""
    if batch.simulator != simulator():
        problem = f"a worker runs tutti {simulator()}: expected {batch.simulator}"
        raise WorkerError(problem, kind="other_version")


class _Point(NamedTuple):
    """The shared objects of the items of a point; the plan lists no cases."""

    experiment: Experiment
    questions: Questions
    plan: ExperimentPlan


class _Work:
    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._known: dict[int, _Point] = {}
        self._schedules: dict[tuple[Any, ...], TimedSchedule] = {}
        self._results: list[Row | TuttiError | None] = [None] * len(batch.items)
        self._seconds = 0.0

    def done(self) -> Done:
        measured: list[tuple[int, _core.Case, MeasurementPoint]] = []
        for index, item in enumerate(self._batch.items):
            try:
                if item.size_bytes is None:
                    self._results[index] = self._proof(item)
                else:
                    measured.append((index, *self._case(item)))
            except TuttiError as error:
                self._results[index] = error
        self._simulate(measured)
        return Done([result for result in self._results if result is not None], self._seconds)

    def _point(self, point: int) -> _Point:
        if point not in self._known:
            values = self._batch.values[point]
            experiment = self._batch.template.experiment(point + 1, values)
            self._known[point] = _Point(experiment, Questions(experiment), plan_of(experiment, []))
        return self._known[point]

    def _schedule(self, item: Item) -> TimedSchedule:
        experiment = self._point(item.point).experiment
        key: tuple[Any, ...] = (item.notation, item.ranks, experiment.collective, experiment.root)
        is_of_library = is_library(item.notation)
        if is_of_library:  # its costs depend on the platform, the schedule on the size
            key = (*key, item.point, item.laid_out_for)
        if key in self._schedules:
            return self._schedules[key]
        if is_of_library:
            size = Size(bytes=item.laid_out_for)
            case = library_case(experiment, item.notation, item.ranks, size)
        else:
            laid_out = lay_out(experiment, item.notation, item.ranks)
            case = TimedSchedule(laid_out.name, laid_out, item.messages, item.notation)
        self._schedules[key] = case
        return case

    def _proof(self, item: Item) -> Row:
        case = self._schedule(item)
        self._check(item, proof_key(self._point(item.point).questions, case))
        started = time.perf_counter()
        reason = verify(case.schedule)
        self._seconds += time.perf_counter() - started
        return {"proved": reason is None}

    def _case(self, item: Item) -> tuple[_core.Case, MeasurementPoint]:
        assert item.size_bytes is not None  # noqa: S101 - a measurement
        case = self._schedule(item)
        known = self._point(item.point)
        size = item.size_bytes
        key = known.questions.measurement(item.notation, item.ranks, size, item.repetition)
        self._check(item, key)
        point = MeasurementPoint(case, Size(bytes=size), item.repetition)
        return known.plan.core_case(point), point

    def _simulate(self, measured: Sequence[tuple[int, _core.Case, MeasurementPoint]]) -> None:
        def store(at: int, result: tuple[int, int, int] | Exception) -> None:
            index, case, point = measured[at]
            if isinstance(result, TuttiError):
                self._results[index] = result
            elif isinstance(result, Exception):
                raise result
            else:
                self._results[index] = self._figures(index, case, point, result)

        started = time.perf_counter()
        _core.simulate_many([case for _, case, _ in measured], store, threads=1)
        self._seconds += time.perf_counter() - started

    def _figures(
        self, index: int, case: _core.Case, point: MeasurementPoint, result: Figures
    ) -> Row:
        """Returns a row; the lower bound is that of the platform, not of a library's protocol."""
        row = timed(case, point.case.schedule, point.size, result)
        if point.case.label:
            row |= {"algorithm": point.case.algorithm, "schedule": point.case.label}
        bounded = self._point(self._batch.items[index].point).plan.bound_case(point)
        return row | limit_of(bounded.bound().at_least_ps, result)

    def _check(self, item: Item, key: str) -> None:
        if key != item.key:
            label = f"{item.notation} on {item.ranks} ranks"
            problem = f"the inputs changed during the sweep: {label}"
            raise WorkerError(problem, kind="other_input")
