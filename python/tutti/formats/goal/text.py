"""GOAL files, the traces of LogGOPSim and ATLAHS, in text and in binary form.

Sources: `src/LogGOPSim/txt2bin.re` and `Parser.hpp` of spcl/LogGOPSim (commit 76451de); spcl/atlahs
(commit 8837294) reads the same forms. The core reads text. A unit of a computation is 1 ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_bytes
from tutti.collectives.lowering import expand
from tutti.formats.goal.binary import trace_of, write_ranks
from tutti.formats.goal.lines import Lines
from tutti.formats.messages import refuse_timed
from tutti.workloads.operations import ANY, Kind, Operations, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tutti.formats.formats import Options

_UNIT = 1000
"""Picoseconds of a unit of a computation."""
_MOST_CPU = 255
_MOST_TAG = 2**32 - 2
_EXPECTED = "a GOAL trace of LogGOPSim or ATLAHS"


def read_goal(path: Path, _options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads GOAL text.

    Returns:
        The trace, and a line per loss.

    Raises:
        ConfigError: The file cannot be read, or is not GOAL; the message names the line.
    """
    data = read_bytes(path, limits.Bytes.TRACE, _EXPECTED)
    try:
        ranks, other_nics = _core.read_goal(data)
    except TuttiError as error:
        raise mistake(error.problem, source=str(path), hint=error.hint) from None
    operations = tuple(Operations.from_columns(each) for each in ranks)
    trace = Trace(name=path.stem, ranks=operations, file=str(path), line=Lines(data))
    return trace, _lost_nics(other_nics)


def read_goal_binary(path: Path, _options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads the binary form of GOAL, which LogGOPSim's txt2bin writes.

    Returns:
        The trace, and a line per loss.

    Raises:
        ConfigError: The file cannot be read, or is damaged.
    """
    data = read_bytes(path, limits.Bytes.TRACE, _EXPECTED)
    ranks, other_nics = trace_of(data, source=str(path))
    return Trace(name=path.stem, ranks=ranks, file=str(path)), _lost_nics(other_nics)


def write_goal(trace: Trace, path: Path, options: Options) -> tuple[str, ...]:
    """Writes GOAL text; returns a line per loss.

    Raises:
        ConfigError: The trace has collectives and no algorithm is given, or its streams or tags
            do not fit GOAL.
    """
    ranks, durations, losses = _prepared(trace, options)
    with path.open("w", encoding="ascii") as file:
        file.write(f"num_ranks {len(ranks)}\n")
        for rank, (of, calc) in enumerate(zip(ranks, durations, strict=True)):
            file.write(f"\nrank {rank} {{\n")
            file.writelines(_lines(of, calc))
            file.write("}\n")
    return losses


def write_goal_binary(trace: Trace, path: Path, options: Options) -> tuple[str, ...]:
    """Writes the binary form of GOAL, as LogGOPSim's txt2bin does; returns a line per loss.

    Raises:
        ConfigError: As `write_goal`.
    """
    ranks, durations, losses = _prepared(trace, options)
    with path.open("wb") as file:
        write_ranks(file, ranks, durations)
    return losses


def _lost_nics(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"network interfaces of {count:,} operations: a rank has one port",)


def _prepared(
    trace: Trace, options: Options
) -> tuple[tuple[Operations, ...], list[NDArray[np.int64]], tuple[str, ...]]:
    """Returns operations that GOAL represents, their durations in ns, and the losses."""
    refuse_timed(trace)
    losses = []
    if trace.collectives:
        if options.algorithm is None:
            raise mistake(
                "GOAL has no collectives",
                source=trace.name,
                expected="--algorithm with an algorithm that replaces them by messages",
            )
        trace = expand(trace, options.algorithm)
        losses.append(f"collectives: replaced by messages of {options.algorithm}")
    ranks = tuple(_with_cpus(rank, of, trace.name) for rank, of in enumerate(trace.ranks))
    for rank, of in enumerate(ranks):
        _check_tags(rank, of, trace.name)
    rounded = sum(int(np.count_nonzero(of.durations % _UNIT)) for of in ranks)
    if rounded:
        losses.append(f"fractions of a nanosecond of {rounded:,} durations: rounded to 1 ns")
    empty = sum(int(np.count_nonzero((of.kinds == Kind.SEND) & (of.sizes == 0))) for of in ranks)
    if empty:
        losses.append(f"{empty:,} messages of 0 B, for which LogGOPSim computes 2^64 - 1 B")
    if any(of.names for of in ranks):
        losses.append("names of operations")
    durations = [(of.durations + _UNIT // 2) // _UNIT for of in ranks]
    return ranks, durations, tuple(losses)


def _with_cpus(rank: int, of: Operations, name: str) -> Operations:
    """Returns operations whose streams are CPU numbers of GOAL, which have 8 bits."""
    if not len(of) or int(of.streams.max()) <= _MOST_CPU:
        return of
    distinct, streams = np.unique(of.streams, return_inverse=True)
    if len(distinct) > _MOST_CPU + 1:
        raise mistake(
            f"rank {rank} has {len(distinct):,} streams",
            source=name,
            expected=f"at most {_MOST_CPU + 1}, the CPUs of GOAL",
        )
    return of.replaced(streams=streams.astype(np.int32))


def _check_tags(rank: int, of: Operations, name: str) -> None:
    least = np.where(of.kinds == Kind.RECEIVE, ANY, 0)
    wrong = np.flatnonzero((of.tags < least) | (of.tags > _MOST_TAG))
    if len(wrong):
        at = int(wrong[0])
        raise mistake(
            f"operation {at} of rank {rank} has tag {int(of.tags[at])}",
            source=name,
            expected=f"0 to {_MOST_TAG}, the tags of GOAL",
        )


def _lines(of: Operations, durations: NDArray[np.int64]) -> Iterator[str]:
    """Yields the lines of a rank. A label must be defined before a dependency names it."""
    columns = (of.kinds, of.sizes, durations, of.peers, of.tags, of.streams)
    starts = of.first_dependency.tolist()
    on, on_start = of.dependencies.tolist(), of.on_start.tolist()
    owners = np.repeat(np.arange(len(of)), np.diff(of.first_dependency))
    at_end = bool(np.any(of.dependencies > owners))
    deferred = []
    for at, (kind, size, calc, peer, tag, cpu) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if kind == Kind.COMPUTE:
            yield f"l{at}: calc {calc} cpu {cpu}\n"
        else:
            word = "send" if kind == Kind.SEND else "recv"
            to = "to" if kind == Kind.SEND else "from"
            yield f"l{at}: {word} {size}b {to} {peer} tag {tag} cpu {cpu}\n"
        for index in range(starts[at], starts[at + 1]):
            word = "irequires" if on_start[index] else "requires"
            line = f"l{at} {word} l{on[index]}\n"
            if at_end:
                deferred.append(line)
            else:
                yield line
    yield from deferred
