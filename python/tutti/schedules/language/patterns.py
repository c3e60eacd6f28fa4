"""Finds loops over ranks and over steps in the statements of rounds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.language.trace import Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FEWEST = 3
"""Fewest ranks of a loop, unless it is over all ranks."""


class Values(NamedTuple):
    """A statement as a shape and numbers: the rank and first chunk of each region.

    Attributes:
        shape: All that is equal in a loop.
        numbers: The numbers that may depend on the rank.
    """

    shape: tuple[object, ...]
    numbers: tuple[int, ...]


def values_of(statement: Statement) -> Values | None:
    """Returns the shape and the numbers of a statement; None if it never is in a loop."""
    if statement.kind not in {"copy", "fold"}:
        return None
    regions = []
    for each in (*statement.targets, *statement.operands):
        if isinstance(each, Sent):
            return None
        regions.append(each)
    shape = (
        statement.kind,
        statement.in_network,
        statement.multicast,
        len(statement.targets),
        *((each.buffer, each.end - each.start) for each in regions),
    )
    return Values(shape, tuple(number for each in regions for number in (each.rank, each.start)))


class _Form(NamedTuple):
    """A number as a function of the rank r and a constant c.

    Attributes:
        value: The function of r, c and the number of ranks.
        constant: The constant that gives a value at a rank.
        text: The expression, from the text of c, such as ``" + 1"`` or ``"4"``.
        is_offset: Whether c is added to the rank.
        is_modular: Whether c counts modulo the number of ranks.
    """

    value: Callable[[int, int, int], int]
    constant: Callable[[int, int, int], int]
    text: Callable[[str, int], str]
    is_offset: bool = False
    is_modular: bool = False


_FORMS = {
    "constant": _Form(lambda _r, c, _n: c, lambda v, _r, _n: v, lambda c, _n: c),
    "rotated": _Form(
        lambda r, c, n: (r + c) % n,
        lambda v, r, n: (v - r) % n,
        lambda c, n: f"(rank{c}) % {n}" if c else "rank",
        is_offset=True,
        is_modular=True,
    ),
    "exclusive or": _Form(
        lambda r, c, _n: r ^ c, lambda v, r, _n: v ^ r, lambda c, _n: f"rank ^ {c}"
    ),
    "lower": _Form(
        lambda r, c, _n: min(r, r ^ c), lambda _v, _r, _n: 0, lambda c, _n: f"min(rank, rank ^ {c})"
    ),
    "higher": _Form(
        lambda r, c, _n: max(r, r ^ c), lambda _v, _r, _n: 0, lambda c, _n: f"max(rank, rank ^ {c})"
    ),
    "shifted": _Form(
        lambda r, c, _n: r + c,
        lambda v, r, _n: v - r,
        lambda c, _n: f"rank{c}",
        is_offset=True,
    ),
}


def _fits(numbers: Sequence[int], owners: Sequence[int], ranks: int) -> dict[str, int]:
    """Returns the constant of each form that gives the numbers at the owners."""
    found = {}
    for name, form in _FORMS.items():
        if name in {"lower", "higher"}:
            changed = {number ^ owner for number, owner in zip(numbers, owners, strict=True)} - {0}
            constant = changed.pop() if len(changed) == 1 else 0
            if not constant:
                continue
        else:
            constant = form.constant(numbers[0], owners[0], ranks)
        if all(
            form.value(owner, constant, ranks) == number
            for number, owner in zip(numbers, owners, strict=True)
        ):
            found[name] = constant
    return found


@dataclass(frozen=True)
class Loop:
    """A loop over ranks, and over steps if there are several rounds of one pattern.

    Attributes:
        owners: The ranks.
        ranks: The number of ranks of the schedule.
        shapes: The shape of each statement of the body.
        constants: For each round, statement and number: the forms that fit, with their constants.
    """

    owners: range
    ranks: int
    shapes: tuple[tuple[object, ...], ...]
    constants: tuple[tuple[tuple[dict[str, int], ...], ...], ...]

    @property
    def steps(self) -> int:
        """The number of rounds."""
        return len(self.constants)

    def expressions(self) -> list[list[str]] | None:
        """Returns the expression of each number of each statement; None if one has no form."""
        found = []
        for statement in range(len(self.shapes)):
            texts = []
            for number in range(len(self.constants[0][statement])):
                text = self._expression([each[statement][number] for each in self.constants])
                if text is None:
                    return None
                texts.append(text)
            found.append(texts)
        return found

    def _expression(self, rounds: Sequence[dict[str, int]]) -> str | None:
        for name, form in _FORMS.items():
            if all(name in each for each in rounds):
                constants = [each[name] for each in rounds]
                text = _constant(constants, form, self.ranks)
                if text is not None:
                    return form.text(text, self.ranks)
        return None


def _constant(constants: Sequence[int], form: _Form, ranks: int) -> str | None:
    """Returns a constant as a function of the step; None if it is not regular."""
    first = constants[0]
    modulus = ranks if form.is_modular else 0
    delta = constants[1] - first if len(constants) > 1 else 0
    differences = (each - first - delta * step for step, each in enumerate(constants))
    if all((each % modulus if modulus else each) == 0 for each in differences):
        if form.is_offset:
            return _signed(first, modulus) + _signed(delta, modulus, "step")
        return str(first) if delta == 0 else f"{first}{_signed(delta, 0, 'step')}"
    if form.is_offset:
        return None
    for shift, shifted in (("<<", [first << s for s in range(len(constants))]),
                           (">>", [first >> s for s in range(len(constants))])):  # fmt: skip
        if shifted == list(constants):
            return f"({first} {shift} step)"
    return None


def _signed(number: int, modulus: int, unit: str = "") -> str:
    """Returns a term with its sign, in the half of the residues closest to zero."""
    if modulus:
        number %= modulus
        number -= modulus if number > modulus // 2 else 0
    if number == 0:
        return ""
    sign, size = ("+", number) if number > 0 else ("-", -number)
    if unit:
        return f" {sign} {unit}" if size == 1 else f" {sign} {size} * {unit}"
    return f" {sign} {size}"


def _owner(statement: Statement) -> int | None:
    """Returns the rank whose iteration has a statement: the source of a copy, else the target."""
    first = statement.operands[0] if statement.operands else None
    if statement.kind == "copy" and isinstance(first, Region):
        return first.rank
    return statement.targets[0].rank if statement.targets else None


def ordered(statements: Sequence[Statement], owners: Sequence[int]) -> list[Statement]:
    """Returns the statements in the order of a loop over the owners."""
    by_owner = _by_owner(statements)
    return [each for owner in owners for each in by_owner[owner]]


def find_loop(statements: Sequence[Statement], ranks: int) -> Loop | None:
    """Returns the loop over ranks of one round; None if there is no simple one."""
    by_owner = _by_owner(statements)
    if None in by_owner or len(by_owner) < min(_FEWEST, ranks):
        return None
    owners = sorted(owner for owner in by_owner if owner is not None)
    stride = owners[1] - owners[0]
    progression = range(owners[0], owners[-1] + 1, stride)
    if list(progression) != owners or len({len(each) for each in by_owner.values()}) != 1:
        return None
    shapes, constants = [], []
    for column in zip(*(by_owner[owner] for owner in owners), strict=True):
        values = [values_of(each) for each in column]
        if None in values or len({each.shape for each in values if each}) != 1:
            return None
        known = [each for each in values if each is not None]
        shapes.append(known[0].shape)
        rows = zip(*(each.numbers for each in known), strict=True)
        constants.append(tuple(_fits(row, owners, ranks) for row in rows))
    loop = Loop(progression, ranks, tuple(shapes), (tuple(constants),))
    return loop if loop.expressions() is not None else None


def merged(first: Loop, second: Loop) -> Loop | None:
    """Returns one loop over the steps of both; None if they have no common pattern."""
    if (first.owners, first.shapes) != (second.owners, second.shapes):
        return None
    both = Loop(first.owners, first.ranks, first.shapes, first.constants + second.constants)
    return both if both.expressions() is not None else None


def _by_owner(statements: Sequence[Statement]) -> dict[int | None, list[Statement]]:
    found: dict[int | None, list[Statement]] = defaultdict(list)
    for each in statements:
        found[_owner(each)].append(each)
    return found
