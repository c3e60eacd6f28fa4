"""Which ranks take the branches of a program that the captured rank takes.

The program gets its rank as an integer that knows its value on every rank of the job. Arithmetic
keeps these values; a comparison divides the ranks by its outcome. Where the number becomes an
index, a length or a key, only ranks of the same value remain. Other code than the program's own
gets it as any other integer: what PyTorch does by rank shows in process groups and messages.

Examples:
    >>> followed = Followed(5, 8, is_users=lambda file: True)
    >>> rank = followed.number(range(8))
    >>> rank % 4 == 1, followed.alike.nonzero()[0].tolist()
    (True, [1, 5])
    >>> rank > 3, followed.alike.nonzero()[0].tolist()
    (True, [5])
"""

from __future__ import annotations

import operator
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["NAMES", "Followed"]

_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_COMPUTED = ("add", "sub", "mul", "floordiv", "mod")
_ALONE = ("neg", "pos", "abs")
_SETTLED = ("hash", "int", "float", "truediv", "rtruediv", "pow", "rpow", "lshift", "rlshift",
            "rshift", "rrshift", "and", "rand", "or", "ror", "xor", "rxor", "invert", "rdivmod",
            "round")  # fmt: skip
"""Methods whose results are no longer followed."""


class Followed:
    """The ranks that take the branches of the rank that runs.

    Attributes:
        rank: The rank that runs.
        alike: Whether a rank has taken the same branches so far, by rank.
    """

    def __init__(self, rank: int, world: int, *, is_users: Callable[[str], bool]) -> None:
        """Starts with all ranks.

        Args:
            rank: The rank that runs.
            world: The number of ranks.
            is_users: Returns whether a file is one of the program.
        """
        self.rank = rank
        self.alike = np.ones(world, np.bool_)
        self._is_users = is_users
        self._files: dict[str, bool] = {}
        self._tests: dict[tuple[object, ...], list[tuple[frozenset[int], Any]]] = {}
        self._turns: dict[Turns, tuple[Counter[int], Any]] = {}

    def number(self, values: Sequence[int]) -> Number:
        """Returns a number of this rank, by its values on all ranks."""
        return Number.of(self, np.asarray(values, np.int64))

    def from_program(self, depth: int) -> bool:
        """Returns whether the program itself calls, `depth` frames above the caller."""
        file = sys._getframe(depth + 1).f_code.co_filename
        if file not in self._files:
            self._files[file] = self._is_users(file)
        return self._files[file]

    def divide(self, outcomes: Any) -> None:  # noqa: ANN401 - an array
        """Keeps the ranks with the outcome of this one."""
        self.alike &= outcomes == outcomes[self.rank]

    def test(self, place: tuple[object, ...], members: frozenset[int], values: Any) -> None:  # noqa: ANN401
        """Notes that the program tests whether a number is one of some numbers.

        Args:
            place: Where it does.
            members: The numbers.
            values: The number on all ranks.
        """
        self._tests.setdefault(place, []).append((members, values))

    def turn(self, turns: Turns, each: int, values: Any) -> None:  # noqa: ANN401
        """Notes that the turn of a number comes in a loop.

        Args:
            turns: The loop.
            each: The number.
            values: The number of each rank with which the program compares it.
        """
        self._turns.setdefault(turns, (Counter(), values))[0][each] += 1

    def end(self, groups: Iterable[Sequence[int]]) -> None:
        """Divides the ranks by tests for membership and turns, when the program has ended.

        Ranks that have their turn as often as this one take its branches. In a loop, a program
        tests which process group has its rank. Those of the same shape are interchangeable: the
        branch is whether one of them has the rank.

        Args:
            groups: The ranks of the process groups.
        """
        known = set(map(frozenset, groups))
        for tests in self._tests.values():
            unions: dict[object, tuple[set[int], Any]] = {}
            for members, values in tests:
                first = min(members, default=0)
                shape = frozenset(one - first for one in members) if members in known else members
                union, _ = unions.setdefault((shape, id(values)), (set(), values))
                union |= members
            for union, values in unions.values():
                self.divide(np.isin(values, list(union)))
        self._tests.clear()
        for counts, values in self._turns.values():
            self.divide(np.array([counts[each] for each in values.tolist()]))
        self._turns.clear()

    def variables(self, values: Mapping[str, Sequence[int]]) -> tuple[type, str, Any]:
        """Returns what replaces reading variables of the environment, as (class, name, value).

        Args:
            values: Variables with their values on all ranks.
        """
        read = os._Environ.__getitem__

        def get(environment: Any, name: str) -> str:  # noqa: ANN401
            text = read(environment, name)
            of = values.get(name) if environment is os.environ else None
            if of is None or text != str(of[self.rank]):
                return str(text)
            return Text.of(self, text, np.asarray(of, np.int64))

        return os._Environ, "__getitem__", get


class Number(int):
    """A number that differs between ranks."""

    followed: Followed
    values: Any

    @classmethod
    def of(cls, followed: Followed, values: Any) -> Number:  # noqa: ANN401
        """Returns a number by its values on all ranks."""
        made = cls(values[followed.rank])
        made.followed, made.values = followed, values
        return made

    def settle(self) -> None:
        """Keeps the ranks that have the same number."""
        self.followed.divide(self.values)

    def __bool__(self) -> bool:
        """Returns whether it is not 0."""
        if self.followed.from_program(1):
            self.followed.divide(self.values != 0)
        return int.__bool__(self)

    def __divmod__(self, other: Any) -> Any:  # noqa: ANN401
        """Returns quotient and remainder."""
        return self // other, self % other

    def __reduce__(self) -> tuple[object, ...]:
        """Returns what copies it, as an integer."""
        return int, (int.__int__(self),)


class Text(str):
    """The text of a number that differs between ranks, of a variable of the environment."""

    followed: Followed
    values: Any

    @classmethod
    def of(cls, followed: Followed, text: str, values: Any) -> Text:  # noqa: ANN401
        """Returns the text of a number."""
        made = cls(text)
        made.followed, made.values = followed, values
        return made

    __slots__ = ("followed", "values")

    def _divide(self, other: object) -> None:
        text = str(other)
        equal = self.values == int(text) if text.isdecimal() else np.zeros(len(self.values))
        self.followed.divide(equal)

    def __eq__(self, other: object) -> bool:
        """Returns whether both are the same text."""
        if self.followed.from_program(1):
            self._divide(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        """Returns whether both are other texts."""
        if self.followed.from_program(1):
            self._divide(other)
        return str.__ne__(self, other)

    def __hash__(self) -> int:
        """Returns the hash of the text."""
        if self.followed.from_program(1):
            self.followed.divide(self.values)
        return str.__hash__(self)

    def __int__(self) -> int:
        """Returns the number, which is no longer followed."""
        if self.followed.from_program(1):
            self.followed.divide(self.values)
        return int(str(self))


class Turns:
    """The turns of ranks in a loop of the program (:mod:`tutti.training.capture.turns`).

    Attributes:
        number: The rank's number, in its turn.
        value: The number of the loop that it equals.
    """

    def __init__(self) -> None:
        """Starts before the loop."""
        self.number: Any = None
        self.value: Any = None

    def comes(self, number: Any, each: Any) -> bool:  # noqa: ANN401
        """Returns whether it is the turn of a number."""
        self.number = self.value = each
        if type(number) is not Number or type(each) is not int:
            for one in (number, each):
                if isinstance(one, Number | Text):
                    one.followed.divide(one.values)
            return bool(number == each)
        number.followed.turn(self, each, number.values)
        self.number = number
        return int.__eq__(number, each)


def _values_of(other: Any) -> Any:  # noqa: ANN401
    return other.values if type(other) is Number else other


def _compared(name: str) -> Callable[[Number, Any], Any]:
    plain, compare = getattr(int, f"__{name}__"), getattr(operator, name)

    def method(self: Number, other: Any) -> Any:  # noqa: ANN401
        if isinstance(other, int | float) and self.followed.from_program(1):
            self.followed.divide(compare(self.values, _values_of(other)))
        return plain(self, other)

    return method


def _computed(name: str, reflected: str = "") -> Callable[[Number, Any], Any]:
    plain, compute = getattr(int, f"__{reflected}{name}__"), getattr(operator, name)

    def method(self: Number, other: Any) -> Any:  # noqa: ANN401
        result = plain(self, other)
        if not isinstance(other, int):
            # The result is a real number or a list of this length.
            if self.followed.from_program(1):
                self.settle()
            return result
        operands = (self.values, _values_of(other))
        with np.errstate(all="ignore"):
            return Number.of(self.followed, compute(*operands[:: -1 if reflected else 1]))

    return method


def _alone(name: str) -> Callable[[Number], Any]:
    compute = getattr(operator, name)
    return lambda self: Number.of(self.followed, compute(self.values))


def _settled(name: str) -> Callable[..., Any]:
    plain = getattr(int, f"__{name}__")

    def method(self: Number, *others: Any) -> Any:  # noqa: ANN401
        if self.followed.from_program(1):
            for one in (self, *others):
                if type(one) is Number:
                    one.settle()
        return plain(self, *others)

    return method


for _name in _COMPARED:
    setattr(Number, f"__{_name}__", _compared(_name))
for _name in _COMPUTED:
    setattr(Number, f"__{_name}__", _computed(_name))
    setattr(Number, f"__r{_name}__", _computed(_name, "r"))
for _name in _ALONE:
    setattr(Number, f"__{_name}__", _alone(_name))
for _name in _SETTLED:
    setattr(Number, f"__{_name}__", _settled(_name))


def _converted(value: Any = 0, *more: Any, **named: Any) -> int:  # noqa: ANN401
    """Converts a value as `int` does; numbers that are followed remain."""
    if type(value) is Text:
        return Number.of(value.followed, value.values)
    return value if type(value) is Number else int(value, *more, **named)


def _index(value: Any) -> Any:  # noqa: ANN401
    """Returns an index, a length or a part of an index, whose number then divides the ranks."""
    if type(value) is Number:
        value.settle()
    return value


def _contains(members: Any, value: Any) -> bool:  # noqa: ANN401
    """Returns whether a container has a value."""
    is_known = isinstance(members, list | tuple | range | set | frozenset)
    if type(value) is not Number or not is_known or not all(type(one) is int for one in members):
        return value in members
    frame = sys._getframe(1)
    place = (frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)
    value.followed.test(place, frozenset(members), value.values)
    return int.__int__(value) in members


NAMES: dict[str, Callable[..., Any]] = {
    "__tutti_int__": _converted,
    "__tutti_index__": _index,
    "__tutti_in__": _contains,
    "__tutti_turns__": Turns,
}
"""The functions that rewritten code calls (:mod:`tutti.training.capture.rewritten`)."""
