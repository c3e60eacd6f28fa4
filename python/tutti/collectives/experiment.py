"""Runs experiments: the plan of an experiment file, and single runs of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.mistakes import mistake
from tutti.collectives import candidates as planning
from tutti.collectives.library import LibraryPlan
from tutti.collectives.measurement import Rows, measure
from tutti.collectives.request import ComparisonRequest, LeftOut, MeasurementPoint, TimedSchedule
from tutti.collectives.request import lay_out as lay_out_notation
from tutti.collectives.simulation import simulate
from tutti.schedules.proving import prove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.base.errors import ConfigError
    from tutti.base.units import Size
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.result import Run
    from tutti.schedules.errors import AlgorithmError, LayoutError
    from tutti.schedules.ir import Schedule

__all__ = [
    "ExperimentPlan",
    "LeftOut",
    "MeasurementPoint",
    "Rows",
    "TimedSchedule",
    "lay_out",
    "library_case",
    "measure",
    "parts",
    "plan",
    "plan_of",
    "prove",
    "request_of",
    "run_once",
    "try_plan",
]


@dataclass(frozen=True)
class ExperimentPlan(planning.ComparisonPlan):
    """The measurements of an experiment, in order, and the schedules left out."""

    experiment: Experiment


class ExperimentPlanResult(NamedTuple):
    """A plan, and the algorithms and schedules that do not fit.

    Attributes:
        plan: The plan of the measurements that are possible.
        misfits: The error of each named algorithm that fits none of the rank counts.
        unequal: As in :class:`tutti.collectives.candidates.PlanResult`.
    """

    plan: ExperimentPlan
    misfits: dict[str, ConfigError]
    unequal: list[LayoutError]


def parts(experiment: Experiment) -> int:
    """Returns the number of parts of `plan`, for progress reports."""
    is_searched = not experiment.algorithms and experiment.collective == "all_reduce"
    searched = len(experiment.sizes) if is_searched else 0
    return len(experiment.ranks) * (searched + 1)


def plan(
    experiment: Experiment,
    *,
    done: Callable[[int], object] | None = None,
    running: Callable[[str], object] | None = None,
    prune: bool = False,
) -> ExperimentPlan:
    """Generates the schedules of an experiment, also those of the library of the platform.

    Args:
        experiment: The experiment.
        done: Called with 1 after each of the `parts`.
        running: Called with the name of what is timed to choose arguments.
        prune: Whether to leave out large schedules that cannot be among the two fastest.

    Raises:
        ConfigError: A named algorithm fits none of the rank counts.
        LayoutError: A named algorithm supports the parts of no size, or none of all does.
    """
    tried = try_plan(experiment, done=done, running=running, prune=prune)
    if tried.misfits:
        raise next(iter(tried.misfits.values()))
    if tried.unequal:
        raise tried.unequal[0]
    return tried.plan


def try_plan(
    experiment: Experiment,
    *,
    done: Callable[[int], object] | None = None,
    running: Callable[[str], object] | None = None,
    prune: bool = False,
) -> ExperimentPlanResult:
    """Generates the schedules of an experiment that fit; see `plan`."""
    request = replace(request_of(experiment), prune=prune)
    tried = planning.try_plan(request, done=done, running=running)
    named = experiment.algorithms or ()
    misfits = {
        named[place]: _misfit(experiment, place, error)
        for place, error in sorted(tried.misfits.items())
    }
    found = plan_of(experiment, tried.plan.cases, tried.plan.left_out)
    of = tried.plan
    found = replace(found, simulated=of.simulated, pruned=of.pruned, library=of.library)
    return ExperimentPlanResult(found, misfits, tried.unequal)


def plan_of(
    experiment: Experiment, cases: Sequence[TimedSchedule], left_out: Sequence[LeftOut] = ()
) -> ExperimentPlan:
    """Returns the plan of an experiment with the given schedules."""
    return ExperimentPlan(request_of(experiment), tuple(cases), tuple(left_out), experiment)


def request_of(experiment: Experiment) -> ComparisonRequest:
    """Returns the request of an experiment."""
    return ComparisonRequest(
        platform=experiment.machine(),
        collective=experiment.collective,
        ranks=experiment.ranks,
        sizes=experiment.sizes,
        algorithms=experiment.algorithms,
        root=experiment.root,
        blocks=experiment.blocks,
        datatype=experiment.datatype,
        conditions=experiment.conditions(),
        repetitions=experiment.repetitions,
        seed=experiment.seed,
        messages_limit=experiment.messages_limit,
        config_hash=experiment.config_hash,
    )


def _misfit(experiment: Experiment, place: int, error: AlgorithmError) -> ConfigError:
    return mistake(
        "\n".join(part for part in (error.problem, error.pointer) if part),
        source=experiment.source,
        key=f"algorithms[{place}]",
        expected=f"an algorithm for {_some(experiment.ranks)} ranks",
        hint=error.hint,
    )


def _some(values: Sequence[int]) -> str:
    shown = ", ".join(f"{value:,}" for value in values[:6])
    several = "at least one of " if len(values) > 1 else ""
    return f"{several}{shown}, ..." if len(values) > 6 else f"{several}{shown}"


def lay_out(experiment: Experiment, notation: str, ranks: int) -> Schedule:
    """Returns the schedule of a notation or file for an experiment on `ranks` ranks.

    Raises:
        AlgorithmError: The algorithm does not fit.
    """
    return lay_out_notation(
        notation,
        collective=experiment.collective,
        ranks=ranks,
        root=experiment.root,
        routes=experiment.machine().routes,
        blocks=experiment.blocks,
    )


def library_case(experiment: Experiment, notation: str, ranks: int, size: Size) -> TimedSchedule:
    """Returns the schedule of an algorithm of the platform's library, with its costs.

    Raises:
        AlgorithmError: The platform has no library, or the algorithm does not fit.
    """
    library = LibraryPlan.of(experiment.machine())
    if library is None:
        lay_out(experiment, notation, ranks)
    assert library is not None  # noqa: S101 - `lay_out` refuses
    request = replace(request_of(experiment), sizes=[size])
    return library.schedules(notation, request, ranks)[0]


def run_once(
    experiment: Experiment,
    laid_out: Schedule | TimedSchedule,
    size: Size,
    *,
    verify: bool = True,
    record: bool = False,
) -> Run:
    """Runs an experiment once with its first seed; see `simulate`.

    Args:
        experiment: The experiment.
        laid_out: The schedule, of which that of a library has its name and the platform with the
            costs of its protocol. The lower bound is always that of the experiment's platform.
        size: The size.
        verify: Whether to verify the schedule first.
        record: Whether to record activities and messages.

    Raises:
        VerificationError: The schedule is not correct.
        SimulationError: The run cannot finish; the message names the waiting ranks.
    """
    case = laid_out if isinstance(laid_out, TimedSchedule) else None
    run = simulate(
        laid_out.schedule if isinstance(laid_out, TimedSchedule) else laid_out,
        (case and case.platform) or experiment.machine(),
        size=size,
        datatype=experiment.datatype,
        conditions=experiment.conditions(),
        seed=experiment.seed,
        verify=verify,
        record=record,
        bound_on=experiment.machine(),
    )
    if case is not None:
        run.name, run.launch = case.name, case.launch
    return run
