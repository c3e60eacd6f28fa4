"""Steps with many micro-batches, of which few are simulated.

In steady state, each further micro-batch takes the same time. One and two micro-batches per stage
give the time of all, as in plans (:mod:`tutti.training.plan.simulate`).

Examples:
    >>> time_of(64, 4, (50, 70))
    350
    >>> latest_of(64, 4, 50, 350)
    70
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.workloads.parallel import Parallelism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.step import Step

_LEAST_RATIO = 4
"""Micro-batches per stage, beyond which a step is shortened; two short steps take three."""


def shortened(step: Step) -> tuple[Step, ...]:
    """Returns the steps with one and two micro-batches per stage; the step alone if it has few."""
    kinds = step.parallelism
    if step.is_recorded or not isinstance(kinds, Parallelism):
        return (step,)
    count, stages = kinds.micro_batches, kinds.pipeline
    if count <= _LEAST_RATIO * stages or step.batch % count or step.iterations != 1:
        return (step,)

    def of(micro_batches: int) -> Step:
        batch = step.batch // count * micro_batches
        fewer = replace(kinds, micro_batches=micro_batches)
        return replace(step, batch=batch, parallelism=fewer)

    return of(stages), of(2 * stages)


def time_of(micro_batches: int, stages: int, times_ps: Sequence[int]) -> int:
    """Returns the time of a step in ps.

    Args:
        micro_batches: Those of the step.
        stages: Its pipeline stages.
        times_ps: The times of the steps of :func:`shortened`.
    """
    if len(times_ps) == 1:
        return times_ps[0]
    few, more = times_ps
    return more + (micro_batches - 2 * stages) * (more - few) // stages


def latest_of(micro_batches: int, stages: int, few_ps: int, latest_ps: int) -> int:
    """Returns the longest time in ps of the longer step with which the step ends in time.

    Args:
        micro_batches: Those of the step.
        stages: Its pipeline stages.
        few_ps: The time of the shorter step of :func:`shortened`.
        latest_ps: The latest end of the step.
    """
    further = micro_batches - 2 * stages
    return ((latest_ps + 1) * stages + further * few_ps - 1) // (stages + further)
