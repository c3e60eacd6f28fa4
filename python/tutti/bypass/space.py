"""What a bypass mesh has room for: hops along its lines, and which of them fit together.

A hop is a link from one node to another of the same row or column: between neighbours the mesh's
own link or a bypass piece of one segment, otherwise a bypass piece. Which of them it is matters to
nobody until wires and ports are given out, because

* pieces on one wire must not overlap, and intervals of which no more than W cover a segment always
  fit on W wires; the mesh's own link is one more wire for hops of one segment;
* a port of a router takes its own mesh link or a bypass piece that its mux admits, so a set of hops
  has ports whenever no group of ports is asked for more hops than it has ports.

So a set of hops fits when three counts do: pieces on each segment, hops that leave each group of
output ports, and hops that arrive at each group of input ports.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.bypass.network import Muxes

Hop = tuple[int, int]
"""Source and destination: nodes of one row or column."""


class Line(NamedTuple):
    """A row or column in one of its two directions."""

    axis: Literal["x", "y"]
    number: int
    """Of the row or column."""
    sign: Literal["+", "-"]


class Stretch(NamedTuple):
    """Where a hop lies: on which line, from which segment on, and before which."""

    line: Line
    first: int
    end: int

    @property
    def span(self) -> int:
        """How many segments it covers."""
        return self.end - self.first


PORTS: dict[Muxes, int] = {"own": 1, "axis": 2, "sign": 2, "any": 4}
"""How many ports a group has: those that one kind of mux lets a piece choose among."""


@dataclass(frozen=True)
class Space:
    """All hops of a mesh of side x side nodes, node = row side + column, with W bypass wires."""

    side: int
    wires: int = 1
    muxes: Muxes = "any"

    @property
    def nodes(self) -> int:
        """How many there are."""
        return self.side * self.side

    @cached_property
    def hops(self) -> dict[Hop, Stretch]:
        """Every hop there can be, in the order of its ends."""
        side = self.side
        found: dict[Hop, Stretch] = {}
        for node in range(self.nodes):
            row, column = divmod(node, side)
            for other in range(side):
                if other != column:
                    found[node, row * side + other] = _stretch("x", row, column, other)
                if other != row:
                    found[node, other * side + column] = _stretch("y", column, row, other)
        return dict(sorted(found.items()))

    @cached_property
    def leaving(self) -> dict[int, list[int]]:
        """Where hops lead from each node, nearest first."""
        near: dict[int, list[int]] = {node: [] for node in range(self.nodes)}
        for source, destination in sorted(self.hops, key=lambda hop: (self.hops[hop].span, hop)):
            near[source].append(destination)
        return near

    def group(self, line: Line) -> str:
        """The ports that a hop along this line may leave and arrive by."""
        kept = {"own": (line.axis, line.sign), "axis": (line.axis,), "sign": (line.sign,)}
        return "".join(kept.get(self.muxes, ()))

    @property
    def ports(self) -> int:
        """How many ports a group has."""
        return PORTS[self.muxes]

    def distance(self, a: int, b: int) -> int:
        """In segments, along rows and columns."""
        (row, column), (other_row, other_column) = divmod(a, self.side), divmod(b, self.side)
        return abs(row - other_row) + abs(column - other_column)

    def xy(self, source: int, destination: int) -> list[int]:
        """The way along the row, then along the column, from neighbour to neighbour."""
        (row, column), (end_row, end_column) = (divmod(n, self.side) for n in (source, destination))
        across = [row * self.side + at for at in _from_to(column, end_column)]
        along = [at * self.side + end_column for at in _from_to(row, end_row)]
        return [*across, *along[1:]]


def _stretch(axis: Literal["x", "y"], number: int, at: int, to: int) -> Stretch:
    line = Line(axis, number, "+" if to > at else "-")
    return Stretch(line, min(at, to), max(at, to))


def _from_to(first: int, last: int) -> range:
    return range(first, last + 1) if last >= first else range(first, last - 1, -1)


class TakenHops:
    """The hops that are taken, how often, and what they leave free."""

    def __init__(self, space: Space, hops: Iterable[Hop] = ()) -> None:
        """Takes these hops, which must fit."""
        self.space = space
        self.hops: Counter[Hop] = Counter()
        """How many links there are from one node to another."""
        self._long: Counter[tuple[Line, int]] = Counter()
        self._all: Counter[tuple[Line, int]] = Counter()
        self._out: Counter[tuple[int, str]] = Counter()
        self._in: Counter[tuple[int, str]] = Counter()
        for hop in hops:
            self.take(hop)

    def fits(self, hop: Hop) -> bool:
        """Whether there is room for one more."""
        space = self.space
        stretch = space.hops[hop]
        line, group = stretch.line, space.group(stretch.line)
        if self._out[hop[0], group] >= space.ports or self._in[hop[1], group] >= space.ports:
            return False
        segments = range(stretch.first, stretch.end)
        if any(self._all[line, segment] > space.wires for segment in segments):
            return False
        return stretch.span == 1 or all(
            self._long[line, segment] < space.wires for segment in segments
        )

    def add(self, hops: Iterable[Hop]) -> bool:
        """Takes all of these if there is room for them at once, otherwise none."""
        placed: list[Hop] = []
        for hop in hops:
            if not self.fits(hop):
                for before in placed:
                    self.give(before)
                return False
            self.take(hop)
            placed.append(hop)
        return True

    def take(self, hop: Hop) -> None:
        """Takes one more."""
        self._count(hop, 1)

    def give(self, hop: Hop) -> None:
        """Gives one back."""
        self._count(hop, -1)
        if not self.hops[hop]:
            del self.hops[hop]

    def _count(self, hop: Hop, one: int) -> None:
        stretch = self.space.hops[hop]
        group = self.space.group(stretch.line)
        self.hops[hop] += one
        self._out[hop[0], group] += one
        self._in[hop[1], group] += one
        for segment in range(stretch.first, stretch.end):
            self._all[stretch.line, segment] += one
            if stretch.span > 1:
                self._long[stretch.line, segment] += one
