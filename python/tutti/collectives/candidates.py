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
from tutti.collectives.bounds import bound_platform
from tutti.collectives.case import CaseBuilder, unequal_parts
from tutti.collectives.library import LibraryPlan
from tutti.collectives.pruning import is_large
from tutti.collectives.request import (
    ComparisonRequest,
    LeftOut,
    MeasurementPoint,
    TimedSchedule,
    called,
    is_file,
)
from tutti.collectives.schedule_search import winners
from tutti.platforms.library import is_library
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.schedules.ir import Schedule, candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tutti import _core
    from tutti.base.units import Size
    from tutti.collectives.case import Figures
    from tutti.collectives.pruning import Known, Pruned
    from tutti.platforms.machine import Platform

_MOST_TUNED = 10_000_000
"""Messages to simulate in choosing the arguments of one algorithm for one rank count."""


@dataclass(frozen=True)
class ComparisonPlan:
    """The measurements of a request, in order, and the schedules left out."""

    request: ComparisonRequest
    cases: tuple[TimedSchedule, ...]
    left_out: tuple[LeftOut, ...]
    simulated: Mapping[tuple[int, str, int], Figures] = field(default_factory=dict, kw_only=True)
    """Figures of the choice of arguments, by rank count, schedule and bytes: not repeated."""
    pruned: tuple[Pruned, ...] = field(default=(), kw_only=True)
    """Large schedules that are not simulated at a size, as they cannot be among the fastest."""
    library: LibraryPlan | None = field(default=None, kw_only=True)
    """What the library of the platform selects and predicts; None without a library."""

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

    def case(self, name: str, ranks: int, size: int | None = None) -> TimedSchedule:
        """Returns a measured schedule by its name; those of a library depend on the size."""
        named = self._named[name, ranks]
        fitting = (one for one in named if one.sizes is None or size in one.sizes)
        return next(fitting, named[0])

    def schedule(self, name: str, ranks: int, size: int | None = None) -> Schedule:
        """Returns a measured schedule, as `case`."""
        return self.case(name, ranks, size).schedule

    @cached_property
    def _named(self) -> dict[tuple[str, int], list[TimedSchedule]]:
        found: dict[tuple[str, int], list[TimedSchedule]] = {}
        for case in self.cases:
            found.setdefault((case.name, case.schedule.ranks), []).append(case)
        return found

    def figures(self, point: MeasurementPoint) -> Figures | None:
        """Returns the figures of a measurement that the choice of arguments simulated, or None."""
        case = point.case
        return self.simulated.get((case.schedule.ranks, case.name, point.size.bytes))

    def labels(self, point: MeasurementPoint) -> dict[str, Any]:
        """Returns the columns of results that identify a measurement."""
        repetition = point.repetition
        seed = self.request.seed + repetition
        return self.request_labels | {"repetition": repetition, "seed": seed}

    @property
    def request_labels(self) -> dict[str, Any]:
        """The columns of results that identify the request and its first repetition."""
        request = self.request
        return {
            "datatype": request.datatype,
            "model": self._network,
            "platform": request.platform.name,
            "repetition": 0,
            "seed": request.seed,
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
        return self._case_on(point, point.case.platform or self.request.platform)

    def bound_case(self, point: MeasurementPoint) -> _core.Case:
        """Returns the core's inputs for the lower bound: on the platform of the request, whatever
        the protocol of the measurement.

        Raises:
            LayoutError: The size does not match the schedule.
        """
        ranks = point.case.schedule.ranks
        if ranks not in self._bounded:
            request = self.request
            self._bounded[ranks] = bound_platform(request.platform, request.collective, ranks)
        return self._case_on(point, self._bounded[ranks])

    def _case_on(self, point: MeasurementPoint, platform: Platform) -> _core.Case:
        seed = self.request.seed + point.repetition
        return self._builder(platform).case(point.case.schedule, size=point.size, seed=seed)

    def _builder(self, platform: Platform) -> CaseBuilder:
        request = self.request
        key = id(platform)
        if key not in self._builders:
            self._builders[key] = CaseBuilder(
                platform, datatype=request.datatype, conditions=request.conditions
            )
        return self._builders[key]

    @cached_property
    def _bounded(self) -> dict[int, Platform]:
        """The platforms of lower bounds by rank count."""
        return {}

    @cached_property
    def _builders(self) -> dict[int, CaseBuilder]:
        """The builders by platform, which the cases and the request keep."""
        return {}


class PlanResult(NamedTuple):
    """A plan, and the algorithms and schedules that do not fit.

    Attributes:
        plan: The plan of the measurements that are possible.
        misfits: The error of each named algorithm that fits none of the rank counts, by position.
        unequal: The errors of named algorithms that need equal parts at all sizes and rank counts;
            of all algorithms if none has a row.
    """

    plan: ComparisonPlan
    misfits: dict[int, AlgorithmError]
    unequal: list[LayoutError]

    def checked(self) -> ComparisonPlan:
        """Returns the plan if everything fits.

        Raises:
            AlgorithmError: A named algorithm fits none of the rank counts.
            LayoutError: A named algorithm supports the parts of no size, or none of all does.
        """
        for place in sorted(self.misfits):
            raise self.misfits[place]
        if self.unequal:
            raise self.unequal[0]
        return self.plan


def try_plan(
    request: ComparisonRequest,
    *,
    done: Callable[[int], object] | None = None,
    running: Callable[[str], object] | None = None,
) -> PlanResult:
    """Generates the schedules of a request that fit, also those of the library of the platform.

    Args:
        request: The request.
        done: Called with 1 after each rank count, and after each searched size.
        running: Called with the name of what is generated, or timed to choose arguments.
    """
    planner = _Planner(request, LibraryPlan.of(request.platform), running)
    for ranks in request.ranks:
        named: Iterable[tuple[int, str | Schedule]] = enumerate(
            _everything(request, ranks, done) if request.algorithms is None else request.algorithms
        )
        for place, algorithm in named:
            planner.add_named(place, algorithm, ranks)
        planner.predict(ranks)
        if request.algorithms is None:
            planner.tune(ranks)
        if done is not None:
            done(1)
    return planner.tried()


class _Planner:
    """Collects the cases of a request, and what does not fit."""

    def __init__(
        self,
        request: ComparisonRequest,
        library: LibraryPlan | None,
        running: Callable[[str], object] | None,
    ) -> None:
        self._request = request
        self._library = library
        self._running = running
        self._pruned: list[Pruned] = []
        self._cases: dict[tuple[int, object], TimedSchedule] = {}
        self._left_out: list[LeftOut] = []
        self._refusals: dict[int, AlgorithmError] = {}
        self._fitting: set[int] = set()
        self._unequal: dict[int, LayoutError] = {}
        self._measured: set[int] = set()
        self._simulated: dict[tuple[int, str, int], Figures] = {}
        self._known: set[tuple[int, object]] = set()
        self._names: dict[tuple[int, str], tuple[int, object]] = {}

    def predict(self, ranks: int) -> None:
        """Adds what the library selects, and its algorithms if none are named."""
        library, request = self._library, self._request
        if library is None:
            return
        problem = library.predict(request.collective, ranks, request.sizes)
        if problem:
            self._left_out.append(LeftOut(library.name, ranks, problem))
        elif request.algorithms is None:
            for notation in library.model.notations(request.collective, ranks):
                self.add_library(0, notation, ranks)

    def add_named(self, place: int, algorithm: str | Schedule, ranks: int) -> None:
        """Adds the schedule of an algorithm, also of an algorithm of the library."""
        if isinstance(algorithm, str) and is_library(algorithm) and self._library is not None:
            self.add_library(place, algorithm, ranks)
            return
        if running := self._announced(ranks):
            running(called(algorithm))
        self.add(place, algorithm, ranks)

    def add_library(self, place: int, notation: str, ranks: int) -> None:
        """Adds the schedules of an algorithm of the library, or the reason why it does not fit."""
        request, library = self._request, self._library
        assert library is not None  # noqa: S101 - the callers check it
        if running := self._announced(ranks):
            running(notation)
        try:
            found = library.schedules(notation, request, ranks)
        except AlgorithmError as error:
            self._refusals.setdefault(place, error)
            self._left_out.append(LeftOut(notation, ranks, error.problem))
            return
        for case in found:
            self._fitting.add(place)
            # Sizes may differ in the costs of the protocol, with equal names.
            self._admit(place, case, (ranks, (case.name, case.schedule.name, case.sizes)))

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
            prune=request.prune and request.is_repeatable,
            running=self._announced(ranks),
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
        if request.prune and request.is_repeatable:
            self._pruned += tuned.pruned
            self._prune(ranks, tuned.known)

    def _announced(self, ranks: int) -> Callable[[str], object] | None:
        running = self._running
        return running and (lambda name: running(f"{name}, {ranks:,} ranks"))

    def _prune(self, ranks: int, known: Known) -> None:
        """Removes the sizes at which large schedules cannot be among the fastest."""
        request = self._request
        builder = CaseBuilder(request.platform, datatype=request.datatype)
        every = {size.bytes for size in request.sizes}
        for key, case in list(self._cases.items()):
            if key[0] != ranks or case.platform is not None or not is_large(case.schedule):
                continue
            kept = every & (case.sizes or every)
            for size in (size for size in request.sizes if size.bytes in kept):
                inputs = builder.case(case.schedule, size=size)
                shown, _ = known.pruned([(case.schedule, inputs)], size.bytes)
                if shown:
                    self._pruned.append(shown)
                    kept.remove(size.bytes)
            if not kept:
                del self._cases[key]
            elif kept != every:
                self._cases[key] = replace(case, sizes=frozenset(kept))

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
            self._left_out.append(LeftOut(called(algorithm), ranks, error.problem))
            return
        self._fitting.add(place)
        case = replace(case, sizes=sizes)
        key = (ranks, _identity(algorithm, case))
        if key in self._known:
            return  # two arguments that select the same schedule
        self._known.add(key)
        self._admit(place, self._with_distinct_name(case, key), key)

    def _with_distinct_name(self, case: TimedSchedule, key: tuple[int, object]) -> TimedSchedule:
        """Returns the case with a distinct name, as names identify rows of results.

        Of two schedules of the same name, that of a file takes the name of the file.

        Raises:
            ConfigError: Neither is a file, or the name of the file is taken, too.
        """
        ranks, name = key[0], case.schedule.name
        other = self._names.get((ranks, name))
        if other is not None and not is_file(case.notation) and other in self._cases:
            earlier = self._cases[other]
            if is_file(earlier.notation):
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
        if not is_file(case.notation) or (ranks, file) in self._names:
            message = f"two schedules for {ranks} ranks have the name `{name}`"
            hint = "change the line `name` of a schedule file"
            raise ConfigError(message, kind="invalid", hint=hint)
        self._names[ranks, file] = key
        return replace(case, algorithm=file, schedule=renamed(case.schedule, file))

    def _admit(self, place: int, case: TimedSchedule, key: tuple[int, object]) -> None:
        """Adds a case at the sizes that its schedule can use, and notes what is left out."""
        request, ranks = self._request, key[0]
        limit = request.messages_limit
        if limit is not None and case.messages is not None and case.messages > limit:
            reason = f"about {case.messages:,} messages, above the limit of {limit:,}"
            self._left_out.append(LeftOut(case.name, ranks, f"{reason} (limits.messages)"))
            return
        sizes = [s for s in request.sizes if case.sizes is None or s.bytes in case.sizes]
        refused = unequal_parts(
            case.schedule, request.platform, sizes=sizes, datatype=request.datatype
        )
        kept = [size for size in sizes if size.bytes not in refused]
        if refused:
            error = next(iter(refused.values()))
            self._unequal.setdefault(place, error)
            lacking = _listed([s for s in sizes if s.bytes in refused]) if kept else ""
            self._left_out.append(LeftOut(case.name, ranks, error.problem, lacking))
            case = replace(case, sizes=frozenset(size.bytes for size in kept))
        if kept:
            self._measured.add(place)
            self._cases[key] = case

    def tried(self) -> PlanResult:
        """Returns the plan and what does not fit."""
        misfits = {
            place: error for place, error in self._refusals.items() if place not in self._fitting
        }
        named = self._request.algorithms is not None
        cases, left_out = tuple(self._cases.values()), tuple(self._left_out)
        plan = ComparisonPlan(
            self._request,
            cases,
            left_out,
            simulated=self._simulated,
            library=self._library,
            pruned=tuple({one[:3]: one for one in reversed(self._pruned)}.values())[::-1],
        )
        unequal = [one for at, one in self._unequal.items() if at not in self._measured]
        return PlanResult(plan, misfits if named else {}, unequal if named or not cases else [])


def _everything(
    request: ComparisonRequest, ranks: int, done: Callable[[int], object] | None
) -> list[str]:
    """Returns every algorithm and, for an all_reduce, the best of the search at each size."""
    collective, platform = request.collective, request.platform
    named = candidates(collective, ranks, root=request.root, routes=platform.routes)
    return named + winners(platform, collective, ranks, request.sizes, done=done)


def _listed(sizes: Sequence[Size]) -> str:
    """Returns up to two sizes, or the number of sizes with the first and the last."""
    if len(sizes) > 2:
        return f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}"
    return " and ".join(map(str, sizes))


def _identity(algorithm: str | Schedule, case: TimedSchedule) -> object:
    """Returns a key that is equal for algorithms that select the same schedule.

    Schedules that users write may share a name; generated schedules do not.
    """
    if isinstance(algorithm, Schedule):
        return id(algorithm)
    return ("file", algorithm) if is_file(algorithm) else case.schedule.name
