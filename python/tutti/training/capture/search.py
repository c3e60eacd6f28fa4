"""Which ranks are captured: one of each role.

Rank 0 is captured first, then the ranks with which captured ones exchange messages. Ranks that are
in other process groups, the last one, and one of those that take other branches of the program then
run their first step only. If it differs from that of the captured rank whose role they have, they
are captured: for all ranks that take the same branches, or else the ranks in between, too. Ranks of
several branches whose first steps are equal have one role.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tutti.training.capture.assignment import Assignment, check_messages
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.training.capture.assignment import Totals
    from tutti.training.capture.record import Role

__all__ = ["Capture", "Search", "patterns"]

MOST_ROLES = 256
"""The most roles that are captured without being named."""
_MOST_BETWEEN = 16
"""The most ranks that are captured for a difference that no group or message explains."""
_MOST_EQUAL = 4
"""Ranks whose other branches of the program turn out to do the same, and whose number has no limit
before their first steps have :data:`_MOST_OPERATORS`."""
_MOST_OPERATORS = 20_000
"""Operators of first steps that are compared, about a millisecond each."""
_START = 100
"""Operators that take as long as the start of a program."""


class Capture(Protocol):
    """Captures a rank."""

    def __call__(self, rank: int, *, only_first: bool) -> tuple[Role, Totals]:
        """Returns the role of a rank, and the totals of its first step.

        Args:
            rank: The rank.
            only_first: Whether the program ends after its first step, which is then the role.
        """


@dataclass
class Search:
    """Captures a rank of each role.

    Attributes:
        world: The number of ranks.
        capture: Captures a rank.
        groups: Returns the process groups that captured ranks have created.
        roles: The captured ranks.
    """

    world: int
    capture: Capture
    groups: Callable[[], Iterable[tuple[int, ...]]]
    roles: dict[int, Role] = field(default_factory=dict)
    _firsts: dict[int, Totals] = field(default_factory=dict)
    _compared: int = 0

    def named(self, ranks: Sequence[int]) -> tuple[Role, ...]:
        """Captures the named ranks only."""
        for rank in ranks:
            self._add(rank)
        check_messages(self._found())
        return self._found()

    def every(self) -> tuple[Role, ...]:
        """Captures a rank of each role.

        Raises:
            CaptureError: There are too many roles, or ranks would wait for each other.
        """
        self._follow(0)
        check_messages(self._found())
        for rank in [*patterns(self.world, self.groups()), self.world - 1]:
            if rank not in self._firsts:
                self._check(rank)
        self._check_branches()
        assigned = self._assigned()
        assigned.numbers()
        for role in assigned.roles:
            for _, to in role.exchanges:
                assigned.parts(role, to)
        return self._found()

    def _check_branches(self) -> None:
        """Checks ranks that take other branches than those that have run, until none is left."""
        equal = others = 0
        self._compared = 0
        while (rank := self._unlike()) is not None:
            is_long = equal >= _MOST_EQUAL and self._compared >= _MOST_OPERATORS
            if is_long or others == _MOST_BETWEEN:
                like = self._like(rank) or 0
                text = f"{equal} such ranks do the same" if is_long else f"{others} of them differ"
                self._remark(like, f"rank {rank:,} takes other branches of the program than ranks "
                                   f"that have run, and is priced as rank {like:,}: {text}; name "
                                   "one of each kind with --only-ranks")  # fmt: skip
                return
            count = len(self.roles)
            self._check(rank)
            equal += len(self.roles) == count
            others += len(self.roles) != count

    def _unlike(self) -> int | None:
        """Returns the first rank that no rank of its role is alike; None if all are known."""
        numbers = np.array(self._assigned().numbers())
        known = np.zeros(self.world, np.bool_)
        for rank, first in self._firsts.items():
            if first.alike is None:
                return None
            known |= first.alike & (numbers == numbers[rank])
        return None if known.all() else int(np.argmin(known))

    def _found(self) -> tuple[Role, ...]:
        return tuple(self.roles[rank] for rank in sorted(self.roles))

    def _assigned(self) -> Assignment:
        return Assignment(self.world, self._found())

    def _add(self, rank: int) -> None:
        self.roles[rank], self._firsts[rank] = self.capture(rank, only_first=False)

    def _follow(self, rank: int) -> None:
        """Captures a rank, and those with which captured ranks exchange messages."""
        waiting = [rank]
        while waiting:
            at = waiting.pop(0)
            self._add(at)
            waiting += [peer for peer in self.roles[at].peers
                        if peer not in self.roles and peer not in waiting]  # fmt: skip
            self._limit(len(self.roles) + len(waiting))

    def _limit(self, count: int) -> None:
        if count > MOST_ROLES:
            message = f"{count} of {self.world:,} ranks have different roles: expected up to "
            raise CaptureError(f"{message}{MOST_ROLES}", kind="roles")

    def _check(self, rank: int) -> None:
        """Captures a rank if its first step is not that of the captured rank of its role."""
        like = self._like(rank)
        if like is None:
            self._follow(rank)
            return
        try:
            role, first = self.capture(rank, only_first=True)
        except CaptureError as error:
            # Other ranks that take its branches would fail, too: all of its role count as known.
            alike = np.ones(self.world, np.bool_)
            self._firsts[rank] = replace(self._firsts[like], rank=rank, alike=alike)
            self._remark(like, f"rank {rank:,} is priced as rank {like:,}, since it cannot be "
                               f"captured: {error.problem}")  # fmt: skip
            return
        self._compared += _START + len(role.operators)
        difference = self._firsts[like].difference(first)
        others = self._branch(first, like) if difference else ()
        if others:
            self._join(self._same(role, first), others)
        elif difference:
            self._divide(like, self._simplest(rank, first, like), difference)
        self._firsts.setdefault(rank, first)

    def _same(self, role: Role, first: Totals) -> int:
        """Returns a captured rank of other branches whose first step is equal, or captures this.

        Messages have peers, which differ.
        """
        for other, before in self.roles.items():
            is_comparable = before.ranks and not (before.peers or role.peers)
            if is_comparable and not self._firsts[other].difference(first):
                return other
        self._add(role.rank)
        return role.rank

    def _join(self, rank: int, others: Sequence[int]) -> None:
        """Gives ranks the role of a captured one."""
        role = self.roles[rank]
        self.roles[rank] = replace(role, ranks=tuple(sorted({*role.ranks, *others})))

    def _branch(self, first: Totals, like: int) -> tuple[int, ...]:
        """Returns the ranks at the place of `like` that take the branches of another rank.

        Empty if `like` is one of them.
        """
        if first.alike is None or first.alike[like]:
            return ()
        numbers = np.array(self._assigned().numbers())
        return tuple(np.flatnonzero(first.alike & (numbers == numbers[like])).tolist())

    def _like(self, rank: int) -> int | None:
        assigned = self._assigned()
        number = assigned.of(rank)
        return None if number is None else assigned.roles[number].rank

    def _simplest(self, rank: int, first: Totals, like: int) -> int:
        """Returns a rank that does what `rank` does, and differs from `like` in one digit."""
        grid = self._assigned().grid
        pairs = zip(grid.digits, grid.digits_of(rank), grid.digits_of(like), strict=True)
        moves = [(one - other) * digit.stride for digit, one, other in pairs if one != other]
        for move in moves if len(moves) > 1 else []:
            near = like + move
            if near not in self.roles and not first.difference(
                self.capture(near, only_first=True)[1]
            ):
                return near
        return rank

    def _divide(self, like: int, rank: int, difference: str) -> None:
        """Captures a rank that differs, and those between it and the rank that it is not like."""
        before = dict(self.roles)
        self._follow(rank)
        between = list(self._assigned().missing())
        if len(between) <= _MOST_BETWEEN:
            for other in between:
                if other not in self.roles:
                    self._follow(other)
            return
        self.roles = before
        self._remark(like, f"rank {rank:,} has {difference} compared with rank {like:,}, and is "
                           "priced like it: no process group or message separates such ranks; "
                           "name one of each kind with --only-ranks")  # fmt: skip

    def _remark(self, rank: int, text: str) -> None:
        role = self.roles[rank]
        self.roles[rank] = replace(role, remarks=(*role.remarks, text))


def patterns(world: int, groups: Iterable[Sequence[int]]) -> list[int]:
    """Returns the first rank of each pattern of process groups, ascending.

    Ranks have the same pattern if they are in as many groups of each shape.

    Examples:
        >>> patterns(8, [(0, 1), (2, 3), (4, 5), (6, 7)])
        [0]
        >>> patterns(8, [(4, 5, 6, 7)])
        [0, 4]
    """
    shapes: dict[tuple[int, ...], int] = {}
    members: list[list[int]] = [[] for _ in range(world)]
    for ranks in groups:
        shape = tuple(rank - ranks[0] for rank in ranks)
        number = shapes.setdefault(shape, len(shapes))
        for rank in ranks:
            members[rank].append(number)
    first: dict[tuple[int, ...], int] = {}
    for rank, numbers in enumerate(members):
        first.setdefault(tuple(sorted(numbers)), rank)
    return list(first.values())
