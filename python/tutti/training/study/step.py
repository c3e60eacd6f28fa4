"""The study of a training step with several endpoint configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.results import TrainingResult
from tutti.training.step import alike, watched
from tutti.training.view.page import steps_view
from tutti.training.view.tracks import check_npus
from tutti.view.quantity import format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        for text in _remarks(runs):
            remark(text)
    study.end(len(runs), len(configurations))


def _remarks(runs: Sequence[TrainingResult]) -> Iterator[str]:
    """Yields the model of communication, the time per iteration and the lower bounds."""
    step = runs[0].step
    if step.platform is not None:
        name = step.platform.name
        replaces = {
            "packets": f"endpoints replace the cost model of {name}",
            "flows": f"flows replace the cost model of {name}; endpoints cost nothing",
            "isolated": f"collectives take the time of their simulation alone on {name}",
        }
        yield f"{replaces[step.detail]} ({step.platform.model.kind})"
    if runs[0].iterations > 1:
        each = ", ".join(f"{run.configuration.name} {format_time(run.period.ps)}" for run in runs)
        yield f"last iteration: {each}"
    unstable = [run.configuration.name for run in runs
                if run.step.iterations == "stable" and not run.is_stable]  # fmt: skip
    if unstable:
        yield f"not stable after {runs[0].iterations} iterations: {', '.join(unstable)}"
    bounds = (
        f"{run.configuration.name} {format_time(run.bound.time.ps)} ({format_share(run.of_bound)})"
        for run in runs
    )
    yield f"lower bound of any algorithms, and its share of the time: {', '.join(bounds)}"
