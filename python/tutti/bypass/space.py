"""The resources of a bypass mesh: hops along its lines, and which of them fit together.

A hop is a link between two nodes of one row or column: a mesh link between neighbours, or a piece
of a bypass wire. Wires and ports are assigned later, because two conditions guarantee that they
exist:

* Pieces on one wire must not overlap. Intervals of which at most W cover a segment always fit on W
  wires. The mesh link is an additional wire for hops of one segment.
* A port connects to its mesh link or to a piece that its multiplexer allows. A set of hops has
  ports if every group of ports has at least as many ports as hops.

So a set of hops fits if three counts are within limits: pieces on each segment, hops out of each
group of output ports, and hops into each group of input ports.
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
    """The number of the row or column."""
    sign: Literal["+", "-"]


class Stretch(NamedTuple):
    """The position of a hop: its line, its first segment and the one after its last."""

    line: Line
    first: int
    end: int

    @property
    def span(self) -> int:
        """The number of segments."""
        return self.end - self.first


PORTS: dict[Muxes, int] = {"own": 1, "axis": 2, "sign": 2, "any": 4}
"""The ports in a group, among which a multiplexer setting lets a piece choose."""


@dataclass(frozen=True)
class Space:
    """All hops of a mesh of C columns and R rows, node = row C + column, with W bypass wires."""

    columns: int
    rows: int
    wires: int = 1
    muxes: Muxes = "any"

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.columns * self.rows

    @property
    def mesh_links(self) -> int:
        """The number of mesh links, and of segments of one wire per direction of each line."""
        return 2 * (self.rows * (self.columns - 1) + self.columns * (self.rows - 1))

    @cached_property
    def hops(self) -> dict[Hop, Stretch]:
        """All possible hops, ordered by their ends."""
        columns = self.columns
        found: dict[Hop, Stretch] = {}
        for node in range(self.nodes):
            row, column = divmod(node, columns)
            for other in range(columns):
                if other != column:
                    found[node, row * columns + other] = _stretch("x", row, column, other)
            for other in range(self.rows):
                if other != row:
                    found[node, other * columns + column] = _stretch("y", column, row, other)
        return dict(sorted(found.items()))

    @cached_property
    def leaving(self) -> dict[int, list[int]]:
        """The destinations of the hops from each node, nearest first."""
        near: dict[int, list[int]] = {node: [] for node in range(self.nodes)}
        for source, destination in sorted(self.hops, key=lambda hop: (self.hops[hop].span, hop)):
            near[source].append(destination)
        return near

    def group(self, line: Line) -> str:
        """Returns the port group of hops along this line."""
        fields = {"own": (line.axis, line.sign), "axis": (line.axis,), "sign": (line.sign,)}
        return "".join(fields.get(self.muxes, ()))

    @property
    def ports(self) -> int:
        """The number of ports in a group."""
        return PORTS[self.muxes]

    def distance(self, a: int, b: int) -> int:
        """Returns the distance in segments along rows and columns."""
        (row, column), (other_row, other_column) = (divmod(n, self.columns) for n in (a, b))
        return abs(row - other_row) + abs(column - other_column)

    def xy(self, source: int, destination: int) -> list[int]:
        """Returns the dimension-order path: along the row, then along the column."""
        width = self.columns
        (row, column), (end_row, end_column) = (divmod(n, width) for n in (source, destination))
        across = [row * width + at for at in _from_to(column, end_column)]
        along = [at * width + end_column for at in _from_to(row, end_row)]
        return [*across, *along[1:]]


def _stretch(axis: Literal["x", "y"], number: int, at: int, to: int) -> Stretch:
    line = Line(axis, number, "+" if to > at else "-")
    return Stretch(line, min(at, to), max(at, to))


def _from_to(first: int, last: int) -> range:
    return range(first, last + 1) if last >= first else range(first, last - 1, -1)


class TakenHops:
    """The multiset of hops in use, and the remaining resources."""

    def __init__(self, space: Space, hops: Iterable[Hop] = ()) -> None:
        """Adds these hops, which must fit."""
        self.space = space
        self.hops: Counter[Hop] = Counter()
        """The number of links of each hop."""
        self._long: Counter[tuple[Line, int]] = Counter()
        self._all: Counter[tuple[Line, int]] = Counter()
        self._out: Counter[tuple[int, str]] = Counter()
        self._in: Counter[tuple[int, str]] = Counter()
        for hop in hops:
            self.take(hop)

    def fits(self, hop: Hop) -> bool:
        """Whether another link of this hop fits."""
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
        """Adds all of these hops if they fit together, otherwise none."""
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
        """Adds a hop."""
        self._count(hop, 1)

    def give(self, hop: Hop) -> None:
        """Removes a hop."""
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
