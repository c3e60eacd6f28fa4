"""Plan files: which schedule performs which collective, for which ranks and sizes.

A plan is what the MPI library executes; docs/reference/plan-format.md describes the file. Every
schedule is verified before it is written. The first rule that fits a call and whose schedule can do
it is taken.

>>> from tutti import schedule
>>> ring = schedule("ring", ranks=4)
>>> plan = Plan([Rule("all_reduce", 4, ring, (4096, None))])
>>> plan.schedules
[<PlannedSchedule ring: all_reduce on 4 ranks>]
>>> Plan.from_bytes(plan.to_bytes()) == plan
True
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tutti import _core
from tutti.errors import PlanError
from tutti.mpi import code
from tutti.mpi.rendezvous import deferred, joined, needs_buffers
from tutti.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERSION", "Plan", "PlannedSchedule", "Rule"]

VERSION: Final = 2
"""Of the format, the newest that is read. A plan is written in the oldest that can say it."""

MAGIC: Final = b"TUTTIPLN"
COLLECTIVES: Final = tuple(_core.collectives())
"""Their places are their numbers in the file."""

RANK_ORDER: Final = 1
MOVES_CHUNKS: Final = 2
WRITES_DATA: Final = 4
SAME_ON_ALL: Final = 8
PENDING_SENDS: Final = 16
"""Since version 2."""

MOST_CHUNKS: Final = 2**28
MOST_SLOTS: Final = 2**20
"""So that sums of them stay below 2^32."""

_NO_END: Final = 2**64 - 1
_HEAD: Final = struct.Struct("<8sIIQIIQQ")
_RULE: Final = struct.Struct("<IIQQII")
_SCHEDULE: Final = struct.Struct("<IIIIIIQQQ")
_LONGEST_NAME: Final = 1 << 16
_CHECKED_FROM: Final = 16
"""The checksum covers everything from here on."""


@dataclass(frozen=True)
class PlannedSchedule:
    """A schedule as it stands in a plan.

    Attributes:
        name: In the algorithm notation.
        collective: What it performs.
        ranks: How many take part.
        chunks: How many the data are cut into.
        slots: How many a rank needs: the data slot, then scratch.
        result: The slot that holds the result afterwards.
        flags: What is known of it: `RANK_ORDER` and its kin, added up.
        codes: What each rank does, as bytes.
    """

    name: str
    collective: str
    ranks: int
    chunks: int
    slots: int
    result: int
    flags: int
    codes: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """A schedule proved, and put into the ops of a plan.

        Raises:
            VerificationError: It does not do what it is meant to do.
            PlanError: It is for another root than 0, holds compute or sleep ops, or has too many
                chunks or slots.
        """
        if schedule.root:
            message = f"{schedule.name}: root {schedule.root}, where a plan's schedules have root 0"
            raise PlanError(message, kind="root", fields={"root": schedule.root})
        _check_room(schedule)
        proof = schedule.verify()
        programs = [code.lowered(schedule, rank) for rank in range(schedule.ranks)]
        pending = False
        if not proof.rendezvous_safe:
            programs = [joined(steps) for steps in programs]
            pending = needs_buffers(programs)
            programs = deferred(programs) if pending else programs
        flags = (
            RANK_ORDER * proof.rank_order
            + MOVES_CHUNKS * (schedule.moves_chunks or code.shifted(programs))
            + WRITES_DATA * any(step.writes_data for steps in programs for step in steps)
            + SAME_ON_ALL * proof.same_on_all_ranks
            + PENDING_SENDS * pending
        )
        codes = tuple(code.encoded(steps) for steps in programs)
        return cls(schedule.name, schedule.collective, schedule.ranks, schedule.chunks,
                   schedule.slots, schedule.result, flags, codes)  # fmt: skip

    @property
    def rank_order(self) -> bool:
        """Whether contributions are combined in the order of the ranks."""
        return bool(self.flags & RANK_ORDER)

    @property
    def moves_chunks(self) -> bool:
        """Whether chunks change places: then all must be equal."""
        return bool(self.flags & MOVES_CHUNKS)

    @property
    def writes_data(self) -> bool:
        """Whether something is written to the data slot."""
        return bool(self.flags & WRITES_DATA)

    @property
    def same_on_all_ranks(self) -> bool:
        """Whether every rank gets the same bits."""
        return bool(self.flags & SAME_ON_ALL)

    @property
    def pending_sends(self) -> bool:
        """Whether sends may be pending beyond their step: others expect them later."""
        return bool(self.flags & PENDING_SENDS)

    def steps(self, rank: int) -> list[code.PlannedStep]:
        """What a rank does.

        Raises:
            PlanError: There is no such rank, or its bytes stand for nothing.
        """
        if not 0 <= rank < self.ranks:
            message = f"{self.name} has no rank {rank}: expected 0 to {self.ranks - 1}"
            raise PlanError(message, kind="no_such_schedule", fields={"rank": rank})
        place = f"schedule {self.name} for {self.ranks} ranks"
        bounds = code.Bounds(rank, self.ranks, self.slots, self.chunks, place,
                             self.moves_chunks, self.pending_sends)  # fmt: skip
        return code.decoded(self.codes[rank], bounds)

    def __repr__(self) -> str:
        return f"<PlannedSchedule {self.name}: {self.collective} on {self.ranks} ranks>"


def _check_room(schedule: Schedule) -> None:
    for what, has, most in (
        ("chunks", schedule.chunks, MOST_CHUNKS),
        ("slots", schedule.slots, MOST_SLOTS),
    ):
        if has > most:
            message = f"{schedule.name}: {has} {what}, where a plan has {most} at most"
            raise PlanError(message, kind="too_large", fields={what: has})


@dataclass(frozen=True)
class Rule:
    """A schedule, and the calls it is for.

    Attributes:
        collective: Such as ``"all_reduce"``.
        ranks: How many the communicator has.
        schedule: What is done: a schedule that will be proved, or one out of another plan.
        sizes: Smallest and largest in bytes, both included, by the collective's convention (of
            all_gather and reduce_scatter all shards together); None for no end.
    """

    collective: str
    ranks: int
    schedule: Schedule | PlannedSchedule
    sizes: tuple[int, int | None] = (0, None)

    def __post_init__(self) -> None:
        """Refuses what no call could fit.

        Raises:
            PlanError: The rule says something else than its schedule, or its sizes are none.
        """
        if self.collective not in COLLECTIVES:
            fields = {"name": self.collective, "known": ", ".join(COLLECTIVES)}
            message = (
                f"there is no collective `{self.collective}`: expected one of {fields['known']}"
            )
            raise PlanError(message, kind="rule", fields=fields)
        asked = (self.collective, self.ranks)
        laid_out = (self.schedule.collective, self.schedule.ranks)
        if asked != laid_out:
            message = (
                f"a rule for {asked[0]} on {asked[1]} ranks with a schedule, "
                f"{self.schedule.name}, that performs {laid_out[0]} on {laid_out[1]}"
            )
            raise PlanError(message, kind="rule")
        first, last = self.sizes
        if first < 0 or not first <= (_NO_END if last is None else last) <= _NO_END:
            message = (
                f"a rule for {self.collective} for {first} to {last} bytes: expected two sizes, "
                "the smaller first, below 2^64"
            )
            raise PlanError(message, kind="rule")


class Plan:
    """Rules in order of precedence, with their schedules."""

    def __init__(self, rules: Sequence[Rule], provenance: dict[str, Any] | None = None) -> None:
        """Proves the rules' schedules; the same one twice is kept once.

        Args:
            rules: In order of precedence.
            provenance: What made the plan, when, from which platform: anything JSON can say.

        Raises:
            PlanError: There are no rules, or a schedule cannot stand in a plan.
            VerificationError: A schedule does not do what it is meant to do.
        """
        if not rules:
            message = "a plan without rules: expected at least one"
            raise PlanError(message, kind="empty")
        self.provenance: dict[str, Any] = dict(provenance or {})
        planned: dict[int, PlannedSchedule] = {}
        mine: list[Rule] = []
        for rule in rules:
            given = rule.schedule
            if id(given) not in planned:
                new = PlannedSchedule.of(given) if isinstance(given, Schedule) else given
                planned[id(given)] = new
            mine.append(Rule(rule.collective, rule.ranks, planned[id(given)], rule.sizes))
        self.rules: tuple[Rule, ...] = tuple(mine)
        self._schedules = dict.fromkeys(planned.values())

    @property
    def schedules(self) -> list[PlannedSchedule]:
        """Each once, in the order of the rules."""
        return list(self._schedules)

    @property
    def ranks(self) -> list[int]:
        """The rank counts that it has rules for, ascending."""
        return sorted({rule.ranks for rule in self.rules})

    def find(self, collective: str, ranks: int, size: int) -> Rule | None:
        """The first rule that fits a call of so many bytes, by the collective's convention."""
        for rule in self.rules:
            first, last = rule.sizes
            fits = first <= size and (last is None or size <= last)
            if fits and (rule.collective, rule.ranks) == (collective, ranks):
                return rule
        return None

    # --- files ------------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the file whole or not at all, and returns its path.

        Raises:
            PlanError: It cannot be written.
        """
        path = Path(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            partial.write_bytes(self.to_bytes())
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            message = f"{path}: cannot be written: {error.strerror}"
            raise PlanError(message, kind="unwritable", fields={"path": str(path)}) from None
        return path

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a file.

        Raises:
            PlanError: There is none, it is no plan, a newer one, or it has been damaged.
        """
        from tutti.errors.meant import near

        try:
            data = Path(path).read_bytes()
        except OSError as error:
            message = f"{path}: cannot be read: {error.strerror}"
            hint = near(Path(path)) if isinstance(error, FileNotFoundError) else ""
            fields = {"path": str(path)}
            raise PlanError(message, kind="unreadable", hint=hint or None, fields=fields) from None
        return cls.from_bytes(data, source=str(path))

    def to_bytes(self) -> bytes:
        """The file's contents."""
        return _Writer(self).file()

    @classmethod
    def from_bytes(cls, data: bytes, *, source: str = "plan") -> Plan:
        """Reads a file's contents.

        Args:
            data: The bytes.
            source: What errors call them.

        Raises:
            PlanError: They are no plan, a newer one, or have been damaged.
        """
        return _Reader(data, source).plan()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (self.rules, self.provenance) == (other.rules, other.provenance)

    def __hash__(self) -> int:
        return hash(self.rules)

    def __repr__(self) -> str:
        counts = ", ".join(str(count) for count in self.ranks)
        return f"<Plan of {len(self.rules)} rules for {counts} ranks>"


# --- writing --------------------------------------------------------------------------------------


class _Writer:
    """Lays the file out: head, rules, schedules, provenance, then names, tables and code."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._schedules = plan.schedules
        self._tail = bytearray()
        rules, schedules = len(plan.rules), len(self._schedules)
        self._tail_at = _HEAD.size + _RULE.size * rules + _SCHEDULE.size * schedules

    def file(self) -> bytes:
        # Keys in order: the same plan is the same bytes.
        said = json.dumps(self._plan.provenance, ensure_ascii=False, sort_keys=True)
        provenance = said.encode("utf-8", errors="surrogatepass")
        provenance_at = self._append(provenance)
        rules = b"".join(self._rule(rule) for rule in self._plan.rules)
        schedules = b"".join(self._schedule(planned) for planned in self._schedules)
        counts = (len(self._plan.rules), len(self._schedules))
        length = self._tail_at + len(self._tail)
        version = VERSION if any(one.pending_sends for one in self._schedules) else 1
        parts = (MAGIC, version, 0, length, *counts, provenance_at, len(provenance))
        data = bytearray(_HEAD.pack(*parts) + rules + schedules + self._tail)
        struct.pack_into("<I", data, 12, zlib.crc32(data[_CHECKED_FROM:]))
        return bytes(data)

    def _append(self, data: bytes) -> int:
        """Adds bytes at the end; where they will be in the file."""
        at = self._tail_at + len(self._tail)
        self._tail += data
        return at

    def _rule(self, rule: Rule) -> bytes:
        first, last = rule.sizes
        number = self._schedules.index(rule.schedule)  # type: ignore[arg-type] # a plan's are planned
        return _RULE.pack(COLLECTIVES.index(rule.collective), rule.ranks, first,
                          _NO_END if last is None else last, number, 0)  # fmt: skip

    def _schedule(self, planned: PlannedSchedule) -> bytes:
        name = planned.name.encode()
        if len(name) > _LONGEST_NAME:
            message = f"the name of {planned.name[:40]}... has {len(name)} bytes: at most 65536"
            raise PlanError(message, kind="too_large")
        name_at = self._append(name)
        table_at = self._append(bytes(8 * (planned.ranks + 1)))
        offsets = [self._append(one) for one in planned.codes]
        offsets.append(self._tail_at + len(self._tail))
        struct.pack_into(f"<{len(offsets)}Q", self._tail, table_at - self._tail_at, *offsets)
        return _SCHEDULE.pack(COLLECTIVES.index(planned.collective), planned.ranks, planned.chunks,
                              planned.slots, planned.result, planned.flags,
                              name_at, len(name), table_at)  # fmt: skip


# --- reading --------------------------------------------------------------------------------------


class _Reader:
    """Takes a file apart, and believes none of its numbers."""

    def __init__(self, data: bytes, source: str) -> None:
        self._data = data
        self._source = source

    def plan(self) -> Plan:
        self._check_version()
        if len(self._data) < _HEAD.size:
            raise self._truncated(_HEAD.size)
        _, _, checksum, length, rules, schedules, at, said = _HEAD.unpack_from(self._data)
        if len(self._data) < length:
            raise self._truncated(length)
        if len(self._data) > length:
            raise self._corrupted(f"{len(self._data) - length} bytes follow its end")
        if zlib.crc32(self._data[_CHECKED_FROM:]) != checksum:
            raise self._corrupted("its checksum is another")
        body = _HEAD.size + rules * _RULE.size
        self._bytes(_HEAD.size, rules * _RULE.size + schedules * _SCHEDULE.size, "rules")
        planned = [self._schedule(body + i * _SCHEDULE.size, i) for i in range(schedules)]
        found = [self._rule(_HEAD.size + i * _RULE.size, i, planned) for i in range(rules)]
        try:
            return Plan(found, self._provenance(at, said))
        except PlanError as error:
            raise PlanError(f"{self._source}: {error.problem}", kind=error.kind) from None

    @property
    def _known_flags(self) -> int:
        (version,) = struct.unpack_from("<I", self._data, 8)
        return 31 if version > 1 else 15

    def _check_version(self) -> None:
        if self._data[: len(MAGIC)] != MAGIC[: len(self._data)] or not self._data:
            message = (
                f"{self._source}: is no plan: expected a file that begins with {MAGIC.decode()}"
            )
            raise PlanError(message, kind="no_plan", fields={"source": self._source})
        if len(self._data) < _CHECKED_FROM:
            raise self._truncated(_HEAD.size)
        (version,) = struct.unpack_from("<I", self._data, 8)
        if not 1 <= version <= VERSION:
            message = f"{self._source}: is a plan of version {version}: expected 1 to {VERSION}"
            raise PlanError(message, kind="newer" if version > VERSION else "corrupted",
                            fields={"source": self._source, "version": version})  # fmt: skip

    def _provenance(self, at: int, length: int) -> dict[str, Any]:
        try:
            said = json.loads(self._bytes(at, length, "provenance"))
        except (ValueError, RecursionError):
            raise self._corrupted("its provenance is no JSON") from None
        if not isinstance(said, dict):
            raise self._corrupted("its provenance is no table")
        return said

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
            or flags > self._known_flags
        ):
            raise self._corrupted(f"{place} cannot be")
        try:
            name = self._bytes(name_at, length, f"the name of {place}").decode()
        except UnicodeDecodeError:
            raise self._corrupted(f"the name of {place} is no text") from None
        table = self._bytes(table_at, 8 * (ranks + 1), f"the table of {place}")
        offsets = struct.unpack(f"<{ranks + 1}Q", table)
        codes = tuple(
            self._bytes(start, end - start, f"the code of {place}")
            for start, end in pairwise(offsets)
        )
        return PlannedSchedule(
            name, COLLECTIVES[collective], ranks, chunks, slots, result, flags, codes
        )

    def _rule(self, at: int, number: int, schedules: list[PlannedSchedule]) -> Rule:
        collective, ranks, first, last, schedule, zero = _RULE.unpack_from(self._data, at)
        if collective >= len(COLLECTIVES) or schedule >= len(schedules) or zero:
            raise self._corrupted(f"rule {number} cannot be")
        sizes = (first, None if last == _NO_END else last)
        try:
            return Rule(COLLECTIVES[collective], ranks, schedules[schedule], sizes)
        except PlanError as error:
            raise self._corrupted(f"rule {number} is {error.problem}") from None

    def _bytes(self, at: int, length: int, what: str) -> bytes:
        if length < 0 or at + length > len(self._data):
            raise self._corrupted(f"{what} would be outside of the file")
        return self._data[at : at + length]

    def _truncated(self, expected: int) -> PlanError:
        message = (
            f"{self._source}: ends after {len(self._data)} bytes: expected {expected}, as its "
            "beginning says"
        )
        return PlanError(message, kind="truncated", fields={"source": self._source})

    def _corrupted(self, problem: str) -> PlanError:
        message = f"{self._source}: has been damaged: {problem}"
        return PlanError(message, kind="corrupted", fields={"source": self._source})
