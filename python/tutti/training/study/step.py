"""The study of a training step with several endpoint configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.study import Study
from tutti.training.files.tables import GpuTable
from tutti.training.results import TrainingResult
from tutti.training.runs import alike, run_each, watched
from tutti.training.view.page import steps_view
from tutti.training.view.text import planned_fact
from tutti.training.view.tracks import check_npus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.training.files.step_file import Training
    from tutti.view.view import Fact


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
        more = [_as_planned(training, run) for run in runs if run.configuration.name == "ideal"]
        view = steps_view(runs, training.title, npus, [fact for fact in more if fact])
        study.present(view.with_page(report))
    study.end(len(runs), len(configurations))


def _as_planned(training: Training, run: TrainingResult) -> Fact | None:
    """Returns the time as `tutti train plan` counts it, if the step is that of a plan."""
    if not isinstance(training.raw.compute, GpuTable):
        return None  # and the modules of plans are not imported

    from tutti.training.files.planned import planned_of
    from tutti.training.plan.simulate import as_planned
    from tutti.workloads.pieces import Pieces

    planned = planned_of(training)
    if planned is None or run.iterations > 1:
        return None
    model, plan, cluster = planned
    return planned_fact(run, as_planned(run, Pieces(model), plan, cluster))
