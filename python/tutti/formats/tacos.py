"""Reads the CSV files of TACOS: the chunks that each link carries, in order.

TACOS synthesises an all_gather for a network: chunk c starts at NPU c mod N and reaches every NPU.
A fork also writes an all_to_all, a broadcast, and the times of each transfer. The file does not
name the collective; it follows from which NPUs get which chunks.

Source: astra-sim/tacos bf38faf (src/writer/csv_writer.cpp, src/collective/all_gather.cpp) and
jsonW0/bean-tacos f01da11 (synthesizer/, collective/, runner/verify.py).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_rows
from tutti.formats.formats import INFERRED
from tutti.formats.msccl.build import built
from tutti.formats.msccl.program import Action, ChunkRange, Event, Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.schedules.ir import Schedule

_EXPECTED: Final = "a schedule of TACOS: counts of NPUs, links and chunks, then a row per link"
_COUNTS: Final = {
    "NPUs Count": 1 << 14,
    "Links Count": 1 << 20,
    "Chunks Count": 1 << 16,
}
_TIMES: Final = ("Collective Time", "Synthesis Time")
_HEADER: Final = ["SrcID", "DestID", "Latency (ns)", "Bandwidth (GB/s)"]
_CHUNKS: Final = re.compile(r"Chunks(?: \(ID:(?P<unit>[np]s):(?P=unit)\))?")
_NUMBER: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][-+]?[0-9]{1,2})?")
_MOST_TRANSFERS: Final = 1 << 20


class _Transfer(NamedTuple):
    """A chunk that crosses a link; files without times have neither `start` nor `end`."""

    chunk: int
    source: int
    target: int
    line: int
    start: float | None = None
    end: float | None = None


@dataclass
class _File:
    """What a file states.

    Attributes:
        counts: The numbers of NPUs, links and chunks.
        size: The bytes of a chunk.
        time: The time of the collective in the unit of the transfers, or None.
        links: The transfers of each link, in order.
    """

    source: str
    counts: dict[str, int] = field(default_factory=dict)
    size: float = 0.0
    time: float | None = None
    links: dict[tuple[int, int], list[_Transfer]] = field(default_factory=dict)

    @property
    def npus(self) -> int:
        return self.counts["NPUs Count"]

    @property
    def chunks(self) -> int:
        return self.counts["Chunks Count"]

    @property
    def transfers(self) -> Iterable[_Transfer]:
        return (each for link in self.links.values() for each in link)

    def refuse(self, line: int, problem: str, expected: str, hint: str = "") -> NoReturn:
        place = f"{self.source}, line {line}"
        raise mistake(problem, source=place, expected=expected, hint=hint)


def read_schedule(path: Path, _options: Options) -> tuple[Schedule, tuple[str, ...]]:
    """Reads and verifies a schedule of TACOS.

    Returns:
        The schedule, and one line for each part of the file that it does not represent.

    Raises:
        ConfigError: The file cannot be read or contradicts itself, an NPU sends a chunk that it
            does not have, or the chunks perform no known collective.
    """
    file = _read(path)
    placed = _placed(file)
    schedule, losses = built(_program(path, file, placed))
    size = f"{file.size:g}" if file.size % 1 else f"{file.size:.0f}"
    total = f"{file.size * file.chunks / placed.copies:.0f}"
    return schedule, (
        f"{len(file.links)} links with latency and rate: a platform states them",
        f"chunks of {size} B: --size {total} is that of the file",
        *(["times of transfers"] if file.time is not None else []),
        "the order of chunks on different links: a rank performs one sequence of steps",
        *losses,
        f"{INFERRED}collective {placed.collective}, from the NPUs that get each chunk",
    )


# --- reading --------------------------------------------------------------------------------------


def _read(path: Path) -> _File:
    file = _File(str(path))
    rows = ((line, cells) for line, cells in read_rows(path, _EXPECTED) if any(cells))
    unit = _read_head(file, rows)
    for name in _COUNTS:
        if name not in file.counts:
            file.refuse(1, f"lacks `{name}`", f"the line {name},NUMBER before the links")
    if not file.size:
        file.refuse(1, "lacks `Chunk Size`", "the line Chunk Size,BYTES before the links")
    form = re.compile(r"[0-9]+" if unit is None else r"[0-9]+:[^:]+:[^:]+")
    count = 0
    for line, cells in rows:
        count += _read_link(file, line, cells, form)
        if count > _MOST_TRANSFERS:
            file.refuse(line, "has too many transfers", f"at most {_MOST_TRANSFERS:,}")
    _check(file, 1000.0 if unit == "ps" else 1.0)
    return file


def _read_head(file: _File, rows: Iterable[tuple[int, list[str]]]) -> str | None:
    """Reads the lines before the links; returns the unit of times, or None without times."""
    for line, cells in rows:
        if cells[:4] == _HEADER:
            found = _CHUNKS.fullmatch(cells[4]) if len(cells) == 5 else None
            if found is None:
                file.refuse(line, "unknown heading of the chunks", "Chunks or Chunks (ID:ns:ns)")
            return found["unit"]
        _read_count(file, line, cells)
    raise mistake("has no heading of links", source=file.source,
                  expected=",".join([*_HEADER, "Chunks"]))  # fmt: skip


def _read_count(file: _File, line: int, cells: Sequence[str]) -> None:
    name = cells[0] if cells else ""
    value = cells[1] if len(cells) > 1 else ""
    if name in _COUNTS:
        count = parse_count(value, most=_COUNTS[name])
        if not count:
            expected = f"an integer from 1 to {_COUNTS[name]:,}"
            file.refuse(line, f"{name} is {shown(value)}", expected)
        file.counts[name] = count
        return
    if name not in {"Chunk Size", *_TIMES}:
        file.refuse(line, f"unknown line {shown(name)}", _EXPECTED)
    number = _number(file, line, value, name)
    units = {"Chunk Size": {"", "B"}, "Collective Time": {"ns"}, "Synthesis Time": {"s"}}[name]
    if (cells[2] if len(cells) > 2 else "") not in units:
        file.refuse(line, f"{name} has the unit {shown(cells[2:])}", " or ".join(units) or "B")
    if name == "Chunk Size":
        if not number:
            file.refuse(line, "chunks are empty", "a size above 0")
        file.size = number
    elif name == "Collective Time":
        file.time = number


def _number(file: _File, line: int, text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        file.refuse(line, f"{what} is {shown(text)}", "a number, 0 or more")
    return float(text)


def _read_link(file: _File, line: int, cells: list[str], pattern: re.Pattern[str]) -> int:
    """Reads a link, and returns the number of its transfers."""
    ends = [parse_count(cell, most=file.npus - 1) for cell in cells[:2]]
    if len(cells) < 4 or ends[0] is None or ends[-1] is None or ends[0] == ends[-1]:
        file.refuse(line, f"the link joins {shown(cells[:2])}", f"two NPUs below {file.npus}")
    source, target = ends[0], ends[1] or 0
    if (source, target) in file.links:
        file.refuse(line, f"the link from {source} to {target} appears twice", "each link once")
    for name, cell in zip(_HEADER[2:], cells[2:4], strict=True):
        _number(file, line, cell, name)
    transfers = file.links[source, target] = []
    for cell in [] if cells[4:] == ["None"] else cells[4:]:
        if not pattern.fullmatch(cell):
            file.refuse(line, f"a chunk is {shown(cell)}", f"of the form {pattern.pattern}")
        chunk, *times = cell.split(":")
        number = parse_count(chunk, most=file.chunks - 1)
        if number is None:
            file.refuse(line, f"there is no chunk {shown(chunk)}", f"chunks below {file.chunks}")
        ends_at = [_number(file, line, text, "a time") for text in times]
        transfers.append(_Transfer(number, source, target, line, *ends_at))
    return len(transfers)


def _check(file: _File, scale: float) -> None:
    """Compares what the file states twice: its links, the order and the end of transfers."""
    if len(file.links) != file.counts["Links Count"]:
        file.refuse(
            1,
            f"Links Count is {file.counts['Links Count']}, but {len(file.links)} links follow",
            "a row per link",
            "the file may be truncated",
        )
    last = 0.0
    for transfers in file.links.values():
        before = 0.0
        for each in transfers:
            if each.start is None or each.end is None:
                continue
            if each.end <= each.start or not _reaches(before, each.start):
                problem = f"chunk {each.chunk} is sent from {each.start:g} to {each.end:g}"
                file.refuse(each.line, problem, f"times in order, after {before:g}")
            before = each.end
            last = max(last, each.end)
    if file.time is not None and last and not math.isclose(file.time, last / scale, rel_tol=1e-6):
        problem = f"Collective Time is {file.time:g} ns, but the last transfer ends at {last:g}"
        file.refuse(1, problem, "the same time")


def _reaches(before: float, start: float) -> bool:
    return before <= start or math.isclose(before, start, rel_tol=1e-9)


# --- the collective -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Placed:
    """Where the chunks of a collective start and end.

    Attributes:
        collective: The collective in tutti's terms.
        owners: The NPU at which each chunk starts.
        ends: The NPUs that must have each chunk at the end; None for all.
        copies: How often the payload of a rank is in the chunks.
        root: The root of a broadcast.
    """

    collective: str
    owners: list[int]
    ends: list[int] | None = None
    copies: int = 1
    root: int = 0


def _placed(file: _File) -> _Placed:
    """Returns the collective whose chunks start and end as those of the file."""
    got: list[set[int]] = [set() for _ in range(file.chunks)]
    for each in file.transfers:
        got[each.chunk].add(each.target)
    reasons = []
    for candidate in _candidates(file, got):
        reason = _missing(file, candidate, got)
        if not reason:
            return candidate
        reasons.append(f"{candidate.collective}: {reason}")
    raise mistake(
        "the chunks perform no collective that tutti verifies",
        source=file.source,
        value="; ".join(reasons),
        expected="an all_gather, an all_to_all or a broadcast, with the chunks of TACOS",
    )


def _candidates(file: _File, got: list[set[int]]) -> Iterable[_Placed]:
    npus, chunks = file.npus, range(file.chunks)
    if file.chunks % npus == 0:
        yield _Placed("all_gather", [chunk % npus for chunk in chunks])
    if file.chunks % (npus * npus) == 0:
        owners = [chunk // npus % npus for chunk in chunks]
        ends = [chunk % npus for chunk in chunks]
        yield _Placed("all_to_all", owners, ends, copies=npus)
    senders = set(range(npus)) - set.union(set(), *got)
    if len(senders) == 1:
        root = senders.pop()
        yield _Placed("broadcast", [root] * file.chunks, root=root)


def _missing(file: _File, placed: _Placed, got: list[set[int]]) -> str:
    """Returns the first NPU that never gets one of its chunks, as text; empty if all do."""
    for chunk, owner in enumerate(placed.owners):
        ends = range(file.npus) if placed.ends is None else [placed.ends[chunk]]
        for npu in ends:
            if npu != owner and npu not in got[chunk]:
                return f"NPU {npu} never receives chunk {chunk}"
    return ""


# --- the schedule ---------------------------------------------------------------------------------


def _program(path: Path, file: _File, placed: _Placed) -> Program:
    """Returns a program with a thread block per end of a link: links work at the same time."""
    name = path.stem if path.stem.isprintable() and path.stem.strip() else "tacos"
    program = Program(
        name=name,
        collective=placed.collective,
        ranks=file.npus,
        chunks=file.chunks // placed.copies,
        in_place=placed.collective != "all_to_all",
        source=file.source,
        root=placed.root,
    )
    places = _Places(file, placed)
    _add_copies(program, placed, places)
    blocks: dict[int, int] = defaultdict(int)
    receives: dict[tuple[int, int], int] = {}
    sends: list[tuple[int, _Transfer]] = []
    for (source, target), transfers in file.links.items():
        ends = blocks[source], blocks[target]
        blocks[source] += 1
        blocks[target] += 1
        for number, each in enumerate(transfers):
            if (each.chunk, target) in receives or target == placed.owners[each.chunk]:
                problem = f"NPU {target} receives chunk {each.chunk}, which it has"
                file.refuse(each.line, problem, "each chunk once per NPU")
            sends.append((len(program.events), each))
            receives[each.chunk, target] = len(program.events) + 1
            program.events += _transfer(program, places, each, ends, number)
    for index, each in sends:
        if each.source != placed.owners[each.chunk]:
            program.events[index].after.append(_received(file, each, receives))
    return program


def _add_copies(program: Program, placed: _Placed, places: _Places) -> None:
    """Adds the copies of chunks that start where they end, from input to output."""
    for chunk, owner in enumerate(placed.owners):
        if placed.ends is not None and placed.ends[chunk] == owner:
            event = Event(owner, -1, chunk, label=f"copy of chunk {chunk}")
            source, into = places.own(chunk), places.result(chunk)
            event.actions = [Action("copy", owner, (source,), into)]
            program.events.append(event)


def _transfer(
    program: Program, places: _Places, each: _Transfer, blocks: tuple[int, int], number: int
) -> list[Event]:
    """Returns the send and the receive of a chunk, of these thread blocks."""
    message = len(program.messages)
    program.messages.append((each.source, each.target))
    label = f"chunk {each.chunk} of line {each.line}"
    send = Event(each.source, blocks[0], number, label=f"send of {label}")
    source, into = (places.held(each.chunk, npu) for npu in (each.source, each.target))
    send.actions = [Action("send", each.source, (source,), None, message)]
    receive = Event(each.target, blocks[1], number, label=f"receive of {label}")
    receive.actions = [Action("recv", each.target, (), into, message)]
    return [send, receive]


def _received(file: _File, sent: _Transfer, receives: dict[tuple[int, int], int]) -> int:
    """Returns the receive of a chunk that an NPU passes on."""
    index = receives.get((sent.chunk, sent.source))
    if index is None:
        problem = f"NPU {sent.source} sends chunk {sent.chunk}, which it never has"
        file.refuse(sent.line, problem, "a chunk that it starts with or receives")
    return index


class _Places:
    """Where an NPU holds a chunk: in its input, its output, or scratch memory of a relay."""

    def __init__(self, file: _File, placed: _Placed) -> None:
        self._npus, self._placed = file.npus, placed
        self._each = max(1, file.chunks // (file.npus * placed.copies))

    def held(self, chunk: int, npu: int) -> ChunkRange:
        """Returns the place of a chunk at an NPU."""
        placed = self._placed
        if placed.ends is None:
            return self.result(chunk)
        if npu == placed.owners[chunk]:
            return self.own(chunk)
        if npu == placed.ends[chunk]:
            return self.result(chunk)
        return ChunkRange("s", chunk, 1)

    def own(self, chunk: int) -> ChunkRange:
        """Returns the place of a chunk in the input of its owner."""
        ends = self._placed.ends or self._placed.owners
        return ChunkRange("i", ends[chunk] * self._each + self._turn(chunk), 1)

    def result(self, chunk: int) -> ChunkRange:
        """Returns the place of a chunk in the output."""
        if self._placed.collective == "broadcast":
            return ChunkRange("o", chunk, 1)
        return ChunkRange("o", self._placed.owners[chunk] * self._each + self._turn(chunk), 1)

    def _turn(self, chunk: int) -> int:
        """Returns the number of a chunk among those of its owner and end."""
        return chunk // (self._npus * self._placed.copies)
