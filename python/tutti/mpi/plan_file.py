"""The bytes of plan files: docs/reference/plan-format.md.

All that is needed to choose schedules is in an index with a checksum. Parts of code that ranks
share, also of several schedules, are stored once: each rank has a list of runs of them, and a
separate checksum, so that it reads only the index and its code.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from tutti.mpi import code
from tutti.mpi.errors import PlanError
from tutti.mpi.planned import COLLECTIVES, MOST_CHUNKS, MOST_SLOTS, NO_END, PlannedSchedule, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = 4
"""The only version that is read and written."""

MAGIC: Final = b"TUTTIPLN"
_HEAD: Final = struct.Struct("<8sIIQQQIIQQ")
_RULE: Final = struct.Struct("<IIQQII")
_SCHEDULE: Final = struct.Struct("<IIIIIIQQQ")
_LONGEST_NAME: Final = 1 << 16
_CHECKED_FROM: Final = 16
"""The index's checksum covers the index from this offset on."""
_KNOWN_FLAGS: Final = 63
_LONGEST_CODE: Final = 1 << 30
_BLOCK: Final = 64
"""Longer steps are shared in parts of this size, counted from their end."""


# --- writing --------------------------------------------------------------------------------------


def encoded(
    rules: Sequence[Rule], schedules: Sequence[PlannedSchedule], provenance: Mapping[str, Any]
) -> bytes:
    """Returns the bytes of a file.

    Args:
        rules: In order of precedence; their schedules are among `schedules`.
        schedules: Each once.
        provenance: The origin of the plan: any JSON values.

    Raises:
        PlanError: A name is too long.
    """
    return _Writer(rules, schedules, provenance).file()


class _Writer:
    """Lays out the file: the index (head, rules, schedules, texts and tables), parts, and runs."""

    def __init__(
        self,
        rules: Sequence[Rule],
        schedules: Sequence[PlannedSchedule],
        provenance: Mapping[str, Any],
    ) -> None:
        self._rules = rules
        self._schedules = list(schedules)
        self._provenance = provenance
        self._texts = bytearray()
        self._texts_at = (
            _HEAD.size + _RULE.size * len(rules) + _SCHEDULE.size * len(self._schedules)
        )
        self._tables: list[int] = []

    def file(self) -> bytes:
        """The contents of the file."""
        # Sorted keys: equal plans have equal bytes.
        text = json.dumps(self._provenance, ensure_ascii=False, sort_keys=True)
        provenance = text.encode("utf-8", errors="surrogatepass")
        provenance_at = self._append(provenance)
        rules = b"".join(self._rule(rule) for rule in self._rules)
        schedules = b"".join(self._schedule(planned) for planned in self._schedules)
        index = self._texts_at + len(self._texts)
        parts = _Parts()
        runs = [[parts.runs(one) for one in planned.codes] for planned in self._schedules]
        end = index + len(parts.data)
        length = self._fill_tables(end, runs)
        counts = (len(self._rules), len(self._schedules))
        head = (MAGIC, VERSION, 0, length, index, end, *counts, provenance_at, len(provenance))
        data = bytearray(_HEAD.pack(*head) + rules + schedules + self._texts)
        struct.pack_into("<I", data, 12, zlib.crc32(data[_CHECKED_FROM:]))
        return b"".join([data, parts.data, *(one for lists in runs for one in lists)])

    def _append(self, data: bytes) -> int:
        """Appends bytes to the index; returns their offset in the file."""
        at = self._texts_at + len(self._texts)
        self._texts += data
        return at

    def _fill_tables(self, at: int, runs: Sequence[Sequence[bytes]]) -> int:
        """Writes offsets of each rank's runs, from `at` on, and checksums; returns the end."""
        for planned, lists, table in zip(self._schedules, runs, self._tables, strict=True):
            offsets = list(accumulate(map(len, lists), initial=at))
            sums = [_checksum(*both) for both in zip(lists, planned.codes, strict=True)]
            packed = struct.pack(f"<{len(offsets)}Q{len(sums)}I", *offsets, *sums)
            start = table - self._texts_at
            self._texts[start : start + len(packed)] = packed
            at = offsets[-1]
        return at

    def _rule(self, rule: Rule) -> bytes:
        first, last = rule.sizes
        number = self._schedules.index(rule.schedule)  # type: ignore[arg-type] # a plan's are planned
        return _RULE.pack(COLLECTIVES.index(rule.collective), rule.ranks, first,
                          NO_END if last is None else last, number, 0)  # fmt: skip

    def _schedule(self, planned: PlannedSchedule) -> bytes:
        name = planned.name.encode()
        if len(name) > _LONGEST_NAME:
            message = f"{planned.name[:40]}...: name of {len(name)} bytes: expected at most 65536"
            raise PlanError(message, kind="too_large")
        name_at = self._append(name)
        table_at = self._append(bytes(_table_bytes(planned.ranks)))
        self._tables.append(table_at)
        return _SCHEDULE.pack(COLLECTIVES.index(planned.collective), planned.ranks, planned.chunks,
                              planned.slots, planned.result, planned.flags,
                              name_at, len(name), table_at)  # fmt: skip


class _Parts:
    """The distinct parts of all code, in the order in which they first occur."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._at: dict[bytes, int] = {}
        self._runs: dict[bytes, bytes] = {}

    def runs(self, data: bytes) -> bytes:
        """Returns the runs of parts, as offsets and sizes, that the code of a rank consists of."""
        runs = self._runs.get(data)
        if runs is None:
            places: list[list[int]] = []
            for part in code.split(data, _BLOCK):
                at = self._at.setdefault(part, len(self.data))
                if at == len(self.data):
                    self.data += part
                if places and sum(places[-1]) == at:
                    places[-1][1] += len(part)
                else:
                    places.append([at, len(part)])
            runs = self._runs[data] = code.leb128(number for run in places for number in run)
        return runs


def _checksum(runs: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(runs))


def _table_bytes(ranks: int) -> int:
    return 8 * (ranks + 1) + 4 * ranks


# --- reading --------------------------------------------------------------------------------------


def decoded(data: bytes, source: str) -> tuple[list[Rule], dict[str, Any]]:
    """Returns the rules of a file and its provenance.

    Raises:
        PlanError: The file is not a plan, has another version, or is corrupted.
    """
    return _Reader(data, source).contents()


class _Reader:
    """Parses a file, and validates all of its numbers."""

    def __init__(self, data: bytes, source: str) -> None:
        self._data = data
        self._source = source
        self._index = self._parts_end = self._runs_at = 0
        self._codes: dict[bytes, bytes] = {}

    def contents(self) -> tuple[list[Rule], dict[str, Any]]:
        self._check_version()
        if len(self._data) < _HEAD.size:
            raise self._truncated(_HEAD.size)
        _, _, checksum, length, index, end, rules, schedules, at, text = _HEAD.unpack_from(
            self._data
        )
        if len(self._data) < length:
            raise self._truncated(length)
        if len(self._data) > length:
            raise self._corrupted(f"{len(self._data) - length} bytes follow its end")
        if not _HEAD.size <= index <= end <= length:
            raise self._corrupted("its index or its code lies outside the file")
        if zlib.crc32(self._data[_CHECKED_FROM:index]) != checksum:
            raise self._corrupted("wrong checksum")
        self._index, self._parts_end, self._runs_at = index, end, end
        body = _HEAD.size + rules * _RULE.size
        self._bytes(_HEAD.size, rules * _RULE.size + schedules * _SCHEDULE.size, "rules")
        planned = [self._schedule(body + i * _SCHEDULE.size, i) for i in range(schedules)]
        if self._runs_at != length:
            raise self._corrupted(f"{length - self._runs_at} bytes belong to no schedule")
        found = [self._rule(_HEAD.size + i * _RULE.size, i, planned) for i in range(rules)]
        return found, self._provenance(at, text)

    def _check_version(self) -> None:
        if self._data[: len(MAGIC)] != MAGIC[: len(self._data)] or not self._data:
            message = (
                f"{self._source}: not a plan: expected a file that starts with {MAGIC.decode()}"
            )
            raise PlanError(message, kind="no_plan", fields={"source": self._source})
        if len(self._data) < _CHECKED_FROM:
            raise self._truncated(_HEAD.size)
        (version,) = struct.unpack_from("<I", self._data, 8)
        if version != VERSION:
            message = f"{self._source}: plan of version {version}: expected {VERSION}"
            raise PlanError(message, kind="version",
                            fields={"source": self._source, "version": version})  # fmt: skip

    def _provenance(self, at: int, length: int) -> dict[str, Any]:
        try:
            found = json.loads(self._bytes(at, length, "provenance"))
        except (ValueError, RecursionError):
            raise self._corrupted("its provenance is not JSON") from None
        if not isinstance(found, dict):
            raise self._corrupted("its provenance is not a JSON object")
        return found

    def _schedule(self, at: int, number: int) -> PlannedSchedule:
        place = f"schedule {number}"
        collective, ranks, chunks, slots, result, flags, name_at, length, table_at = (
            _SCHEDULE.unpack_from(self._data, at)
        )
        if (
            collective >= len(COLLECTIVES)
            or ranks < 2
            or not chunks
            or result >= slots
            or chunks > MOST_CHUNKS
            or slots > MOST_SLOTS
            or flags > _KNOWN_FLAGS
        ):
            raise self._corrupted(f"{place} has an invalid collective, ranks, chunks or flags")
        try:
            name = self._bytes(name_at, length, f"the name of {place}").decode()
        except UnicodeDecodeError:
            raise self._corrupted(f"the name of {place} is not UTF-8") from None
        codes = self._read_codes(table_at, ranks, place)
        return PlannedSchedule(
            name, COLLECTIVES[collective], ranks, chunks, slots, result, flags, codes
        )

    def _read_codes(self, table_at: int, ranks: int, place: str) -> tuple[bytes, ...]:
        """Reads the code of each rank, whose runs follow those of the previous schedule."""
        table = self._bytes(table_at, _table_bytes(ranks), f"the table of {place}")
        numbers = struct.unpack(f"<{ranks + 1}Q{ranks}I", table)
        offsets, sums = numbers[: ranks + 1], numbers[ranks + 1 :]
        if offsets[0] != self._runs_at or offsets[-1] > len(self._data):
            raise self._corrupted(f"the code of {place} lies outside the file")
        self._runs_at = offsets[-1]
        codes = []
        for rank, ((start, end), checksum) in enumerate(zip(pairwise(offsets), sums, strict=True)):
            runs = self._data[start:end]
            data = self._code(runs) if start <= end else None
            if data is None or _checksum(runs, data) != checksum:
                raise self._corrupted(f"wrong checksum of {place}, rank {rank}")
            codes.append(data)
        return tuple(codes)

    def _code(self, runs: bytes) -> bytes | None:
        """Returns the code that consists of these runs of parts; None if they are invalid."""
        if runs not in self._codes:
            numbers = code.numbers(runs)
            if numbers is None or len(numbers) % 2 or sum(numbers[1::2]) > _LONGEST_CODE:
                return None
            places = [
                (self._index + at, self._index + at + size)
                for at, size in zip(numbers[::2], numbers[1::2], strict=True)
            ]
            if any(end > self._parts_end for _, end in places):
                return None
            self._codes[runs] = b"".join(self._data[start:end] for start, end in places)
        return self._codes[runs]

    def _rule(self, at: int, number: int, schedules: list[PlannedSchedule]) -> Rule:
        collective, ranks, first, last, schedule, zero = _RULE.unpack_from(self._data, at)
        if collective >= len(COLLECTIVES) or schedule >= len(schedules) or zero:
            raise self._corrupted(f"rule {number} has an invalid collective or schedule")
        sizes = (first, None if last == NO_END else last)
        try:
            return Rule(COLLECTIVES[collective], ranks, schedules[schedule], sizes)
        except PlanError as error:
            raise self._corrupted(f"rule {number} is {error.problem}") from None

    def _bytes(self, at: int, length: int, what: str) -> bytes:
        if at + length > self._index:
            raise self._corrupted(f"{what} lies outside the file")
        return self._data[at : at + length]

    def _truncated(self, expected: int) -> PlanError:
        message = (
            f"{self._source}: truncated after {len(self._data)} bytes: expected {expected}, as in "
            "its header"
        )
        return PlanError(message, kind="truncated", fields={"source": self._source})

    def _corrupted(self, problem: str) -> PlanError:
        message = f"{self._source}: corrupted: {problem}"
        return PlanError(message, kind="corrupted", fields={"source": self._source})
