"""Process groups as dimensions of the ranks.

A group of a device mesh has the ranks that differ in some digits of their number, in a mixed-radix
notation that all groups share. The engine of a step knows groups by these digits.

Examples:
    >>> pairs_of((0, 1, 8, 9))
    (0, [(1, 2), (8, 2)])
    >>> [(one.stride, one.nodes) for one in Grid.of(16, [(0, 1), (0, 8)]).digits]
    [(1, 2), (2, 4), (8, 2)]
    >>> Grid.of(16, [(0, 1), (0, 8)]).mask((0, 8))
    4
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Digit", "Grid", "pairs_of", "ranks_of"]


@dataclass(frozen=True)
class Digit:
    """A digit of the ranks.

    Attributes:
        stride: The difference of ranks that differ by one in this digit.
        nodes: The values of the digit.
    """

    stride: int
    nodes: int


def pairs_of(ranks: Sequence[int]) -> tuple[int, list[tuple[int, int]]]:
    """Returns the first rank of a group, and the strides and sizes that span it.

    Raises:
        CaptureError: The ranks are not a grid.
    """
    first, offsets = ranks[0], [rank - ranks[0] for rank in ranks]
    found: list[tuple[int, int]] = []
    block = 1
    while block < len(offsets):
        stride = offsets[block]
        size = 1
        while (size * block < len(offsets)
               and offsets[size * block] == size * stride):  # fmt: skip
            size += 1
        found.append((stride, size))
        block *= size
    if list(ranks_of(first, found)) != list(ranks):
        shown = ", ".join(map(str, ranks[:8]))
        message = f"a process group has the ranks {shown}, ...: expected a grid of ranks"
        raise CaptureError(message, kind="groups")
    return first, found


def ranks_of(first: int, strides: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Returns the ranks of a group, ascending."""
    spans = [[stride * at for at in range(size)] for stride, size in strides]
    return tuple(sorted(first + sum(parts) for parts in itertools.product(*spans)))


def _apart(ranks: Sequence[int], world: int) -> CaptureError:
    """Returns the error of a group that no mesh has, such as the first and the last rank."""
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    message = f"a process group has the ranks {shown} of {world:,}: expected those of a mesh"
    return CaptureError(message, kind="groups")


def _misfit(
    world: int, lower: int, upper: int, names: Mapping[tuple[int, ...], str]
) -> CaptureError:
    """Returns the error of groups whose ranks are no mesh of the job."""
    if upper != world:
        message = f"groups of {world:,} ranks have strides {lower} and {upper}"
        return CaptureError(f"{message}: expected strides that divide each other", kind="groups")
    parts = {name: len(ranks) for ranks, name in names.items() if len(ranks) < world}
    of = " x ".join(f"{size:,} ({name})" for name, size in parts.items())
    message = (f"the process groups, {of or lower}, are those of a mesh of {lower:,} ranks, and "
               f"the job has {world:,}: expected a multiple of {lower:,} ranks")  # fmt: skip
    nearest = max(world // lower, 1) * lower
    hint = f"`--world-size {nearest}`, or another shape of the mesh"
    return CaptureError(message, kind="groups", hint=hint)


@dataclass(frozen=True)
class Grid:
    """The digits of all ranks, the innermost first."""

    digits: tuple[Digit, ...]

    @classmethod
    def of(
        cls,
        world: int,
        groups: Iterable[Sequence[int]],
        names: Mapping[tuple[int, ...], str] | None = None,
    ) -> Grid:
        """Returns the coarsest digits that span all groups.

        Args:
            world: The number of ranks.
            groups: Their ranks.
            names: The names of groups by their ranks, for errors.

        Raises:
            CaptureError: The groups need digits that do not divide each other.
        """
        ends = {1, world}
        for ranks in groups:
            for stride, size in pairs_of(ranks)[1]:
                if stride * size > world:
                    raise _apart(ranks, world)
                ends |= {stride, stride * size}
        order = sorted(ends)
        for lower, upper in itertools.pairwise(order):
            if upper % lower:
                raise _misfit(world, lower, upper, names or {})
        digits = [Digit(lower, upper // lower) for lower, upper in itertools.pairwise(order)]
        return cls(tuple(digits) or (Digit(1, 1),))

    def mask(self, ranks: Sequence[int]) -> int:
        """Returns the digits in which the ranks of a group differ, a bit each."""
        mask = 0
        for stride, size in pairs_of(ranks)[1]:
            for place, digit in enumerate(self.digits):
                if stride <= digit.stride < stride * size:
                    mask |= 1 << place
        return mask

    def digits_of(self, rank: int) -> tuple[int, ...]:
        """Returns the digits of a rank."""
        return tuple(rank // one.stride % one.nodes for one in self.digits)

    def distance(self, rank: int, peer: int) -> int:
        """Returns the digits in which two ranks differ, a bit each."""
        pairs = zip(self.digits_of(rank), self.digits_of(peer), strict=True)
        return sum(1 << place for place, (one, other) in enumerate(pairs) if one != other)
