"""The critical path of a run, and the share of each cause in its completion time.

The path is followed backwards from the last op. A wait leads to the sender of the message that
ended it, any other op to the op before it on the same rank. The time of a message is compared with
that of the same message alone on the platform, and with that of a message of one byte:

- latency: the time of one byte, alone.
- bandwidth: the additional time of all bytes, alone.
- contention: the additional time in the run.

A send or a receive that delays the next op of its rank has the same three parts, with the endpoint
instead of the latency. On a platform whose messages share nothing, the additional time in the run
is bandwidth: a rank waits until its earlier bytes have left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.units import Size
from tutti.collectives.case import CaseBuilder
from tutti.schedules.builder import ScheduleBuilder

if TYPE_CHECKING:
    from tutti.collectives.result import Run
    from tutti.platforms.machine import Platform

__all__ = ["CAUSES", "CriticalPath", "Hop", "critical_path"]

CAUSES = ("latency", "bandwidth", "contention", "reduction", "endpoint", "other")
"""The causes of time on a critical path. `other` is noise, arrival and computation."""

_LOCAL = {
    "launch": "endpoint",
    "reduce": "reduction",
    "copy": "reduction",
}
"""The cause of an op that does not depend on the network."""

_PROBED = ("message", "send", "recv")
"""The parts of a path whose time is compared with that of a message alone."""

_MOST_PROBED = 512
"""Most distinct messages that are timed alone."""


@dataclass(frozen=True)
class Hop:
    """A part of the critical path: an op of `rank`, or a message from `source` to it."""

    rank: int
    kind: str
    start_ps: int
    end_ps: int
    source: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class CriticalPath:
    """The critical path of a run.

    Attributes:
        hops: Its parts, in order of time.
        shares_ps: The time of each of :data:`CAUSES`, in ps; their sum is the completion time.
    """

    hops: tuple[Hop, ...]
    shares_ps: dict[str, int]


def critical_path(run: Run) -> CriticalPath:
    """Returns the critical path of a run, and the time of each cause."""
    hops = _follow(run)
    probes = _Probes(run.platform)
    shares = dict.fromkeys(CAUSES, 0)
    for hop in hops:
        for cause, time in _causes(hop, probes).items():
            shares[cause] += time
    shares["other"] += run.completion_ps - sum(shares.values())
    return CriticalPath(tuple(hops), shares)


def _causes(hop: Hop, probes: _Probes) -> dict[str, int]:
    """Returns the time of each cause in a part of the path."""
    taken = hop.end_ps - hop.start_ps
    if hop.kind not in _PROBED or hop.source is None or hop.bytes is None:
        return {_LOCAL.get(hop.kind, "other"): taken}
    ends = (hop.rank, hop.source) if hop.kind == "send" else (hop.source, hop.rank)
    alone, least = probes.times(hop.kind, *ends, hop.bytes)
    first = min(least, taken)
    second = min(max(alone - least, 0), taken - first) if probes.shared else taken - first
    names = ("latency" if hop.kind == "message" else "endpoint", "bandwidth", "contention")
    return dict(zip(names, (first, second, taken - first - second), strict=True))


class _Probes:
    """Times single messages on a platform without other traffic."""

    def __init__(self, platform: Platform) -> None:
        self.shared = platform.effective_contention.kind != "free"
        self._builder = CaseBuilder(platform, datatype="uint8")
        self._known: dict[tuple[int, int, int], dict[str, int]] = {}

    def times(self, kind: str, source: int, target: int, size: int) -> tuple[int, int]:
        """Returns the time of a message, or of its send or receive, and that of one byte, in ps."""
        alone, least = self._of(source, target, size), self._of(source, target, 1)
        return alone.get(kind, 0), least.get(kind, 0)

    def _of(self, source: int, target: int, size: int) -> dict[str, int]:
        key = (source, target, max(size, 1))
        if key not in self._known and len(self._known) >= _MOST_PROBED:
            key = next((known for known in self._known if known[2] == key[2]), key)
        if key not in self._known:
            self._known[key] = self._timed(*key)
        return self._known[key]

    def _timed(self, source: int, target: int, size: int) -> dict[str, int]:
        builder = ScheduleBuilder("all_reduce", ranks=max(source, target) + 1, name="probe")
        builder.rank(source).send(target)
        builder.rank(target).recv(source, slot=1)
        case = self._builder.case(builder.build(), size=Size(bytes=size))
        run = _core.simulate(case, record=True)
        spans, sent = _columns(run.spans()), _columns(run.sent())
        names = ("activity", "start_ps", "end_ps")
        found = {"message": sent["arrival_ps"][0] - sent["sent_ps"][0]}
        for activity, start, end in zip(*(spans[name] for name in names), strict=True):
            found[_core.activities()[activity]] = end - start
        return found


def _columns(columns: dict[str, Any] | None) -> dict[str, list[int]]:
    """Returns the columns of the core as lists."""
    wide = {"bytes", "start_ps", "end_ps", "sent_ps", "arrival_ps", "received_ps"}
    return {
        name: memoryview(column).cast("Q" if name in wide else "I").tolist()
        for name, column in (columns or {}).items()
    }


class _Record:
    """The ops of each rank by end time, and the messages to each rank by arrival."""

    def __init__(self, run: Run) -> None:
        self.ops: dict[int, list[tuple[int, int, str, int | None, int | None]]] = defaultdict(list)
        names = ("rank", "end_ps", "start_ps", "kind", "peer", "bytes")
        for rank, *op in run.timeline.select(names).iter_rows():
            if op[0] > op[1]:
                self.ops[rank].append(tuple(op))
        for ops in self.ops.values():
            ops.sort(key=lambda op: op[0])
        self.arrived: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        of_messages = ("destination", "arrival_ps", "sent_ps", "source", "bytes")
        for target, arrival, *message in run.messages_frame.select(of_messages).iter_rows():
            self.arrived[target, arrival].append(tuple(message))

    def last(self, rank: int, at: int) -> tuple[int, int, str, int | None, int | None] | None:
        """Returns the last op of a rank that ends at a time or before."""
        ops = self.ops[rank]
        place = bisect_right(ops, at, key=lambda op: op[0])
        return ops[place - 1] if place else None


def _follow(run: Run) -> list[Hop]:
    """Returns the parts of the critical path, in order of time."""
    record = _Record(run)
    ends = {rank: ops[-1][0] for rank, ops in record.ops.items() if ops}
    if not ends:
        return []
    rank = max(ends, key=lambda one: (ends[one], -one))
    at = ends[rank]
    hops: list[Hop] = []
    while (op := record.last(rank, at)) is not None:
        end, start, kind, peer, size = op
        if end < at:
            hops.append(Hop(rank, "idle", end, at))
        message = _ended_by(record, rank, end, peer) if kind == "wait" else None
        if message is None:
            hops.append(Hop(rank, kind, start, end, peer, size))
            at = start
        else:
            sent, source, carried = message
            hops.append(Hop(rank, "message", sent, end, source, carried))
            rank, at = source, sent
    return hops[::-1]


def _ended_by(record: _Record, rank: int, at: int, peer: int | None) -> tuple[int, int, int] | None:
    """Returns send time, source and bytes of the message that ended a wait; None if unknown."""
    arrived = [one for one in record.arrived[rank, at] if one[0] < at]
    from_peer = [one for one in arrived if one[1] == peer]
    return max(from_peer or arrived, default=None)
