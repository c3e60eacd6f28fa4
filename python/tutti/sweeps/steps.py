"""Sweeps of training steps: a measurement is a step with an endpoint configuration."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.base.errors import ConfigError, TuttiError
from tutti.schedules.text import content
from tutti.sweeps.errors import WorkerError
from tutti.sweeps.keys import digest
from tutti.sweeps.points import PointPlan
from tutti.sweeps.version import FORMAT, simulator
from tutti.sweeps.worker import Done, Item, check_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tutti.sweeps.files import Sweep
    from tutti.sweeps.worker import Batch, Row
    from tutti.training.endpoint import Configuration
    from tutti.training.files.step_file import Training


class StepPlan(PointPlan):
    """All measurements of a sweep of a training step: a step per point and configuration.

    The notation of a measurement is the configuration.
    """

    def frame(self, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
        """Returns a row per finished measurement, in the order of the plan.

        The columns are those of :func:`tutti.training.step.frame`, and ``sweep.KEY`` with the value
        of each swept key, as in :func:`tutti.sweeps.frame.sweep_frame`.
        """
        import polars as pl

        from tutti.sweeps.frame import swept_columns

        finished = [item for item in self.measurements if item.key in rows]
        found = pl.DataFrame([dict(rows[item.key]) for item in finished])
        points = pl.Series([item.point for item in finished], dtype=pl.UInt32)
        return pl.concat([found, swept_columns(self.sweep)[points]], how="horizontal")


def plan_steps(sweep: Sweep, *, verify: bool = True) -> StepPlan:
    """Validates all points, and plans their measurements.

    Raises:
        ConfigError: A point is not a valid training step, or verification is disabled.
    """
    if not verify:
        message = "a sweep of a training step cannot skip the verification of its schedules"
        raise ConfigError(message, kind="invalid", hint="remove the option `--no-verify`")
    plan = StepPlan(sweep)
    for point, training in enumerate(sweep.trainings()):
        npus = training.step.network.group_size((1 << len(training.step.rings)) - 1)
        for configuration in training.configurations:
            key = _key(training, configuration)
            plan.measurements.append(Item(key, point, configuration.name, npus, 0, 0, None))
    return plan


def _key(training: Training, configuration: Configuration) -> str:
    """Returns the cache key of a measurement: a hash of all its inputs."""
    step = training.step
    platform = step.platform.model_dump_json() if step.platform else None
    algorithms = {
        name: [content(one) if isinstance(one, str) else one.to_text() for one in _channels(given)]
        for name, given in step.algorithms.items()
    }
    inputs = repr(replace(step, platform=None, algorithms={})), repr(configuration)
    return digest("step", FORMAT, simulator(), platform, algorithms, *inputs)


def _channels(given: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of a step
    return given if isinstance(given, tuple) else (given,)


def run_steps(batch: Batch) -> Done:
    """Runs all items of a batch.

    Raises:
        WorkerError: The worker has another version of tutti than the sweep.
    """
    check_version(batch)
    known: dict[int, Training] = {}
    results: list[Row | TuttiError] = []
    seconds = 0.0
    for item in batch.items:
        started = time.perf_counter()
        try:
            if item.point not in known:
                values = batch.values[item.point]
                known[item.point] = batch.template.training(item.point + 1, values)
            results.append(_measured(known[item.point], item))
        except TuttiError as error:
            results.append(error)
        seconds += time.perf_counter() - started
    return Done(results, seconds)


def _measured(training: Training, item: Item) -> Row:
    from tutti.training.view.quantities import frame

    named = {one.name: one for one in training.configurations}
    configuration = named.get(item.notation)
    if configuration is None or _key(training, configuration) != item.key:
        problem = f"the inputs changed during the sweep: {item.notation}"
        raise WorkerError(problem, kind="other_input")
    row: Row = frame([training.step.run(configuration)]).row(0, named=True)
    return row
