"""Compares the sizes of receives with those of the messages that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core
from tutti.view.quantity import plural
from tutti.workloads.operations import StoredRanks

if TYPE_CHECKING:
    from tutti.workloads.operations import Trace


def other_sizes(trace: Trace) -> tuple[str, ...]:
    """Returns a line if receives state other sizes than their messages, whose sizes count.

    Sends and receives of two ranks and a tag match in order. Ranks that receive from any rank, or
    any tag, are not compared.
    """
    found = _messages(trace).other_sizes()
    if found is None:
        return ()
    count, (sender, _, sent), (receiver, operation, expected) = found
    text = (
        f"sizes of {plural(count, 'receive')} that differ from those of the messages: "
        f"operation {operation} of rank {receiver} expects "
        f"{expected:,} B, and rank {sender} sends {sent:,} B"
    )
    return (text,)


def _messages(trace: Trace) -> _core.TraceGraph:
    if isinstance(trace.ranks, StoredRanks):
        return trace.ranks.core
    return _core.TraceGraph.of_messages([of.columns() for of in trace.ranks])
