"""nccl-tests: ``all_reduce_perf`` and related programs, as text and as JSON (``-J``).

Headings start with ``#``; one has the names of the columns: size, count, type, then redop and root
in some versions, then time, algbw, busbw and #wrong (formerly error) out of place and in place.
``-I 1`` adds four columns to each half, and ``-S`` a time stamp. ``-C`` measures CPU time as
cputime, which is not read. Times are in us, GB are 10^9 bytes, sizes as in tutti. The job
environment in JSON is ignored.

Version 1 has the columns bytes, N, type, op, time in ms, algbw, busbw and res.

Source: ``src/util.cu`` of nccl-tests 2.18 and its older versions.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field

from tutti.base.files.limits import MOST, RANKS
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import parse_json
from tutti.base.files.tables import Count, Table
from tutti.base.files.validate import validated
from tutti.formats.benchmarks.rows import BenchmarkInput, row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROGRAM = re.compile(r"(all_reduce|all_gather|reduce_scatter|broadcast|reduce|gather|scatter"
                      r"|alltoallv|alltoall|sendrecv|hypercube)_perf")  # fmt: skip
NAMED = re.compile(r"^# Collective test (?:starting|concluded): (\S+)", re.MULTILINE)
_DEVICE = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,8})\b(?:\s+Group\s+(?P<group>\d{1,8}))?(?:.{0,200}?"
    r"\bon\s+(?P<host>\S{1,255})\s+device\s+\d+(?:\s+\[[^\]]{1,20}\])?\s*(?P<name>.{0,60}))?"
)
_THREADS = re.compile(r"# nThread:? (\d{1,5}) nGpus:? (\d{1,5})\b")
_FAILED = re.compile(r"# Out of bounds values\s*:\s*(\d{1,18})\s+FAILED")
_OPERATIONS = {"alltoall": "all_to_all", "sendrecv": "send_recv", "alltoallv": "", "hypercube": ""}
SET_COLLECTIVE = "set --collective, such as --collective all_reduce"
_HALF = ("time", "algbw", "busbw")
_MOST_RATE = 1e12
_LEAST_CHECKED = 0.1e9
"""Least algbw that is compared with size and time, in B/s."""
_VERSION_1 = ["bytes", "N"]
_NAMES = {"bytes": "size", "N": "count", "op": "redop", "res": "error"}
_WRONG = frozenset({"#wrong", "error"})


class _Columns(NamedTuple):
    names: tuple[str, ...]
    halves: tuple[int, ...]
    """The first columns of out of place and in place."""
    us: float
    """The unit of time in us."""


class Device(NamedTuple):
    """A line of the list of devices; host and name are empty if the line is cut."""

    rank: int
    group: int
    host: str
    name: str


def recognises(lines: Iterable[str]) -> bool:
    """Returns whether lines, without prefixes, are output of this tool."""
    return any(is_heading(line) for line in lines)


def is_json(text: str) -> bool:
    """Returns whether a text is the JSON of this tool."""
    return text.lstrip().startswith("{") and ('"results"' in text or '"nccl_version"' in text)


def device_of(line: str) -> Device | None:
    """Returns the device of a line; None for other lines.

    Examples:
        >>> device_of("#  Rank  1 Group  0 Pid  9 on  node7 device  1 [0x0b] NVIDIA A100")
        Device(rank=1, group=0, host='node7', name='NVIDIA A100')
    """
    match = _DEVICE.match(line)
    if match is None:
        return None
    name = (match["name"] or "").strip()
    return Device(int(match["rank"]), int(match["group"] or 0), match["host"] or "", name)


def gpus_of_process(lines: Iterable[str]) -> int | None:
    """Returns the number of GPUs of each process that the heading states; None without one."""
    stated = {int(match[1]) * int(match[2]) for line in lines if (match := _THREADS.match(line))}
    return stated.pop() if len(stated) == 1 else None


def failures(lines: Iterable[str]) -> str:
    """Returns the line that states failed validation; empty without one."""
    return next((line.strip("# ") for line in lines if _FAILED.match(line)), "")


def rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    """Yields the measurements of a run or of a JSON file: out of place, then in place.

    Raises:
        ConfigError: A line is invalid, or the collective is unknown.
    """
    if is_json(text):
        yield from _json_rows(text, given)
        return
    named = NAMED.search(text)
    program = named[1] if named else given.source
    heading = ""
    for number, line in given.lines(text):
        if is_heading(line):
            heading = line
        elif heading and is_row(line):
            make = partial(_rows, line.split(), number, heading, given, program=program)
            yield from given.attempt(number, make)


def is_row(line: str) -> bool:
    """Returns whether a line has a size and a count, as no other line does."""
    cells = line.split(maxsplit=3)
    return len(cells) > 2 and cells[0].isdecimal() and cells[1].isdecimal()


def is_heading(line: str) -> bool:
    """Returns whether a line names the columns."""
    names = set(columns_of(line)) if line.startswith("#") else set()
    return {"size", "count", "type", "busbw"} <= names


def columns_of(line: str) -> tuple[str, ...]:
    """Returns the words of a line of column names, those of version 1 as in version 2."""
    names = line.lstrip("# ").split()
    old = names[:2] == _VERSION_1
    return tuple(_NAMES.get(name, name) for name in names) if old else tuple(names)


def _columns(line: str, number: int, given: BenchmarkInput) -> _Columns:
    names = columns_of(line)
    if "cputime" in names:
        given.refuse(
            number,
            "has CPU times: run nccl-tests without -C",
            value="cputime",
            expected="times of the collective",
        )
    halves = tuple(at for at, name in enumerate(names) if name == "time")
    known = all(names[at : at + len(_HALF)] == _HALF for at in halves)
    if names[:3] != ("size", "count", "type") or not halves or not known:
        given.refuse(
            number,
            "invalid heading of nccl-tests",
            value=line,
            expected="size count type ... time algbw busbw #wrong time algbw busbw #wrong",
        )
    in_ms = line.lstrip("# ").split()[:2] == _VERSION_1
    return _Columns(names, halves, 1e3 if in_ms else 1.0)


def operation_of(program: str) -> str | None:
    """Returns the collective of a program's name without `_perf`; None if tutti has none."""
    return _OPERATIONS.get(program, program) or None


def _operation(program: str, given: BenchmarkInput) -> tuple[str, str | None]:
    """Returns the name of the benchmark and the collective.

    Raises:
        ConfigError: The collective is unknown.
    """
    found = PROGRAM.findall(program)
    if given.operation is not None:
        return found[-1] + "_perf" if found else given.operation, given.operation
    if not found:
        raise mistake(
            f"does not state the collective: {SET_COLLECTIVE}",
            source=given.source,
            expected="a line `# Collective test concluded: all_reduce_perf`, or a file name such "
            "as all_reduce_perf.txt",
        )
    return found[-1] + "_perf", operation_of(found[-1])


def _rows(
    cells: list[str],
    line: int,
    heading: str,
    given: BenchmarkInput,
    *,
    program: str,
) -> Iterator[dict[str, Any]]:
    names, halves, us = _columns(heading, line, given)
    if names[-1] == "timestamp":
        names, cells = names[:-1], cells[: len(names) - 1]
    # The out-of-place half of in-place programs is empty.
    short = len(halves) == 2 and len(cells) == len(names) - (halves[1] - halves[0])
    if not short and len(cells) != len(names):
        given.refuse(
            line,
            f"has {len(cells)} columns, but the heading has {len(names)}",
            value=" ".join(cells),
            expected=", ".join(names),
            hint="remove lines that are not output of the benchmark",
        )
    benchmark, operation = _operation(program, given)
    size = given.integer(cells[0], line, "size")
    shared = {
        "benchmark": benchmark,
        "operation": operation,
        "ranks": given.ranks,
        "size_bytes": size,
        "datatype": cells[names.index("type")],
    }
    starts = [(halves[0], True)] if short else list(zip(halves, (False, True), strict=False))
    for start, in_place in starts:
        end = start + len(_HALF) + 1
        half = dict(zip(names[start:end], cells[start:end], strict=True))
        found = _half(half, line, given)
        found["time_us"] *= us
        _check_units(size, found, line, given)
        yield row(given, line, "nccl-tests", in_place=in_place, **shared, **found)


def _check_units(size: int, half: dict[str, Any], line: int, given: BenchmarkInput) -> None:
    """Checks that size, time and algbw agree: other units differ by a factor of 1000.

    Raises:
        ConfigError: They differ by more than a factor of 100.
    """
    time, rate = half["time_us"], half["bytes_per_s"]
    # Smaller rates are rounded to a few hundredths of a GB/s, or to 0.
    if time > 0 and rate >= _LEAST_CHECKED and not 0.01 <= size / (time * 1e-6 * rate) <= 100:
        given.refuse(
            line,
            f"time and algbw disagree: {size} B in {time:g} us are {size / time / 1e3:.3g} GB/s",
            value=f"{rate / 1e9:g} GB/s",
            expected="times in us and bandwidths in GB/s, as nccl-tests prints them",
        )


def quotient(bus: str, alg: str) -> tuple[float, float] | None:
    """Returns the bounds of busbw / algbw before both were rounded; None if it is not bounded.

    Examples:
        >>> [round(bound, 4) for bound in quotient("586.06", "297.16")]
        [1.9722, 1.9723]
    """
    try:
        over, under, over_step, under_step = float(bus), float(alg), _step(bus), _step(alg)
    except (ValueError, OverflowError):  # such as 0e999
        return None
    if not (0 <= over <= _MOST_RATE and under_step < under <= _MOST_RATE):
        return None
    low = max(0.0, over - over_step) / (under + under_step)
    return low, (over + over_step) / (under - under_step)


def _step(cell: str) -> float:
    """Returns half of the last digit of a number as printed, and the error of its binary form."""
    digits, _, exponent = cell.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return float(0.501 * 10.0 ** (int(exponent or 0) - decimals))


def _half(cells: dict[str, str], line: int, given: BenchmarkInput) -> dict[str, Any]:
    found = {
        "time_us": given.number(cells["time"], line, "time"),
        "bytes_per_s": given.number(cells["algbw"], line, "algbw") * 1e9,
        "bus_per_alg": quotient(cells["busbw"], cells["algbw"]),
    }
    given.number(cells["busbw"], line, "busbw")
    wrong = next((cell for name, cell in cells.items() if name in _WRONG), "N/A")
    # Old versions report the largest error, not the number of wrong elements.
    counted = "#wrong" in cells and wrong != "N/A"
    return found | ({"wrong": int(given.number(wrong, line, "#wrong"))} if counted else {})


# --- JSON -----------------------------------------------------------------------------------------


_Number = Annotated[float, Field(ge=0, le=1e15)]


class _Half(Table):
    model_config = ConfigDict(extra="ignore")

    time: _Number = Field(description="A time; CPU times (-C) are not read.")
    alg_bw: _Number
    bus_bw: _Number | None = None
    nwrong: int | float | str | None = None

    @property
    def bus_per_alg(self) -> tuple[float, float] | None:
        """The bounds of busbw / algbw; numbers have at least two decimals."""
        if self.bus_bw is None:
            return None
        return quotient(_decimals(self.bus_bw), _decimals(self.alg_bw))


class _Result(Table):
    model_config = ConfigDict(extra="ignore")

    size: Count
    type: str
    out_of_place: _Half | None
    in_place: _Half | None
    actual_iterations: int | float | str | None = None


class _Config(Table):
    """The options, and a device of each process."""

    model_config = ConfigDict(extra="ignore")

    nthreads: int = Field(1, ge=1, le=RANKS)
    ngpus: int = Field(1, ge=1, le=RANKS)
    devices: list[Any] = Field(default_factory=list)


class _Written(Table):
    model_config = ConfigDict(extra="ignore")

    results: list[_Result] = Field(description="The output of nccl-tests with -J FILE.")
    args: list[Any] = Field(default_factory=list)
    config: _Config = Field(default_factory=_Config)
    devices: list[Any] = Field(default_factory=list)

    @property
    def ranks(self) -> int | None:
        """The number of ranks; None if it is unknown."""
        processes = len(self.config.devices or self.devices)
        return processes * self.config.nthreads * self.config.ngpus or None


def _decimals(number: float) -> str:
    text = repr(number)
    return text if len(text.partition(".")[2]) > 1 or "e" in text else f"{number:.2f}"


def _written(text: str, source: str) -> _Written:
    expected = "the output of nccl-tests with -J FILE.json"
    return validated(_Written, parse_json(text, source=source, expected=expected), source=source)


def ranks_of_json(text: str, source: str) -> int | None:
    """Returns the number of ranks that a JSON file states: devices x threads x GPUs; or None."""
    return _written(text, source).ranks


def _json_rows(text: str, given: BenchmarkInput) -> Iterator[dict[str, Any]]:
    written = _written(text, given.source)
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
                ranks=given.ranks,
                size_bytes=result.size,
                datatype=result.type,
                in_place=in_place,
                time_us=half.time,
                bytes_per_s=half.alg_bw * 1e9,
                bus_per_alg=half.bus_per_alg,
                iterations=_optional_integer(result.actual_iterations),
                wrong=_optional_integer(half.nwrong),
            )


def _optional_integer(value: float | str | None) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST else None
