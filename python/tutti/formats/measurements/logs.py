"""Job logs: output of several runs and tools, mixed with output of launchers, shells and libraries.

A log is divided into runs: from the first line of a benchmark's heading to that of the next one.
Within a run, lines that are not rows are skipped. A row after such a line still belongs to the
table if it has the heading's number of columns and the next size. Numbers that fit no heading, and
all rows of a run whose sizes do not increase (two runs wrote at the same time), are left out and
reported.

Every verb reads logs here, after :mod:`tutti.formats.benchmarks.prefixes` removed the prefixes
of launchers and containers.

OSU prints no number of ranks. It is read from the launcher's command if the log echoes the command
between the previous run and this one, names the same benchmark, and is unambiguous. That of
nccl-tests is compared with all other statements of the log (`rank_counts`). A number that the user
states, but that differs from the log, is a conflict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.formats.benchmarks import imb, nccl_tests, osu
from tutti.formats.benchmarks.prefixes import without_prefixes
from tutti.formats.benchmarks.rows import BenchmarkInput
from tutti.formats.measurements import table_rows
from tutti.formats.measurements.launches import Launch, Size, launch_of, size_of
from tutti.formats.measurements.rank_counts import RankCount, fits, rank_count, why_not
from tutti.formats.measurements.schema import (
    MEASUREMENTS,
    OMITTED,
    POINT_TO_POINT,
    Measurements,
    as_text,
    conflicts_of,
    finished,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

_EXPECTED: Final = "the output of OSU micro-benchmarks, IMB or nccl-tests (text or JSON)"
_NCCL_START: Final = re.compile(
    r"# (?:nThread[ :]|Collective test starting|(?:nccl|rccl)-tests version|Using devices"
    r"|\s*Rank\s+\d)"
)
_GPU: Final = re.compile(r"\b(?:CUDA|ROCM|OPENACC|SYCL|NCCL|RCCL)\b", re.IGNORECASE)
_JSON_HOST: Final = re.compile(r'"hostname": ?"([^"\\]{1,255})"')
_LONG: Final = 1 << 16
WRONG: Final = "wrong results"
"""How the reasons of rows start whose results were validated and wrong."""


@dataclass(frozen=True)
class _Tolerant(BenchmarkInput):
    """Leaves out invalid lines, with their reasons by line number."""

    omitted: dict[int, str] = field(default_factory=dict)

    def attempt(
        self, line: int, make: Callable[[], Iterable[dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        try:
            rows = list(make())
        except ConfigError as error:
            self.omitted[line] = str(error.fields.get("problem", "invalid"))
        else:
            yield from rows


class _Run(NamedTuple):
    """The lines of one run: from `start`, up to `end`; `since` is the start of the previous one."""

    tool: ModuleType
    since: int
    start: int
    end: int


def parse_log(
    text: str, *, source: str, ranks: int | None = None, collective: str | None = None
) -> Measurements:
    """Reads the log of a job.

    Args:
        text: The log: output of OSU micro-benchmarks, IMB and nccl-tests, and any other lines; or
            the JSON of one nccl-tests program.
        source: The name of the log in results and errors.
        ranks: The number of ranks of runs for which the log does not state it.
        collective: The collective of runs of nccl-tests for which the log does not state it.

    Returns:
        The rows, and those that were left out with their reasons.

    Raises:
        ConfigError: No line is the heading of a benchmark, or JSON is invalid.
    """
    given = BenchmarkInput(source=source, ranks=ranks, operation=collective)
    return _finished(*read_runs(text, given), given)


def read_runs(
    text: str, given: BenchmarkInput
) -> tuple[list[dict[str, Any]], dict[int, str], list[str]]:
    """Returns the rows of all runs, the reasons of lines that are left out, and the lines.

    Raises:
        ConfigError: As :func:`parse_log`.
    """
    if nccl_tests.is_json(text):
        return _of_json(text, given)
    lines = without_prefixes(text)
    runs = list(_runs(lines))
    if not runs:
        raise _unknown(given.source, next((line for line in lines if line.strip()), ""))
    omitted: dict[int, str] = {}
    written = [*lines]
    if table_rows.may_be_cut(lines):
        omitted[len(lines)] = "the last line has no line ending: it may be truncated"
        lines[-1] = ""
    for number, line in enumerate(lines[: runs[0].start], start=1):
        if table_rows.is_numeric(line.split(), least=2):
            omitted[number] = "has no heading above it"
    rows = []
    for run in runs:
        if run.tool is imb and (datatypes := _datatypes(lines[run.since : run.start])):
            given = replace(given, datatypes=datatypes)
        rows += _rows(lines, run, given, omitted)
    return rows, omitted, written


def _unknown(source: str, first: str) -> ConfigError:
    return mistake(
        "unknown benchmark output",
        source=source,
        value=shown(first.strip()),
        expected=_EXPECTED,
        hint="keep the headings, which state the operation and the units",
    )


def _of_json(
    text: str, given: BenchmarkInput
) -> tuple[list[dict[str, Any]], dict[int, str], list[str]]:
    rows = list(nccl_tests.rows(text, given))
    hosts = len(set(_JSON_HOST.findall(text))) or None
    stated = nccl_tests.ranks_of_json(text, given.source)
    count = rank_count([], [], rows, given.ranks, listed=stated)._replace(nodes=hosts)
    omitted: dict[int, str] = {}
    kept = _of_run(rows, nccl_tests, count, [], omitted)
    return kept, omitted, []


def _finished(
    rows: list[dict[str, Any]], omitted: dict[int, str], lines: list[str], given: BenchmarkInput
) -> Measurements:
    """Returns rows with their lines as text, and the lines that were left out, by line."""

    def written(line: int) -> str:
        return as_text(lines[line - 1][: limits.LOG_LINE]) if lines else ""

    schema = MEASUREMENTS | {"text": pl.String}
    full = [{**dict.fromkeys(schema), **row, "text": written(row["line"])} for row in rows]
    found = finished(pl.DataFrame(full, schema=schema, orient="row"), ranks=given.ranks)
    left = [(given.source, line, reason, written(line)) for line, reason in omitted.items()]
    other = pl.DataFrame(left, schema=OMITTED, orient="row")
    omitted_rows = other if found.omitted.is_empty() else pl.concat([other, found.omitted])
    omitted_rows = omitted_rows if omitted_rows.is_empty() else omitted_rows.sort("line")
    return Measurements(found.rows, omitted_rows, conflicts_of(found.rows, given.ranks))


# --- runs -----------------------------------------------------------------------------------------


def _runs(lines: list[str]) -> Iterator[_Run]:
    """Yields the runs of a log."""
    starts = [*_starts(lines)]
    ends = [place for place, _ in starts[1:]] + [len(lines)]
    since = 0
    for (start, tool), end in zip(starts, ends, strict=False):
        yield _Run(tool, since, start, end)
        since = start


def _starts(lines: list[str]) -> Iterator[tuple[int, ModuleType]]:
    """Yields the first line of each run, from 0, and its tool."""
    # Processes of nccl-tests without MPI write their headings before any of them has a row.
    in_heading = False
    for place, line in enumerate(lines):
        if not line.startswith("#"):
            in_heading = in_heading and not nccl_tests.is_row(line[: limits.LINE])
        elif len(line) > limits.LOG_LINE:
            continue
        elif osu.TITLE.match(line.rstrip()):
            in_heading = False
            yield place, osu
        elif imb.BENCHMARK.match(line):
            in_heading = False
            yield place, imb
        elif _NCCL_START.match(line) or nccl_tests.is_heading(line):
            if not in_heading:
                yield place, nccl_tests
            in_heading = True


def _rows(
    lines: list[str], run: _Run, given: BenchmarkInput, omitted: dict[int, str]
) -> list[dict[str, Any]]:
    """Returns the rows of a run; adds the lines that are left out to `omitted`."""
    why = osu.unusable(lines[run.start]) if run.tool is osu else ""
    if why:
        omitted |= _numbers(lines, run, why)
        return []
    launches = [one for line in lines[run.since : run.start] if (one := _launch(line)) is not None]
    table = table_rows.of(lines, run.tool, run.start, run.end)
    heading = lines[run.start : table.first_row or run.end]
    mine = [one for one in launches if _is_of(one, run.tool, lines[run.start], heading)]
    size = size_of(mine, lines[run.since : run.start] + heading)
    tolerant = _Tolerant(
        source=given.source,
        ranks=size.ranks or given.ranks,
        operation=_operation(run, lines, mine, given),
        first=run.start + 1,
        datatypes=given.datatypes,
        omitted=omitted,
    )
    omitted |= table.omitted
    found = list(run.tool.rows("\n".join(table.lines), tolerant))
    if not found and not any(line in omitted for line in range(run.start + 1, run.end + 1)):
        omitted[run.start + 1] = "the run has no results"
    mine_lines = lines[run.start : run.end]
    _mark_failed(found, run.tool, mine_lines)
    if run.tool is nccl_tests:
        count = rank_count(mine_lines, mine, found, given.ranks)
    else:
        count = _of_mpi(size, given)
    return _of_run(found, run.tool, count, heading, omitted)


def _datatypes(lines: list[str]) -> tuple[str, ...]:
    """Returns the datatypes that the heading of IMB states in front of its first section."""
    matches = (imb.DATATYPE.match(line[: limits.LINE]) for line in lines)
    return tuple(match[1] for match in matches if match)


def _launch(line: str) -> Launch | None:
    return launch_of(line) if len(line) <= _LONG else None


def _numbers(lines: list[str], run: _Run, why: str) -> dict[int, str]:
    """Returns the reason for each line of numbers of a run, or for its title without any."""
    places = [
        place
        for place in range(run.start + 1, run.end)
        if table_rows.is_numeric(lines[place][: limits.LOG_LINE].split())
    ]
    return {place + 1: why for place in places or [run.start]}


def _mark_failed(rows: list[dict[str, Any]], tool: ModuleType, lines: list[str]) -> None:
    """Marks rows as wrong if the run states that validation failed, but not in their lines."""
    if tool is nccl_tests:
        # Without a number of wrong elements, any row may be the wrong one.
        every = bool(nccl_tests.failures(lines)) and not any(row["wrong"] for row in rows)
        sizes = {row["size_bytes"] for row in rows} if every else set()
    else:
        sizes = osu.failed_sizes(lines) if tool is osu else set()
    for row in rows:
        if sizes & {row["size_bytes"], row.get("written_bytes")}:
            row["wrong"] = 1


def _of_mpi(size: Size, given: BenchmarkInput) -> RankCount:
    """Returns the ranks that the log states of a run of OSU or IMB."""
    problem = ""
    if size.contradictory and given.ranks not in size.stated:
        problem = "the lines before the run state several numbers of ranks: use --ranks N"
    return RankCount(size.ranks, size.nodes, size.source, problem)


def _of_run(
    rows: list[dict[str, Any]],
    tool: ModuleType,
    count: RankCount,
    heading: list[str],
    omitted: dict[int, str],
) -> list[dict[str, Any]]:
    """Returns measurements; adds the rows that are of no use to `omitted`."""
    found = []
    for row in rows:
        if reason := _why_left_out(row, tool, count):
            omitted[row["line"]] = reason
        else:
            found.append(_measurement(row, tool, count, heading))
    return found


def _why_left_out(row: dict[str, Any], tool: ModuleType, count: RankCount) -> str:
    """Returns why a row is of no use; empty if it is of use."""
    if row["wrong"]:
        return WRONG
    if tool is imb:
        return _why_not_of_imb(row, count)
    if tool is nccl_tests and row["operation"] is None:
        return f"{row['benchmark']} measures none of tutti's collectives"
    if row["operation"] in POINT_TO_POINT:
        return ""
    misfit = tool is nccl_tests and count.ranks is not None and not fits(row, count.ranks)
    return count.problem or (why_not(row, count.ranks or 0) if misfit else "")


def _why_not_of_imb(row: dict[str, Any], count: RankCount) -> str:
    name = row["benchmark"]
    if not row["blocking"]:
        return f"{name} is a non-blocking collective: measure {name[1:].capitalize()} of IMB-MPI1"
    if row["operation"] is None:
        return f"{name} of IMB is neither a collective of tutti nor PingPong"
    started = count.ranks if count.source == "launcher" else None
    pairs = row["operation"] in POINT_TO_POINT
    if started is not None and not pairs and (row["ranks"] or 0) > started:
        return f"the section has {row['ranks']} processes, and the command starts {started}"
    return ""


def _is_of(launch: Launch, tool: ModuleType, start: str, heading: list[str]) -> bool:
    """Returns whether a command starts the benchmark of a heading."""
    name = launch.program
    if tool is osu:
        blocking = not name.startswith("osu_i")
        operation = osu.operation_of(name)
        same = operation is not None and operation == osu.operation_of(start)
        return same and blocking == ("non-blocking" not in start.lower())
    if tool is imb:
        return name.startswith("IMB-")
    named = nccl_tests.NAMED.search("\n".join(heading))
    return name.endswith("_perf") and (named is None or named[1].removesuffix("_mpi") == name)


def _operation(
    run: _Run, lines: list[str], launches: list[Launch], given: BenchmarkInput
) -> str | None:
    """Returns the collective of a run of nccl-tests that does not state it."""
    if run.tool is not nccl_tests:
        return None
    if nccl_tests.NAMED.search("\n".join(lines[run.start : run.end])):
        return None
    programs = {one.program for one in launches}
    named = nccl_tests.PROGRAM.fullmatch(next(iter(programs))) if len(programs) == 1 else None
    return (nccl_tests.operation_of(named[1]) if named else None) or given.operation


def _library(heading: list[str]) -> str:
    return "RCCL" if any("rccl" in line.lower() for line in heading) else "NCCL"


def _measurement(
    row: dict[str, Any], tool: ModuleType, count: RankCount, heading: list[str]
) -> dict[str, Any]:
    """Returns a row of a benchmark as a measurement."""
    ranks, nodes, source = row["ranks"], None, "file"
    if tool is nccl_tests:
        ranks, nodes, source = count.ranks, count.nodes, count.source or "argument"
    elif count.ranks is None or count.ranks == ranks:
        nodes = count.nodes
    if tool is osu and row["operation"] not in POINT_TO_POINT:
        source = count.source or "argument"
    gpu = {osu: bool(_GPU.search(row["benchmark"])), nccl_tests: True}.get(tool)
    return {
        "file": row["file"],
        "line": row["line"],
        "tool": row["tool"],
        "library": _library(heading) if tool is nccl_tests else None,
        "collective": row["operation"],
        "nodes": nodes,
        "ranks": ranks,
        "ranks_source": source if ranks is not None else None,
        "size_bytes": row["size_bytes"],
        "datatype": row["datatype"],
        "in_place": row["in_place"],
        "gpu": gpu,
        "time_us": row["time_us"],
        "statistic": "mean",
        "repetitions": row["iterations"],
        # nccl-tests rounds the bandwidth of small sizes to 0.00.
        "bytes_per_s": row["bytes_per_s"] or (None if tool is nccl_tests else row["bytes_per_s"]),
    }
