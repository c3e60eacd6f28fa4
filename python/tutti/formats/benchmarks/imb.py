"""Intel MPI Benchmarks: IMB-MPI1 and IMB-NBC.

A file has a section per benchmark and number of processes: ``# Benchmarking Allreduce``,
``# #processes = 4``, a line of column names, and a line per size. Times are in us. A MB is 10^6
bytes since IMB 2018 and 2^20 bytes before, so bandwidths are only read if there are no times. With
``-multi``, the first column is the number of the group.

Source: ``src_c/IMB_output.c`` and ``IMB_reduce_scatter_block.c`` of IMB 2021.11.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.files.limits import RANKS
from tutti.formats.benchmarks.rows import OF_ALL_SHARDS, BenchmarkInput, row

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARK = re.compile(r"^# Benchmarking (\S+)")
_PROCESSES = re.compile(r"^# #processes = (\d+)")
GROUPS = re.compile(r"^# \(\s*(\d+) groups of (\d+) processes")
DATATYPE = re.compile(r"^# MPI_Datatype(?: for reductions)?\s*:\s*(\S+)")
FAILED = ("out-of-mem.", "int-overflow;", "time-out.;")
_REDUCTIONS = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_TIMES = {"t[usec]": "time_us", "t_avg[usec]": "time_us", "t_pure[usec]": "time_us"}
_EXTREMES = {"t_min[usec]": "min_us", "t_max[usec]": "max_us"}

_OPERATIONS = {
    "pingpong": "ping_pong",
    "pingpongspecificsource": "ping_pong",
    "pingponganysource": "ping_pong",
    "sendrecv": "send_recv",
    "uniband": "window",
    "biband": "bidirectional",
    "allreduce": "all_reduce",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_block": "reduce_scatter",
    "allgather": "all_gather",
    "gather": "gather",
    "scatter": "scatter",
    "alltoall": "all_to_all",
    "bcast": "broadcast",
    "barrier": "barrier",
}


class _Section(NamedTuple):
    benchmark: str
    processes: str = ""
    heading: str = ""

    @property
    def plain(self) -> str:
        """The base name in lower case."""
        return self.benchmark.lower().removeprefix("multi-").removesuffix("_pure")

    @property
    def blocking(self) -> bool:
        """Whether the benchmark is blocking; names of IMB-NBC start with an I."""
        return not self.plain.startswith("i")

    @property
    def of_shard(self) -> bool:
        """Whether sizes are those of one rank's shard; of MPI_Reduce_scatter, they are totals."""
        return self.operation in OF_ALL_SHARDS or self.plain.endswith("reduce_scatter_block")

    @property
    def operation(self) -> str | None:
        """The operation in tutti's names."""
        return _OPERATIONS.get(self.plain if self.blocking else self.plain[1:])


def rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    """Yields the measurements of a file, without the sizes that IMB failed to measure.

    Raises:
        ConfigError: A line is invalid; the message names it.
    """
    section: _Section | None = None
    datatypes = [*given.datatypes]
    for number, line in given.lines(text):
        if found := DATATYPE.match(line):
            datatypes.append(found[1])
        elif found := BENCHMARK.match(line):
            section = _Section(found[1])
        elif section is None or not line.strip():
            continue
        elif found := _PROCESSES.match(line):
            section = section._replace(processes=found[1])
        elif found := GROUPS.match(line):
            section = section._replace(processes=found[2])
        elif "#repetitions" in line:
            section = section._replace(heading=line)
        elif line.lstrip().startswith("#"):
            continue
        elif section.heading and not any(word in line for word in FAILED):
            make = partial(_rows, line.split(), number, section, datatypes, given)
            yield from given.attempt(number, make)


def _columns(heading: str, line: int, given: BenchmarkInput) -> tuple[str, ...]:
    found = tuple(heading.split())
    if "#repetitions" not in found:
        expected = "columns such as #bytes #repetitions t[usec]"
        given.refuse(line, "invalid heading", value=heading.strip(), expected=expected)
    return found


def _rows(
    cells: list[str], line: int, section: _Section, datatypes: list[str], given: BenchmarkInput
) -> Iterator[dict[str, Any]]:
    columns = _columns(section.heading, line, given)
    by_name = given.by_column(cells, columns, line)
    found: dict[str, Any] = {}
    for name, cell in by_name.items():
        if name in _TIMES:
            found[_TIMES[name]] = given.number(cell, line, name)
        elif name in _EXTREMES:
            found[_EXTREMES[name]] = given.number(cell, line, name)
        elif name == "defects":  # IMB compiled with checks.
            found["wrong"] = int(given.number(cell, line, name) > 0)
    if "time_us" not in found and "Mbytes/sec" in by_name:
        found["bytes_per_s"] = given.number(by_name["Mbytes/sec"], line, "Mbytes/sec") * 1e6
    operation, ranks = section.operation, None
    if section.processes:
        ranks = given.integer(section.processes, line, "#processes", RANKS)
    size = given.integer(by_name.get("#bytes", "0"), line, "#bytes")
    datatype = datatypes[-1 if operation in _REDUCTIONS else 0] if datatypes else None
    yield row(
        given,
        line,
        "imb",
        benchmark=section.benchmark,
        operation=operation,
        blocking=section.blocking,
        ranks=ranks,
        size_bytes=given.size(size, line, operation, ranks, shard=section.of_shard),
        datatype=datatype,
        iterations=given.integer(by_name["#repetitions"], line, "#repetitions"),
        **found,
    )
