"""Perfetto traces of large runs, by NumPy: the bytes of :mod:`.perfetto` in a fifth of the time.

An event has a place among those of its time: its rank, its track and its place on the track.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from tutti.view.packets import Part, argument, choice, flow, joined, optional, packets
from tutti.view.track_events import FLOW, TERMINATING_FLOW, Track, category_and_name, flow_ids
from tutti.view.track_events import argument as encoded_argument

from .timeline import ARROW_COLUMNS, label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = ["layout"]

_CHUNK = 1 << 15
"""Events that are encoded at once: some 20 MB."""


class _Events(NamedTuple):
    """Events of one kind.

    Attributes:
        at_ps: Their times.
        rank: The indices of their ranks.
        lane: -1 on the track of the rank, else the number of the lane of messages.
        place: Their places on the track.
        order: Their order at a place: instants precede the event there.
        encode: Returns the packets of some of them.
    """

    at_ps: Integers
    rank: Integers
    lane: Integers
    place: Integers
    order: Integers
    encode: Callable[[slice], list[bytes]]


def layout(ops: pl.DataFrame, sent: pl.DataFrame) -> tuple[list[Track], Iterator[bytes]]:
    """Returns the tracks of a run, and its packets in order of time.

    Args:
        ops: The timeline, by rank and time, without equal rows.
        sent: The messages, in order.
    """
    of_ranks = _Tracks.of(ops, sent)
    run = _Run(ops, sent, of_ranks)
    kinds = [*run.of_ops(), *run.of_steps(), run.of_instants(), *run.of_messages()]
    keys = [np.concatenate([getattr(one, name) for one in kinds]) for name in _Events._fields[:-1]]
    ordered = np.lexsort(keys[::-1])
    made = [
        packet
        for one in kinds
        for start in range(0, len(one.at_ps), _CHUNK)
        for packet in one.encode(slice(start, start + _CHUNK))
    ]
    return of_ranks.tracks, map(made.__getitem__, ordered.tolist())


class _Tracks(NamedTuple):
    """The tracks.

    Attributes:
        tracks: All tracks.
        ranks: The ranks, sorted.
        homes: The tracks of the ranks.
        lanes: The lane of each message.
    """

    tracks: list[Track]
    ranks: Integers
    homes: Integers
    lanes: Integers

    @classmethod
    def of(cls, ops: pl.DataFrame, sent: pl.DataFrame) -> _Tracks:
        lanes, counts = _lanes(sent)
        ranks = np.unique(np.concatenate([_numbers(ops, "rank"), _numbers(sent, "source"),
                                          _numbers(sent, "destination")]))  # fmt: skip
        tracks: list[Track] = []
        homes = []
        for rank in ranks.tolist():
            home = len(tracks) + 1
            homes.append(home)
            tracks.append(Track(home, f"rank {rank}", None, rank))
            tracks += [Track(home + 1 + number, f"messages {number}", home, number)
                       for number in range(counts[rank])]  # fmt: skip
        return cls(tracks, ranks, np.array(homes), np.array(lanes, np.int64))


def _lanes(sent: pl.DataFrame) -> tuple[list[int], dict[int, int]]:
    """Returns the lane of each message among those of its source, and the lanes of each rank.

    A message takes the first lane that is free when it is sent.
    """
    busy: dict[int, list[tuple[int, int]]] = defaultdict(list)
    free: dict[int, list[int]] = defaultdict(list)
    counts: dict[int, int] = defaultdict(int)
    found = []
    for source, start, end in sent.select("source", "sent_ps", "arrival_ps").iter_rows():
        taken, idle = busy[source], free[source]
        while taken and taken[0][0] <= start:
            heappush(idle, heappop(taken)[1])
        if idle:
            lane = heappop(idle)
        else:
            lane = counts[source]
            counts[source] += 1
        heappush(taken, (end, lane))
        found.append(lane)
    return found, counts


class _Run:
    """The events of a run."""

    def __init__(self, ops: pl.DataFrame, sent: pl.DataFrame, tracks: _Tracks) -> None:
        self._ops = ops
        self._tracks = tracks
        self._start, self._end = _numbers(ops, "start_ps"), _numbers(ops, "end_ps")
        self._rank = np.searchsorted(tracks.ranks, _numbers(ops, "rank"))
        self._step = _numbers(ops, "step")
        starts = _changes(self._rank) | _changes(self._step)
        self._first, group = np.flatnonzero(starts), np.cumsum(starts) - 1
        # Each op has two events, and each step before it, too.
        self._place = 2 * (np.arange(len(ops)) + group) + 1
        self._sent = {name: _numbers(sent, name) for name in ARROW_COLUMNS}
        self._flows = _Flows.of(ops, sent)

    def of_ops(self) -> Iterator[_Events]:
        """Yields the starts and the ends of ops."""
        ops, zero = self._ops, np.zeros(len(self._ops), np.int64)
        track = self._tracks.homes[self._rank]
        kinds = list(zip(ops["kind"], ops["peer"], strict=True))
        named = _Named([category_and_name(kind, label(kind, peer)) for kind, peer in
                        dict.fromkeys(kinds)], _codes(kinds))  # fmt: skip
        steps = _step_names(ops["name"].to_list())
        peer, size = (ops[name].fill_null(0).to_numpy() for name in ("peer", "bytes"))
        has_peer, has_size = (ops[name].is_not_null().to_numpy() for name in ("peer", "bytes"))

        def started(at: slice) -> list[bytes]:
            arguments = joined(
                argument("step", self._step[at]),
                steps.part(at),
                optional(argument("peer", peer[at]), has_peer[at]),
                optional(argument("bytes", size[at]), has_size[at]),
                argument("start_ps", self._start[at]),
                argument("end_ps", self._end[at]),
            )
            after = joined(named.part(at), self._flows.part(at))
            return packets(self._start[at], "begin", track[at], before=arguments, after=after)

        lane = zero - 1
        yield _Events(self._start, self._rank, lane, self._place, zero, started)
        yield _Events(self._end, self._rank, lane, self._place + 1, zero, _ends(self._end, track))

    def of_steps(self) -> Iterator[_Events]:
        """Yields the starts and the ends of steps."""
        first = self._first
        last = np.append(first[1:], len(self._ops))[: len(first)] - 1
        start, rank, step = self._start[first], self._rank[first], self._step[first]
        end = np.maximum.reduceat(self._end, first) if len(first) else start
        track, zero = self._tracks.homes[rank], np.zeros(len(first), np.int64)
        texts = self._ops["name"].gather(first).to_list()
        texts = [text or str(number) for text, number in zip(texts, step.tolist(), strict=True)]
        steps, codes = _step_names(texts), _codes(texts)
        named = _Named([category_and_name("step", text) for text in dict.fromkeys(texts)], codes)

        def started(at: slice) -> list[bytes]:
            arguments = joined(
                argument("step", step[at]),
                steps.part(at),
                argument("start_ps", start[at]),
                argument("end_ps", end[at]),
            )
            return packets(start[at], "begin", track[at], before=arguments, after=named.part(at))

        yield _Events(start, rank, zero - 1, self._place[first] - 1, zero, started)
        yield _Events(end, rank, zero - 1, self._place[last] + 2, zero, _ends(end, track))

    def of_instants(self) -> _Events:
        """Returns the receives that take no time: each precedes the first later event."""
        loose = np.flatnonzero(~self._flows.received)
        received, source = self._sent["received_ps"][loose], self._sent["source"][loose]
        order = np.lexsort((loose, received))
        loose, received, source = loose[order], received[order], source[order]
        rank = np.searchsorted(self._tracks.ranks, self._sent["destination"][loose])
        place = self._before(rank, received)
        track, size = self._tracks.homes[rank], self._sent["bytes"][loose]
        sources = source.tolist()
        named = _Named([category_and_name("recv", f"recv from {one}") for one in
                        dict.fromkeys(sources)], _codes(sources))  # fmt: skip

        def marks(at: slice) -> list[bytes]:
            arguments = joined(argument("peer", source[at]), argument("bytes", size[at]),
                               argument("at_ps", received[at]))  # fmt: skip
            after = joined(named.part(at), flow(TERMINATING_FLOW, loose[at] + 1))
            return packets(received[at], "instant", track[at], before=arguments, after=after)

        order = np.arange(len(loose)) - len(loose)
        return _Events(received, rank, np.full(len(loose), -1), place, order, marks)

    def _before(self, rank: Integers, received: Integers) -> Integers:
        """Returns the place of each instant, by rank and time."""
        size = len(self._ops)
        last = np.append(self._first[1:], size)[: len(self._first)] - 1
        ends = np.maximum.reduceat(self._end, self._first) if size else self._end
        # Times before which an instant precedes the event at a place.
        limits = np.zeros(2 * (size + len(self._first)), np.int64)
        limits[self._place], limits[self._place + 1] = self._start + 1, self._end
        limits[self._place[self._first] - 1] = self._start[self._first]
        limits[self._place[last] + 2] = ends + 1
        found = np.full(len(rank), len(limits))
        for one in np.unique(rank).tolist():
            low, high = np.searchsorted(self._rank, [one, one + 1]).tolist()
            if low < high:
                first, stop = self._place[low] - 1, self._place[high - 1] + 3
                latest = np.maximum.accumulate(limits[first:stop])
                of_rank = rank == one
                found[of_rank] = first + np.searchsorted(latest, received[of_rank], side="right")
        return found

    def of_messages(self) -> Iterator[_Events]:
        """Yields the starts and the ends of messages in flight."""
        sent, lane = self._sent, self._tracks.lanes
        start, end, number = sent["sent_ps"], sent["arrival_ps"], np.arange(len(lane))
        rank = np.searchsorted(self._tracks.ranks, sent["source"])
        track, zero = self._tracks.homes[rank] + 1 + lane, np.zeros(len(lane), np.int64)
        targets = sent["destination"].tolist()
        named = _Named([category_and_name("message", f"to {one}") for one in
                        dict.fromkeys(targets)], _codes(targets))  # fmt: skip

        def started(at: slice) -> list[bytes]:
            arguments = joined(*(argument(name, values[at]) for name, values in sent.items()))
            after = joined(named.part(at), flow(FLOW, number[at] + 1))
            return packets(start[at], "begin", track[at], before=arguments, after=after)

        yield _Events(start, rank, lane, 2 * number, zero, started)
        yield _Events(end, rank, lane, 2 * number + 1, zero, _ends(end, track))


class _Named(NamedTuple):
    """Encoded texts by code."""

    table: list[bytes]
    codes: Integers

    def part(self, at: slice) -> Part:
        return choice(self.table, self.codes[at])


def _step_names(texts: list[str]) -> _Named:
    table = [encoded_argument(("step_name", text)) for text in dict.fromkeys(texts)]
    return _Named(table, _codes(texts))


class _Flows(NamedTuple):
    """The flows of ops.

    Attributes:
        table: The encoded flows; the first one is empty.
        codes: Those of each op.
        received: Whether a message ends at an op that takes time.
    """

    table: list[bytes]
    codes: Integers
    received: NDArray[np.bool_]

    @classmethod
    def of(cls, ops: pl.DataFrame, sent: pl.DataFrame) -> _Flows:
        """Finds the send and the recv op of each message."""
        numbered = ops.with_row_index("op")
        sends = numbered.filter(pl.col("kind") == "send")
        recvs = numbered.filter(
            (pl.col("kind") == "recv") & (pl.col("end_ps") > pl.col("start_ps"))
        )
        to = _matched(
            sent, sends, ("source", "destination", "sent_ps"), ("rank", "peer", "start_ps")
        )
        end = _matched(sent, recvs, ("destination", "source", "received_ps"),
                       ("rank", "peer", "end_ps"))  # fmt: skip
        copies = sends.filter(pl.col("peer").is_null())
        many = _matched(sent, copies, ("source", "sent_ps"), ("rank", "start_ps"), once=False)
        to = np.where(to < 0, many, to)
        by_op: dict[int, list[int]] = defaultdict(list)
        for number, op in enumerate(to.tolist(), start=1):
            if op >= 0:
                by_op[op].append(number)
        codes, table = np.zeros(len(ops), np.int64), [b""]
        for op, numbers in by_op.items():
            codes[op] = len(table)
            table.append(flow_ids(tuple(numbers), ends=False))
        for number, op in enumerate(end.tolist(), start=1):
            if op >= 0:
                codes[op] = len(table)
                table.append(flow_ids((number,), ends=True))
        return cls(table, codes, end >= 0)

    def part(self, at: slice) -> Part:
        codes = self.codes[at]
        used, codes = np.unique(codes, return_inverse=True)
        return choice([self.table[one] for one in used.tolist()], codes)


def _matched(
    sent: pl.DataFrame,
    ops: pl.DataFrame,
    of_message: Sequence[str],
    of_op: Sequence[str],
    *,
    once: bool = True,
) -> Integers:
    """Returns the last op of each message with equal columns, or -1; `once` for the first only."""
    last = ops.unique(of_op, keep="last").select("op", *of_op)
    found = sent.join(last, left_on=of_message, right_on=of_op, how="left", maintain_order="left")
    if once:
        first = sent.select(pl.struct(of_message).is_first_distinct()).to_series()
        found = found.with_columns(pl.when(first).then("op").alias("op"))
    return found["op"].cast(pl.Int64).fill_null(-1).to_numpy()


def _ends(at_ps: Integers, track: Integers) -> Callable[[slice], list[bytes]]:
    return lambda at: packets(at_ps[at], "end", track[at], before=None, after=None)


def _numbers(frame: pl.DataFrame, name: str) -> Integers:
    return frame[name].cast(pl.Int64).to_numpy()


def _codes(values: Sequence[object]) -> Integers:
    """Returns the index of each value among the distinct ones, in order of occurrence."""
    known = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return np.array([known[value] for value in values], np.int64)


def _changes(values: Integers) -> NDArray[np.bool_]:
    return np.append(True, values[1:] != values[:-1])[: len(values)]
