"""Which ranks are captured as one of each role, without torch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from tutti.training.capture import search
from tutti.training.capture.assignment import Totals, check_messages
from tutti.training.capture.record import Exchange, Group, Operator, Role
from tutti.training.capture.search import Search, patterns
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

WORLD = 16
ROWS = [tuple(range(first, first + 4)) for first in range(0, WORLD, 4)]


def computed(flops: int) -> Operator:
    return Operator("aten.mm", "", "forward", 0, "product", flops=flops, bytes=flops)


def exchanged(collective: str, size: int, peer: int | None = None) -> Operator:
    kind: Literal["collective", "message"] = "collective" if peer is None else "message"
    to = Exchange(collective, 0, size, peer)
    return Operator(collective, "", "forward", 1, kind, bytes=size, exchange=to)


def role_of(rank: int, *operators: Operator) -> Role:
    return Role(rank, operators, (Group("row", ROWS[rank // 4]),))


class Program:
    """A program whose ranks compute what a function of them returns, and reduce in their row."""

    def __init__(
        self, flops: Callable[[int], int], fails: tuple[int, ...] = (), *, branches: bool = False
    ) -> None:
        self.flops, self.fails, self.branches = flops, fails, branches
        self.first: list[int] = []

    def __call__(self, rank: int, *, only_first: bool) -> tuple[Role, Totals]:
        if only_first:
            self.first.append(rank)
        if rank in self.fails:
            raise CaptureError("train.py, line 3: no file", kind="program")
        role = role_of(rank, computed(self.flops(rank)), exchanged("all_reduce", 64))
        alike = np.arange(WORLD) == rank if self.branches else None
        return role, replace(Totals.of(rank, role.operators, role.groups), alike=alike)

    def search(self) -> tuple[Role, ...]:
        return Search(WORLD, self, lambda: ROWS).every()


def test_equal_ranks_are_checked_by_the_first_step_of_the_last() -> None:
    program = Program(lambda rank: 1000 + rank % 2)
    assert [role.rank for role in program.search()] == [0]
    assert program.first == [15]


def test_ranks_are_divided_by_the_digits_that_matter() -> None:
    """Rows of ranks differ, ranks of a row do not: one of each row is captured."""
    program = Program(lambda rank: 1000 + rank // 4)
    assert [role.rank for role in program.search()] == [0]
    program = Program(lambda rank: 1000 * (1 + rank // 8))
    assert [role.rank for role in program.search()] == [0, 4, 8, 12]
    assert program.first == [15, 3, 12]


def test_branches_that_do_the_same_have_one_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank takes other branches; three of four kinds of ranks do the same."""
    program = Program(lambda rank: 1000 + 500 * (rank % 4 == 1), branches=True)
    roles = program.search()
    assert {role.rank: role.ranks for role in roles} == {0: (), 1: (1, 5, 9, 13)}
    assert sorted(program.first) == list(range(1, WORLD))
    assert not any(role.remarks for role in roles)
    monkeypatch.setattr(search, "_MOST_OPERATORS", 600)
    program = Program(lambda _: 1000, branches=True)
    (line,) = program.search()[0].remarks
    assert "priced as rank 0: 6 such ranks do the same" in line


def test_a_last_rank_that_fails_is_remarked() -> None:
    (role,) = Program(lambda _: 1000, fails=(15,)).search()
    (line,) = role.remarks
    expected = "rank 15 is priced as rank 0, since it cannot be captured: train.py, line 3: no file"
    assert line == expected


def test_patterns_are_shapes_of_groups() -> None:
    assert patterns(WORLD, ROWS) == [0]
    assert patterns(WORLD, [*ROWS, (0, 12), (1, 13)]) == [0, 2]


def test_differences_are_in_words() -> None:
    groups = (Group("row", (0, 1)),)
    mine = Totals.of(0, [computed(100), exchanged("all_reduce", 8)], groups)
    same = Totals.of(5, [computed(100), exchanged("all_reduce", 8)], (Group("row", (4, 5)),))
    assert not mine.difference(same)
    more = Totals.of(5, [computed(150), exchanged("all_reduce", 8)], groups)
    assert mine.difference(more) == "+50% FLOPs"
    none = Totals.of(5, [computed(100)], groups)
    expected = "0 in place of 1 call of all_reduce among 2 ranks"
    assert mine.difference(none) == expected
    with pytest.raises(CaptureError, match="rank 1 issues 0 calls of all_reduce in a group of 2"):
        mine.difference(Totals.of(1, [computed(100)], groups))


def test_messages_have_two_ends() -> None:
    sends, receives = exchanged("send", 1024, 4), exchanged("recv", 1024, 0)
    check_messages([role_of(0, sends), role_of(4, receives)])
    check_messages([role_of(0, sends)])
    with pytest.raises(CaptureError, match="rank 0 sends nothing to rank 4, which receives 1 mess"):
        check_messages([role_of(0), role_of(4, receives)])
