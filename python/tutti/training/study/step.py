"""The study of a training step with several endpoint configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.study.study import Study
from tutti.training.files.tables import GpuTable
from tutti.training.results import TrainingResult
from tutti.training.runs import alike, run_each, watched
from tutti.training.view.page import steps_view
from tutti.training.view.text import planned_facts
from tutti.training.view.tracks import check_npus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tutti.training.files.planned import Planned
    from tutti.training.files.step_file import Training
    from tutti.training.plan.timing import StepTiming
    from tutti.view.view import Fact
    from tutti.workloads.pieces import Pieces


def run_step(
    training: Training, npus: Sequence[int], threads: int = 0, *, report: bool = True
) -> None:
    """Runs a step with each of its configurations, and shows and writes the results.

    Args:
        training: The step.
        npus: Up to 8 NPUs whose timelines are drawn and exported.
        threads: The most threads; 0 for one per core.
        report: Whether to write the page.

    Raises:
        ConfigError: The output folder cannot be created.
        Exit: Ctrl-C interrupted the runs; what is finished was shown and written.
        ReportError: An NPU was not simulated or is repeated, or there are too many.
    """
    study = Study[TrainingResult](training.output, "run")
    configurations = training.configurations
    step = watched(training.step, configurations[0])

    finished: dict[int, TrainingResult] = {}

    def compute(done: Callable[[TrainingResult], None]) -> None:
        def ended(index: int, run: TrainingResult) -> None:
            check_npus(npus, run)
            finished[index] = run
            done(run)

        pairs = [(step, one) for one in configurations]
        run_each(pairs, ended, npus=step.npus, threads=threads)

    study.several("configurations", compute, planned=len(configurations))
    runs = [finished[index] for index in sorted(finished)]
    if runs:
        runs = runs if study.is_interrupted else alike(runs, threads)
        times = plan_times(training)
        ideal = [run for run in runs if run.configuration.name == "ideal"]
        more = [fact for run in ideal if times for fact in times.facts(run)]
        view = steps_view(runs, training.title, npus, more)
        study.present(view.with_page(report))
    study.end(len(runs), len(configurations))


class PlanTimes(NamedTuple):
    """The times of runs of a plan's step, as `tutti train plan` counts them.

    Attributes:
        pieces: The model.
        planned: The plan and its GPUs.
    """

    pieces: Pieces
    planned: Planned

    def timing(self, run: TrainingResult) -> StepTiming:
        """Returns the time of a run with ideal endpoints."""
        from tutti.training.plan.simulate import as_planned

        return as_planned(run, self.pieces, self.planned.plan, self.planned.cluster)

    def facts(self, run: TrainingResult) -> Iterator[Fact]:
        """Yields the facts on a run."""
        from tutti.training.plan.interval import spread_of

        spread = spread_of(self.pieces, self.planned.plan, self.planned.cluster)
        timing = self.timing(run)
        return planned_facts(run, timing, spread and spread.interval(timing.step))


def plan_times(training: Training) -> PlanTimes | None:
    """Returns the times of a plan; None if the step is not that of a plan.

    Raises:
        ConfigError: The file of the calibration is invalid.
    """
    if not isinstance(training.raw.compute, GpuTable) or training.step.iterations != 1:
        return None  # and the modules of plans are not imported

    from tutti.training.files.planned import planned_of
    from tutti.workloads.pieces import Pieces

    planned = planned_of(training)
    return PlanTimes(Pieces(planned.model), planned) if planned else None
