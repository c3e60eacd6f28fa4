"""The study of the algorithms of a training step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.study.console import remark, wrote
from tutti.study.progress import Progress
from tutti.study.study import Study
from tutti.training.runs import watched
from tutti.training.search import AlgorithmSearch
from tutti.training.study.step import plan_times
from tutti.training.view.page import steps_view
from tutti.training.view.search import left_out, refusals, search_view
from tutti.view import folder
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tutti.training.files.step_file import Training
    from tutti.training.results import TrainingResult
    from tutti.training.study.step import PlanTimes

_PARTS = 1000
"""The units of progress of a search."""


def run_search(
    training: Training, algorithms: Sequence[str] | None, limit: int, threads: int = 0
) -> None:
    """Searches the algorithms of a step with each of its configurations, shows and writes them.

    Args:
        training: The step.
        algorithms: The notations to try; None for all of the registry.
        limit: The most simulations per configuration; 0 for no limit.
        threads: The most threads; 0 for one per core.

    Raises:
        AlgorithmError: A given algorithm performs no collective of the step.
        ConfigError: The output folder cannot be created.
        Exit: Ctrl-C interrupted the searches; their results so far were shown and written.
        WorkloadError: The step has no fixed number of iterations.
    """
    study = Study[AlgorithmSearch](training.output, "configuration")
    configurations = training.configurations
    step = watched(training.step, configurations[0])
    searches: list[AlgorithmSearch] = []
    try:
        for configuration in configurations:
            search = AlgorithmSearch(
                step, configuration, algorithms=algorithms, limit=limit, threads=threads
            )
            searches.append(search)
            _search(search)
    except KeyboardInterrupt:
        study.is_interrupted = True
    times = plan_times(training)
    for search in searches:
        search.settle(_step_of(times, search))
    if searches:
        study.present(search_view(searches, times.timing if times else None))
    # Of algorithms that the user did not name, search.parquet has the refusals.
    refused = refusals(searches) if algorithms else ()
    for text in (*_stopped(searches), *refused, *left_out(searches)):
        remark(text)
    study.end(sum(search.is_complete for search in searches), len(configurations))
    _write(searches, times, training)


def _stopped(searches: Sequence[AlgorithmSearch]) -> Iterator[str]:
    """Yields the searches that ended early."""
    for search in searches:
        if not search.is_complete:
            stopped = f"stopped after {plural(len(search.trials), 'trial')}"
            name = search.configuration.name
            yield f"{name}: {stopped}; further trials may find a faster step"


def _step_of(
    times: PlanTimes | None, search: AlgorithmSearch
) -> Callable[[TrainingResult], float] | None:
    """Returns the function of the time of a run as a plan; None for other steps and endpoints."""
    if times is None or search.configuration.name != "ideal":
        return None
    return lambda run: times.timing(run).step


def _write(
    searches: Sequence[AlgorithmSearch], times: PlanTimes | None, training: Training
) -> None:
    """Writes the steps with the chosen algorithms as `tutti train run` does.

    Of many micro-batches, the report and the timeline would take longer than the search.
    """
    best = [search.best for search in searches]
    ideal = [run for run in best if run.configuration.name == "ideal"]
    facts = [fact for run in ideal if times for fact in times.facts(run)]
    view = steps_view(best, training.title, more=facts)
    if any(search.micro_batches for search in searches):
        view = replace(view.with_page(False), drawings={})
        remark("`tutti train run` with these algorithms writes the report and the timeline")
    wrote(*folder.write(view, training.output))


def _search(search: AlgorithmSearch) -> None:
    """Runs a search; the number of its rounds is unknown."""
    name = f"searching {search.configuration.name}"
    with Progress(name, work=_PARTS, handles_interrupts=True) as progress:
        search.run(lambda count: progress.reach(int(search.progress * _PARTS), _PARTS, count))
