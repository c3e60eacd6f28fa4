"""GOAL files, the traces of LogGOPSim and ATLAHS, in text and in binary form.

Sources: `src/LogGOPSim/txt2bin.re` and `Parser.hpp` of spcl/LogGOPSim (commit 76451de); spcl/atlahs
(commit 8837294) reads the same forms. The core reads and writes both. A unit of a computation is
1 ns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import opened
from tutti.formats.goal.lines import Lines
from tutti.workloads.operations import StoredRanks, Trace

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.base.errors import ConfigError
    from tutti.formats.formats import Options

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
    trace, losses = _read(path, binary=False)
    return replace(trace, line=Lines(path)), losses


def read_goal_binary(path: Path, _options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads the binary form of GOAL, which LogGOPSim's txt2bin writes.

    Returns:
        The trace, and a line per loss.

    Raises:
        ConfigError: The file cannot be read, or is damaged.
    """
    return _read(path, binary=True)


def _read(path: Path, *, binary: bool) -> tuple[Trace, tuple[str, ...]]:
    with opened(path, limits.Bytes.TRACE, _EXPECTED):
        try:
            core, other_nics = _core.read_goal(str(path), binary=binary)
        except TuttiError as error:
            raise _refused(error, path, binary=binary) from None
    trace = Trace(name=path.stem, ranks=StoredRanks(core), file=str(path))
    return trace, _lost_nics(other_nics)


def _refused(error: TuttiError, path: Path, *, binary: bool) -> ConfigError:
    """Returns the error for a file that the core refuses."""
    if not binary:
        return mistake(error.problem, source=str(path), hint=error.hint)
    if "problem" not in error.fields:
        hint = "write it again with txt2bin, and run LogGOPSim without --save-mem"
        return mistake(error.problem, source=str(path), hint=hint)
    rank = error.fields["rank"]
    return mistake(
        error.problem,
        source=str(path) if rank is None else f"{path}: rank {rank}",
        expected="a file of txt2bin",
        hint="GOAL in text form has the format `goal`",
    )


def write_goal(trace: Trace, path: Path, options: Options) -> tuple[str, ...]:
    """Writes GOAL text; returns a line per loss.

    Raises:
        ConfigError: The trace has collectives and no algorithm is given, or its streams or tags
            do not fit GOAL.
    """
    return _write(trace, path, options, binary=False)


def write_goal_binary(trace: Trace, path: Path, options: Options) -> tuple[str, ...]:
    """Writes the binary form of GOAL, as LogGOPSim's txt2bin does; returns a line per loss.

    Raises:
        ConfigError: As `write_goal`.
    """
    return _write(trace, path, options, binary=True)


def _lost_nics(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"network interfaces of {count:,} operations: a rank has one port",)


def _write(trace: Trace, path: Path, options: Options, *, binary: bool) -> tuple[str, ...]:
    losses: list[str] = []
    stored = isinstance(trace.ranks, StoredRanks)
    if not stored:
        trace, losses = _without_collectives(trace, options)
    losses += _losses(trace.core, trace.name)
    if not stored and any(of.names for of in trace.ranks):
        losses.append("names of operations")
    trace.core.write_goal(str(path), binary=binary)
    return tuple(losses)


def _without_collectives(trace: Trace, options: Options) -> tuple[Trace, list[str]]:
    """Returns a trace of messages only, and a line per loss.

    Raises:
        ConfigError: The trace has collectives and no algorithm is given, or some have only a time.
    """
    from tutti.collectives.lowering import expand
    from tutti.formats.messages import refuse_timed

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
    return trace, losses


def _losses(core: _core.TraceGraph, name: str) -> list[str]:
    """Returns a line for each part of a trace without collectives that GOAL does not represent.

    Raises:
        ConfigError: Its streams or tags do not fit GOAL.
    """
    streams, tag, rounded, empty = core.goal_losses()
    if streams is not None:
        raise mistake(
            f"rank {streams[0]} has {streams[1]:,} streams",
            source=name,
            expected=f"at most {_MOST_CPU + 1}, the CPUs of GOAL",
        )
    if tag is not None:
        raise mistake(
            f"operation {tag[1]} of rank {tag[0]} has tag {tag[2]}",
            source=name,
            expected=f"0 to {_MOST_TAG}, the tags of GOAL",
        )
    losses = []
    if rounded:
        losses.append(f"fractions of a nanosecond of {rounded:,} durations: rounded to 1 ns")
    if empty:
        losses.append(f"{empty:,} messages of 0 B, for which LogGOPSim computes 2^64 - 1 B")
    return losses
