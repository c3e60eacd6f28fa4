"""Where the iterations of a training program start and end: from the turns of its optimizers.

A turn is what a program issues up to an optimizer's step. With one optimizer, a turn is an
iteration, unless turns of different FLOPs alternate. With several, the first one starts an
iteration when its turn comes again after that of another one: the discriminator of a GAN, which may
step several times for each step of the generator.

Examples:
    >>> def turns(*optimizers):
    ...     return [Turn((one,), work=1, end=at, changes=at) for at, one in enumerate(optimizers)]
    >>> iteration(turns(0, 1, 0, 1, 0), 2)
    Iteration(number=2, first=2, last=4, remark='the iteration has 2 turns of optimizers')
    >>> iteration(turns(0, 1, 0), 2)
    >>> iteration(turns(0, 0), 2)
    Iteration(number=2, first=1, last=2, remark='')
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Iteration", "Turn", "iteration", "last_iteration"]

_LONGEST = 4
"""The most turns of one optimizer in an iteration."""
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
    """

    optimizers: tuple[int, ...]
    work: int
    end: int
    changes: int


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


def iteration(turns: Sequence[Turn], step: int, *, waiting: bool = False) -> Iteration | None:
    """Returns an iteration of a running program; None if later turns decide where it ends.

    Args:
        turns: The turns so far, at least one.
        step: The number of the iteration, from 1.
        waiting: Whether the program has an optimizer that has not stepped.

    Raises:
        CaptureError: The first optimizer does not step again.
    """
    if len({one.optimizers for one in turns}) > 1:
        starts = _starts(turns)
        if len(starts) > step:
            return _of_several(step, starts[step - 1], starts[step])
        if len(starts) == 1 and len(turns) >= _MOST:
            message = f"the first optimizer does not step again in {_MOST:,} steps of optimizers"
            raise CaptureError(f"{message}: expected iterations that it starts", kind="no_step")
        return None
    if waiting and len(turns) < max(_IDLE, step):
        return None
    return _of_one([one.work for one in turns], step)


def last_iteration(turns: Sequence[Turn], step: int) -> Iteration:
    """Returns the iteration of a number of a program that has ended, or the last one before."""
    if len({one.optimizers for one in turns}) > 1:
        ends = [*_starts(turns), len(turns)]
        number = min(step, len(ends) - 1)
        return _of_several(number, ends[number - 1], ends[number])
    work = [one.work for one in turns]
    found = _of_one(work, step)
    if found is not None:
        return found
    last = min(step, len(turns))
    return Iteration(last, last - 1, last, _uneven(work))


def _starts(turns: Sequence[Turn]) -> list[int]:
    """Returns the first turn, and those that the first optimizer starts after another one."""
    first = turns[0].optimizers[0]
    pairs = itertools.pairwise(one.optimizers for one in turns)
    return [0, *(at for at, (before, now) in enumerate(pairs, 1) if before[-1] != first == now[0])]


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
