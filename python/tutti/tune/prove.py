"""Proof that what was written takes effect: the MPI's own messages against the schedule's.

One size of each decision is run, and the messages and bytes between each pair of ranks are held
against those of the schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.schedule import schedule
from tutti.tune.decisions import HOST
from tutti.tune.targets import counterpart
from tutti.tune.watch import Call, sent_by_host, sent_by_library, sent_by_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.mpi.host import Host
    from tutti.schedule import Schedule
    from tutti.tune.decisions import Decision
    from tutti.tune.watch import Traffic

__all__ = ["Proof", "prove_host", "prove_plan"]

_ELEMENT = 4
"""Bytes of the float32 that calls are of."""


@dataclass(frozen=True)
class Proof:
    """What a run showed.

    Attributes:
        collective: of which.
        ranks: on how many ranks.
        size: in bytes.
        schedule: what was to be done.
        messages: how many were sent.
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


def prove_host(
    host: Host, decisions: Sequence[Decision], target: str, env: Mapping[str, str]
) -> list[Proof]:
    """Runs an MPI with its rules, one size of each decision.

    Args:
        host: the MPI.
        decisions: that were written, for the target.
        target: `openmpi`, `openmpi6` or `mpich`.
        env: the variables under which it reads them.

    Raises:
        TuningError: the MPI does not let itself be watched.
        ProofError: a run failed.
    """
    found = []
    for one in _named(decisions):
        call = _call(one)
        if call is None:
            found.append(_not_looked_at(one))
            continue
        pair = counterpart(target, one.collective, one.ranks, str(one.schedule))
        exact = pair is not None and pair.exact
        sent = sent_by_host(host, call, env=env)
        found.append(_proof(one, call, sent, exact=exact))
    return found


def prove_plan(host: Host, decisions: Sequence[Decision], plan: Path) -> list[Proof]:
    """Runs libtutti_mpi with its plan, one size of each decision, and takes its report.

    Raises:
        ProofError: a run failed.
        MpiError: the library cannot be compiled.
    """
    found = []
    for one in _named(decisions):
        call = _call(one)
        if call is None:
            found.append(_not_looked_at(one))
            continue
        sent, report = sent_by_library(host, plan, call)
        proof = _proof(one, call, sent, exact=True)
        others = {row.schedule for row in report.covered} - {one.schedule}
        if others:
            why = f"the library reports {', '.join(sorted(others))}"
            proof = replace(proof, verdict="other", why=why)
        found.append(proof)
    return found


def _named(decisions: Sequence[Decision]) -> list[Decision]:
    return [one for one in decisions if one.schedule not in {None, HOST}]


def _call(decision: Decision) -> Call | None:
    """A call that the decision is for, of parts that are equal and not empty."""
    if decision.collective == "barrier":
        return Call("barrier", decision.ranks, 0)
    laid_out = _schedule(decision)
    part = _ELEMENT * math.lcm(laid_out.chunks, decision.ranks)
    size = -(-max(decision.first, 1) // part) * part
    if decision.last is not None and size > decision.last:
        return None
    return Call(decision.collective, decision.ranks, size)


def _schedule(decision: Decision) -> Schedule:
    return schedule(str(decision.schedule), collective=decision.collective, ranks=decision.ranks)


def _not_looked_at(decision: Decision) -> Proof:
    why = "no size within has an element for each part"
    return Proof(decision.collective, decision.ranks, decision.first, str(decision.schedule), 0,
                 "not looked at", why)  # fmt: skip


def _proof(decision: Decision, call: Call, sent: Traffic, *, exact: bool) -> Proof:
    wanted = sent_by_schedule(_schedule(decision), call)
    messages = sum(count for key, count in sent.items() if key[2] == "messages")
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
    for key in sorted({*sent, *wanted}):
        if sent[key] != wanted[key]:
            source, destination, kind = key
            had = f"{sent[key]} {kind} where the schedule has {wanted[key]}"
            return f"{source} to {destination}: {had}"
    return ""
