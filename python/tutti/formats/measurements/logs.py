"""Job logs: output of several runs and tools, mixed with output of launchers, shells and libraries.

A log is divided into runs: from the first line of a benchmark's heading to that of the next one.
Within a run, lines that are not rows are skipped. A row after such a line still belongs to the
table if it has the heading's number of columns and the next size. Numbers that fit no heading, and
all rows of a run whose sizes do not increase (two runs wrote at the same time), are left out and
reported.

OSU prints no number of ranks. It is read from the launcher's command if the log echoes the command
between the previous run and this one, names the same benchmark, and is unambiguous.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.formats.benchmarks import imb, nccl_tests, osu
from tutti.formats.benchmarks.rows import BenchmarkInput
from tutti.formats.measurements import table_rows
from tutti.formats.measurements.launches import Launch, Size, launch_of, size_of
from tutti.formats.measurements.schema import (
    MEASUREMENTS,
    OMITTED,
    POINT_TO_POINT,
    Measurements,
    as_text,
    finished,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

_EXPECTED: Final = "the output of OSU micro-benchmarks, IMB or nccl-tests (text or JSON)"
_LABEL: Final = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:? ?|\s*\d+: (?=\s*[#\d]))")
_BREAKS: Final = str.maketrans(dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_NCCL_START: Final = re.compile(
    r"# (?:nThread |Collective test starting|(?:nccl|rccl)-tests version)"
)
_GPU: Final = re.compile(r"\b(?:CUDA|ROCM|OPENACC|SYCL|NCCL|RCCL)\b", re.IGNORECASE)
_HOST: Final = re.compile(r"#\s+Rank\s+\d+\b.*?\bon\s+(\S+)\s+device")
_JSON_HOST: Final = re.compile(r'"hostname": ?"([^"\\]{1,255})"')
_LONG: Final = 1 << 16


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
    if text.lstrip().startswith("{"):
        return _of_json(text, given)
    lines = [_LABEL.sub("", line.translate(_BREAKS)) for line in text.split("\n")]
    runs = list(_runs(lines))
    if not runs:
        raise _unknown(source, next((line for line in lines if line.strip()), ""))
    omitted: dict[int, str] = {}
    written = [*lines]
    if lines[-1].strip() and table_rows.is_numeric(lines[-1].split()):
        omitted[len(lines)] = "the last line has no line ending: it may be truncated"
        lines[-1] = ""
    for number, line in enumerate(lines[: runs[0].start], start=1):
        if table_rows.is_numeric(line.split(), least=2):
            omitted[number] = "has no heading above it"
    rows = [row for run in runs for row in _rows(lines, run, given, omitted)]
    return _finished(rows, omitted, written, given)


def _unknown(source: str, first: str) -> ConfigError:
    return mistake(
        "unknown benchmark output",
        source=source,
        value=shown(first.strip()),
        expected=_EXPECTED,
        hint="keep the headings, which state the operation and the units",
    )


def _of_json(text: str, given: BenchmarkInput) -> Measurements:
    if not nccl_tests.recognises(text):
        raise _unknown(given.source, text.lstrip()[: limits.LOG_LINE])
    rows = [_measurement(row, nccl_tests, Size(), []) for row in nccl_tests.rows(text, given)]
    hosts = len(set(_JSON_HOST.findall(text)))
    rows = [{**row, "nodes": hosts or None} for row in rows]
    return _finished(rows, {}, [], given)


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
    return Measurements(found.rows, pl.concat([other, found.omitted]).sort("line"))


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
    open_heading = False  # nccl-tests: lines before that of the column names
    for place, line in enumerate(lines):
        if not line.startswith("#") or len(line) > limits.LOG_LINE:
            continue
        if osu.TITLE.match(line.rstrip()):
            open_heading = False
            yield place, osu
        elif imb.BENCHMARK.match(line):
            open_heading = False
            yield place, imb
        elif _NCCL_START.match(line):
            if not open_heading:
                yield place, nccl_tests
            open_heading = True
        elif nccl_tests.is_heading(line):
            if not open_heading:
                yield place, nccl_tests
            open_heading = False


def _rows(
    lines: list[str], run: _Run, given: BenchmarkInput, omitted: dict[int, str]
) -> list[dict[str, Any]]:
    """Returns the rows of a run; adds the lines that are left out to `omitted`."""
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
        omitted=omitted,
    )
    omitted |= table.omitted
    found = list(run.tool.rows("\n".join(table.lines), tolerant))
    if not found and not any(run.start < line <= run.end for line in omitted):
        omitted[run.start + 1] = "the run has no results"
    if size.contradictory and given.ranks is None:
        found = _without_contradictions(found, run.tool, omitted)
    return _checked(found, run, size, heading, omitted)


def _launch(line: str) -> Launch | None:
    return launch_of(line) if len(line) <= _LONG else None


def _checked(
    rows: list[dict[str, Any]], run: _Run, size: Size, heading: list[str], omitted: dict[int, str]
) -> list[dict[str, Any]]:
    """Returns measurements, without wrong results and non-blocking collectives."""
    found = []
    for row in rows:
        if row["wrong"]:
            omitted[row["line"]] = "wrong results"
        elif not row["blocking"]:
            omitted[row["line"]] = "a non-blocking collective"
        else:
            found.append(_measurement(row, run.tool, size, heading))
    return found


def _without_contradictions(
    rows: list[dict[str, Any]], tool: ModuleType, omitted: dict[int, str]
) -> list[dict[str, Any]]:
    """Leaves out the collectives of OSU if the log states several numbers of ranks."""
    reason = "the lines before the run state several numbers of ranks: use --ranks N"
    kept = []
    for row in rows:
        if tool is osu and row["operation"] not in POINT_TO_POINT:
            omitted[row["line"]] = reason
        else:
            kept.append(row)
    return kept


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
    return name.endswith("_perf") and (named is None or named[1].endswith(name))


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
    row: dict[str, Any], tool: ModuleType, size: Size, heading: list[str]
) -> dict[str, Any]:
    """Returns a row of a benchmark as a measurement."""
    ranks, nodes = row["ranks"], None
    hosts = {found[1] for line in heading if (found := _HOST.match(line))}
    if tool is nccl_tests:
        nodes = len(hosts) or None
    elif size.ranks is None or size.ranks == ranks:
        nodes = size.nodes
    gpu = {osu: bool(_GPU.search(row["benchmark"])), nccl_tests: True}.get(tool)
    stated = tool is not osu or row["operation"] in POINT_TO_POINT
    source = "file" if stated else size.source or "argument"
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
