"""The study of a network under load: one load, or a sweep with a search for saturation."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from tutti.base.errors import SimulationError, TuttiError
from tutti.base.files.mistakes import mistake
from tutti.networks.loads import Loaded
from tutti.study.console import remark
from tutti.study.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.experiment import Experiment

Run = TypeVar("Run", bound=Loaded)


def run_load(
    experiment: Experiment[Any, Any, Any, Run],
    source: object,
    notes: Sequence[str] = (),
    *,
    report: bool = True,
) -> None:
    """Runs an experiment at its load, and shows and writes the result.

    Args:
        experiment: The experiment.
        source: Its file, for messages.
        notes: Sentences that the report shows before the warnings.
        report: Whether to write the page.

    Raises:
        ConfigError: The output folder cannot be created.
        SimulationError: The run saturated or deadlocked, its window was too short to decide, or it
            had no packets: there is no latency.
    """
    remarks = _remarked(experiment)
    study = Study[Run](experiment.output, "load", attrgetter("cycles"))
    run = study.single(experiment.run)
    study.present(experiment.run_view(run, [*notes, *remarks]).with_page(report))
    refuse_unstable(run, source)


def sweep_loads(
    experiment: Experiment[Any, Any, Any, Run],
    source: object,
    loads: Sequence[float] | None = None,
    *,
    search: bool = True,
    tolerance: float | None = None,
    threads: int = 0,
    notes: Sequence[str] = (),
    report: bool = True,
) -> None:
    """Runs an experiment at several loads, searches for saturation, and shows and writes all.

    Args:
        experiment: The experiment.
        source: Its file, for messages.
        loads: The loads; None for those of the experiment.
        search: Whether to search for the saturation load.
        tolerance: Tolerance of the saturation load, in the unit of the loads; None for the default.
        threads: Number of threads; 0 for one per core.
        notes: Sentences that the report shows before the warnings.
        report: Whether to write the page.

    Raises:
        ConfigError: The traffic cannot be swept, or the output folder cannot be created.
        Exit: Ctrl-C interrupted the runs; what is finished was shown and written.
        SimulationError: Every load deadlocked.
    """
    remarks = _remarked(experiment)
    study = Study[Run](experiment.output, "load", attrgetter("cycles"))
    values = experiment.default_loads if loads is None else loads
    runs = _swept(study, experiment, values, threads)
    saturation = None
    if search and not experiment.has_saturation:
        remark("no saturation load is searched: closed loops and batches have none")
        search = False
    if search and runs and not study.is_interrupted:
        plan = experiment.search_plan(runs, tolerance)
        _, saturation = study.several(
            "saturation",
            lambda done: experiment.saturation(plan, runs, threads, done),
            planned=plan.runs,
            prefix="saturation: ",
        )
    if runs:
        view = experiment.load_view(runs, saturation, [*notes, *remarks])
        study.present(view.with_page(report))
    study.end(len(runs), len(values))
    if runs and all(run.ending == "deadlocked" for run in runs):
        refuse_unstable(runs[0], source)


def refuse_unstable(run: Loaded, source: object) -> None:
    """Refuses a run that saturated, deadlocked, was too short or had no packets: no latency.

    Raises:
        SimulationError: The run saturated or deadlocked, its window was too short to decide, or no
            packet was measured.
    """
    if run.ending == "deadlocked":
        raise SimulationError(f"{source}: the network deadlocks", kind="deadlocked")
    if run.ending == "empty":
        raise SimulationError(f"{source}: no packet arrived in the measurement window",
                              kind="no_packets")  # fmt: skip
    if run.ending == "undecided":
        raise SimulationError(f"{source}: {run.too_short}", kind="too_short",
                              hint=f"add `--set measure.measure={run.long_enough}`")  # fmt: skip
    if run.ending != "stable":
        problem = f"{source}: the network saturates at this load"
        raise SimulationError(problem, kind="saturated")


def _remarked(experiment: Experiment[Any, Any, Any, Run]) -> list[str]:
    """Prints and returns the warnings about a network, before it is run."""
    remarks = experiment.remarks()
    for text in remarks:
        remark(text)
    return remarks


def _swept(
    study: Study[Run],
    experiment: Experiment[Any, Any, Any, Run],
    loads: Sequence[float],
    threads: int,
) -> list[Run]:
    """Returns the finished runs, by ascending load."""

    def work(load: float) -> int:  # the time of a run grows with its load
        return 1 + round(100 * load)

    try:
        runs, _ = study.several(
            "loads",
            lambda done: experiment.sweep(loads, threads, done),
            planned=len(loads),
            work=sum(map(work, loads)),
            work_of=lambda run: work(run.load or 0.0),
        )
    except TuttiError as error:
        if "source" in error.fields:
            raise
        raise mistake(error.problem, source="--loads", hint=error.hint) from None
    return sorted(runs, key=lambda run: run.load or 0.0)
