"""Measures the schedules of a plan.

:func:`measure` times them. Each finished measurement is added to :class:`Rows`, so that an
interruption loses none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.cases import figures_of, run_all

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tutti import _core
    from tutti.cases import Figures
    from tutti.planning import ComparisonPlan
    from tutti.schedule import Schedule
    from tutti.units import Size

__all__ = ["Rows", "measure"]


class Rows:
    """The finished measurements of a plan."""

    def __init__(self, plan: ComparisonPlan) -> None:
        self.plan = plan
        self.messages = 0
        self._finished: dict[int, Figures] = {}
        self._figures: dict[int, dict[str, Any]] = {}
        self._bounds: dict[tuple[int, int], int] = {}

    @property
    def count(self) -> int:
        """The number of finished measurements."""
        return len(self._finished)

    def add(self, index: int, figures: Figures) -> None:
        """Stores a measurement: completion time in ps, messages, and bytes in all messages."""
        self._finished[index] = figures
        self.messages += figures[1]

    def frame(self) -> pl.DataFrame:
        """Returns a row per finished measurement, in the order of the plan."""
        from tutti.results import measurement_frame

        return measurement_frame(self._row(index) for index in sorted(self._finished))

    def _row(self, index: int) -> dict[str, Any]:
        point = self.plan.points[index]
        laid_out = point.case.schedule
        # Cached: a closed form can take as long as a simulation, and frames are built repeatedly.
        if index not in self._figures:
            case = self.plan.core_cases[index]
            bound_ps = self._bound_ps(case, laid_out, point.size)
            finished = self._finished[index]
            self._figures[index] = figures_of(case, laid_out, point.size, finished, bound_ps)
        verified = {"verified": laid_out.base.is_verified}
        return self.plan.labels(point) | self._figures[index] | verified

    def _bound_ps(self, case: _core.Case, laid_out: Schedule, size: Size) -> int:
        """Returns the lower bound, which complete schedules without blocks share."""
        if laid_out.collective == "all_to_all_v" or laid_out.base is not laid_out:
            return case.bound().at_least_ps
        key = (laid_out.ranks, size.bytes)
        if key not in self._bounds:
            self._bounds[key] = case.bound().at_least_ps
        return self._bounds[key]


def measure(
    plan: ComparisonPlan,
    rows: Rows,
    *,
    done: Callable[[int], object] | None = None,
    threads: int = 0,
) -> None:
    """Runs every measurement of a plan and adds it to `rows` when it finishes.

    Args:
        plan: The plan.
        rows: Receives the measurements; finished ones remain after an interruption.
        done: Called after each measurement with its share of `plan.work`.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.

    Raises:
        SimulationError: A run cannot finish; the message names the waiting ranks.
        KeyboardInterrupt: Ctrl-C was pressed.
    """

    def finished(index: int, figures: Figures) -> None:
        rows.add(index, figures)
        if done is not None:
            done(plan.points[index].case.work)

    run_all(plan.core_cases, finished, threads=threads)
