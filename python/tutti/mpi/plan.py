"""Plan files: which schedule performs which collective, for which ranks and sizes.

The MPI library executes plans; docs/reference/plan-format.md describes the file. Every schedule is
verified before it is written. A call uses the first rule that fits and has a schedule that can
perform it.

Examples:
    >>> from tutti import schedule
    >>> ring = schedule("ring", ranks=4)
    >>> plan = CollectivePlan([Rule("all_reduce", 4, ring, (4096, None))])
    >>> plan.schedules
    [<PlannedSchedule ring: all_reduce on 4 ranks>]
    >>> CollectivePlan.from_bytes(plan.to_bytes()) == plan
    True
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.suggestions import near
from tutti.mpi import plan_file
from tutti.mpi.errors import PlanError
from tutti.mpi.planned import COLLECTIVES, PlannedSchedule, Rule
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COLLECTIVES", "CollectivePlan", "PlannedSchedule", "Rule"]


class CollectivePlan:
    """Rules in order of precedence, with their schedules."""

    def __init__(self, rules: Sequence[Rule], provenance: dict[str, Any] | None = None) -> None:
        """Verifies the rules' schedules; identical ones are stored once.

        Args:
            rules: In order of precedence.
            provenance: The command, time and platform of the plan: any JSON values.

        Raises:
            PlanError: There are no rules, or a schedule is not possible in a plan.
            VerificationError: A schedule does not perform its collective.
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
        """The distinct schedules, in the order of the rules."""
        return list(self._schedules)

    @property
    def ranks(self) -> list[int]:
        """The rank counts that it has rules for, ascending."""
        return sorted({rule.ranks for rule in self.rules})

    def find(self, collective: str, ranks: int, size: int) -> Rule | None:
        """Returns the first rule for a call of `size` bytes, by the collective's convention."""
        for rule in self.rules:
            first, last = rule.sizes
            fits = first <= size and (last is None or size <= last)
            if fits and (rule.collective, rule.ranks) == (collective, ranks):
                return rule
        return None

    # --- files ------------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the file atomically, and returns its path.

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
    def read(cls, path: str | os.PathLike[str]) -> CollectivePlan:
        """Reads a file.

        Raises:
            PlanError: It does not exist, is not a plan, has another version, or is corrupted.
        """
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
        return plan_file.encoded(self.rules, self.schedules, self.provenance)

    @classmethod
    def from_bytes(cls, data: bytes, *, source: str = "plan") -> CollectivePlan:
        """Reads a file's contents.

        Args:
            data: The bytes.
            source: Their name in error messages.

        Raises:
            PlanError: They are not a plan, have another version, or are corrupted.
        """
        rules, provenance = plan_file.decoded(data, source)
        try:
            return cls(rules, provenance)
        except PlanError as error:
            raise PlanError(f"{source}: {error.problem}", kind=error.kind) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CollectivePlan):
            return NotImplemented
        return (self.rules, self.provenance) == (other.rules, other.provenance)

    def __hash__(self) -> int:
        return hash(self.rules)

    def __repr__(self) -> str:
        counts = ", ".join(str(count) for count in self.ranks)
        return f"<CollectivePlan of {len(self.rules)} rules for {counts} ranks>"
