"""Runs of a network at one load or several, and the search for saturation.

Flit networks, single-cycle multi-hop meshes and chips with coherent caches share them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, Protocol, TypeVar

from pydantic import Field

from tutti import _core
from tutti.networks.errors import NocError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.networks.flit.results import Estimate


class Loaded(Protocol):
    """A run at a load."""

    @property
    def load(self) -> float | None:
        """The offered load; `None` for a trace."""

    @property
    def ending(self) -> str:
        """`stable`, `saturated`, `undecided`, `deadlocked` or `empty`."""

    @property
    def long_enough(self) -> int | None:
        """If undecided, the cycles of a window that decides whether the load is accepted."""

    @property
    def too_short(self) -> str:
        """If undecided, what the window holds and how long it has to be; else empty."""

    @property
    def is_stable(self) -> bool:
        """Whether the network accepted the load."""

    @property
    def latency(self) -> Estimate:
        """The latency."""


class _Rated(Protocol):
    """Traffic of one class or kind."""

    @property
    def rate(self) -> float:
        """The offered load."""


Run = TypeVar("Run")
Result = TypeVar("Result")
LoadedRun = TypeVar("LoadedRun", bound=Loaded)
Rated = TypeVar("Rated", bound=_Rated)

PARTS = 4
"""Number of parts into which a round of a parallel search divides the interval."""
Divisions = Annotated[int, Field(ge=2, le=1 << 10)]
Threads = Annotated[int, Field(ge=0, le=1 << 16)]


def measure_all(
    groups: Sequence[Sequence[_core._MeasurementCase[Result]]],
    run_of: Callable[[int, list[Result]], Run],
    *,
    threads: int,
    done: Callable[[Run], object] | None,
) -> list[Run]:
    """Measures all cases of all groups in parallel.

    Args:
        groups: The core's cases. The cases of a group, such as seeds, form one run.
        run_of: Builds the run of a group, by its index, from the results of its cases, in order.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        done: Called with each run as soon as it is complete, in no particular order.

    Returns:
        The runs, in the order of the groups.
    """
    owners = [group for group, cases in enumerate(groups) for _ in cases]
    results: list[dict[int, Result]] = [{} for _ in groups]
    runs: dict[int, Run] = {}

    def collect(index: int, result: Result | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        group = owners[index]
        results[group][index] = result
        if len(results[group]) < len(groups[group]):
            return
        runs[group] = run_of(group, [results[group][place] for place in sorted(results[group])])
        if done is not None:
            done(runs[group])

    _core.measure([case for cases in groups for case in cases], collect, threads=threads)
    return [runs[group] for group in range(len(groups))]


def too_short(measured: str, long_enough: int | None) -> str:
    """Returns why a run is undecided, or an empty string.

    Args:
        measured: What the windows hold, such as `12 packets`.
        long_enough: Cycles of a window that decides; None if the run is decided.
    """
    if long_enough is None:
        return ""
    return f"window too short to decide: {measured}; measure at least {long_enough:,} cycles"


def scaled(traffic: Sequence[Rated], load: float, total: float) -> tuple[Rated, ...]:
    """Returns traffic with rates scaled so that `total` becomes a load.

    Args:
        traffic: Traffic of one class or several; the rates keep their proportions.
        load: The offered load.
        total: The load of the given traffic, in the same unit.

    Raises:
        NocError: There are several classes, and `total` is not above 0.
    """
    if len(traffic) > 1 and not total > 0:
        message = "the traffic has no rate to scale: expected rates above 0"
        raise NocError(message, kind="search", hint="give the traffic a rate above 0")

    def rate(current: float) -> float:
        return load if len(traffic) == 1 or current == total else current * load / total

    return tuple(replace(each, rate=rate(each.rate)) for each in traffic)  # type: ignore[type-var]


class SearchPlan(NamedTuple):
    """A search for saturation.

    Attributes:
        most: The largest load to run.
        tolerance: The tolerance of the result, as the search of the network takes it.
        runs: The approximate number of runs.
    """

    most: float
    tolerance: float
    runs: int


def runs_of_search(ratio: float) -> int:
    """Returns the approximate number of runs of a search.

    Args:
        ratio: The ratio of the largest load to the tolerance.
    """
    return (PARTS - 1) * max(1, math.ceil(math.log(ratio, PARTS)))


class Search(Generic[LoadedRun]):
    """A search for the largest load that meets a criterion.

    It divides the interval between a load that meets the criterion and one that does not into equal
    parts. It does not look for loads that meet the criterion above one that does not.

    Attributes:
        runs: The runs so far, by load.
    """

    def __init__(
        self,
        measure: Callable[[Sequence[float]], Iterable[LoadedRun]],
        known: Iterable[LoadedRun],
        *,
        most: float,
        tolerance: float,
        divisions: int = PARTS,
    ) -> None:
        """Prepares a search.

        Args:
            measure: Runs loads, and returns the runs in their order.
            known: Earlier runs.
            most: The largest load to run.
            tolerance: The largest width of the final interval, in the unit of the loads.
            divisions: Number of parts into which a round divides the interval; 2 bisects it, with
                the fewest runs on one core.

        Raises:
            NocError: A number is not above 0.
        """
        if not (0 < tolerance < math.inf and 0 < most < math.inf):
            message = (
                f"a search up to {most} with a tolerance of {tolerance}: expected both above 0"
            )
            raise NocError(message, kind="search")
        self._measure, self._tolerance, self._divisions = measure, tolerance, divisions
        known_loads = ((run.load, run) for run in known)
        self.runs = {load: run for load, run in known_loads if load is not None and load <= most}

    def add(self, loads: Iterable[float]) -> None:
        """Runs loads that have no run yet."""
        new = [load for load in loads if load not in self.runs]
        self.runs.update(zip(new, self._measure(new), strict=True))

    def bracket(self, criterion: Callable[[LoadedRun], bool]) -> tuple[float, float | None]:
        """Returns the largest load below every failing load, and the smallest failing load.

        An undecided run below a passing one had too few packets, and does not fail.
        """
        passing = [load for load, run in self.runs.items() if criterion(run)]
        highest = max(passing, default=0.0)
        failing = min(
            (load for load, run in self.runs.items()
             if not criterion(run) and not (run.ending == "undecided" and load < highest)),
            default=None,
        )  # fmt: skip
        low = max((load for load in passing if failing is None or load < failing), default=0.0)
        return low, failing

    def narrow(self, criterion: Callable[[LoadedRun], bool]) -> tuple[float, float | None]:
        """Narrows the interval between passing and failing loads down to the tolerance.

        Returns:
            The interval, as from `bracket`.
        """
        while True:
            low, high = self.bracket(criterion)
            if high is None or high - low <= self._tolerance:
                return low, high
            self.add(parts(low, high, self._divisions))

    @property
    def ordered(self) -> tuple[LoadedRun, ...]:
        """All runs, by ascending load."""
        return tuple(self.runs[load] for load in sorted(self.runs))


def parts(low: float, high: float, divisions: int = PARTS) -> list[float]:
    """Returns the loads that divide an interval into equal parts."""
    return [low + (high - low) * part / divisions for part in range(1, divisions)]
