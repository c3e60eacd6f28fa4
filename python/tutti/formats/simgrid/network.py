"""The network of a SimGrid platform: links, routes, and the graph that they imply.

A platform of SimGrid lists the links of each route, but not where links end. The graph follows from
the routes: the end of a link is the start of the next one. A link that joins more than two places,
such as a backbone, becomes a bus: two switches with a link between them, which all routes that use
the bus share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tutti import _core
from tutti.base.files.mistakes import mistake, shown
from tutti.formats.simgrid.zones import Zones
from tutti.topologies import Topology
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.base.units import TimePerByte
    from tutti.formats.xml_files import Element

_MOST_VERTICES: Final = 1 << 20
_MOST_LINKS: Final = 1 << 21
_MOST_ROUNDS: Final = 16
"""Attempts to place links before all of them become buses."""
_MOST_CHECKED: Final = 1 << 14
"""Routes between hosts that are compared with shortest paths."""

Policy = Literal["SHARED", "SPLITDUPLEX", "FATPIPE"]
Direction = Literal["NONE", "UP", "DOWN"]


class Cost(NamedTuple):
    """The rate and the latency, in ps, of a link."""

    rate: TimePerByte
    latency: int


@dataclass
class PlatformLink:
    """A link of a file. It ends at two points, or is a bus with two points per direction."""

    name: str
    cost: Cost
    policy: Policy
    ends: tuple[int, int]
    used: bool = False
    bus: bool = False
    buses: dict[Direction, tuple[int, int]] = field(default_factory=dict)


class Hop(NamedTuple):
    """A link of a route, with its direction in the file."""

    link: PlatformLink
    direction: Direction

    @property
    def back(self) -> Hop:
        """The link in the opposite direction."""
        opposite: dict[Direction, Direction] = {"UP": "DOWN", "DOWN": "UP", "NONE": "NONE"}
        return Hop(self.link, opposite[self.direction])


@dataclass
class Route:
    """The links from one point to another, in order.

    Attributes:
        fixed: Whether messages between the two points take this route, not a shorter one.
        through: The points at which each link starts and ends in this route.
    """

    source: int
    target: int
    hops: list[Hop]
    symmetrical: bool
    fixed: bool
    through: list[tuple[int, int]] = field(default_factory=list)


class Network:
    """Collects points, links and routes, and builds the topology.

    Attributes:
        losses: Counts of the parts that a topology does not represent, by their description.
        netpoints: The point of each host and router, by name.
        zones: The zones, with the hosts and routers in each.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._parents: list[int] = []
        self._pinned: list[str | None] = []
        self._hosts: list[int] = []
        self._kinds: dict[int, str] = {}
        self._edges: list[tuple[int, int, Cost]] = []
        self._routes: list[Route] = []
        self.losses: dict[str, int] = {}
        self.netpoints: dict[str, int] = {}
        self.zones = Zones()
        self.links: dict[str, PlatformLink] = {}

    def lose(self, text: str, count: int = 1) -> None:
        """Counts a part of the file that the topology does not represent."""
        self.losses[text] = self.losses.get(text, 0) + count

    def point(self, name: str | None = None, kind: str = "switch") -> int:
        """Adds a point; a point with a name is never merged with another one of a name."""
        if len(self._parents) >= _MOST_VERTICES:
            raise mistake(
                "has too many hosts and switches",
                source=self._source,
                expected=f"at most {_MOST_VERTICES:,}",
            )
        self._parents.append(len(self._parents))
        self._pinned.append(name)
        self._kinds[len(self._parents) - 1] = kind
        return len(self._parents) - 1

    def netpoint(self, element: Element, name: str, kind: Literal["npu", "router"]) -> int:
        """Adds a host or router to the current zone.

        Raises:
            ConfigError: The name exists.
        """
        self.zones.add(element, name)
        point = self.point(name, kind)
        self.netpoints[name] = point
        if kind == "npu":
            self._hosts.append(point)
        return point

    def link(self, element: Element, name: str, cost: Cost, policy: Policy) -> PlatformLink:
        """Adds a link.

        Raises:
            ConfigError: The name exists.
        """
        taken = {name} if policy != "SPLITDUPLEX" else {name, f"{name}_UP", f"{name}_DOWN"}
        split, _, direction = name.rpartition("_")
        same = self.links.get(split) if direction in {"UP", "DOWN"} else None
        if taken & self.links.keys() or (same is not None and same.policy == "SPLITDUPLEX"):
            raise mistake(
                f"two links have the name {shown(name)}",
                source=element.place,
                expected="each name once",
            )
        found = PlatformLink(name, cost, policy, (self.point(), self.point()))
        self.links[name] = found
        return found

    def edge(self, source: int, target: int, cost: Cost) -> None:
        """Adds a link in one direction between two points."""
        if len(self._edges) >= _MOST_LINKS:
            raise mistake(
                "has too many links", source=self._source, expected=f"at most {_MOST_LINKS:,}"
            )
        self._edges.append((source, target, cost))

    def cable(self, a: int, b: int, cost: Cost) -> None:
        """Adds a link in each direction between two points."""
        self.edge(a, b, cost)
        self.edge(b, a, cost)

    def route(
        self, source: int, target: int, hops: list[Hop], *, symmetrical: bool, fixed: bool = False
    ) -> None:
        """Adds a route; routes determine where links end."""
        self._routes.append(Route(source, target, hops, symmetrical, fixed))
        for hop in hops:
            hop.link.used = True

    def topology(self, name: str) -> Topology:
        """Builds the topology.

        Raises:
            TopologyError: There is no host, or hosts cannot reach each other.
        """
        self._place_links()
        self._connect()
        self._count_policies()
        topology = self._built(name)
        self._compare(topology)
        return topology

    def _find(self, point: int) -> int:
        root = point
        while self._parents[root] != root:
            root = self._parents[root]
        while self._parents[point] != root:
            self._parents[point], point = root, self._parents[point]
        return root

    def _merge(self, a: int, b: int) -> bool:
        a, b = self._find(a), self._find(b)
        if a == b:
            return True
        if self._pinned[a] is not None and self._pinned[b] is not None:
            return False
        if self._pinned[a] is None:
            a, b = b, a
        self._parents[b] = a
        return True

    def _place_links(self) -> None:
        """Merges the points at which links meet, with as few buses as the routes allow."""
        rounds = 0
        while True:
            before = self._parents[:]
            placed = {link.name for link in self.links.values() if link.bus}
            conflicts = [name for route in self._routes for name in self._place(route, placed)]
            loops = [
                link.name
                for link in self.links.values()
                if link.used
                and not link.bus
                and self._find(link.ends[0]) == self._find(link.ends[1])
            ]
            if not conflicts and not loops:
                return
            self._parents = before
            rounds += 1
            all_used = [link.name for link in self.links.values() if link.used and not link.bus]
            for found in dict.fromkeys(all_used if rounds == _MOST_ROUNDS else conflicts or loops):
                self._make_bus(self.links[found])

    def _make_bus(self, link: PlatformLink) -> None:
        link.bus = True
        directions: tuple[Direction, ...] = (
            ("UP", "DOWN") if link.policy == "SPLITDUPLEX" else ("NONE",)
        )
        for direction in directions:
            link.buses[direction] = (self.point(), self.point())

    def _place(self, route: Route, placed: set[str]) -> Iterator[str]:
        """Merges the points of a route; yields the links that do not fit."""
        route.through, at = [], route.source
        for index, hop in enumerate(route.hops):
            link = hop.link
            if link.bus:
                start, end = link.buses[hop.direction]
                route.through.append((start, end))
                at = end
                continue
            following = route.hops[index + 1 :]
            start, end = self._oriented(hop, at, following, route.target, link.name in placed)
            placed.add(link.name)
            before_is_bus = index > 0 and route.hops[index - 1].link.bus
            if not before_is_bus and not self._merge(at, start):
                yield link.name
            if not following and not self._merge(end, route.target):
                yield link.name
            route.through.append((start, end))
            at = end

    def _oriented(
        self, hop: Hop, at: int, following: list[Hop], target: int, placed: bool
    ) -> tuple[int, int]:
        """Returns the ends of a link in the order in which a route uses them."""
        first, second = hop.link.ends
        if hop.direction != "NONE":
            return (first, second) if hop.direction == "UP" else (second, first)
        if not placed:
            return first, second
        here, ends = self._find(at), (self._find(first), self._find(second))
        if here in ends:
            return (first, second) if here == ends[0] else (second, first)
        if not following:
            return (second, first) if self._find(target) == ends[0] else (first, second)
        nexts = {self._find(end) for end in following[0].link.ends}
        return (second, first) if ends[0] in nexts and ends[1] not in nexts else (first, second)

    def _connect(self) -> None:
        """Adds the links of all routes, and those to and from buses."""
        edges: dict[tuple[str, int, int], Cost] = {}
        for route in self._routes:
            self._connect_hops(edges, route.source, route.target, route.hops, route.through)
            if route.symmetrical:
                through = [
                    hop.back.link.buses[hop.back.direction] if hop.link.bus else (end, start)
                    for hop, (start, end) in zip(route.hops, route.through, strict=True)
                ]
                hops = [hop.back for hop in route.hops]
                self._connect_hops(edges, route.target, route.source, hops[::-1], through[::-1])
        for (_, source, target), cost in edges.items():
            self.edge(source, target, cost)

    def _connect_hops(
        self,
        edges: dict[tuple[str, int, int], Cost],
        source: int,
        target: int,
        hops: list[Hop],
        through: list[tuple[int, int]],
    ) -> None:
        at = self._find(source)
        for hop, (first, second) in zip(hops, through, strict=True):
            start, end = self._find(first), self._find(second)
            cost = hop.link.cost
            if at != start:
                edges["", at, start] = Cost(cost.rate, 0)
            edges[hop.link.name, start, end] = cost
            at = end
        last = self._find(target)
        if at != last:
            edges["", at, last] = Cost(hops[-1].link.cost.rate, 0)

    def _count_policies(self) -> None:
        for link in self.links.values():
            if not link.used:
                self.lose("links that no route uses")
            elif link.policy == "FATPIPE":
                self.lose(
                    "FATPIPE links, whose rate messages do not share in SimGrid: they share it"
                )
            elif link.policy == "SHARED" and not link.bus:
                self.lose("SHARED links, whose directions share the rate in SimGrid: each has it")

    def _built(self, name: str) -> Topology:
        used = {self._find(end) for edge in self._edges for end in edge[:2]}
        others = sorted(used.difference(self._hosts))
        index = {point: number for number, point in enumerate([*self._hosts, *others])}
        dropped = [p for p, kind in self._kinds.items() if kind == "router" and p not in used]
        if dropped:
            self.lose("routers without links", len(dropped))
        labels = [
            (self._kinds[point], self._label(point, number)) for number, point in enumerate(others)
        ]
        links: list[tuple[int, int, tuple[_core.TimePerByte, int, int | None]]] = [
            (index[self._find(a)], index[self._find(b)], (cost.rate.core, cost.latency, None))
            for a, b, cost in self._edges
        ]
        try:
            return Topology(
                _core.Topology.from_links(
                    name, [self._label(point, 0) for point in self._hosts], labels, links
                )
            )
        except TopologyError as error:
            problem = f"{self._source}: {error.problem}"
            raise error.reworded(problem, source=self._source) from None

    def _label(self, point: int, number: int) -> str:
        """Returns the name of a vertex, or one that no host or router has."""
        if self._pinned[point]:
            return self._pinned[point] or ""
        label = f"switch{number}"
        while label in self.netpoints:
            label += "_"
        return label

    def _compare(self, topology: Topology) -> None:
        """Counts the routes between hosts whose latency or rate differs from the shortest path."""
        ranks = {host: rank for rank, host in enumerate(self._hosts)}
        between = [
            each
            for each in self._routes
            if each.fixed and each.source in ranks and each.target in ranks
        ]
        if len(between) > _MOST_CHECKED:
            self.lose("routes between hosts that were not compared with shortest paths",
                      len(between) - _MOST_CHECKED)  # fmt: skip
        paths = topology.routes("shortest_path")
        different: list[Route] = []
        for route in between[:_MOST_CHECKED]:
            costs = [hop.link.cost for hop in route.hops]
            path = paths.pair(ranks[route.source], ranks[route.target])
            slowest = min(costs, key=lambda cost: cost.rate.core.bytes_per_second)
            if (path.latency.ps, path.bottleneck) != (sum(c.latency for c in costs), slowest.rate):
                different.append(route)
        if different:
            a, b = (self._label(point, 0) for point in (different[0].source, different[0].target))
            self.lose(
                f"routes that are not the path with the fewest hops, such as that from {a} to {b}",
                len(different),
            )
