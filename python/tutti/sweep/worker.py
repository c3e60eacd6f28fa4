"""What a worker does: it makes a batch of measurements, or of proofs, and hands the rows back.

A worker is told what to measure as it stands in the sweep's file, reads that itself, and checks by
the key that it found what was asked: a file that has changed meanwhile cannot pass for the old one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti import _core
from tutti.cases import figures_of
from tutti.errors import TuttiError, WorkerError
from tutti.experiment import MeasurementPoint, TimedSchedule, lay_out, plan_of
from tutti.proving import verify
from tutti.sweep.keys import Questions
from tutti.sweep.version import simulator
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.config import Experiment
    from tutti.config.sweep import Template
    from tutti.experiment import ExperimentPlan
    from tutti.schedule import Schedule

Row = dict[str, Any]


class Item(NamedTuple):
    """One thing to do.

    Attributes:
        key: Its name in the cache.
        point: The point of the sweep it belongs to, counted from 0.
        notation: The schedule, as an algorithm or a file.
        ranks: How many.
        size_bytes: How much data; None for a proof.
        repetition: Which one, counted from 0.
        messages: About how many, for progress; None where that is not known.
    """

    key: str
    point: int
    notation: str
    ranks: int
    size_bytes: int | None
    repetition: int
    messages: int | None


@dataclass(frozen=True)
class Batch:
    """Things to do in one go.

    Attributes:
        template: What makes experiments of values.
        values: Of the points that the items belong to, by point.
        items: What is to be done.
        simulator: Who asks.
    """

    template: Template
    values: Mapping[int, Mapping[str, Any]]
    items: Sequence[Item]
    simulator: str


@dataclass(frozen=True)
class Done:
    """What came of a batch.

    Attributes:
        results: A row for each item, in order, or why there is none.
        core_seconds: Time spent in the core: in simulations, or in proofs.
    """

    results: list[Row | TuttiError]
    core_seconds: float


def run_batch(batch: Batch) -> Done:
    """Does everything in a batch.

    Raises:
        WorkerError: This is another version of tutti than the one that asks.
    """
    if batch.simulator != simulator():
        problem = f"the sweep runs with tutti {batch.simulator}, a worker with {simulator()}"
        raise WorkerError(problem, kind="other_version")
    return _Work(batch).done()


class _Point(NamedTuple):
    """What all items of a point share; the plan builds their cases and lists none."""

    experiment: Experiment
    questions: Questions
    plan: ExperimentPlan


class _Work:
    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._known: dict[int, _Point] = {}
        self._schedules: dict[tuple[Any, ...], Schedule] = {}
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

    def _schedule(self, item: Item) -> Schedule:
        experiment = self._point(item.point).experiment
        key = (item.notation, item.ranks, experiment.collective, experiment.root)
        if key not in self._schedules:
            self._schedules[key] = lay_out(experiment, item.notation, item.ranks)
        return self._schedules[key]

    def _proof(self, item: Item) -> Row:
        laid_out = self._schedule(item)
        questions = self._point(item.point).questions
        self._check(item, questions.proof(item.notation, item.ranks))
        started = time.perf_counter()
        reason = verify(laid_out)
        self._seconds += time.perf_counter() - started
        return {"proved": reason is None}

    def _case(self, item: Item) -> tuple[_core.Case, MeasurementPoint]:
        assert item.size_bytes is not None  # noqa: S101 - a measurement
        laid_out = self._schedule(item)
        known = self._point(item.point)
        size = item.size_bytes
        asked = (item.notation, item.ranks, size, item.repetition)
        self._check(item, known.questions.measurement(*asked))
        case = TimedSchedule(laid_out.name, laid_out, item.messages, item.notation)
        point = MeasurementPoint(case, Size(bytes=size), item.repetition)
        return known.plan.core_case(point), point

    def _simulate(self, measured: Sequence[tuple[int, _core.Case, MeasurementPoint]]) -> None:
        def heard(at: int, result: tuple[int, int, int] | Exception) -> None:
            index, case, point = measured[at]
            if isinstance(result, TuttiError):
                self._results[index] = result
            elif isinstance(result, Exception):
                raise result
            else:
                self._results[index] = figures_of(case, point.case.schedule, point.size, result)

        started = time.perf_counter()
        _core.simulate_many([case for _, case, _ in measured], heard, threads=1)
        self._seconds += time.perf_counter() - started

    def _check(self, item: Item, key: str) -> None:
        if key != item.key:
            label = f"{item.notation} on {item.ranks} ranks"
            problem = f"a worker found another question than was asked: {label}"
            raise WorkerError(problem, kind="other_input")
