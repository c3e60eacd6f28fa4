"""Leaves out large schedules that cannot be among the fastest, before they are simulated.

The lower bound of a schedule costs as much as a run without contention. A large schedule is
simulated only if its bound is at most the time of the second-fastest algorithm, so that the winner,
the runner-up and the lead do not depend on the schedules that are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti import _core
    from tutti.schedules.ir import Schedule

_LARGE = 100_000
"""Least messages of a schedule that may be left out; a smaller one takes about a second."""


_FEW = 4
"""Most messages of a schedule whose bound is computed for results, relative to the fewest."""


class Pruned(NamedTuple):
    """A schedule that is not simulated at a size.

    Attributes:
        schedule: The schedule; of several arguments of an algorithm, that with the least bound
            among those with few messages.
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

    def pruned(
        self, large: Sequence[tuple[Schedule, _core.Case]], size_bytes: int
    ) -> tuple[Pruned | None, set[str]]:
        """Returns what cannot be among the two fastest algorithms: for results, and all names.

        Args:
            large: Large schedules of an algorithm, and their inputs.
            size_bytes: The size.
        """
        second = self.second(size_bytes)
        if second is None:
            return None, set()
        lost = [
            (laid_out, case)
            for laid_out, case in large
            if (case.schedule_bound_ps(latest_ps=second) or 0) > second
        ]
        if not lost:
            return None, set()
        few = _FEW * min(messages_of(laid_out) or 0 for laid_out, _ in lost)
        bounds = {
            laid_out.name: case.schedule_bound_ps() or 0
            for laid_out, case in lost
            if (messages_of(laid_out) or 0) <= few
        }
        name, bound = min(bounds.items(), key=lambda one: one[1])
        shown = Pruned(name, lost[0][0].ranks, size_bytes, bound, second)
        return shown, {laid_out.name for laid_out, _ in lost}


def is_large(laid_out: Schedule) -> bool:
    """Returns whether the simulation of a schedule takes long enough to avoid it."""
    return (messages_of(laid_out) or 0) >= _LARGE
