"""The study of one schedule: verified, simulated with a record, and repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.files.extras import installed, requires
from tutti.base.files.mistakes import mistake
from tutti.collectives.experiment import Rows, measure, plan, request_of, run_once
from tutti.collectives.frames import summary
from tutti.collectives.library import LibraryPlan, one_adapter
from tutti.collectives.view.run import run_view
from tutti.platforms.library import is_library
from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.study.study import Study, read

if TYPE_CHECKING:
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.request import TimedSchedule
    from tutti.collectives.result import Run


def run(experiment: Experiment, *, verify: bool = True) -> None:
    """Runs the only schedule of an experiment, and shows and writes the run.

    Args:
        experiment: The experiment.
        verify: Whether to verify the schedule first.

    Raises:
        ConfigError: The experiment has several runs, or the output folder cannot be created.
        AlgorithmError: The algorithm does not fit.
        VerificationError: The schedule is incorrect.
        SimulationError: The run cannot finish.
    """
    for text in experiment.machine().remarks:
        remark(text)
    notation, ranks, size = _only(experiment), experiment.ranks[0], experiment.sizes[0]
    library = LibraryPlan.of(experiment.machine())
    case = read(f"laying out {notation}", lambda: _case(experiment, notation, library))
    result = read(
        "verifying and simulating" if verify else "simulating",
        lambda: run_once(experiment, case, size, verify=verify, record=True),
    )
    predicted = None
    if library is not None:
        library.predict(experiment.collective, ranks, [size])
        predicted = library.baselines.get((ranks, size.bytes))
        points = [(size.bytes, result.completion_ps)]
        differs = library.difference(case.name, ranks, points, lambda *_: result)
        single = one_adapter(library.model, notation, ranks)
        beyond = library.beyond({(ranks, size.bytes): result.bound.at_least_ps})
        for text in filter(None, (single, *library.notes, differs, *beyond)):
            remark(text)
    study: Study[Run] = Study(experiment.output, "run", extra=None)
    view = run_view(
        result,
        model=experiment.model,
        repetitions=_repetitions(experiment) if experiment.repetitions > 1 else None,
        library=(library.name, predicted) if library and predicted else None,
        drawn=installed("reports"),
    )
    study.present(view)
    if not installed("reports"):
        remark(f"no trace and no drawing is written: it {requires('reports')}")


def _case(experiment: Experiment, notation: str, library: LibraryPlan | None) -> TimedSchedule:
    """Returns the schedule of a notation, also of one that the library of the platform defines."""
    request, ranks = request_of(experiment), experiment.ranks[0]
    if library is not None and is_library(notation):
        return library.schedules(notation, request, ranks)[0]
    return request.case(notation, ranks)


def _only(experiment: Experiment) -> str:
    """Returns the algorithm of an experiment that has a single run.

    Raises:
        ConfigError: The experiment has several runs.
    """
    algorithms = experiment.algorithms or ()
    for key, count, option, example in (
        ("ranks", len(experiment.ranks), "--ranks", experiment.ranks[0]),
        ("sizes", len(experiment.sizes), "--size", f"'{experiment.sizes[0]}'"),
        ("algorithms", len(algorithms), "--algorithm", "ring"),
    ):
        if count != 1:
            problem = f"has {count} values; a run takes one" if count else "names no algorithm"
            raise mistake(
                problem,
                source=experiment.source,
                key=key,
                expected="one value",
                hint=f"select one: {option} {example}",
            )
    return algorithms[0]


def _repetitions(experiment: Experiment) -> dict[str, Any]:
    """Returns minimum, median and quartiles over the repetitions."""
    rows = Rows(plan(experiment))
    with Progress("repetitions", work=rows.plan.work, total=experiment.repetitions) as progress:
        measure(rows.plan, rows, done=lambda work: progress.advance(work, rows.count))
    return summary(rows.frame()).row(0, named=True)
