"""Measures the schedules of a plan.

:func:`measure` times them. Each finished measurement is added to :class:`Rows`, so that an
interruption loses none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.collectives.case import has_energy, limit_of, run_all, timed
from tutti.collectives.energy import energies, measure_with_energy

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tutti.collectives.candidates import ComparisonPlan
    from tutti.collectives.case import Figures
    from tutti.collectives.energy import ScheduleEnergy
    from tutti.energy.technology import EnergyReport


class Rows:
    """The finished measurements of a plan."""

    def __init__(self, plan: ComparisonPlan) -> None:
        self.plan = plan
        self.messages = 0
        self._finished: dict[int, Figures] = {}
        self._energies: dict[int, EnergyReport] = {}
        self._figures: dict[int, dict[str, Any]] = {}
        self._bounds: dict[tuple[int, int] | int, int] = {}

    @property
    def count(self) -> int:
        """The number of finished measurements."""
        return len(self._finished)

    def add(self, index: int, figures: Figures, energy: EnergyReport | None = None) -> None:
        """Stores a measurement: completion time in ps, messages, bytes in all messages; energy."""
        self._finished[index] = figures
        self.messages += figures[1]
        if energy is not None:
            self._energies[index] = energy

    def energies(self) -> list[ScheduleEnergy]:
        """Returns the energy of each schedule; empty on a platform without energy."""
        measured = ((at, self._finished[at], energy) for at, energy in self._energies.items())
        return energies(self.plan, measured)

    def frame(self, *, bounds: bool = True) -> pl.DataFrame:
        """Returns a row per finished measurement, in the order of the plan.

        Args:
            bounds: Whether to compute lower bounds; otherwise those not known yet are null.
        """
        from tutti.collectives.frames import measurement_frame

        finished = sorted(self._finished)
        if bounds:
            for index in finished:
                self.add_bound(index)
        return measurement_frame(self.row(index) for index in finished)

    def row(self, index: int) -> dict[str, Any]:
        """Returns the row of a finished measurement, with its lower bound if it is known."""
        point = self.plan.points[index]
        laid_out = point.case.schedule
        # Cached: a closed form can take as long as a simulation, and frames are built repeatedly.
        if index not in self._figures:
            case, finished = self.plan.core_cases[index], self._finished[index]
            labels = self.plan.labels(point) | {"verified": laid_out.base.is_verified}
            row = labels | timed(case, laid_out, point.size, finished)
            if point.case.label:
                row |= {"algorithm": point.case.algorithm, "schedule": point.case.label}
            self._figures[index] = row
        bound_ps = self._bounds.get(self._key_of_bound(index))
        return self._figures[index] | limit_of(bound_ps, self._finished[index])

    def add_bound(self, index: int) -> None:
        """Computes the lower bound of a measurement, unless it is known."""
        key = self._key_of_bound(index)
        if key not in self._bounds:
            point = self.plan.points[index]
            self._bounds[key] = self.plan.bound_case(point).bound().at_least_ps

    def _key_of_bound(self, index: int) -> tuple[int, int] | int:
        """Returns a key that complete schedules without blocks share."""
        case, size, _ = self.plan.points[index]
        laid_out = case.schedule
        if laid_out.collective == "all_to_all_v" or laid_out.base is not laid_out:
            return index
        return laid_out.ranks, size.bytes


def measure(
    plan: ComparisonPlan,
    rows: Rows,
    *,
    done: Callable[[int], object] | None = None,
    threads: int = 0,
) -> None:
    """Runs every measurement of a plan and adds it to `rows` when it finishes.

    Schedules that were simulated to choose arguments are not simulated again, unless the platform
    has energy.

    Args:
        plan: The plan.
        rows: Receives the measurements; finished ones remain after an interruption.
        done: Called after each measurement with its share of `plan.work`.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.

    Raises:
        SimulationError: A run cannot finish; the message names the waiting ranks.
        KeyboardInterrupt: Ctrl-C was pressed.
    """

    def finished(index: int, figures: Figures, energy: EnergyReport | None = None) -> None:
        rows.add(index, figures, energy)
        if done is not None:
            done(plan.points[index].case.work)

    if has_energy(plan.request.platform):
        measure_with_energy(plan, finished, threads=threads)
        return
    unknown = []
    for index, point in enumerate(plan.points):
        if (figures := plan.figures(point)) is None:
            unknown.append(index)
        else:
            finished(index, figures)

    def simulated(place: int, figures: Figures) -> None:
        finished(unknown[place], figures)

    run_all([plan.core_cases[index] for index in unknown], simulated, threads=threads)
