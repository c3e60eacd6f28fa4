"""Times of training steps, and the time in which an endpoint is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.training.results import TrainingResult

BASELINES = ("no_overlap", "comm_opt", "comp_opt")
LARGEST = "4x8x4"
"""128 NPUs."""


def iteration(run: TrainingResult) -> float:
    """Returns the mean time of an iteration in picoseconds."""
    return run.total.ps / run.iterations


def period(run: TrainingResult) -> float:
    """Returns the steady-state iteration time in picoseconds: the mean of the later half."""
    ends = run.record.iterations()
    half = len(ends) // 2
    return (ends[-1] - ends[half - 1]) / (len(ends) - half)


def active_percent(run: TrainingResult) -> tuple[float, float]:
    """Returns the percentages of the forward and backward pass in which the endpoint is active."""
    window = run.step.window.ps if run.step.window else 1
    backward = _backward(run)
    sums = {False: [0, 0], True: [0, 0]}
    total = run.total.ps
    busy = run.record.over_time().communicating_ps
    for index in range(-(-total // window)):
        middle = index * window + window // 2
        part = sums[any(start <= middle < end for start, end in backward)]
        part[0] += busy[index] if index < len(busy) else 0
        part[1] += min(window, total - index * window)
    forward, back = (100 * active / max(elapsed, 1) for active, elapsed in sums.values())
    return round(forward, 1), round(back, 1)


def _backward(run: TrainingResult) -> list[tuple[int, int]]:
    """Returns the backward passes: first weight gradient to the next iteration's forward pass."""
    tasks = run.step.programs(run.configuration)[0].tasks
    first: dict[tuple[str, int], int] = {}
    for span in run.record.spans():
        task = tasks[span.task]
        if task.kind == "compute":
            start, place = span.start_ps, (task.during, task.iteration)
            first[place] = min(start, first.get(place, start))
    return [
        (
            first["weight_gradient", iteration],
            first.get(("forward", iteration + 1), run.total.ps),
        )
        for iteration in range(run.iterations)
    ]
