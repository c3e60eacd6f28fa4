"""What a captured rank does: operators by phase, exchanges by group, and memory at its peak."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.training.capture.record import MEMORY_KINDS, PHASES

if TYPE_CHECKING:
    from tutti.training.capture.record import Kind, MemoryKind, Phase, Role

__all__ = ["Amount", "Held", "Memory", "Sent", "amounts", "by_module", "modules", "peak", "sent"]

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True)
class Amount:
    """Operators of a phase and kind on a rank."""

    rank: int
    phase: Phase
    kind: Kind
    count: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class Sent:
    """Exchanges of one collective in one process group of a rank."""

    rank: int
    collective: str
    group: str
    ranks: int
    count: int
    bytes: int


@dataclass(frozen=True)
class Memory:
    """Device memory of a rank at its peak, in bytes.

    Attributes:
        rank: The rank.
        operator: The number of operators that were issued before the peak.
        kinds: The bytes of each kind; kinds without any are left out.
    """

    rank: int
    operator: int
    kinds: dict[MemoryKind, int]

    @property
    def bytes(self) -> int:
        """The bytes of all kinds."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Held:
    """Bytes of a kind that modules hold at the peak; `*` in their name is any number."""

    module: str
    kind: MemoryKind
    bytes: int


def amounts(role: Role) -> list[Amount]:
    """Returns the operators of a rank by phase and kind, without exchanges."""
    rows: dict[tuple[Phase, Kind], list[int]] = {}
    for one in role.operators:
        if one.exchange is None:
            row = rows.setdefault((one.phase, one.kind), [0, 0, 0])
            row[0], row[1], row[2] = row[0] + 1, row[1] + one.flops, row[2] + one.bytes
    order = sorted(rows, key=lambda key: (PHASES.index(key[0]), key[1]))
    return [Amount(role.rank, *key, *rows[key]) for key in order]


def sent(role: Role) -> list[Sent]:
    """Returns the exchanges of a rank by collective and group, in the order of the first ones."""
    rows: dict[tuple[str, int], list[int]] = {}
    for _, one in role.exchanges:
        row = rows.setdefault((one.collective, one.group), [0, 0])
        row[0], row[1] = row[0] + 1, row[1] + one.bytes
    groups = role.groups
    return [
        Sent(role.rank, name, groups[group].name, len(groups[group].ranks), *row)
        for (name, group), row in rows.items()
    ]


def peak(role: Role) -> Memory:
    """Returns the memory of a rank when it is largest."""
    now: Counter[MemoryKind] = Counter()
    total = most = 0
    found = Memory(role.rank, 0, {})
    for change in role.memory:
        now[change.kind] += change.bytes
        total += change.bytes
        if total > most:
            most = total
            found = Memory(role.rank, change.operator, dict(now))
    kinds = {kind: found.kinds[kind] for kind in MEMORY_KINDS if found.kinds.get(kind)}
    return Memory(role.rank, found.operator, kinds)


def by_module(role: Role) -> dict[tuple[str, MemoryKind], int]:
    """Returns the bytes at the peak by module and kind, largest first."""
    at, now = peak(role), Counter[tuple[str, "MemoryKind"]]()
    total = 0
    for change in role.memory:
        now[change.module, change.kind] += change.bytes
        total += change.bytes
        if total == at.bytes and change.operator == at.operator:
            break
    return {key: size for key, size in now.most_common() if size > 0}


def modules(role: Role) -> list[Held]:
    """Returns the memory of modules at the peak by kind, largest first.

    Modules that differ in a number are one: `layers.*` for all blocks.
    """
    found = Counter[tuple[str, "MemoryKind"]]()
    for (module, kind), size in by_module(role).items():
        found[_NUMBER.sub("*", module) or "no module", kind] += size
    return [Held(*key, size) for key, size in found.most_common()]
