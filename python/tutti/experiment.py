"""Experiments carried out: the plan of a file's request, and single runs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tutti import planning
from tutti.files.mistakes import mistake
from tutti.planning import LeftOut, MeasurementPoint, Request, Rows, TimedSchedule, measure
from tutti.proving import prove
from tutti.simulate import Run, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.config import Experiment
    from tutti.errors import AlgorithmError, ConfigError, LayoutError
    from tutti.schedule import Schedule
    from tutti.units import Size

__all__ = [
    "ExperimentPlan",
    "LeftOut",
    "MeasurementPoint",
    "Rows",
    "TimedSchedule",
    "lay_out",
    "measure",
    "parts",
    "plan",
    "plan_of",
    "prove",
    "run_once",
    "try_plan",
]


@dataclass(frozen=True)
class ExperimentPlan(planning.ComparisonPlan):
    """What will be measured of an experiment, in order, and what will not."""

    experiment: Experiment


class ExperimentPlanResult(NamedTuple):
    """A plan, and what is wrong with the experiment, if anything is.

    Attributes:
        plan: What can be measured.
        misfits: Why an algorithm that was asked for by name fits none of the rank counts.
        unequal: Why schedules cannot do with the parts of every size.
    """

    plan: ExperimentPlan
    misfits: dict[str, ConfigError]
    unequal: list[LayoutError]


def parts(experiment: Experiment) -> int:
    """How many parts `plan` has, for progress."""
    is_searched = not experiment.algorithms and experiment.collective == "all_reduce"
    searched = len(experiment.sizes) if is_searched else 0
    return len(experiment.ranks) * (searched + 1)


def plan(experiment: Experiment, *, done: Callable[[int], object] | None = None) -> ExperimentPlan:
    """Generates the schedules of an experiment.

    Args:
        experiment: What is asked.
        done: Called after each part with 1; there are as many as `parts` says.

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


def try_plan(
    experiment: Experiment, *, done: Callable[[int], object] | None = None
) -> ExperimentPlanResult:
    """Generates the schedules of an experiment, as far as they fit; see `plan`."""
    tried = planning.try_plan(_request(experiment), done=done)
    named = experiment.algorithms or ()
    misfits = {
        named[place]: _misfit(experiment, place, error)
        for place, error in sorted(tried.misfits.items())
    }
    made = plan_of(experiment, tried.plan.cases, tried.plan.left_out)
    return ExperimentPlanResult(made, misfits, tried.unequal)


def plan_of(
    experiment: Experiment, cases: Sequence[TimedSchedule], left_out: Sequence[LeftOut] = ()
) -> ExperimentPlan:
    """The measurements of an experiment with these schedules."""
    return ExperimentPlan(_request(experiment), tuple(cases), tuple(left_out), experiment)


def _request(experiment: Experiment) -> Request:
    return Request(
        platform=experiment.machine(),
        collective=experiment.collective,
        ranks=experiment.ranks,
        sizes=experiment.sizes,
        algorithms=experiment.algorithms,
        root=experiment.root,
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
        expected=f"an algorithm for at least one of {_some(experiment.ranks)} ranks",
        hint=error.hint,
    )


def _some(values: Sequence[int]) -> str:
    shown = ", ".join(str(value) for value in values[:6])
    return f"{shown}, ..." if len(values) > 6 else shown


def lay_out(experiment: Experiment, notation: str, ranks: int) -> Schedule:
    """The schedule of a notation, or in a file, for an experiment on that many ranks.

    Raises:
        AlgorithmError: It does not fit.
    """
    return planning.lay_out(
        notation,
        collective=experiment.collective,
        ranks=ranks,
        root=experiment.root,
        routes=experiment.machine().routes,
    )


def run_once(experiment: Experiment, laid_out: Schedule, size: Size, *, verify: bool = True) -> Run:
    """One run of an experiment with its first seed, to be looked at closely.

    Raises:
        VerificationError: The schedule does not do what it is meant to do.
        SimulationError: The run cannot finish; the message says who waits for whom.
    """
    return simulate(
        laid_out,
        experiment.machine(),
        size=size,
        datatype=experiment.datatype,
        conditions=experiment.conditions(),
        seed=experiment.seed,
        verify=verify,
    )
