"""Finds the rows of a run's table between other lines of a job log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tutti.base.files import limits
from tutti.formats.benchmarks import imb, nccl_tests, osu

if TYPE_CHECKING:
    from types import ModuleType

_UNIT: Final = re.compile(r"\((?:[nmu]?s|sec|[mu]sec|[KMGT]i?B/s|[KMGT]?bit/s)\)")
_LIBRARY: Final = re.compile(
    r"^\[[^\]]{1,200}\]|\bR?NCCL\b|\bUC[CXPTS]\b|\bUC[CX]_|\b(?:MVAPICH|OFI|PML)"
    r"|\b(?:MPI startup|libfabric|INFO|WARN|WARNING|DEBUG|TRACE)\b"
    r"|^(?:WARNING|Warning|warning|Rank \d+):?\s"
)
"""Lines of communication libraries, which appear between rows of a table and do not end it."""
_RECORD: Final = re.compile(
    r"(?:\[\d{1,8}\] ?)?[A-Za-z][\w.-]{0,254}:\d{1,10}:\d{1,10} \[-?\d{1,4}\] .{0,300}?"
    r"NCCL (?:INFO|WARN)"
)
"""A record of NCCL, which may follow a part of a row without a space."""
_WORDS: Final = frozenset({"Pass", "Fail"})


@dataclass
class Table:
    """The lines of a run.

    Attributes:
        lines: The lines; those that are not part of the heading or the table are empty.
        omitted: The reasons of numbers that fit no heading, by line from 1.
        first_row: The place of the first row in the log, from 0; None without rows.
    """

    lines: list[str]
    omitted: dict[int, str] = field(default_factory=dict)
    first_row: int | None = None


def of(lines: list[str], tool: ModuleType, start: int, end: int) -> Table:
    """Returns the table of a run.

    Args:
        lines: The log.
        tool: The module that reads the run.
        start: The first line of the run, from 0.
        end: The line after its last one.
    """
    mine = [line if len(line) <= limits.LOG_LINE else "" for line in lines[start:end]]
    table = Table([line if line.lstrip().startswith("#") else "" for line in mine])
    if tool is nccl_tests:
        _of_nccl(table, mine, start)
    else:
        _Rows(table, tool, start, groups=any(imb.GROUPS.match(line) for line in mine)).read(mine)
    return table


def _of_nccl(table: Table, lines: list[str], start: int) -> None:
    """Keeps the lines of a size, a count and a type: other lines never have this form.

    nccl-tests prints a row in three parts. Records of NCCL between them are removed, and the parts
    are joined in the line of the first.
    """
    width, at = 0, -1
    for place, line in enumerate(lines):
        if nccl_tests.is_heading(line):
            width, at = len(nccl_tests.columns_of(line)), -1
            continue
        record = _RECORD.search(line) if "NCCL" in line else None
        part = line[: record.start()] if record else line
        cells = part.split()
        if nccl_tests.is_row(part):
            table.lines[place] = part
            at = place if len(cells) < width else -1
            if table.first_row is None:
                table.first_row = start + place
        elif at >= 0 and cells and all(_number(cell) or cell == "N/A" for cell in cells):
            table.lines[at] += f" {part}"
            at = at if len(table.lines[at].split()) < width else -1
        elif cells and record is None and "NCCL" not in line:
            at = -1


class _Rows:
    """Keeps the rows of OSU and IMB.

    A run of OSU with several datatypes (`-T all`) has a table for each of them.

    Attributes:
        width: The number of columns; 0 before the line of column names.
        reason: Why rows are left out, if they are.
        ended: Whether a line that is not a row followed the last row.
    """

    def __init__(self, table: Table, tool: ModuleType, start: int, *, groups: bool) -> None:
        self.table, self.tool, self.start, self.groups = table, tool, start, groups
        self._begin()

    def _begin(self) -> None:
        """Starts a table."""
        self.width = 0
        self.reason = "has no line of column names above it"
        self.ended = False
        self.sizes: list[float] = []
        self.decimals: list[int] = []
        self.kept: list[int] = []
        self.sized = False

    def read(self, lines: list[str]) -> None:
        """Scans the lines of the run."""
        for place, line in enumerate(lines):
            cells = line.split()
            if self.tool is osu and self.kept and osu.states_datatype(line):
                self._end(lines)
                self._begin()
            elif cells and (cells[0].startswith("#") or self._columns(line)):
                self._heading(place, line)
            elif cells:
                self._line(place, line, cells)
        self._end(lines)

    def _end(self, lines: list[str]) -> None:
        """Checks the rows of a table together."""
        self._last_row(lines)
        if not self._increasing():
            reason = "the sizes of the run do not increase: several runs wrote at the same time"
            for place in self.kept:
                self._omit(place, reason)
        elif self.kept and self.table.first_row is None:
            self.table.first_row = self.start + self.kept[0]

    def _last_row(self, lines: list[str]) -> None:
        """Leaves out a last row with fewer decimals than the one before, if its run was killed."""
        if self.tool is not osu or len(self.kept) < 2:
            return
        before, last = (lines[place].split()[-1].partition(".")[2] for place in self.kept[-2:])
        if len(last) < len(before) and is_numeric(lines[self.kept[-1]].split()):
            self._omit(self.kept.pop(), "has fewer decimals than the row before: truncated")
            self.sizes.pop()

    def _heading(self, place: int, line: str) -> None:
        names = self._columns(line)
        if names and not self.width and not self.kept:
            self.width, self.reason = len(names), ""
            self.table.lines[place] = line
            self.sized = names[0] in {"Size", "Transmit Size", "#bytes"}
        elif names or _UNIT.search(line):
            self.table.lines[place] = ""
            known = bool(names)
            self.reason = (
                "is below a second line of column names without a title"
                if known
                else "is below column names without a time in us or a bandwidth in MB/s"
            )

    def _columns(self, line: str) -> tuple[str, ...]:
        if self.tool is osu:
            return osu.columns_of(line) if line.startswith("#") else ()
        return tuple(line.split()) if "#repetitions" in line else ()

    def _line(self, place: int, line: str, cells: list[str]) -> None:
        failed = self.tool is imb and any(word in line for word in imb.FAILED)
        if not _number(cells[0]) or failed:
            self.ended = self.ended or not (failed or _LIBRARY.search(line.lstrip()))
            return
        numeric = is_numeric(cells)
        fits = len(cells) == self.width
        if self.reason or not fits or (self.ended and not self._continues(cells)):
            if numeric or fits or _resembles(cells):
                self._omit(place, self.reason or self._why(cells, fits=fits))
            self.ended = True
            return
        self.table.lines[place] = line
        self.kept.append(place)
        if numeric:
            self.sizes.append(float(cells[0]))
            self.decimals = _decimals(cells)
        else:
            self.ended = True

    def _why(self, cells: list[str], *, fits: bool) -> str:
        if fits:
            return "follows other output of the job, and its size is not the next one"
        return f"has {len(cells)} numbers, but the heading has {self.width} columns"

    def _omit(self, place: int, reason: str) -> None:
        self.table.lines[place] = ""
        self.table.omitted[self.start + place + 1] = reason

    def _continues(self, cells: list[str]) -> bool:
        """Returns whether a row has the form of the last one, and the next size of the series.

        Any larger size with three or more columns: other output never has all their decimals.
        """
        if not self.sizes:
            return not self.kept
        if not self.sized:
            return False
        size, last = float(cells[0]), self.sizes[-1]
        if len(cells) > 2 and size > last and _decimals(cells) == self.decimals:
            return True
        before = self.sizes[-2] if len(self.sizes) > 1 else None
        if size == 2 * last or (last == 0 and size == 1):
            return True
        return before is not None and size > last and size * before == last * last

    def _increasing(self) -> bool:
        if self.groups:
            return True
        if not self.sized:
            return len(self.sizes) <= 1
        return all(one < other for one, other in zip(self.sizes, self.sizes[1:], strict=False))


def may_be_cut(lines: list[str]) -> bool:
    """Returns whether the last line of a log, which has no line ending, may be a part of a row.

    Benchmarks print a fixed number of decimals: a row with those of the row before is complete.
    """
    last = lines[-1].split() if len(lines[-1]) <= limits.LOG_LINE else []
    if not is_numeric(last):
        return False
    others = (line.split() for line in reversed(lines[:-1]) if len(line) <= limits.LOG_LINE)
    before = next((cells for cells in others if is_numeric(cells)), [])
    decimals = [cells[-1].partition(".")[2] for cells in (before, last) if cells]
    return len(before) != len(last) or len(decimals[0]) != len(decimals[1])


def _decimals(cells: list[str]) -> list[int]:
    return [len(cell.partition(".")[2]) for cell in cells]


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_numeric(cells: list[str], least: int = 1) -> bool:
    """Returns whether a line consists of numbers, except verdicts of validation."""
    if len(cells) < least or not _number(cells[0]):
        return False
    return all(_number(cell) or cell in _WORDS for cell in cells)


def _resembles(cells: list[str]) -> bool:
    """Returns whether a line starts like a row, so that it may be a damaged one."""
    return len(cells) > 1 and cells[0].isdecimal() and cells[1][:1].isdecimal()
