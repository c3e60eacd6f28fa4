"""nccl-tests: ``all_reduce_perf`` and its kin, as text and as JSON (``-J``).

Text has headings with ``#``, one with the names of the columns: size, count, type, then redop and
root where the version has them, then time, algbw, busbw and #wrong (once: error) out of place and
again in place. ``-I 1`` adds four columns to each half, ``-S`` a time stamp, ``-C`` measures the
CPU's time under the name cputime, which is not read. Times are in us, GB are 10^9 bytes, sizes as
in all of tutti. JSON carries the whole environment of the job, which is not looked at.

Source: ``src/util.cu`` of nccl-tests 2.18 and its older versions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field

from tutti.files.limits import MOST
from tutti.files.mistakes import mistake
from tutti.files.reader import parse_json
from tutti.files.tables import Count, Table
from tutti.files.validate import validated
from tutti.interop.benchmarks.rows import BenchmarkInput, row

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = re.compile(r"(all_reduce|all_gather|reduce_scatter|broadcast|reduce|gather|scatter"
                      r"|alltoallv|alltoall|sendrecv|hypercube)_perf")  # fmt: skip
_NAMED = re.compile(r"^# Collective test (?:starting|concluded): (\S+)", re.MULTILINE)
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\b", re.MULTILINE)
_OPERATIONS = {"alltoall": "all_to_all", "sendrecv": "send_recv", "alltoallv": "", "hypercube": ""}
_HALF = ("time", "algbw", "busbw")
_WRONG = frozenset({"#wrong", "error"})


class _Columns(NamedTuple):
    names: tuple[str, ...]
    halves: tuple[int, ...]
    """Where out of place and in place begin."""


def recognises(text: str) -> bool:
    """Whether a text is of this tool."""
    if text.lstrip().startswith("{"):
        return '"results"' in text or '"nccl_version"' in text
    return any(_is_heading(line) for line in text.splitlines())


def rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    """The measurements of a file, in order: out of place, then in place.

    Raises:
        ConfigError: a line is not as it should be, or nothing says which collective it was.
    """
    if text.lstrip().startswith("{"):
        yield from _json_rows(text, given)
        return
    named = _NAMED.search(text)
    program = named[1] if named else given.source
    ranks = len(set(_RANK.findall(text))) or given.ranks
    columns: _Columns | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if _is_heading(line):
            columns = _columns(line, number, given)
        elif columns is not None and line.strip() and line.strip()[0].isdigit():
            yield from _rows(line.split(), number, columns, given, program=program, ranks=ranks)


def _is_heading(line: str) -> bool:
    return line.startswith("#") and {"size", "count", "type", "busbw"} <= set(line.split())


def _columns(line: str, number: int, given: BenchmarkInput) -> _Columns:
    names = tuple(line.lstrip("# ").split())
    if "cputime" in names:
        given.refuse(
            number,
            "times are those of the CPU",
            value="cputime",
            expected="the time that a collective takes",
            hint="run it without -C",
        )
    halves = tuple(at for at, name in enumerate(names) if name == "time")
    known = all(names[at : at + len(_HALF)] == _HALF for at in halves)
    if names[:3] != ("size", "count", "type") or not halves or not known:
        given.refuse(
            number,
            "is no heading of nccl-tests",
            value=line,
            expected="size count type ... time algbw busbw #wrong time algbw busbw #wrong",
        )
    return _Columns(names, halves)


def _operation(program: str, given: BenchmarkInput) -> tuple[str, str | None]:
    """The benchmark's name and the collective.

    Raises:
        ConfigError: nothing says which it is.
    """
    found = _PROGRAM.findall(program)
    if given.operation is not None:
        return found[-1] + "_perf" if found else given.operation, given.operation
    if not found:
        raise mistake(
            "does not say which collective was measured",
            source=given.source,
            expected="a line `# Collective test concluded: all_reduce_perf`, or a name of the file "
            "such as all_reduce_perf.txt",
            hint="say it: --collective all_reduce",
        )
    return found[-1] + "_perf", _OPERATIONS.get(found[-1], found[-1]) or None


def _rows(
    cells: list[str],
    line: int,
    columns: _Columns,
    given: BenchmarkInput,
    *,
    program: str,
    ranks: int | None,
) -> Iterator[dict[str, Any]]:
    names, halves = columns
    if names[-1] == "timestamp":
        names, cells = names[:-1], cells[: len(names) - 1]
    # Of what is only run in place, the half that is out of place is empty.
    short = len(halves) == 2 and len(cells) == len(names) - (halves[1] - halves[0])
    if not short and len(cells) != len(names):
        given.refuse(
            line,
            f"has {len(cells)} columns where the heading has {len(names)}",
            value=" ".join(cells),
            expected=", ".join(names),
            hint="output of the job may have got in between: remove what is not the benchmark's",
        )
    benchmark, operation = _operation(program, given)
    shared = {
        "benchmark": benchmark,
        "operation": operation,
        "ranks": ranks,
        "size_bytes": given.parse_count(cells[0], line, "size"),
        "datatype": cells[names.index("type")],
    }
    starts = [(halves[0], True)] if short else list(zip(halves, (False, True), strict=False))
    for start, in_place in starts:
        end = start + len(_HALF) + 1
        half = dict(zip(names[start:end], cells[start:end], strict=True))
        yield row(
            given, line, "nccl-tests", in_place=in_place, **shared, **_half(half, line, given)
        )


def _half(cells: dict[str, str], line: int, given: BenchmarkInput) -> dict[str, Any]:
    found = {
        "time_us": given.number(cells["time"], line, "time"),
        "bytes_per_s": given.number(cells["algbw"], line, "algbw") * 1e9,
    }
    wrong = next((cell for name, cell in cells.items() if name in _WRONG), "N/A")
    # Before versions counted wrong elements, they told the greatest error.
    counted = "#wrong" in cells and wrong != "N/A"
    return found | ({"wrong": int(given.number(wrong, line, "#wrong"))} if counted else {})


# --- JSON -----------------------------------------------------------------------------------------


_Number = Annotated[float, Field(ge=0, le=1e15)]


class _Half(Table):
    model_config = ConfigDict(extra="ignore")

    time: Annotated[_Number, Field(description="A time; those of the CPU (-C) are not read.")]
    alg_bw: _Number
    nwrong: int | float | str | None = None


class _Result(Table):
    model_config = ConfigDict(extra="ignore")

    size: Count
    type: str
    out_of_place: _Half | None
    in_place: _Half | None
    actual_iterations: int | float | str | None = None


class _Written(Table):
    model_config = ConfigDict(extra="ignore")

    results: Annotated[list[_Result], Field(description="What nccl-tests writes with -J FILE.")]
    args: list[Any] = Field(default_factory=list)
    devices: list[Any] = Field(default_factory=list)


def _json_rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    expected = "what nccl-tests writes with -J FILE.json"
    tables = parse_json(text, source=given.source, expected=expected)
    written = validated(_Written, tables, source=given.source)
    program = str(written.args[0]) if written.args else given.source
    for place, result in enumerate(written.results, start=1):
        for half, in_place in ((result.out_of_place, False), (result.in_place, True)):
            if half is None:
                continue
            benchmark, operation = _operation(program, given)
            yield row(
                given,
                place,
                "nccl-tests",
                benchmark=benchmark,
                operation=operation,
                ranks=len(written.devices) or given.ranks,
                size_bytes=result.size,
                datatype=result.type,
                in_place=in_place,
                time_us=half.time,
                bytes_per_s=half.alg_bw * 1e9,
                iterations=_maybe_whole(result.actual_iterations),
                wrong=_maybe_whole(half.nwrong),
            )


def _maybe_whole(value: float | str | None) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST else None
