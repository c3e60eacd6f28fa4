"""Lowers schedules of a given size to traces, and collectives of traces to messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tutti import _core
from tutti.base.datatypes import DATATYPES
from tutti.schedules.ir import schedule as generate
from tutti.workloads.errors import WorkloadError
from tutti.workloads.operations import Kind, Operations, StoredRanks, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tutti.base.units import Size
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.workloads.operations import CollectiveCall

Algorithm: TypeAlias = "str | Callable[[CollectiveCall, int], Sequence[tuple[str, str | Schedule]]]"
"""A notation for all collectives, or a function of a collective and its bytes, which returns the
collectives and the notations or schedules that replace it in turn."""

_DATATYPES_BY_SIZE = ("float32", "float16", "int8")
"""Datatypes that `expand` tries: the size of a recorded collective need not divide by 4."""


def losses_of(schedule: Schedule) -> tuple[str, ...]:
    """Returns a line for each part of a verified schedule that its trace does not represent.

    Raises:
        VerificationError: The schedule is not correct.
    """
    proof = schedule.verify()
    found = {
        "reductions and copies: they take no time": proof.reductions,
        "multicasts and in-network reductions: separate messages": proof.multicasts
        + proof.combines,
        "the launch of a collective: a trace starts at once": 1,
    }
    return tuple(line for line, count in found.items() if count)


def lower(
    schedule: Schedule, size: Size, *, datatype: str = "float32", platform: Platform | None = None
) -> Trace:
    """Lowers a schedule of a given size to a trace.

    A rank sends the messages of a step in order, then posts its receives together, then continues.
    All messages have tag 0: messages of a pair match in order, as in the schedule.

    Args:
        schedule: The schedule.
        size: The payload, by the collective's convention.
        datatype: The datatype of the elements; chunks start at elements.
        platform: Reductions and copies take the time of this platform's model; without it, none.

    Raises:
        LayoutError: The size does not match the datatype or the collective.
    """
    model = None if platform is None else platform.model.core
    element = DATATYPES[datatype]
    trace = _core.lower_schedule(schedule.core, size=size.bytes, element=element, model=model)
    return Trace(name=schedule.name, ranks=StoredRanks(trace))


def timed(trace: Trace, time_ps: Callable[[CollectiveCall, int], int]) -> Trace:
    """Gives the collectives of a trace a time, which starts when all ranks have started them.

    They occupy the streams of their ranks, and share no links with other operations.

    Args:
        trace: The trace.
        time_ps: Returns the time of a collective and its bytes, in ps.

    Raises:
        WorkloadError: The ranks of a group call a collective in different numbers or sizes.
    """
    calls = [_calls(trace, rank) for rank in range(len(trace.ranks))]
    numbers = _numbered(trace, calls)
    times: dict[tuple[int, int], int] = {}
    ranks = []
    for of, called in zip(trace.ranks, calls, strict=True):
        names = ("kinds", "sizes", "durations", "peers", "tags")
        columns = {name: getattr(of, name).copy() for name in names}
        for at, call in called.items():
            key = call.collective, call.size
            group = trace.collectives[call.collective].group
            if key not in times:
                times[key] = time_ps(trace.collectives[call.collective], call.size)
            values = (Kind.TIMED, 0, times[key], len(group), numbers[call])
            for name, value in zip(names, values, strict=True):
                columns[name][at] = value
        ranks.append(of.replaced(**columns))
    return replace(trace, ranks=tuple(ranks), collectives=())


class _Call(NamedTuple):
    """An execution of a collective: the ranks' operations that start it."""

    collective: int
    size: int
    nth: int


def expand(trace: Trace, algorithm: Algorithm, platform: Platform | None = None) -> Trace:
    """Replaces the collectives of a trace by the messages of algorithms.

    The k-th call of a collective by a rank belongs to the k-th call by the others. Each call has a
    tag above all tags of the trace, so that its messages match no others. An empty computation
    starts and another ends each call on a rank; they have the dependencies of the collective.

    Args:
        trace: The trace.
        algorithm: The notation of an algorithm, such as ``"ring"``, or a function that returns the
            algorithms of a collective.
        platform: Launches, reductions and copies take the time of this platform's model; without
            it, none.

    Raises:
        WorkloadError: The ranks of a group call a collective in different numbers or sizes.
        AlgorithmError: The algorithm does not support a collective or its number of ranks.
    """
    calls = [_calls(trace, rank) for rank in range(len(trace.ranks))]
    numbers = _numbered(trace, calls)
    first_tag = 1 + max((int(of.tags.max()) for of in trace.ranks if len(of)), default=0)
    lowered: dict[tuple[int, int], list[tuple[Operations, ...]]] = {}
    for collective, size, _ in numbers:
        if (collective, size) not in lowered:
            parts = _lowered(trace.collectives[collective], size, algorithm, platform)
            lowered[collective, size] = parts
    launch = 0 if platform is None else platform.model.launch.ps
    ranks = []
    for rank, of in enumerate(trace.ranks):
        pieces: dict[tuple[int, int], _Piece] = {}
        for at, call in calls[rank].items():
            key = call.collective, call.size
            if key not in pieces:
                members = trace.collectives[call.collective].group
                index = members.index(rank)
                block = _in_turn([_enclosed(part[index], members) for part in lowered[key]])
                block.durations[0] = launch if len(members) > 1 else 0
                pieces[key] = _Piece(block, [], [])
            pieces[key].at.append(at)
            pieces[key].tags.append(first_tag + numbers[call])
        ranks.append(_joined(of, list(pieces.values())))
    return Trace(name=trace.name, ranks=tuple(ranks))


class _Piece(NamedTuple):
    """The operations of a call: those that start it, and a tag for each."""

    block: Operations
    at: list[int]
    tags: list[int]


def _calls(trace: Trace, rank: int) -> dict[int, _Call]:
    """Returns the calls of a rank, by operation."""
    of = trace.ranks[rank]
    counts: dict[int, int] = {}
    calls = {}
    for at in np.flatnonzero(of.kinds == Kind.COLLECTIVE).tolist():
        collective = int(of.peers[at])
        if rank not in trace.collectives[collective].group:
            name = trace.collectives[collective].collective
            message = f"rank {rank} calls {name} of a group that it does not belong to"
            raise WorkloadError(message, kind="trace_collective")
        index = counts.get(collective, 0)
        counts[collective] = index + 1
        calls[at] = _Call(collective, int(of.sizes[at]), index)
    return calls


def _numbered(trace: Trace, calls: list[dict[int, _Call]]) -> dict[_Call, int]:
    """Numbers the calls, and checks that the ranks of each group agree."""
    callers: dict[_Call, list[int]] = {}
    for rank, of in enumerate(calls):
        for call in of.values():
            callers.setdefault(call, []).append(rank)
    for call, ranks in callers.items():
        if len(ranks) != len(trace.collectives[call.collective].group):
            raise _disagreement(trace, call, callers)
    return {call: number for number, call in enumerate(sorted(callers))}


def _disagreement(
    trace: Trace, call: _Call, callers: Mapping[_Call, Sequence[int]]
) -> WorkloadError:
    """Returns the error of a call that not all ranks of its group make alike."""
    members = trace.collectives[call.collective]
    sizes = {
        rank: other.size
        for other, ranks in callers.items()
        if (other.collective, other.nth) == (call.collective, call.nth)
        for rank in ranks
    }
    rank = next(rank for rank in members.group if sizes.get(rank) != call.size)
    other = f"rank {rank} with {sizes[rank]} B" if rank in sizes else f"rank {rank} does not"
    source = f"{trace.file}: " if trace.file else ""
    message = (
        f"{source}rank {callers[call][0]} makes call {call.nth} of {members.collective} with "
        f"{call.size} B, {other}: expected the same of all {len(members.group)} ranks of its group"
    )
    hint = "calls of a collective and group match in order; compare the traces of these ranks"
    return WorkloadError(message, kind="trace_collective", hint=hint)


def _lowered(
    call: CollectiveCall, size: int, algorithm: Algorithm, platform: Platform | None
) -> list[tuple[Operations, ...]]:
    """Returns the operations of each rank of a group, for each schedule that runs in turn."""
    from tutti.base.units import Size

    if len(call.group) == 1:
        return [(Operations.from_columns((b"",) * 6 + (bytes(8),) + (b"",) * 2),)]
    parts: Sequence[tuple[str, str | Schedule]] = (
        [(call.collective, algorithm)] if isinstance(algorithm, str) else algorithm(call, size)
    )
    datatype = next(each for each in _DATATYPES_BY_SIZE if size % DATATYPES[each] == 0)
    payload = Size.of_any(f"{size} B")
    return [
        tuple(
            lower(
                generate(notation, collective=collective, ranks=len(call.group), root=call.root)
                if isinstance(notation, str)
                else notation,
                payload,
                datatype=datatype,
                platform=platform,
            ).ranks
        )
        for collective, notation in parts
    ]


def _in_turn(blocks: list[Operations]) -> Operations:
    """Returns blocks of `_enclosed` as one: each waits for the last operation of the one before."""
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0, *map(len, blocks)])
    counts = np.concatenate([np.diff(block.first_dependency) for block in blocks])
    counts[starts[1:-1]] += 1
    waits = [blocks[0].dependencies]
    for start, block in zip(starts[1:-1].tolist(), blocks[1:], strict=True):
        waits += [np.array([start - 1]), block.dependencies + start]
    dependencies = np.concatenate(waits)
    names = ("kinds", "sizes", "durations", "peers", "tags", "streams")
    return blocks[0].replaced(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names},
        first_dependency=np.concatenate(([0], np.cumsum(counts))),
        dependencies=dependencies,
        on_start=np.zeros(len(dependencies), np.bool_),
    )


def _enclosed(block: Operations, members: tuple[int, ...]) -> Operations:
    """Returns a rank's part of a call, between an empty first and an empty last computation.

    Tags and streams are 0.
    """
    n = len(block)
    messages = block.kinds != Kind.COMPUTE
    group = np.array(members, np.int32)
    peers = np.where(messages, group[np.where(messages, block.peers, 0)], -1)
    needs = np.diff(block.first_dependency)
    roots = np.flatnonzero(needs == 0)
    leaves = np.setdiff1d(np.arange(n), block.dependencies)
    owner = np.concatenate((np.repeat(np.arange(n), needs) + 1, roots + 1))
    on = np.concatenate((block.dependencies + 1, np.zeros(len(roots), np.int64)))
    order = np.argsort(owner, kind="stable")
    last = leaves + 1 if n else np.zeros(1, np.int64)
    counts = np.concatenate(([0], np.bincount(owner[order] - 1, minlength=n), [len(last)]))

    def padded(column: NDArray[np.generic], value: int) -> NDArray[np.generic]:
        end = np.array([value], column.dtype)
        return np.concatenate((end, column, end))

    return Operations(
        kinds=padded(block.kinds, Kind.COMPUTE),  # type: ignore[arg-type]
        sizes=padded(block.sizes, 0),  # type: ignore[arg-type]
        durations=padded(block.durations, 0),  # type: ignore[arg-type]
        peers=padded(peers.astype(np.int32), -1),  # type: ignore[arg-type]
        tags=np.zeros(n + 2, np.int64),
        streams=np.zeros(n + 2, np.int32),
        first_dependency=np.concatenate(([0], np.cumsum(counts))),
        dependencies=np.concatenate((on[order], last)),
        on_start=np.zeros(len(on) + len(last), np.bool_),
    )


def _joined(of: Operations, pieces: list[_Piece]) -> Operations:
    """Replaces operations by pieces, each with its dependencies at the first and the last."""
    if not pieces:
        return of.replaced(names=())
    lengths = np.ones(len(of), np.int64)
    for piece in pieces:
        lengths[piece.at] = len(piece.block)
    start = np.cumsum(lengths) - lengths
    last = start + lengths - 1
    owner = np.repeat(np.arange(len(of)), np.diff(of.first_dependency))
    # A dependency on the start of a collective is one on the start of its first operation.
    on = np.where(of.on_start, start[of.dependencies], last[of.dependencies])
    owners, targets, starts = [start[owner]], [on], [of.on_start]
    for block, at, _ in pieces:
        # A row per call.
        first = start[at][:, None]
        owner = np.repeat(np.arange(len(block)), np.diff(block.first_dependency))
        owners.append((owner + first).ravel())
        targets.append((block.dependencies + first).ravel())
        starts.append(np.tile(block.on_start, len(at)))
    all_owners = np.concatenate(owners)
    order = np.argsort(all_owners, kind="stable")
    counts = np.bincount(all_owners, minlength=int(lengths.sum()))
    return of.replaced(
        **_merged(of, pieces, start, int(lengths.sum())),
        first_dependency=np.concatenate(([0], np.cumsum(counts))),
        dependencies=np.concatenate(targets)[order],
        on_start=np.concatenate(starts)[order],
        names=(),
    )


def _merged(
    of: Operations, pieces: list[_Piece], start: NDArray[np.int64], total: int
) -> dict[str, NDArray[Any]]:
    """Returns the columns of `_joined`, without dependencies; `start` are the first operations."""
    replaced = [at for piece in pieces for at in piece.at]
    kept = np.setdiff1d(np.arange(len(of)), replaced)
    columns: dict[str, NDArray[Any]] = {}
    for name in ("kinds", "sizes", "durations", "peers", "tags", "streams"):
        column: NDArray[Any] = getattr(of, name)
        columns[name] = np.zeros(total, column.dtype)
        columns[name][start[kept]] = column[kept]
    for block, at, tags in pieces:
        # A row per call.
        places = start[at][:, None] + np.arange(len(block))
        for name in ("kinds", "sizes", "durations", "peers"):
            columns[name][places] = getattr(block, name)
        messages = block.kinds != Kind.COMPUTE
        columns["tags"][places] = np.where(messages, np.array(tags)[:, None], 0)
        columns["streams"][places] = of.streams[at][:, None]
    return columns
