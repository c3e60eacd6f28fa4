"""Verification before timing: one rule for the command line, Python and sweeps."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.planning import ComparisonPlan, TimedSchedule
    from tutti.schedule import Schedule

__all__ = [
    "MOST_VERIFIED",
    "SKIPPED",
    "TOO_LARGE",
    "Unverified",
    "capped",
    "messages_of",
    "prove",
    "remarks",
    "verify",
]

MOST_VERIFIED = 20_000_000
"""Messages; a schedule of more is not verified, as that takes longer than people wait."""

TOO_LARGE = "it is too large"
"""Why a schedule of more than :data:`MOST_VERIFIED` messages is not verified."""

SKIPPED = "verification was skipped"
"""Why no schedule is verified under ``verify=False`` or ``--no-verify``."""

_MOST_REMARKS = 12
"""Remarks of one kind; the rest are counted."""


class Unverified(NamedTuple):
    """A schedule that was not verified, and the reason."""

    case: TimedSchedule
    reason: str


def verify(laid_out: Schedule, *, skip: bool = False) -> str | None:
    """Verifies a schedule before it is timed; every entry that times one calls this.

    A part of a schedule, or a schedule that is repeated, is verified as a whole and once. What was
    verified before is not verified again.

    Args:
        laid_out: The schedule.
        skip: Whether to leave it unverified.

    Returns:
        None where it is verified; else why not: :data:`TOO_LARGE` or :data:`SKIPPED`.

    Raises:
        VerificationError: It does not do what it is meant to do.
    """
    whole = laid_out.whole
    if whole.is_verified:
        return None
    if skip:
        return SKIPPED
    messages = messages_of(whole)
    if messages is not None and messages > MOST_VERIFIED:
        return TOO_LARGE
    try:
        whole.verify()
    except VerificationError as error:
        if error.kind == "too_large":
            return TOO_LARGE
        raise
    return None


def messages_of(laid_out: Schedule) -> int | None:
    """About how many messages a schedule sends; None where that is not known before."""
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
    """Verifies every schedule of a plan before anything is timed, each once.

    Args:
        plan: What is to be verified.
        skip: Whether to leave all unverified.
        done: Called after each.

    Returns:
        The schedules that were not verified.

    Raises:
        VerificationError: A schedule does not do what it is meant to do; the message names it.
    """
    unverified = []
    for case in plan.cases:
        try:
            reason = verify(case.schedule, skip=skip)
        except VerificationError as error:
            problem = f"{case.notation} on {case.schedule.ranks} ranks: {error.problem}"
            raise VerificationError(
                problem, kind=error.kind, hint=error.hint, fields=error.fields
            ) from None
        if reason:
            unverified.append(Unverified(case, reason))
        if done is not None:
            done(case)
    return unverified


def remarks(plan: ComparisonPlan, unverified: Sequence[Unverified]) -> list[str]:
    """What a plan leaves out and what is not verified, with the reasons, a line each."""
    if unverified and all(one.reason == SKIPPED for one in unverified):
        first = [f"no schedule is verified: {SKIPPED}"]
    else:
        lines = [
            f"not verified, as {one.reason}: {one.case.schedule.name}, "
            f"{one.case.schedule.ranks} ranks"
            for one in unverified
        ]
        first = capped(lines, "not verified")
    lines = [f"left out: {one.notation} on {one.ranks} ranks: {one.reason}"
             for one in plan.left_out]  # fmt: skip
    return first + capped(lines, "left out")


def capped(lines: list[str], what: str) -> list[str]:
    """The first remarks of one kind, and how many more there are."""
    if len(lines) <= _MOST_REMARKS:
        return lines
    return [*lines[:_MOST_REMARKS], f"and {len(lines) - _MOST_REMARKS:,} more {what}"]
