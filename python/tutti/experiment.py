"""Experiments carried out: which schedules run at which rank counts and sizes, and what they take.

Two halves. `plan` lays out every schedule and says what is left out and why; nothing
is left out silently. `measure` runs the plan and hands over each measurement as soon as it is
finished, so that whoever listens can show progress, and an interruption loses none of them.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti import _core
from tutti.config.mistakes import mistake
from tutti.config.reader import SCHEDULE_SUFFIX, read_schedule
from tutti.errors import AlgorithmError, LayoutError, VerificationError
from tutti.schedule import Schedule, candidates, schedule
from tutti.search import winners
from tutti.simulate import Run, figures_of, make_case, simulate, unequal_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.conditions import Conditions
    from tutti.config import Experiment
    from tutti.errors import ConfigError
    from tutti.platform import Platform
    from tutti.units import Size

__all__ = [
    "Case",
    "LeftOut",
    "Plan",
    "Point",
    "Rows",
    "lay_out",
    "measure",
    "plan",
    "planning",
    "prove",
    "proved",
    "run_once",
    "try_plan",
]

_MOST_PROVED = 20_000_000
"""Messages; beyond it a proof takes longer than people wait for it."""


@dataclass(frozen=True)
class Case:
    """A schedule to be measured at all sizes.

    Attributes:
        algorithm: The family's name.
        schedule: The schedule.
        messages: About how many messages one run of it sends; None where that is not known before.
        notation: What lays it out: an algorithm with its argument, or a file.
    """

    algorithm: str
    schedule: Schedule
    messages: int | None
    notation: str

    @property
    def work(self) -> int:
        """Its share of the whole, for progress."""
        return self.messages or self.schedule.ranks


class Point(NamedTuple):
    """One measurement."""

    case: Case
    size: Size
    repetition: int


@dataclass(frozen=True)
class LeftOut:
    """A schedule that is not measured at a rank count, and the reason."""

    notation: str
    ranks: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """What will be measured, in order, and what will not."""

    experiment: Experiment
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]

    @cached_property
    def points(self) -> list[Point]:
        """Every measurement, in order."""
        repetitions = range(self.experiment.repetitions)
        chosen = itertools.product(self.cases, self.experiment.sizes, repetitions)
        return [Point(*point) for point in chosen]

    @property
    def work(self) -> int:
        """About how many messages there will be."""
        return sum(point.case.work for point in self.points)

    @cached_property
    def machine(self) -> Platform:
        """Where it runs."""
        return self.experiment.machine()

    @cached_property
    def _conditions(self) -> Conditions:
        return self.experiment.conditions()

    def schedule(self, name: str, ranks: int) -> Schedule:
        """One of the schedules that are measured, by the name that results give it."""
        return self._schedules[name, ranks]

    @cached_property
    def _schedules(self) -> dict[tuple[str, int], Schedule]:
        return {(case.schedule.name, case.schedule.ranks): case.schedule for case in self.cases}

    def labels(self, point: Point) -> dict[str, Any]:
        """What results say of a measurement besides what it came to."""
        return {
            "datatype": self.experiment.datatype,
            "model": self.machine.network,
            "platform": self.machine.name,
            "repetition": point.repetition,
            "seed": self.experiment.seed + point.repetition,
            "config_hash": self.experiment.config_hash,
        }

    def core_case(self, point: Point) -> _core.Case:
        """A measurement as the core runs it.

        Raises:
            LayoutError: The size does not suit the schedule.
        """
        return make_case(
            point.case.schedule,
            self.machine,
            size=point.size,
            datatype=self.experiment.datatype,
            conditions=self._conditions,
            seed=self.experiment.seed + point.repetition,
        )


class Tried(NamedTuple):
    """A plan, and what is wrong with the experiment, if anything is.

    Attributes:
        plan: What can be measured.
        misfits: Why an algorithm that was asked for by name fits none of the rank counts.
        unequal: Why schedules cannot do with the parts of every size.
    """

    plan: Plan
    misfits: dict[str, ConfigError]
    unequal: list[LayoutError]


def planning(experiment: Experiment) -> int:
    """How many parts `plan` has, for progress."""
    is_searched = not experiment.algorithms and experiment.collective == "all_reduce"
    searched = len(experiment.sizes) if is_searched else 0
    return len(experiment.ranks) * (searched + 1)


def plan(experiment: Experiment, *, done: Callable[[int], object] | None = None) -> Plan:
    """Lays out the schedules of an experiment.

    Args:
        experiment: What is asked.
        done: Called after each part with 1; there are as many as `planning` says.

    Raises:
        ConfigError: An algorithm that was asked for by name fits none of the rank counts.
        LayoutError: No algorithm can do with the parts of every size.
    """
    tried = try_plan(experiment, done=done)
    if tried.misfits:
        raise next(iter(tried.misfits.values()))
    if tried.unequal and not tried.plan.cases:
        raise tried.unequal[0]
    return tried.plan


def try_plan(experiment: Experiment, *, done: Callable[[int], object] | None = None) -> Tried:
    """Lays out the schedules of an experiment, as far as they fit; see `plan`."""
    cases: list[Case] = []
    left_out: list[LeftOut] = []
    refusals: dict[str, AlgorithmError] = {}
    unequal: list[LayoutError] = []
    fitting: set[str] = set()
    for ranks in experiment.ranks:
        known: set[str] = set()
        asked = experiment.algorithms
        named = asked or _everything(experiment, ranks, done)
        for notation in named:
            try:
                case = _case(experiment, notation, ranks)
            except AlgorithmError as error:
                refusals.setdefault(notation, error)
                left_out.append(LeftOut(notation, ranks, error.problem))
                continue
            fitting.add(notation)
            if case.schedule.name in known:
                continue  # two arguments that choose the same schedule
            known.add(case.schedule.name)
            refused = None if asked else _unequal_parts(experiment, case)
            unequal += [refused] if refused else []
            reason = refused.problem if refused else _too_expensive(experiment, case)
            if reason:
                left_out.append(LeftOut(case.schedule.name, ranks, reason))
            else:
                cases.append(case)
        if done is not None:
            done(1)
    misfits = _misfits(experiment, fitting, refusals)
    return Tried(Plan(experiment, tuple(cases), tuple(left_out)), misfits, unequal)


def _everything(
    experiment: Experiment, ranks: int, done: Callable[[int], object] | None
) -> list[str]:
    """Every algorithm, and for an all_reduce what the search finds best at each size."""
    collective = experiment.collective
    routes = experiment.machine().routes
    named = candidates(collective, ranks, root=experiment.root, routes=routes)
    return named + winners(experiment.machine(), collective, ranks, experiment.sizes, done=done)


def _case(experiment: Experiment, notation: str, ranks: int) -> Case:
    laid_out = lay_out(experiment, notation, ranks)
    name = laid_out.name
    if notation.endswith(SCHEDULE_SUFFIX):
        return Case(name, laid_out, None, notation)
    if laid_out.core.notation is None:  # on the platform's graph
        return Case(name.split(":", 1)[0], laid_out, None, notation)
    messages = _messages(name, experiment.collective, ranks, experiment.root)
    return Case(name.split(":", 1)[0], laid_out, messages, name)


@functools.lru_cache(maxsize=4096)
def _messages(name: str, collective: str, ranks: int, root: int) -> int | None:
    path = _core.critical_path(name, collective, ranks, root=root)
    return ranks * sum(stage.messages for stage in path) if path else None


def _unequal_parts(experiment: Experiment, case: Case) -> LayoutError | None:
    sizes, datatype = experiment.sizes, experiment.datatype
    return unequal_parts(case.schedule, experiment.machine(), sizes=sizes, datatype=datatype)


def lay_out(experiment: Experiment, notation: str, ranks: int) -> Schedule:
    """The schedule of a notation, or in a file, for an experiment on that many ranks.

    Raises:
        AlgorithmError: It does not fit.
    """
    asked = {"collective": experiment.collective, "root": experiment.root}
    if not notation.endswith(SCHEDULE_SUFFIX):
        routes = experiment.machine().routes
        return schedule(notation, ranks=ranks, topology=routes, **asked)  # type: ignore[arg-type]
    written = read_schedule(Path(notation))
    is_for = f"it is {written.collective} on {written.ranks} ranks"
    if (written.collective, written.ranks) != (experiment.collective, ranks):
        raise AlgorithmError(f"{notation} does not fit: {is_for}", kind="wrong_ranks")
    if written.root not in (None, experiment.root):
        raise AlgorithmError(f"{notation} does not fit: its root is {written.root}")
    return written


def _too_expensive(experiment: Experiment, case: Case) -> str:
    limit = experiment.messages_limit
    if limit is None or case.messages is None or case.messages <= limit:
        return ""
    return f"about {case.messages:,} messages, above the limit of {limit:,} (limits.messages)"


def _misfits(
    experiment: Experiment, fitting: set[str], refusals: dict[str, AlgorithmError]
) -> dict[str, ConfigError]:
    found: dict[str, ConfigError] = {}
    for position, notation in enumerate(experiment.algorithms or ()):
        if notation not in fitting:
            error = refusals[notation]
            found[notation] = mistake(
                "\n".join(part for part in (error.problem, error.pointer) if part),
                source=experiment.source,
                key=f"algorithms[{position}]",
                expected=f"an algorithm for at least one of {_some(experiment.ranks)} ranks",
                hint=error.hint,
            )
    return found


def _some(values: Sequence[int]) -> str:
    shown = ", ".join(str(value) for value in values[:6])
    return f"{shown}, ..." if len(values) > 6 else shown


def prove(plan: Plan, *, done: Callable[[Case], object] | None = None) -> list[Case]:
    """Proves every schedule of a plan before anything is timed.

    Args:
        plan: What is to be proved.
        done: Called after each.

    Returns:
        The schedules that are too large to be proved here.

    Raises:
        VerificationError: A schedule does not do what it is meant to do.
    """
    unproved = []
    for case in plan.cases:
        if not proved(case.schedule, case.messages):
            unproved.append(case)
        if done is not None:
            done(case)
    return unproved


def proved(laid_out: Schedule, messages: int | None = None) -> bool:
    """Proves a schedule; False when it is too large for that.

    Args:
        laid_out: The schedule.
        messages: About how many messages it sends, where that is known.

    Raises:
        VerificationError: It does not do what it is meant to do.
    """
    if messages is not None and messages > _MOST_PROVED:
        return False
    try:
        laid_out.verify()
    except VerificationError as error:
        if error.kind == "too_large":
            return False
        raise
    return True


class Rows:
    """The measurements of a plan that are finished, in whatever order they were."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.messages = 0
        self._finished: dict[int, tuple[int, int, int]] = {}

    @property
    def count(self) -> int:
        """How many are finished."""
        return len(self._finished)

    def add(self, index: int, figures: tuple[int, int, int]) -> None:
        """Keeps one: completion time in ps, messages, and bytes in all messages."""
        self._finished[index] = figures
        self.messages += figures[1]

    def frame(self) -> pl.DataFrame:
        """A row per finished measurement, in the order of the plan."""
        from tutti.results import measurement_frame

        return measurement_frame(self._row(index) for index in sorted(self._finished))

    def _row(self, index: int) -> dict[str, Any]:
        point = self.plan.points[index]
        case, laid_out = self.plan.core_case(point), point.case.schedule
        return self.plan.labels(point) | figures_of(
            case, laid_out, point.size, self._finished[index]
        )


def measure(
    plan: Plan, rows: Rows, *, done: Callable[[int], object] | None = None, threads: int = 0
) -> None:
    """Makes every measurement of a plan and adds it to `rows` as soon as it is finished.

    Args:
        plan: What to measure.
        rows: Where measurements go; those finished before an interruption stay there.
        done: Called after each with its share of `plan.work`.
        threads: How many to use; 0 is one per core. Results do not depend on it.

    Raises:
        SimulationError: A run cannot finish; the message says who waits for whom.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    cases = [plan.core_case(point) for point in plan.points]

    def finished(index: int, result: tuple[int, int, int] | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        rows.add(index, result)
        if done is not None:
            done(plan.points[index].case.work)

    _core.simulate_many(cases, finished, threads=threads)


def run_once(experiment: Experiment, laid_out: Schedule, size: Size) -> Run:
    """One run of an experiment with its first seed, to be looked at closely.

    Raises:
        SimulationError: The run cannot finish; the message says who waits for whom.
    """
    return simulate(
        laid_out,
        experiment.machine(),
        size=size,
        datatype=experiment.datatype,
        conditions=experiment.conditions(),
        seed=experiment.seed,
    )
