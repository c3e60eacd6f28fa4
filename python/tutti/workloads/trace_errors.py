"""Errors of the simulator on traces: they name operations, and their lines in the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tutti.workloads.operations import ANY, Kind

if TYPE_CHECKING:
    from tutti.base.errors import TuttiError
    from tutti.workloads.operations import Operations, Trace

_OPERATION = re.compile(r"rank (\d+) in operation (\d+)|operation (\d+) of rank (\d+)")
_CYCLE = "dependencies that never complete"


def explained(error: TuttiError, trace: Trace) -> TuttiError:
    """Returns an error of the core with the operations at fault and a hint for traces."""
    problem, kind = error.problem, error.kind
    hint: str | None = error.hint
    if kind == "unreceived":
        problem, kind, hint = _unreceived(error, trace), "trace_unreceived", None
    elif kind == "trace_deadlock" and _CYCLE in problem:
        hint = "dependencies of a rank form a cycle: remove one of them"
    problem = _OPERATION.sub(lambda found: _placed(found, trace), problem)
    if trace.file:
        problem = f"{trace.file}: {problem}"
    return type(error)(problem, kind=kind, hint=hint, fields=error.fields)


def _placed(found: re.Match[str], trace: Trace) -> str:
    rank, operation = (int(part) for part in (found[1] or found[4], found[2] or found[3]))
    line = trace.line(rank, operation) if trace.line is not None else None
    return found[0] if line is None else f"{found[0]} (line {line})"


def _unreceived(error: TuttiError, trace: Trace) -> str:
    """Returns the message for sends without a receive; it names one of them if it is known."""
    count, sender, receiver = (error.fields[name] for name in ("count", "sender", "receiver"))
    plural = "1 message is" if count == 1 else f"{count:,} messages are"
    text = f"the trace is incomplete: {plural} never received"
    found = _send(trace.ranks[sender], trace.ranks[receiver], sender, receiver)
    if found is None:
        return f"{text}; the first is from rank {sender} to rank {receiver}"
    operation, tag = found
    start = "; for one of them, " if count > 1 else ": "
    return f"{text}{start}rank {sender} in operation {operation} sends to rank {receiver} ({tag})"


def _send(
    source: Operations, target: Operations, sender: int, receiver: int
) -> tuple[int, str] | None:
    """Returns the first send without a receive and its tag; None if receives accept any."""
    receives = target.kinds == Kind.RECEIVE
    if (receives & ((target.peers == ANY) | (target.tags == ANY))).any():
        return None
    sends = np.flatnonzero((source.kinds == Kind.SEND) & (source.peers == receiver))
    for tag in np.unique(source.tags[sends]):
        of_tag = sends[source.tags[sends] == tag]
        received = int((receives & (target.peers == sender) & (target.tags == tag)).sum())
        if received < len(of_tag):
            return int(of_tag[received]), f"tag {tag}"
    return None
