"""Plans comparisons: the schedules that are timed, and those left out, with reasons.

:func:`tutti.compare`, the command line and sweeps share this module, so that equal requests time
the same verified schedules. :func:`try_plan` generates the schedules,
:func:`tutti.schedules.proving.prove` verifies them, and
:func:`tutti.collectives.measurement.measure` times them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.errors import ConfigError
from tutti.collectives.arguments import tune_arguments
from tutti.collectives.case import CaseBuilder, unequal_parts
from tutti.collectives.schedule_search import winners
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.schedules.ir import Schedule, candidates, schedule
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tutti import _core
    from tutti.base.units import Size
    from tutti.collectives.case import Figures
    from tutti.platforms.conditions import Conditions
    from tutti.platforms.machine import Platform
    from tutti.schedules.block_sizes import Matrix
    from tutti.topologies import Routes

_MOST_TUNED = 10_000_000
"""Messages to simulate in choosing the arguments of one algorithm for one rank count."""


@dataclass(frozen=True)
class TimedSchedule:
    """A schedule, and the sizes at which it is measured.

    Attributes:
        algorithm: The name of the algorithm family.
        schedule: The schedule.
        messages: The approximate number of messages of a run; None if unknown.
        notation: An algorithm with its argument, or a file.
        sizes: The sizes at which it is measured, in bytes; None for all.
    """

    algorithm: str
    schedule: Schedule
    messages: int | None
    notation: str
    sizes: frozenset[int] | None = None

    @property
    def work(self) -> int:
        """The relative cost of a run, for progress reports."""
        return self.messages or self.schedule.ranks


class MeasurementPoint(NamedTuple):
    """A measurement."""

    case: TimedSchedule
    size: Size
    repetition: int


@dataclass(frozen=True)
class LeftOut:
    """A schedule that is not measured at a rank count, and the reason."""

    notation: str
    ranks: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """A request for measurements.

    Attributes:
        platform: The platform.
        collective: The collective.
        ranks: Rank counts.
        sizes: Payload sizes.
        algorithms: Notations, schedule files and schedules. None selects every algorithm that
            supports the collective and the rank count, its best argument at each size, and the
            best schedule of the search.
        root: The root of a rooted collective.
        blocks: The relative sizes of the blocks of an all_to_all_v; see `tutti.schedule`.
        datatype: The datatype of the elements.
        conditions: Noise, arrival skew and slow ranks.
        repetitions: Repetitions of each measurement; repetition k uses seed + k.
        seed: The seed of the first repetition.
        messages_limit: Most messages of a schedule; larger ones are left out.
        config_hash: The hash of the request in results.
    """

    platform: Platform
    collective: str
    ranks: Sequence[int]
    sizes: Sequence[Size]
    algorithms: Sequence[str | Schedule] | None
    root: int = 0
    blocks: str | Matrix | None = None
    datatype: str = "float32"
    conditions: Conditions | None = None
    repetitions: int = 1
    seed: int = 0
    messages_limit: int | None = None
    config_hash: str = ""

    @property
    def is_repeatable(self) -> bool:
        """Whether a run without conditions takes the time of every repetition."""
        if self.conditions is not None and self.conditions != type(self.conditions)():
            return False
        # The routing of packets and flits draws random numbers.
        platform = self.platform
        return platform.effective_contention.kind in {"free", "flow"}

    def case(self, algorithm: str | Schedule, ranks: int) -> TimedSchedule:
        """Returns the schedule of an algorithm for a rank count.

        Raises:
            AlgorithmError: The algorithm does not fit.
        """
        laid_out = lay_out(
            algorithm,
            collective=self.collective,
            ranks=ranks,
            root=self.root,
            routes=self.platform.routes,
            blocks=self.blocks,
        )
        name = laid_out.name
        if isinstance(algorithm, Schedule):
            return TimedSchedule(name.split(":", 1)[0], laid_out, messages_of(laid_out), name)
        if _is_file(algorithm):
            return TimedSchedule(name, laid_out, None, algorithm)
        on_graph = laid_out.core.notation is None
        notation = algorithm if on_graph else name
        return TimedSchedule(name.split(":", 1)[0], laid_out, messages_of(laid_out), notation)


@dataclass(frozen=True)
class ComparisonPlan:
    """The measurements of a request, in order, and the schedules left out."""

    request: ComparisonRequest
    cases: tuple[TimedSchedule, ...]
    left_out: tuple[LeftOut, ...]
    simulated: Mapping[tuple[int, str, int], Figures] = field(default_factory=dict, kw_only=True)
    """Figures of the choice of arguments, by rank count, schedule and bytes: not repeated."""

    @cached_property
    def points(self) -> list[MeasurementPoint]:
        """All measurements, in order."""
        repetitions = range(self.request.repetitions)
        chosen = itertools.product(self.cases, self.request.sizes, repetitions)
        return [
            MeasurementPoint(case, size, repetition)
            for case, size, repetition in chosen
            if case.sizes is None or size.bytes in case.sizes
        ]

    @property
    def work(self) -> int:
        """The approximate number of messages of all measurements."""
        return sum(point.case.work for point in self.points)

    def schedule(self, name: str, ranks: int) -> Schedule:
        """Returns a measured schedule, by its name in results."""
        return self._schedules[name, ranks]

    @cached_property
    def _schedules(self) -> dict[tuple[str, int], Schedule]:
        return {(case.schedule.name, case.schedule.ranks): case.schedule for case in self.cases}

    def figures(self, point: MeasurementPoint) -> Figures | None:
        """Returns the figures of a measurement that the choice of arguments simulated, or None."""
        laid_out = point.case.schedule
        return self.simulated.get((laid_out.ranks, laid_out.name, point.size.bytes))

    def labels(self, point: MeasurementPoint) -> dict[str, Any]:
        """Returns the columns of results that identify a measurement."""
        request = self.request
        return {
            "datatype": request.datatype,
            "model": self._network,
            "platform": request.platform.name,
            "repetition": point.repetition,
            "seed": request.seed + point.repetition,
            "config_hash": request.config_hash,
        }

    @cached_property
    def _network(self) -> str:
        """The name of the network in results."""
        return self.request.platform.network

    @cached_property
    def core_cases(self) -> list[_core.Case]:
        """The core's inputs of all measurements, in order.

        Raises:
            LayoutError: A size does not match a schedule.
        """
        return [self.core_case(point) for point in self.points]

    def core_case(self, point: MeasurementPoint) -> _core.Case:
        """Returns the core's inputs of a measurement.

        Raises:
            LayoutError: The size does not match the schedule.
        """
        seed = self.request.seed + point.repetition
        return self._builder.case(point.case.schedule, size=point.size, seed=seed)

    @cached_property
    def _builder(self) -> CaseBuilder:
        request = self.request
        return CaseBuilder(
            request.platform, datatype=request.datatype, conditions=request.conditions
        )


class PlanResult(NamedTuple):
    """A plan, and the algorithms and schedules that do not fit.

    Attributes:
        plan: The plan of the measurements that are possible.
        misfits: The error of each named algorithm that fits none of the rank counts, by position.
        unequal: The errors of schedules that need equal parts.
    """

    plan: ComparisonPlan
    misfits: dict[int, AlgorithmError]
    unequal: list[LayoutError]

    def checked(self) -> ComparisonPlan:
        """Returns the plan if everything fits.

        Raises:
            AlgorithmError: A named algorithm fits none of the rank counts.
            LayoutError: No algorithm supports the parts of every size.
        """
        for place in sorted(self.misfits):
            raise self.misfits[place]
        if self.unequal and not self.plan.cases:
            raise self.unequal[0]
        return self.plan


def try_plan(
    request: ComparisonRequest, *, done: Callable[[int], object] | None = None
) -> PlanResult:
    """Generates the schedules of a request that fit.

    Args:
        request: The request.
        done: Called with 1 after each rank count, and after each searched size.
    """
    planner = _Planner(request)
    for ranks in request.ranks:
        named: Iterable[tuple[int, str | Schedule]] = enumerate(
            _everything(request, ranks, done) if request.algorithms is None else request.algorithms
        )
        for place, algorithm in named:
            planner.add(place, algorithm, ranks)
        if request.algorithms is None:
            planner.tune(ranks)
        if done is not None:
            done(1)
    return planner.tried()


class _Planner:
    """Collects the cases of a request, and what does not fit."""

    def __init__(self, request: ComparisonRequest) -> None:
        self._request = request
        self._cases: dict[tuple[int, object], TimedSchedule] = {}
        self._left_out: list[LeftOut] = []
        self._refusals: dict[int, AlgorithmError] = {}
        self._fitting: set[int] = set()
        self._unequal: list[LayoutError] = []
        self._simulated: dict[tuple[int, str, int], Figures] = {}
        self._known: set[tuple[int, object]] = set()
        self._names: dict[tuple[int, str], tuple[int, object]] = {}

    def tune(self, ranks: int) -> None:
        """Adds each algorithm with its best arguments, at the sizes at which they are best."""
        request = self._request
        tuned = tune_arguments(
            request.platform,
            request.collective,
            ranks,
            request.sizes,
            root=request.root,
            blocks=request.blocks,
            datatype=request.datatype,
            most=_MOST_TUNED,
            defaults=False,
        )
        for name, reason in tuned.left_out.items():
            self._left_out.append(LeftOut(f"{name} with other arguments", ranks, reason))
        if request.is_repeatable:
            for (name, size), figures in tuned.simulated.items():
                self._simulated[ranks, name, size] = figures
        sizes: dict[str, set[int]] = {}
        for variant in tuned.variants:
            sizes.setdefault(variant.notation, set()).add(variant.size.bytes)
        for notation, best_at in sizes.items():
            self.add(0, notation, ranks, sizes=frozenset(best_at))

    def add(
        self,
        place: int,
        algorithm: str | Schedule,
        ranks: int,
        *,
        sizes: frozenset[int] | None = None,
    ) -> None:
        """Adds the schedule of an algorithm, or the reason why it does not fit."""
        try:
            case = self._request.case(algorithm, ranks)
        except AlgorithmError as error:
            self._refusals.setdefault(place, error)
            self._left_out.append(LeftOut(_called(algorithm), ranks, error.problem))
            return
        self._fitting.add(place)
        case = replace(case, sizes=sizes)
        key = (ranks, _identity(algorithm, case))
        if key in self._known:
            return  # two arguments that select the same schedule
        self._known.add(key)
        case = self._with_distinct_name(case, key)
        reason = self._why_not(case)
        if reason:
            self._left_out.append(LeftOut(case.schedule.name, ranks, reason))
        else:
            self._cases[key] = case

    def _with_distinct_name(self, case: TimedSchedule, key: tuple[int, object]) -> TimedSchedule:
        """Returns the case with a distinct name, as names identify rows of results.

        Of two schedules of the same name, that of a file takes the name of the file.

        Raises:
            ConfigError: Neither is a file, or the name of the file is taken, too.
        """
        ranks, name = key[0], case.schedule.name
        other = self._names.get((ranks, name))
        if other is not None and not _is_file(case.notation) and other in self._cases:
            earlier = self._cases[other]
            if _is_file(earlier.notation):
                self._cases[other] = self._named_by_file(earlier, other)
                other = None
        if other is not None:
            return self._named_by_file(case, key)
        self._names[ranks, name] = key
        return case

    def _named_by_file(self, case: TimedSchedule, key: tuple[int, object]) -> TimedSchedule:
        from tutti.schedules.text import renamed

        name, ranks = case.schedule.name, key[0]
        file = Path(case.notation).name
        if not _is_file(case.notation) or (ranks, file) in self._names:
            message = f"two schedules for {ranks} ranks have the name `{name}`"
            hint = "change the line `name` of a schedule file"
            raise ConfigError(message, kind="invalid", hint=hint)
        self._names[ranks, file] = key
        return replace(case, algorithm=file, schedule=renamed(case.schedule, file))

    def _why_not(self, case: TimedSchedule) -> str:
        """Returns why a schedule that fits is not measured; empty if it is measured."""
        request = self._request
        if request.algorithms is None:
            datatype = request.datatype
            sizes = [s for s in request.sizes if case.sizes is None or s.bytes in case.sizes]
            refused = unequal_parts(case.schedule, request.platform, sizes=sizes, datatype=datatype)
            if refused:
                self._unequal.append(refused)
                return refused.problem
        limit = request.messages_limit
        if limit is None or case.messages is None or case.messages <= limit:
            return ""
        return f"about {case.messages:,} messages, above the limit of {limit:,} (limits.messages)"

    def tried(self) -> PlanResult:
        """Returns the plan and what does not fit."""
        misfits = {
            place: error for place, error in self._refusals.items() if place not in self._fitting
        }
        named = self._request.algorithms is not None
        cases, left_out = tuple(self._cases.values()), tuple(self._left_out)
        plan = ComparisonPlan(self._request, cases, left_out, simulated=self._simulated)
        return PlanResult(plan, misfits if named else {}, self._unequal)


def _everything(
    request: ComparisonRequest, ranks: int, done: Callable[[int], object] | None
) -> list[str]:
    """Returns every algorithm and, for an all_reduce, the best of the search at each size."""
    collective, platform = request.collective, request.platform
    named = candidates(collective, ranks, root=request.root, routes=platform.routes)
    return named + winners(platform, collective, ranks, request.sizes, done=done)


def _called(algorithm: str | Schedule) -> str:
    return algorithm if isinstance(algorithm, str) else algorithm.name


def _identity(algorithm: str | Schedule, case: TimedSchedule) -> object:
    """Returns a key that is equal for algorithms that select the same schedule.

    Schedules that users write may share a name; generated schedules do not.
    """
    if isinstance(algorithm, Schedule):
        return id(algorithm)
    return ("file", algorithm) if _is_file(algorithm) else case.schedule.name


def _is_file(notation: str) -> bool:
    from tutti.schedules.text import SCHEDULE_SUFFIX

    return notation.endswith(SCHEDULE_SUFFIX)


def lay_out(
    algorithm: str | Schedule,
    *,
    collective: str,
    ranks: int,
    root: int,
    routes: Routes | None,
    blocks: str | Matrix | None = None,
) -> Schedule:
    """Returns the schedule of a notation, a file or a given schedule for a rank count.

    Files and given schedules have their own blocks.

    Raises:
        AlgorithmError: The algorithm does not fit.
    """
    if isinstance(algorithm, str) and not _is_file(algorithm):
        return schedule(
            algorithm,
            collective=collective,
            ranks=ranks,
            root=root,
            topology=routes,
            blocks=blocks,
        )
    found = _read(algorithm) if isinstance(algorithm, str) else algorithm
    called = _called(algorithm)
    if (found.collective, found.ranks) != (collective, ranks):
        is_for = f"it is {found.collective} on {found.ranks} ranks"
        raise AlgorithmError(
            f"{called} does not fit: {is_for}", kind="wrong_ranks", fields={"ranks": ranks}
        )
    if found.root not in (None, root):
        raise AlgorithmError(f"{called} does not fit: its root is {found.root}")
    return found


def _read(file: str) -> Schedule:
    from tutti.schedules.text import read_schedule

    return read_schedule(Path(file))
