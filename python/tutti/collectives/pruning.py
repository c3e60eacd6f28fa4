"""Leaves out large schedules that cannot be among the fastest, before they are simulated.

The lower bound of a schedule costs as much as a run without contention. A large schedule is
simulated only if its bound is at most the time of the second-fastest algorithm, so that the winner,
the runner-up and the lead do not depend on the schedules that are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti import _core
    from tutti.schedules.ir import Schedule

_LARGE = 100_000
"""Least messages of a schedule that may be left out; a smaller one takes about a second."""


class Pruned(NamedTuple):
    """A schedule that is not simulated at a size.

    Attributes:
        schedule: The schedule; of an algorithm's arguments, that with the least bound.
        ranks: The number of ranks.
        size_bytes: The size.
        bound_ps: The lower bound of its time.
        second_ps: The time of the second-fastest algorithm when it was left out.
    """

    schedule: str
    ranks: int
    size_bytes: int
    bound_ps: int
    second_ps: int


class Known:
    """The fastest known time of each algorithm, by size."""

    def __init__(self) -> None:
        self._times: dict[int, dict[str, int]] = {}

    def note(self, notation: str, size_bytes: int, time_ps: int) -> None:
        """Adds the time of an algorithm with an argument."""
        times = self._times.setdefault(size_bytes, {})
        name = notation.split(":", 1)[0]
        times[name] = min(time_ps, times.get(name, time_ps))

    def second(self, size_bytes: int) -> int | None:
        """Returns the time of the second-fastest algorithm; None if fewer are known."""
        times = sorted(self._times.get(size_bytes, {}).values())
        return times[1] if len(times) > 1 else None

    def lost(self, cases: Mapping[str, _core.Case], size_bytes: int) -> dict[str, int]:
        """Returns the bounds of the schedules that cannot be among the two fastest algorithms.

        Args:
            cases: The inputs of large schedules, by any name.
            size_bytes: The size.
        """
        second = self.second(size_bytes)
        if second is None:
            return {}
        bounds = {name: case.schedule_bound_ps() for name, case in cases.items()}
        return {name: bound for name, bound in bounds.items() if bound and bound > second}


def is_large(laid_out: Schedule) -> bool:
    """Returns whether the simulation of a schedule takes long enough to avoid it."""
    return (messages_of(laid_out) or 0) >= _LARGE
