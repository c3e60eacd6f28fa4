"""Checks that the written files take effect: compares the messages sent with the schedule's.

One size of each decision runs with the written variables. The messages and bytes between each pair
of ranks are compared with those of the schedule. An algorithm of the library that was measured
itself is compared with a run in which it is forced, and the native collective, if it is to stay,
with a run without the variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.base.datatypes import DATATYPES
from tutti.collectives.sizes import part_bytes
from tutti.measured.tune.times import OWN, mpi_of, speaks_for
from tutti.measured.tune.watch import (
    CALLS,
    Call,
    lengths,
    sent_by_library,
    sent_by_mpi,
    sent_by_schedule,
)
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.tune.decisions import TuningDecision
    from tutti.measured.tune.files import Written
    from tutti.measured.tune.watch import Traffic
    from tutti.mpi.underneath import Mpi
    from tutti.schedules.ir import Schedule

_NO_SIZE = "no size in the range has an element for each part"


@dataclass(frozen=True)
class Proof:
    """The result of a check.

    Attributes:
        collective: name of the collective.
        ranks: number of ranks.
        size: in bytes.
        schedule: the expected schedule; `own` for the native collective.
        messages: messages of one call.
        verdict: `same`: the same messages between the same ranks; `alike`: as many messages, and as
            many bytes from each rank up to renumbering; `other`; or `unchecked`, with a reason.
        why: the difference, or the reason.
    """

    collective: str
    ranks: int
    size: int
    schedule: str
    messages: int
    verdict: str
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether the run does not contradict the written files."""
        return self.verdict != "other"

    @property
    def shows(self) -> bool:
        """Whether the run confirms the written files."""
        return self.verdict in {"same", "alike"}


def unproved(mpi: Mpi, written: Written) -> str:
    """Returns why an MPI library cannot check the files of a library, or an empty string."""
    if written.target == "mpich" and any((one.ranks_per_node or 1) > 1
                                         for one in written.decisions):  # fmt: skip
        return "messages of MPICH are counted with one rank per host, and the rules are for more"
    if speaks_for(written.target, mpi_of(mpi)):
        return "" if any(one.is_rule for one in written.decisions) else "it has no rule"
    return f"the MPI library here is {mpi}"


def proofs(mpi: Mpi, written: Written, *, options: Sequence[str] = ()) -> list[Proof]:
    """Runs an MPI library with the written files, at one size of each decision.

    Args:
        mpi: the MPI library.
        written: files that :func:`unproved` accepts.
        options: options of the launcher.

    Raises:
        TuningError: The MPI library cannot count messages.
        ProofError: A run failed.
        MpiError: The library cannot be compiled.
    """
    found = []
    for one in written.decisions:
        if one.schedule is None or (one.schedule == OWN and written.target == "plan"):
            continue  # nothing was written, and the library forwards calls without a rule
        call = _call(one)
        if call is None:
            found.append(_unchecked(one))
        elif one.schedule == OWN:
            found.append(_stays(mpi, one, call, written, options))
        elif written.target == "plan":
            found.append(_of_library(mpi, one, call, written, options))
        else:
            found.append(_of_mpi(mpi, one, call, written, options))
    return found


def _of_mpi(
    mpi: Mpi, one: TuningDecision, call: Call, written: Written, options: Sequence[str]
) -> Proof:
    pair = one.counterpart(written.target)
    sent = sent_by_mpi(mpi, call, env=written.variables, options=options)
    if one.forced is not None:
        expected = sent_by_mpi(mpi, call, env=one.forced.environment, options=options)
        return _proof(one, call, sent, expected, exact=True)
    expected = sent_by_schedule(_schedule(one), call)
    return _proof(one, call, sent, expected, exact=pair is not None and pair.exact)


def _of_library(
    mpi: Mpi, one: TuningDecision, call: Call, written: Written, options: Sequence[str]
) -> Proof:
    sent, report = sent_by_library(mpi, call, written.variables, options=options)
    proof = _proof(one, call, sent, sent_by_schedule(_schedule(one), call), exact=True)
    others = {row.schedule for row in report.covered} - {one.schedule}
    if others:
        why = f"the library reports {', '.join(sorted(others))}"
        proof = replace(proof, verdict="other", why=why)
    return proof


def _stays(
    mpi: Mpi, one: TuningDecision, call: Call, written: Written, options: Sequence[str]
) -> Proof:
    """Compares the native collective with and without the written files."""
    sent = sent_by_mpi(mpi, call, env=written.variables, options=options)
    return _proof(one, call, sent, sent_by_mpi(mpi, call, options=options), exact=True)


def _call(decision: TuningDecision) -> Call | None:
    """Returns a call that the decision covers, with equal non-empty parts."""
    if decision.collective == "barrier":
        return Call("barrier", decision.ranks, 0, decision.datatype)
    width = DATATYPES[decision.datatype]
    part = part_bytes(decision.collective, decision.ranks, width)
    if decision.is_rule and decision.forced is None:
        part = width * math.lcm(_schedule(decision).chunks, decision.ranks)
    size = -(-max(decision.first, 1) // part) * part
    if decision.last is not None and size > decision.last:
        return None
    return Call(decision.collective, decision.ranks, size, decision.datatype)


def _schedule(decision: TuningDecision) -> Schedule:
    return schedule(str(decision.schedule), collective=decision.collective, ranks=decision.ranks)


def _unchecked(decision: TuningDecision) -> Proof:
    return Proof(decision.collective, decision.ranks, decision.first, str(decision.schedule), 0,
                 "unchecked", _NO_SIZE)  # fmt: skip


def _proof(
    decision: TuningDecision, call: Call, sent: Traffic, expected: Traffic, *, exact: bool
) -> Proof:
    messages = sum(count for key, count in sent.items() if key[2] == "messages") // CALLS
    verdict, why = "same", ""
    if sent != expected:
        alike = not exact and lengths(sent) == lengths(expected)
        verdict = "alike" if alike else "other"
        why = _difference(sent, expected)
    return Proof(decision.collective, decision.ranks, call.size, str(decision.schedule), messages,
                 verdict, why)  # fmt: skip


def _difference(sent: Traffic, expected: Traffic) -> str:
    """Describes the first count that differs, and the number of others."""
    other = [key for key in sorted({*sent, *expected}) if sent[key] != expected[key]]
    if not other:
        return ""
    source, destination, kind = other[0]
    counts = f"{sent[other[0]]} {kind} in {CALLS} calls: expected {expected[other[0]]}"
    more = f", and {len(other) - 1} more counts" if len(other) > 1 else ""
    return f"{source} to {destination}: {counts}{more}"
