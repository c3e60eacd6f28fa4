"""The bytes of plan files: docs/reference/plan-format.md.

All that is needed to choose schedules is in an index with a checksum. Each rank's code has a
separate checksum, so that a rank reads only the index and its code.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from tutti.mpi.errors import PlanError
from tutti.mpi.planned import COLLECTIVES, MOST_CHUNKS, MOST_SLOTS, NO_END, PlannedSchedule, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = 3
"""The only version that is read and written."""

MAGIC: Final = b"TUTTIPLN"
_HEAD: Final = struct.Struct("<8sIIQQIIQQ")
_RULE: Final = struct.Struct("<IIQQII")
_SCHEDULE: Final = struct.Struct("<IIIIIIQQQ")
_LONGEST_NAME: Final = 1 << 16
_CHECKED_FROM: Final = 16
"""The index's checksum covers the index from this offset on."""
_KNOWN_FLAGS: Final = 63


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
    """Lays out the file: the index (head, rules, schedules, texts and tables), then the code."""

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
        length = self._fill_tables(index)
        counts = (len(self._rules), len(self._schedules))
        parts = (MAGIC, VERSION, 0, length, index, *counts, provenance_at, len(provenance))
        data = bytearray(_HEAD.pack(*parts) + rules + schedules + self._texts)
        struct.pack_into("<I", data, 12, zlib.crc32(data[_CHECKED_FROM:]))
        return b"".join([data, *(code for one in self._schedules for code in one.codes)])

    def _append(self, data: bytes) -> int:
        """Appends bytes to the index; returns their offset in the file."""
        at = self._texts_at + len(self._texts)
        self._texts += data
        return at

    def _fill_tables(self, at: int) -> int:
        """Writes offsets of each rank's code, from `at` on, and checksums; returns the end."""
        for planned, table in zip(self._schedules, self._tables, strict=True):
            offsets = list(accumulate(map(len, planned.codes), initial=at))
            sums = [zlib.crc32(code) for code in planned.codes]
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
        self._index = self._code_at = 0

    def contents(self) -> tuple[list[Rule], dict[str, Any]]:
        self._check_version()
        if len(self._data) < _HEAD.size:
            raise self._truncated(_HEAD.size)
        _, _, checksum, length, index, rules, schedules, at, text = _HEAD.unpack_from(self._data)
        if len(self._data) < length:
            raise self._truncated(length)
        if len(self._data) > length:
            raise self._corrupted(f"{len(self._data) - length} bytes follow its end")
        if not _HEAD.size <= index <= length:
            raise self._corrupted("its index lies outside the file")
        if zlib.crc32(self._data[_CHECKED_FROM:index]) != checksum:
            raise self._corrupted("wrong checksum")
        self._index = self._code_at = index
        body = _HEAD.size + rules * _RULE.size
        self._bytes(_HEAD.size, rules * _RULE.size + schedules * _SCHEDULE.size, "rules")
        planned = [self._schedule(body + i * _SCHEDULE.size, i) for i in range(schedules)]
        if self._code_at != length:
            raise self._corrupted(f"{length - self._code_at} bytes belong to no schedule")
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
        codes = self._codes(table_at, ranks, place)
        return PlannedSchedule(
            name, COLLECTIVES[collective], ranks, chunks, slots, result, flags, codes
        )

    def _codes(self, table_at: int, ranks: int, place: str) -> tuple[bytes, ...]:
        """Reads the code of each rank of a schedule, which follows the previous schedule's."""
        table = self._bytes(table_at, _table_bytes(ranks), f"the table of {place}")
        numbers = struct.unpack(f"<{ranks + 1}Q{ranks}I", table)
        offsets, sums = numbers[: ranks + 1], numbers[ranks + 1 :]
        if offsets[0] != self._code_at or offsets[-1] > len(self._data):
            raise self._corrupted(f"the code of {place} lies outside the file")
        self._code_at = offsets[-1]
        codes = []
        for rank, ((start, end), checksum) in enumerate(zip(pairwise(offsets), sums, strict=True)):
            code = self._data[start:end]
            if end < start or zlib.crc32(code) != checksum:
                raise self._corrupted(f"wrong checksum of {place}, rank {rank}")
            codes.append(code)
        return tuple(codes)

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
