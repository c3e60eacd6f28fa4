"""Re-times the fastest schedules of a comparison on changed parameters.

A preview simulates only the fastest schedules of each cell, which are generated and verified
already. Finished cells are reported while others run.
Lower bounds are computed after the times, as they can take longer than the simulations.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tutti.base.units import Size
from tutti.collectives.case import run_all
from tutti.collectives.comparison import Comparison, Measurement, only_case
from tutti.collectives.experiment import ExperimentPlan, Rows, library_case
from tutti.platforms.library import is_library
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tutti.collectives.case import Figures
    from tutti.collectives.experiment import TimedSchedule
    from tutti.collectives.files.resolve import Experiment
    from tutti.explore.engine import Compared
    from tutti.view.palette import Style

_RETIMED = 3
"""Schedules of each cell that are re-timed."""
_REPORTS_S = 0.06
"""The time until the first report of finished cells; it doubles after each."""
_BOUNDS_S = 0.03
"""The processor time for lower bounds before the times are reported without them."""

Cell = tuple[int, int]
"""Ranks, and the size in bytes."""


@dataclass(frozen=True)
class Preview:
    """The re-timed schedules of a comparison.

    Attributes:
        plan: Their plan.
        case: Their times.
        styles: The styles of the algorithms, those of the comparison.
    """

    plan: ExperimentPlan
    case: Comparison
    styles: dict[str, Style]
    key: ClassVar[str] = ""
    complete: ClassVar[bool] = False

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        return len(self.case.measured)


def retimed(
    reference: Compared,
    experiment: Experiment,
    emit: Callable[[str, Any], object],
    check: Callable[[], object],
    *,
    threads: int = 0,
) -> Preview:
    """Measures the fastest schedules of a comparison in another experiment.

    Args:
        reference: The comparison.
        experiment: The experiment; its rank counts and sizes are those of the comparison.
        emit: Receives `cells` and `partial`, each with a `Preview`: of the finished cells, and of
            all cells without lower bounds.
        check: Called often; raises to cancel.
        threads: The number of threads; 0 uses one per core.

    Raises:
        SimulationError: A run cannot finish.
    """
    retiming = _Retiming(reference, experiment)
    retiming.simulate(emit, check, threads)
    if not retiming.add_bounds(_BOUNDS_S, check):
        emit("partial", retiming.preview())
        retiming.add_bounds(None, check)
    return retiming.preview()


class _Retiming:
    """The measurements of a preview."""

    def __init__(self, reference: Compared, experiment: Experiment) -> None:
        self._reference = reference
        self._plan = _plan_of(reference, experiment)
        self._rows = Rows(self._plan)
        self._cells: dict[Cell, set[int]] = defaultdict(set)
        for index, point in enumerate(self._plan.points):
            self._cells[point.case.schedule.ranks, point.size.bytes].add(index)
        self._left = {cell: len(indices) for cell, indices in self._cells.items()}

    def simulate(
        self, emit: Callable[[str, Any], object], check: Callable[[], object], threads: int
    ) -> None:
        """Runs all measurements, and reports finished cells."""
        order = self._order()
        started, wait = time.monotonic(), _REPORTS_S

        def finished(place: int, figures: Figures) -> None:
            nonlocal started, wait
            check()
            point = self._plan.points[order[place]]
            self._rows.add(order[place], figures)
            self._left[point.case.schedule.ranks, point.size.bytes] -= 1
            if time.monotonic() - started >= wait and self._rows.count < len(order):
                if cells := self._newly_finished():
                    emit("cells", self._preview(cells))
                started, wait = time.monotonic(), 2 * wait

        run_all([self._plan.core_cases[index] for index in order], finished, threads=threads)
        emit("cells", self._preview(self._newly_finished()))

    def _order(self) -> list[int]:
        """Returns the measurements by cell, alternately from the fewest and the most messages.

        The first reports have many cells, and the longest simulations do not run last and alone.
        """
        works = {
            cell: sum(self._plan.points[index].case.work for index in indices)
            for cell, indices in self._cells.items()
        }
        ordered = sorted(self._cells, key=lambda cell: (works[cell], cell))
        half = (len(ordered) + 1) // 2
        pairs = itertools.zip_longest(ordered[:half], reversed(ordered[half:]))
        alternate = (cell for pair in pairs for cell in pair if cell is not None)
        return [index for cell in alternate for index in sorted(self._cells[cell])]

    def add_bounds(self, seconds: float | None, check: Callable[[], object]) -> bool:
        """Computes lower bounds for a processor time; returns whether all are known."""
        started = time.thread_time()
        for indices in self._cells.values():
            check()
            if seconds is not None and time.thread_time() - started > seconds:
                return False
            self._rows.add_bound(min(indices))
        return True

    def _newly_finished(self) -> list[Cell]:
        """Returns the finished cells that were not reported before."""
        cells = [cell for cell, left in self._left.items() if not left]
        for cell in cells:
            del self._left[cell]
        return cells

    def preview(self) -> Preview:
        """Returns all measurements, with the lower bounds that are known."""
        if self._plan.request.repetitions == 1:
            return self._preview(self._cells)
        case = only_case(self._rows.frame(bounds=False))
        return Preview(self._plan, case, self._reference.styles)

    def _preview(self, cells: Iterable[Cell]) -> Preview:
        """Returns the measurements of finished cells; of repetitions, the fastest."""
        request = self._plan.request
        indices = (index for cell in cells for index in self._cells[cell])
        found = (_measurement(self._rows.row(index)) for index in indices)
        case = Comparison(
            collective=request.collective,
            datatype=request.datatype,
            model=request.platform.network,
            platform=request.platform.name,
            measured=tuple(
                sorted(found, key=lambda m: (m.ranks, m.size_bytes, m.algorithm, m.schedule))
            ),
        )
        return Preview(self._plan, case, self._reference.styles)


_FIELDS = [one.name for one in fields(Measurement)]


def _measurement(row: Mapping[str, Any]) -> Measurement:
    """Returns a measurement without repetitions."""
    time_ps = row["time_ps"]
    spread = ("least_ps", "lower_quartile_ps", "upper_quartile_ps", "most_ps")
    values = dict.fromkeys(spread, time_ps) | {
        "repetitions": 1,
        "algbw": row["algbw_bytes_per_s"] or 0.0,
        "busbw": row["busbw_bytes_per_s"] or 0.0,
    }
    return Measurement(**{name: values[name] if name in values else row[name] for name in _FIELDS})


def _plan_of(reference: Compared, experiment: Experiment) -> ExperimentPlan:
    """Returns the plan of the fastest schedules of each cell of a comparison."""
    schedules = {(one.name, one.schedule.ranks): one for one in reference.plan.cases}
    # Schedules for a graph are those of the known topology: generating them takes seconds.
    cases: list[TimedSchedule] = []
    for (name, ranks), sizes in reference.fastest.items():
        if not is_library(name):
            cases.append(replace(schedules[name, ranks], sizes=sizes))
            continue
        for size in sizes:  # the costs of a library's protocol are those of the platform
            try:
                case = library_case(experiment, name, ranks, Size(bytes=size))
            except AlgorithmError:  # another platform
                continue
            cases.append(replace(case, sizes=frozenset([size])))
    # The hash of the inputs takes longer than the rest of a plan, and identifies no result here.
    request = replace(reference.plan.request, platform=experiment.machine(), config_hash="")
    return ExperimentPlan(request, tuple(cases), reference.plan.left_out, experiment)


def fastest(case: Comparison) -> dict[tuple[str, int], frozenset[int]]:
    """Returns the fastest schedules of each cell: name and ranks, and the sizes in bytes."""
    cells: dict[Cell, list[Measurement]] = defaultdict(list)
    for one in case.best().values():
        cells[one.ranks, one.size_bytes].append(one)
    sizes: dict[tuple[str, int], set[int]] = defaultdict(set)
    for (ranks, size), here in cells.items():
        for one in sorted(here, key=lambda one: one.time_ps)[:_RETIMED]:
            sizes[one.schedule, ranks].add(size)
    return {key: frozenset(found) for key, found in sizes.items()}
