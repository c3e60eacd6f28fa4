"""Proof that what was written takes effect: the MPI's own messages against the schedule's.

One size of each decision is run under the variables that were written, and the messages and bytes
between each pair of ranks are held against those of the schedule. Where the MPI's own code is to
stay, they are held against what it sends without these variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.datatypes import DATATYPES
from tutti.schedule import schedule
from tutti.tune.times import OWN, mpi_of, speaks_for
from tutti.tune.watch import CALLS, Call, sent_by_library, sent_by_mpi, sent_by_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.mpi.underneath import Mpi
    from tutti.schedule import Schedule
    from tutti.tune.decisions import TuningDecision
    from tutti.tune.files import Written
    from tutti.tune.watch import Traffic

__all__ = ["Proof", "proofs", "unproved"]

_NO_SIZE = "no size within has an element for each part"


@dataclass(frozen=True)
class Proof:
    """What a run showed.

    Attributes:
        collective: of which.
        ranks: on how many ranks.
        size: in bytes.
        schedule: what was to be done; `own` where the MPI's own code was to stay.
        messages: how many a call sent.
        verdict: `same` messages between the same ranks, `alike` as many, and as much from each rank
            with other numbers, `other`, or `not looked at` with the reason in `why`.
        why: what differs, in words.
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
        """Whether nothing contradicts what was written."""
        return self.verdict != "other"

    @property
    def shows(self) -> bool:
        """Whether something was looked at, and was as it was written."""
        return self.verdict in {"same", "alike"}


def unproved(mpi: Mpi, written: Written) -> str:
    """Why what was written cannot be proved with an MPI, in words; empty where it can."""
    if speaks_for(written.target, mpi_of(mpi)):
        return "" if any(one.is_rule for one in written.decisions) else "it has no rule"
    return f"the MPI here is {mpi}"


def proofs(mpi: Mpi, written: Written, *, options: Sequence[str] = ()) -> list[Proof]:
    """Runs an MPI under what was written, one size of each decision.

    Args:
        mpi: the MPI.
        written: what :func:`unproved` has nothing against.
        options: of the launcher.

    Raises:
        TuningError: the MPI does not let itself be watched.
        ProofError: a run failed.
        MpiError: the library cannot be compiled.
    """
    found = []
    for one in written.decisions:
        if one.schedule is None or (one.schedule == OWN and written.target == "plan"):
            continue  # nothing was written, and the library hands on what no rule is for
        call = _call(one)
        if call is None:
            found.append(_not_looked_at(one))
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
    wanted = sent_by_schedule(_schedule(one), call)
    return _proof(one, call, sent, wanted, exact=pair is not None and pair.exact)


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
    """What the MPI does by itself, with and without what was written."""
    sent = sent_by_mpi(mpi, call, env=written.variables, options=options)
    return _proof(one, call, sent, sent_by_mpi(mpi, call, options=options), exact=True)


def _call(decision: TuningDecision) -> Call | None:
    """A call that the decision is for, of parts that are equal and not empty."""
    if decision.collective == "barrier":
        return Call("barrier", decision.ranks, 0, decision.datatype)
    chunks = _schedule(decision).chunks if decision.is_rule else 1
    part = DATATYPES[decision.datatype] * math.lcm(chunks, decision.ranks)
    size = -(-max(decision.first, 1) // part) * part
    if decision.last is not None and size > decision.last:
        return None
    return Call(decision.collective, decision.ranks, size, decision.datatype)


def _schedule(decision: TuningDecision) -> Schedule:
    return schedule(str(decision.schedule), collective=decision.collective, ranks=decision.ranks)


def _not_looked_at(decision: TuningDecision) -> Proof:
    return Proof(decision.collective, decision.ranks, decision.first, str(decision.schedule), 0,
                 "not looked at", _NO_SIZE)  # fmt: skip


def _proof(
    decision: TuningDecision, call: Call, sent: Traffic, wanted: Traffic, *, exact: bool
) -> Proof:
    messages = sum(count for key, count in sent.items() if key[2] == "messages") // CALLS
    verdict, why = "same", ""
    if sent != wanted:
        alike = not exact and _lengths(sent) == _lengths(wanted)
        verdict = "alike" if alike else "other"
        why = _difference(sent, wanted)
    return Proof(decision.collective, decision.ranks, call.size, str(decision.schedule), messages,
                 verdict, why)  # fmt: skip


def _lengths(traffic: Traffic) -> tuple[int, list[int]]:
    """How many messages there are, and what ranks send: what stays if they are numbered anew."""
    messages = sum(count for key, count in traffic.items() if key[2] == "messages")
    sent: dict[int, int] = {}
    for (source, _, kind), count in traffic.items():
        sent[source] = sent.get(source, 0) + (count if kind == "bytes" else 0)
    return messages, sorted(sent.values())


def _difference(sent: Traffic, wanted: Traffic) -> str:
    """The first counts that differ, and how many more do."""
    other = [key for key in sorted({*sent, *wanted}) if sent[key] != wanted[key]]
    if not other:
        return ""
    source, destination, kind = other[0]
    counts = f"{sent[other[0]]} {kind} in {CALLS} calls where {wanted[other[0]]} were to be"
    more = f", and {len(other) - 1} more counts" if len(other) > 1 else ""
    return f"{source} to {destination}: {counts}{more}"
