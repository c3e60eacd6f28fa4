"""Parallel measurement, and the search for the largest load that meets a criterion.

Flit networks, single-cycle multi-hop meshes and chips with coherent caches share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tutti import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    CoreCase = TypeVar("CoreCase", _core.FlitCase, _core.SmartCase, _core.CoherenceCase)


class Loaded(Protocol):
    """A run at a load."""

    @property
    def load(self) -> float | None:
        """The load; `None` for a trace."""
        ...


Run = TypeVar("Run")
LoadedRun = TypeVar("LoadedRun", bound=Loaded)

_PARTS = 4
"""Number of parts into which a round of the search divides the interval."""


def measure_all(
    groups: Sequence[Sequence[CoreCase]],
    run_of: Callable[[int, list[dict[str, Any]]], Run],
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
    results: list[dict[int, dict[str, Any]]] = [{} for _ in groups]
    runs: dict[int, Run] = {}

    def collect(index: int, result: dict[str, Any] | Exception) -> None:
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


def bracket(
    found: dict[float, LoadedRun], criterion: Callable[[LoadedRun], bool]
) -> tuple[float, float | None]:
    """Returns the largest load below every failing load, and the smallest failing load."""
    failing = min((load for load, run in found.items() if not criterion(run)), default=None)
    passing = [load for load, run in found.items() if criterion(run)]
    low = max((load for load in passing if failing is None or load < failing), default=0.0)
    return low, failing


def parts(low: float, high: float) -> list[float]:
    """Returns the loads that divide an interval into equal parts."""
    return [low + (high - low) * part / _PARTS for part in range(1, _PARTS)]


def narrow(
    found: dict[float, LoadedRun],
    criterion: Callable[[LoadedRun], bool],
    measure: Callable[[Sequence[float]], object],
    tolerance: float,
) -> tuple[float, float | None]:
    """Narrows the interval between passing and failing loads down to a tolerance.

    Args:
        found: Runs by load; `measure` adds to it.
        criterion: Whether a load passes. Passing loads above a failing one are not found.
        measure: Runs loads.
        tolerance: The interval's largest width.

    Returns:
        The interval, as from `bracket`.
    """
    while True:
        low, high = bracket(found, criterion)
        if high is None or high - low <= tolerance:
            return low, high
        measure(parts(low, high))
