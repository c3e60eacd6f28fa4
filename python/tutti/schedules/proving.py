"""Verifies schedules before they are timed: one rule for the command line, Python and sweeps."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.schedules.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.collectives.candidates import ComparisonPlan
    from tutti.collectives.request import TimedSchedule
    from tutti.schedules.ir import Schedule

MOST_VERIFIED = 20_000_000
"""Most messages of a schedule that is verified; larger schedules take too long."""

TOO_LARGE = "it is too large"
"""The reason for a schedule of more than :data:`MOST_VERIFIED` messages."""

SKIPPED = "verification was skipped"
"""The reason for ``verify=False`` or ``--no-verify``."""

_MOST_REMARKS = 12
"""Most remarks of a kind; further ones are counted."""


class Unverified(NamedTuple):
    """A schedule that was not verified, and the reason."""

    case: TimedSchedule
    reason: str


def verify(laid_out: Schedule, *, skip: bool = False) -> str | None:
    """Verifies a schedule before it is timed; all functions that time schedules call this.

    A phase or a repetition is verified as part of its complete schedule. Results are cached.

    Args:
        laid_out: The schedule.
        skip: Whether to leave the schedule unverified.

    Returns:
        None for a verified schedule, else the reason: :data:`TOO_LARGE` or :data:`SKIPPED`.

    Raises:
        VerificationError: The schedule is not correct.
    """
    complete = laid_out.base
    if complete.is_verified:
        return None
    if skip:
        return SKIPPED
    messages = messages_of(complete)
    if messages is not None and messages > MOST_VERIFIED:
        return TOO_LARGE
    try:
        complete.verify()
    except VerificationError as error:
        if error.kind == "too_large":
            return TOO_LARGE
        raise
    return None


def messages_of(laid_out: Schedule) -> int | None:
    """Returns the approximate number of messages of a schedule; None if it is unknown."""
    if laid_out.core.notation is None:
        return None
    return _messages(laid_out.name, laid_out.collective, laid_out.ranks, laid_out.root or 0)


@functools.lru_cache(maxsize=4096)
def _messages(name: str, collective: str, ranks: int, root: int) -> int | None:
    path = _core.critical_path(name, collective, ranks, root=root)
    return ranks * sum(stage.messages for stage in path) if path else None


def prove(
    plan: ComparisonPlan,
    *,
    skip: bool = False,
    done: Callable[[TimedSchedule], object] | None = None,
) -> list[Unverified]:
    """Verifies every schedule of a plan, each once.

    Args:
        plan: The plan.
        skip: Whether to leave all schedules unverified.
        done: Called after each schedule.

    Returns:
        The schedules that were not verified.

    Raises:
        VerificationError: A schedule is not correct; the message names it.
    """
    unverified = []
    for case in plan.cases:
        try:
            reason = verify(case.schedule, skip=skip)
        except VerificationError as error:
            case_name = f"{case.notation} on {case.schedule.ranks} ranks"
            raise error.reworded(f"{case_name}: {error.problem}") from None
        if reason:
            unverified.append(Unverified(case, reason))
        if done is not None:
            done(case)
    return unverified


def remarks(plan: ComparisonPlan, unverified: Sequence[Unverified]) -> list[str]:
    """Returns lines on the schedules that are left out or not verified, with the reasons."""
    if unverified and all(one.reason == SKIPPED for one in unverified):
        first = [f"no schedule is verified: {SKIPPED}"]
    else:
        lines = [
            f"not verified, as {one.reason}: {one.case.title}, {one.case.schedule.ranks} ranks"
            for one in unverified
        ]
        first = capped(lines, "not verified")
    names: dict[tuple[str, str], dict[str, None]] = {}
    for one in plan.left_out:
        names.setdefault((one.where, one.reason), {})[one.notation] = None
    lines = [
        f"left out: {', '.join(alike)} on {where}: {reason}"
        for (where, reason), alike in names.items()
    ]
    return first + capped(lines, "left out")


def pruned_remarks(plan: ComparisonPlan) -> list[str]:
    """Returns a line for each schedule that is not simulated at a size."""
    from tutti.view.quantity import format_size, format_time

    lines = [
        f"not simulated: {one.schedule} on {one.ranks} ranks at {format_size(one.size_bytes)}: it "
        f"takes at least {format_time(one.bound_ps)}, the second-fastest algorithm "
        f"{format_time(one.second_ps)}"
        for one in plan.pruned
    ]
    return capped(lines, "not simulated")


def capped(lines: list[str], what: str) -> list[str]:
    """Returns the first remarks of a kind, and the number of further ones."""
    if len(lines) <= _MOST_REMARKS:
        return lines
    return [*lines[:_MOST_REMARKS], f"and {len(lines) - _MOST_REMARKS:,} more {what}"]
