"""Where the iterations of a training program start and end: from the turns of its optimizers.

A turn is what a program issues up to an optimizer's step. With one optimizer that steps in one
line, a turn is an iteration, unless turns of different FLOPs alternate. With several optimizers or
lines, the first one starts an iteration when its turn comes again after that of another one: the
discriminator of a GAN, which may step several times for each step of the generator.

Examples:
    >>> def turns(*optimizers):
    ...     return [Turn((one,), work=1, end=at, changes=at) for at, one in enumerate(optimizers)]
    >>> iteration(turns(0, 1, 0, 1, 0), 2)
    Iteration(number=2, first=2, last=4, remark='the iteration has 2 turns of optimizers')
    >>> iteration(turns(0, 1, 0), 2)
    >>> iteration(turns(0, 0), 2)
    Iteration(number=2, first=1, last=2, remark='')
    >>> lines = [Turn((0,), work=1, end=at, changes=at, lines=(line,))
    ...          for at, line in enumerate([8, 8, 9, 8, 8, 9, 8])]
    >>> iteration(lines, 2)
    Iteration(number=2, first=3, last=6, remark='the iteration has 3 turns of optimizers')
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Iteration", "Turn", "iteration", "last_iteration"]

_LONGEST = 4
"""The most turns of one optimizer in an iteration, and in a line of it."""
_IDLE = 16
"""Turns after which an optimizer that has not stepped counts as unused."""
_MOST = 4096
"""Turns in which the first optimizer has to step again."""


@dataclass(frozen=True)
class Turn:
    """What a program issues up to a step of optimizers, or of several in a row.

    Attributes:
        optimizers: Their numbers, in the order of their first steps.
        work: The FLOPs of products and attention.
        end: The operators of the program up to its end.
        changes: The changes of memory up to its end.
        lines: For each optimizer, the number of the line that calls its step; 0 for all of them if
            they are unknown.
    """

    optimizers: tuple[int, ...]
    work: int
    end: int
    changes: int
    lines: tuple[int, ...] = ()

    @property
    def calls(self) -> tuple[tuple[int, int], ...]:
        """The optimizers with their lines."""
        return tuple(itertools.zip_longest(self.optimizers, self.lines, fillvalue=0))


@dataclass(frozen=True)
class Iteration:
    """The turns of an iteration: from `first` until before `last`.

    Attributes:
        number: Its number, from 1.
        first: The index of its first turn.
        last: That of the first turn of the next iteration.
        remark: What is special about it.
    """

    number: int
    first: int
    last: int
    remark: str = ""


def iteration(
    turns: Sequence[Turn], step: int, *, waiting: bool = False, unseen: bool = False
) -> Iteration | None:
    """Returns an iteration of a running program; None if later turns decide where it ends.

    Args:
        turns: The turns so far, at least one.
        step: The number of the iteration, from 1.
        waiting: Whether the program has an optimizer that has not stepped.
        unseen: Whether a line that calls the step of an optimizer has not run.

    Raises:
        CaptureError: The first optimizer does not step again.
    """
    if _differ(turns):
        settled = _settled(turns, _LONGEST + 1)
        if settled:
            found = _of_one([one.work for one in turns[settled:]], step)
            return found and _after(settled, found)
        starts = _starts(turns)
        if len(starts) > step:
            return _of_several(step, starts[step - 1], starts[step])
        if len(starts) == 1 and len(turns) >= _MOST:
            message = f"the first optimizer does not step again in {_MOST:,} steps of optimizers"
            raise CaptureError(f"{message}: expected iterations that it starts", kind="no_step")
        return None
    idle = _IDLE if waiting else _LONGEST + 1 if unseen else 0
    if idle and len(turns) < max(idle, step):
        return None
    return _of_one([one.work for one in turns], step)


def last_iteration(turns: Sequence[Turn], step: int) -> Iteration:
    """Returns the iteration of a number of a program that has ended, or the last one before."""
    settled = _settled(turns, 2)
    if _differ(turns) and not settled:
        ends = [*_starts(turns), len(turns)]
        number = min(step, len(ends) - 1)
        return _of_several(number, ends[number - 1], ends[number])
    work = [one.work for one in turns[settled:]]
    last = min(step, len(work))
    found = _of_one(work, step) or Iteration(last, last - 1, last, _uneven(work))
    return _after(settled, found)


def _differ(turns: Sequence[Turn]) -> bool:
    return len({one.calls for one in turns}) > 1


def _settled(turns: Sequence[Turn], least: int) -> int:
    """Returns the first of the last turns of one optimizer that has changed its line for good.

    Args:
        turns: The turns.
        least: The turns after which it has; of fewer, 0 is returned.
    """
    if len({one.optimizers for one in turns}) > 1:
        return 0
    first = len(turns) - 1
    while first and turns[first - 1].calls == turns[-1].calls:
        first -= 1
    return first if len(turns) - first >= least else 0


def _after(first: int, found: Iteration) -> Iteration:
    """Returns an iteration of the turns from `first` on as one of all turns."""
    return replace(found, first=found.first + first, last=found.last + first)


def _starts(turns: Sequence[Turn]) -> list[int]:
    """Returns the turns of the first call that comes again after another one."""
    pairs = itertools.pairwise(one.calls for one in turns)
    changes = [at for at, (before, now) in enumerate(pairs, 1) if before[-1] != now[0]]
    calls = [one.calls[0] for one in turns]
    seen: dict[tuple[int, int], int] = {}
    for at, call in enumerate(calls):
        seen.setdefault(call, at)
    first = next((calls[at] for at in changes if seen[calls[at]] < at), calls[0])
    return [seen[first], *(at for at in changes if calls[at] == first and at > seen[first])]


def _of_several(number: int, first: int, last: int) -> Iteration:
    remark = f"the iteration has {last - first:,} turns of optimizers" if last - first > 1 else ""
    return Iteration(number, first, last, remark)


def _of_one(work: Sequence[int], step: int) -> Iteration | None:
    """Returns the turns of a step of one optimizer, whose FLOPs repeat after some turns."""
    if len(work) < step:
        return None
    if step == 1 or work[step - 1] == work[step - 2]:
        return Iteration(step, step - 1, step)
    for period in range(1, _LONGEST + 1):
        if len(work) >= 2 * period and work[-period:] == work[-2 * period : -period]:
            if period == 1:
                return Iteration(step, step - 1, step)
            end = period * step
            return _of_several(step, end - period, end) if len(work) >= end else None
    is_last = len(work) >= step + 2 * _LONGEST
    return Iteration(step, step - 1, step, _uneven(work)) if is_last else None


def _uneven(work: Sequence[int]) -> str:
    """Returns a remark on steps that differ, or ""."""
    least, most = min(work), max(work)
    if least == most:
        return ""
    return (
        f"the products of {len(work)} steps have {least / 1e9:,.3g} to {most / 1e9:,.3g} GFLOP: "
        "select one with --step"
    )
