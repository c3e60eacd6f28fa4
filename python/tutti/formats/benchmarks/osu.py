"""OSU micro-benchmarks: ``osu_latency``, ``osu_bw``, ``osu_allreduce`` and related programs.

A run is a title (``# OSU MPI Allreduce Latency Test v7.4``), in newer versions a line with the
datatype, a line of column names, and a line per size. With several datatypes (``-T all``), all but
the title follow for each. ``-f`` adds minimum, maximum and iterations,
``-z`` percentiles, and ``-c`` a validation result. Times are in us, bandwidths in MB/s of 10^6
bytes. The number of ranks is not in the files. Titles of benchmarks in Python start with OMB-Py.

Source: ``c/util/osu_util.c`` and ``osu_util_mpi.c`` of versions 5.3 and 7.4.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.formats.benchmarks.rows import OF_ALL_SHARDS, BenchmarkInput, row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TITLE = re.compile(r"^# ((?:OSU|OMB-Py) .*?)(?: v(\S+))?$")
_DATATYPE = re.compile(r"^# Datatype: (\S+?)\.?\s*$")
_COLUMN = re.compile(
    r"(?:[A-Z][\w.]* )*[A-Z][\w.]* ?\((?:us|MB/s|%)\)|Transmit Size|Size|Iterations|Validation"
    r"|Messages/s"
)
_CLOSE = re.compile(r"(\bSize|\)) (?=[A-Z])")
"""Columns with one space between them, as in texts that were pasted as Markdown."""
_LONGEST_HEADING = 500
_TIMES = ("Avg Latency", "Latency", "Pure Comm.")
_BANDWIDTHS = ("Bandwidth", "MB/s")
_POINT_TO_POINT = frozenset({"ping_pong", "window", "bidirectional"})

_FAILED = re.compile(r"DATA VALIDATION ERROR.{0,300}? message size (\d{1,18})")
_UNUSABLE = (
    (r"mbw|multiple bandwidth", "measures several pairs at once", "osu_bw and osu_latency"),
    (r"multi[- ]?(?:pair|thread|process|lat)|latency_m[tp]", "measures several pairs or threads",
     "osu_latency"),
    (r"(?:\b|_)(?:mem)?(?:put|get|accumulate|acc|fetch|compare|fop|cas)",
     "measures one-sided communication", "osu_latency and osu_bw"),
    (r"persistent|partitioned", "measures persistent requests", "osu_latency and osu_bw"),
    (r"neighborhood|neighbor", "measures neighbours of a topology",
     "osu_allgather or osu_alltoall"),
    (r"all-?to-?all ?[vw]|personalized exchange ?[vw]", "has shards of unequal sizes",
     "osu_alltoall"),
    (r"allgather ?v", "has shards of unequal sizes", "osu_allgather"),
    (r"gather ?v", "has shards of unequal sizes", "osu_gather"),
    (r"scatter ?v", "has shards of unequal sizes", "osu_scatter"),
    (r"fan[-_ ]?(?:in|out)|congestion", "measures congestion", "osu_latency and osu_bw"),
    (r"\b(?:init|hello|startup)", "measures the start of MPI", "osu_latency"),
)  # fmt: skip
"""Words of titles, what such benchmarks measure, and which ones serve instead."""

_WORDS = (
    # Longer names before names that they contain.
    (r"neighborhood|allgatherv|gatherv|scatterv|all-?to-?all[vw]|multi|put|get|accumulate", None),
    (r"mbw|latency_m[pt]|persistent", None),
    (r"all-?reduce", "all_reduce"),
    (r"reduce_scatter", "reduce_scatter"),
    (r"all-?gather", "all_gather"),
    (r"all-?to-?all|personalized exchange", "all_to_all"),
    (r"broadcast|bcast", "broadcast"),
    (r"reduce", "reduce"),
    (r"gather", "gather"),
    (r"scatter", "scatter"),
    (r"barrier", "barrier"),
    (r"bi-directional bandwidth|bibw", "bidirectional"),
    (r"bandwidth|_bw", "window"),
    (r"latency", "ping_pong"),
)


class _Block(NamedTuple):
    benchmark: str
    operation: str | None
    ranks: int | None
    blocking: bool
    datatype: str | None = None
    columns: tuple[str, ...] = ()


def unusable(title: str) -> str:
    """Returns why a run cannot serve, and what would; empty if it can.

    Examples:
        >>> unusable("# OSU MPI_Put Latency Test v7.4")
        'OSU MPI_Put Latency Test measures one-sided communication: run osu_latency and osu_bw'
        >>> unusable("# OSU MPI Allreduce Latency Test v7.4")
        ''
    """
    match = TITLE.match(title.rstrip())
    name = match[1] if match else title
    plain = name.lower()
    if "non-blocking" in plain:
        program = _programs().get(operation_of(name) or "", "the blocking collective")
        return f"{name} measures overlap with computation: run {program}"
    for words, what, instead in _UNUSABLE:
        if re.search(words, plain):
            return f"{name} {what}: run {instead}"
    if operation_of(name) is None:
        return f"{name} is unknown: run osu_latency, osu_bw or a blocking collective"
    return ""


def _programs() -> dict[str, str]:
    """Returns the program of each collective."""
    names = {"broadcast": "osu_bcast", "reduce_scatter": "osu_reduce_scatter"}
    return {
        operation: names.get(operation, f"osu_{operation.replace('_', '')}")
        for _, operation in _WORDS
        if operation
    }


def failed_sizes(lines: Iterable[str]) -> set[int]:
    """Returns the sizes, as printed, of which lines of a run state that validation failed."""
    found = (_FAILED.search(line[:_LONGEST_HEADING]) for line in lines)
    return {int(match[1]) for match in found if match}


def rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    """Yields the measurements of a run whose lines are comments and rows.

    Raises:
        ConfigError: A line is invalid; the message names it.
    """
    block: _Block | None = None
    for number, line in given.lines(text):
        if title := TITLE.match(line.rstrip()):
            block = _block(title[1], given)
        elif block is None or not line.strip():
            continue
        elif datatype := _DATATYPE.match(line):
            block = block._replace(datatype=datatype[1])
        elif line.startswith("#"):
            columns = columns_of(line)
            block = block._replace(columns=columns) if columns else block
        elif block.columns:
            yield from given.attempt(number, partial(_rows, line.split(), number, block, given))


def operation_of(title: str) -> str | None:
    """Returns the operation that a title or a program such as `osu_allreduce` measures."""
    plain = title.lower()
    return next((name for words, name in _WORDS if re.search(words, plain)), None)


def _block(title: str, given: BenchmarkInput) -> _Block:
    plain = title.lower()
    operation = operation_of(title)
    ranks = 2 if operation in _POINT_TO_POINT else given.ranks
    return _Block(title, operation, ranks, blocking="non-blocking" not in plain)


def states_datatype(line: str) -> bool:
    """Returns whether a line states the datatype of the table below it."""
    return _DATATYPE.match(line) is not None


def columns_of(line: str) -> tuple[str, ...]:
    """Returns the names of the columns of a line of column names; none for other comments."""
    if len(line) > _LONGEST_HEADING:  # The pattern is slow on long lines.
        return ()
    apart = _CLOSE.sub(r"\1  ", line)
    found = tuple(re.sub(r" ?\(", "(", name) for name in _COLUMN.findall(apart))
    return found if any("(us)" in name or "(MB/s)" in name for name in found) else ()


def _rows(
    cells: list[str], line: int, block: _Block, given: BenchmarkInput
) -> Iterator[dict[str, Any]]:
    by_name = given.by_column(cells, block.columns, line)
    found: dict[str, Any] = {}
    for name, cell in by_name.items():
        base, _, unit = name.rstrip(")").partition("(")
        if base in _TIMES and unit == "us":
            found["time_us"] = given.number(cell, line, name)
        elif base in {"Min Latency", "Max Latency"}:
            found[f"{base[:3].lower()}_us"] = given.number(cell, line, name)
        elif base in _BANDWIDTHS:
            found["bytes_per_s"] = given.number(cell, line, name) * 1e6
        elif name == "Iterations":
            found["iterations"] = given.integer(cell, line, name)
        elif name == "Validation":
            found["wrong"] = 0 if cell == "Pass" else 1
    size = given.integer(by_name.get("Size", "0"), line, "Size")
    yield row(
        given,
        line,
        "osu",
        benchmark=block.benchmark,
        operation=block.operation,
        blocking=block.blocking,
        ranks=block.ranks,
        size_bytes=given.size(
            size, line, block.operation, block.ranks, shard=block.operation in OF_ALL_SHARDS
        ),
        written_bytes=size,
        datatype=block.datatype,
        **found,
    )
