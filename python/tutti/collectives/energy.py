"""Energy of the measurements of a comparison, on platforms whose network has a technology."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from tutti.collectives.result import Run
from tutti.energy.technology import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.collectives.candidates import ComparisonPlan
    from tutti.collectives.case import Figures
    from tutti.energy.technology import EnergyReport


class ScheduleEnergy(NamedTuple):
    """The energy of a schedule at a rank count and size; means over repetitions.

    Attributes:
        ranks: The number of ranks.
        size_bytes: The size.
        schedule: The schedule.
        time_ps: The completion time.
        dynamic_j: Dynamic energy in joules.
        leakage_j: Leakage energy until the last rank's end, in joules.
        total: Both, with the bounds of the sources, in joules.
    """

    ranks: int
    size_bytes: int
    schedule: str
    time_ps: float
    dynamic_j: float
    leakage_j: float
    total: Interval

    @property
    def power_w(self) -> float:
        """Mean power in watts."""
        return self.total.nominal / (self.time_ps * 1e-12)

    @property
    def pj_per_byte(self) -> float:
        """Energy per byte of the payload, in picojoules."""
        return self.total.nominal * 1e12 / self.size_bytes


def measure_with_energy(
    plan: ComparisonPlan,
    finished: Callable[[int, Figures, EnergyReport], object],
    *,
    threads: int = 0,
) -> None:
    """Runs every measurement of a plan, and computes its energy.

    Args:
        plan: The plan, on a platform with energy.
        finished: Called with index, figures and energy of each measurement.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.

    Raises:
        SimulationError: A run cannot finish; raised for the first such one, after all have run.
        KeyboardInterrupt: Ctrl-C was pressed; runs that have started are not waited for.
    """
    failed: dict[int, Exception] = {}
    # The core releases the interpreter lock, so threads run in parallel.
    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    try:
        running = {pool.submit(_run, plan, index): index for index in range(len(plan.points))}
        for done in as_completed(running):
            error = done.exception()
            if isinstance(error, Exception):
                failed[running[done]] = error
            else:
                finished(running[done], *done.result())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if failed:
        raise failed[min(failed)]


def _run(plan: ComparisonPlan, index: int) -> tuple[Figures, EnergyReport]:
    point = plan.points[index]
    run = Run(
        plan.core_cases[index],
        schedule=point.case.schedule,
        platform=point.case.platform or plan.request.platform,
        size=point.size,
        datatype=plan.request.datatype,
        bound_case=partial(plan.bound_case, point),
        not_verified=None,
        record=False,
    )
    return (run.completion_ps, run.messages, run.message_bytes), run.energy()


def energies(
    plan: ComparisonPlan, measured: Iterable[tuple[int, Figures, EnergyReport]]
) -> list[ScheduleEnergy]:
    """Returns the energy of each schedule, by rank count, size and energy.

    Args:
        plan: The plan.
        measured: Index, figures and energy of finished measurements.
    """
    groups: dict[tuple[int, int, str], list[tuple[Figures, EnergyReport]]] = {}
    for index, figures, energy in sorted(measured, key=lambda one: one[0]):
        point = plan.points[index]
        name = point.case.label or point.case.schedule.name
        key = point.case.schedule.ranks, point.size.bytes, name
        groups.setdefault(key, []).append((figures, energy))
    found = [
        ScheduleEnergy(
            *key,
            fmean(figures[0] for figures, _ in group),
            fmean(energy.dynamic.nominal for _, energy in group),
            fmean(energy.leakage.nominal for _, energy in group),
            _mean([energy.total for _, energy in group]),
        )
        for key, group in groups.items()
    ]
    return sorted(found, key=lambda one: (one.ranks, one.size_bytes, one.total.nominal))


def _mean(values: Sequence[Interval]) -> Interval:
    return Interval(*(fmean(bounds) for bounds in zip(*values, strict=True)))
