"""The study of a training step with several endpoint configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.study import Study
from tutti.training.results import TrainingResult
from tutti.training.step import alike, watched
from tutti.training.view.page import steps_view
from tutti.training.view.tracks import check_npus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.training.files.step_file import Training


def run_step(training: Training, npus: Sequence[int]) -> None:
    """Runs a step with each of its configurations, and shows and writes the results.

    Args:
        training: The step.
        npus: Up to 8 NPUs whose timelines are drawn and exported.

    Raises:
        ConfigError: The output folder cannot be created.
        Exit: Ctrl-C interrupted the runs; what is finished was shown and written.
        ReportError: An NPU was not simulated or is repeated, or there are too many.
    """
    study = Study[TrainingResult](training.output, "run")
    configurations = training.configurations
    step = watched(training.step, configurations[0])

    def compute(done: Callable[[TrainingResult], None]) -> None:
        for configuration in configurations:
            run = step.run(configuration)
            check_npus(npus, run)
            done(run)

    runs, _ = study.several("configurations", compute, planned=len(configurations))
    if runs:
        runs = runs if study.is_interrupted else alike(runs)
        study.present(steps_view(runs, training.title, npus))
    study.end(len(runs), len(configurations))
