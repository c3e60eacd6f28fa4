"""Graphs and routes of the core."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tutti import _core
from tutti.base.units import Length, Time, TimePerByte
from tutti.topologies.errors import TopologyError
from tutti.topologies.routing import CHOICES, RULES, rule_of_family

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import networkx as nx

    from tutti.schedules.ir import Schedule
    from tutti.topologies.routing import Choice, Rule

Kind = Literal["npu", "switch", "router"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """An NPU, a switch or a router."""

    name: str
    kind: Kind
    rank: int | None
    """The rank of an NPU; None for switches and routers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link in one direction; a cable is two links."""

    index: int
    source: str
    target: str
    rate: TimePerByte
    latency: Time
    length: Length | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A path between two ranks as a single wire."""

    latency: Time
    """The sum of the link latencies."""
    bottleneck: TimePerByte
    """The time per byte of the slowest link; zero from a rank to itself."""
    hops: int


class Topology:
    """An immutable graph of NPUs, switches and routers, joined by unidirectional links.

    The NPUs are the first vertices and host the ranks 0, 1, ... in order. Topologies are equal if
    they have the same vertices and links, however they were built.

    Attributes:
        routing: The rule by which the described network routes, if its description states one.
    """

    __hash__ = None  # type: ignore[assignment] # equality ignores the origin of a graph

    def __init__(self, core: _core.Topology, *, routing: Rule | None = None) -> None:
        """Wraps a topology of the core; use `build`, `from_networkx` or `read`."""
        self._core = core
        self.routing = routing

    @classmethod
    def build(
        cls,
        notation: str,
        *,
        rate: str | TimePerByte | None = None,
        latency: str | Time | None = None,
        length: str | Length | None = None,
        links: Sequence[Mapping[str, Any]] | None = None,
    ) -> Topology:
        """Builds a topology of a family.

        Args:
            notation: ``family:argument``, such as ``"torus:4x4x4"``; see `families`.
            rate: Rate of every link, such as ``"50 GB/s"``.
            latency: Latency of every link, such as ``"300 ns"``.
            length: Optional length.
            links: Instead, one table of these per link class, in the order of `link_classes`.

        Raises:
            TopologyError: The notation or the link parameters are invalid.
            UnitError: A value has no unit.
        """
        if (links is None) == (rate is None or latency is None) or (
            links is not None and (rate, latency, length) != (None, None, None)
        ):
            message = (
                "a topology needs `rate` and `latency` for all links, or `links`, but not both"
            )
            raise TopologyError(message, kind="parameters")
        if links is None:
            return cls(_built(notation, [_parameters(rate, latency, length)]))
        known = {"rate", "latency", "length"}
        for number, link in enumerate(links):
            if unknown := sorted(set(link) - known):
                message = (
                    f"link parameters {number} have the unknown key `{unknown[0]}`: "
                    "expected rate, latency and length"
                )
                raise TopologyError(message, kind="parameters")
            if missing := sorted({"rate", "latency"} - set(link)):
                message = f"link parameters {number} lack `{missing[0]}`"
                raise TopologyError(message, kind="parameters")
        given = [_parameters(p["rate"], p["latency"], p.get("length")) for p in links]
        return cls(_built(notation, given))

    @classmethod
    def from_networkx(
        cls, graph: nx.Graph[Any], *, name: str | None = None, source: str = "the graph"
    ) -> Topology:
        """Builds the topology of a networkx graph.

        An edge of a directed graph is a link, an edge of an undirected graph a cable. Edges have
        ``rate`` and ``latency``, and optionally ``length``. Nodes have ``kind`` (``npu``,
        ``switch`` or ``router``; without any, all are NPUs). NPUs may have ``rank``; without any,
        their order in the graph applies. The graph may have ``routing``, one of `RULES`.

        Args:
            graph: A graph or multigraph of networkx.
            name: Name of the topology; by default that of the graph.
            source: Name of the graph in errors, such as a file name.

        Raises:
            TopologyError: An attribute is missing or invalid, or the graph is not a topology.
        """
        from tutti.topologies.interchange import core_of, routing_of

        routing = routing_of(graph, RULES, source=source)
        return cls(core_of(graph, name=name, source=source), routing=routing)

    @classmethod
    def read(cls, path: str | Path) -> Topology:
        """Reads a GraphML (``.graphml``) or node-link JSON file (``.json``) of networkx.

        Raises:
            TopologyError: The file cannot be read, or does not describe a topology.
        """
        from tutti.topologies.files import read

        graph, name = read(path)
        return cls.from_networkx(graph, name=name, source=str(path))

    def write(self, path: str | Path) -> None:
        """Writes a GraphML or node-link JSON file that `read` converts to an equal topology.

        Raises:
            TopologyError: The file ending is neither ``.graphml`` nor ``.json``.
        """
        from tutti.topologies.files import write

        write(self, path)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Returns a graph with an edge per link and the attributes that `from_networkx` reads."""
        from tutti.topologies.interchange import networkx_of

        return networkx_of(self)

    def draw(self, path: str | Path, *, names: bool | None = None) -> Path:
        """Draws the graph: shape by kind of vertex, colour and width by kind of link.

        Args:
            path: Output file; ``.svg``, ``.png`` or ``.pdf``.
            names: Whether to label vertices; by default if there are few.

        Returns:
            The output file.

        Raises:
            TopologyError: The graph has too many vertices, or the file ending is unknown.
        """
        from tutti.topologies.view.graph import draw_topology

        return draw_topology(path, self, names)

    def routes(self, rule: Rule | Choice | None = None, *, seed: int | None = None) -> Routes:
        """Returns the routes between all ranks; each is computed on first use.

        - ``shortest_path``: fewest hops, then least latency, then lowest link indices.
        - ``ecmp``: one of the paths with the fewest hops for every pair, by a hash.
        - ``dimension_order``: in a mesh or torus, one dimension at a time.
        - ``minimal``: in a dragonfly, at most one global link.
        - ``d_mod_k``: in a fat tree, up by the number of the destination.

        With the other rules each packet selects its path, so they need a platform with packets.
        ``adaptive`` also supports the flow model, which splits messages over all minimal paths.

        - ``adaptive``: the minimal path with the shortest queues.
        - ``valiant``: a detour over a random switch.
        - ``ugal``: the one of these two with the shorter estimated delay.

        Args:
            rule: The routing rule; by default that of the topology, or else that of its family
                (`default_rule`).
            seed: Seed of ``ecmp``; 0 by default.

        Raises:
            TopologyError: The rule is unknown, does not fit the topology, or takes no seed.
        """
        stated = rule or self.routing
        name: str = stated or self.default_rule
        if name not in RULES + CHOICES:
            known = ", ".join(RULES + CHOICES)
            message = f"unknown routing rule `{name}`: expected one of {known}"
            fields = {"name": name, "known": known}
            raise TopologyError(message, kind="unknown_routing", fields=fields)
        if name == "ecmp":
            core, name = _core.Routes.ecmp(self._core, _seed(seed)), f"ecmp:{_seed(seed)}"
        elif seed is not None:
            message = f"`{name}` takes no seed: it is for ecmp"
            raise TopologyError(message, kind="argument", hint="omit the seed")
        elif name in CHOICES:
            core = _core.Routes.chosen(self._core, name)
        else:
            core = getattr(_core.Routes, name)(self._core)
        return Routes(self, core, name, is_default=stated is None)

    def routes_by_path(self, paths: Mapping[tuple[int, int], Sequence[int]]) -> Routes:
        """Returns routes from link indices for every pair of ranks.

        Raises:
            TopologyError: A path is missing, does not fit the topology, loops, or ends elsewhere.
        """
        given = [(source, target, list(path)) for (source, target), path in paths.items()]
        return Routes(self, _core.Routes.paths(self._core, given))

    def routes_by_next_link(self, hops: Iterable[tuple[int, int, int]]) -> Routes:
        """Returns routes from a table of (vertex, destination rank, index of the next link).

        Raises:
            TopologyError: An entry is missing, does not fit or contradicts another, or messages
                would loop.
        """
        return Routes(self, _core.Routes.next_hops(self._core, list(hops)))

    def bound_by_links(
        self, collective: str, *, ranks: int | None = None, root: int = 0
    ) -> TimePerByte:
        """Returns a lower bound of the time per byte of a collective, by link capacities.

        No schedule on this graph takes less, for any latencies and endpoints. The bound is the
        maximum over cuts (docs/models/lower-bounds.md). Sizes follow nccl-tests.

        Args:
            collective: The collective, such as ``"all_gather"``.
            ranks: Number of ranks, on the first NPUs; all by default.
            root: Root of a rooted collective.

        Raises:
            AlgorithmError: The collective is unknown.
            TopologyError: The graph has fewer NPUs.
        """
        count = self.ranks if ranks is None else ranks
        return _rate(self._core.bound_by_links(collective, count, root=root))

    @property
    def core(self) -> _core.Topology:
        """The topology of the core."""
        return self._core

    @property
    def name(self) -> str:
        """The notation, or the given name."""
        return self._core.name

    @property
    def ranks(self) -> int:
        """The number of NPUs, equal to the number of ranks."""
        return self._core.ranks

    @cached_property
    def vertices(self) -> tuple[Vertex, ...]:
        """All vertices, NPUs first."""
        return tuple(
            Vertex(name=name, kind=kind, rank=index if index < self.ranks else None)  # type: ignore[arg-type] # the core has these three kinds
            for index, (name, kind) in enumerate(self._core.vertices())
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links, by source, then destination, then fastest first."""
        names = [name for name, _ in self._core.vertices()]
        return tuple(
            Link(
                index=index,
                source=names[link.source],
                target=names[link.target],
                rate=_rate(link.rate),
                latency=Time(ps=link.latency_ps),
                length=None if link.length_um is None else Length(um=link.length_um),
            )
            for index, link in enumerate(self._core.links())
        )

    @cached_property
    def facts(self) -> _core.TopologyFacts:
        """Counts of vertices and links, degrees, diameter in hops, and bisection if known."""
        return self._core.facts()

    @property
    def is_family(self) -> bool:
        """Whether it was built from a notation, not from a graph."""
        return self._core.is_family

    @property
    def default_rule(self) -> Rule:
        """The routing rule of the family, which spreads traffic over equal paths.

        ``shortest_path`` sends all traffic of a tree through the switches of lowest index, so it is
        the default only of families with one shortest path per pair, and of graphs.
        """
        return rule_of_family(self.name) if self.is_family else "shortest_path"

    @property
    def grid(self) -> tuple[list[int], bool] | None:
        """The sizes of a mesh or torus and whether its rows wrap; None for other topologies."""
        return self._core.grid()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self._core == other._core

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {self.ranks} NPUs, {self._core.link_count} links>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: sizes and a drawing."""
        from tutti.topologies.view.notebook import topology_html

        return topology_html(self)


class Routes:
    """The links of the path from one rank to another."""

    __slots__ = ("_core", "_fingerprint", "is_default", "rule", "topology")

    def __init__(
        self,
        topology: Topology,
        core: _core.Routes,
        rule: str | None = None,
        *,
        is_default: bool = False,
    ) -> None:
        """Wraps routes of the core; use `Topology.routes`."""
        self.topology = topology
        self.rule = rule
        # Whether the family selects the rule, not the user or a file.
        self.is_default = is_default
        self._core = core
        # Cached, because it takes long for a large graph and many comparisons use it.
        self._fingerprint: str | None = None

    @property
    def core(self) -> _core.Routes:
        """The routes of the core."""
        return self._core

    @property
    def choice(self) -> str | None:
        """The rule by which packets select their path; None if each pair has one route."""
        return self._core.choice

    @property
    def fingerprint(self) -> str:
        """A hash of the links and the rule; equal for equal networks, however they were built."""
        if self._fingerprint is not None:
            return self._fingerprint
        # The text is that of `repr` on a list of links; a topology has few rates and latencies.
        rate_text = functools.cache(lambda rate: repr(_rate(rate)))
        latency_text = functools.cache(lambda ps: repr(Time(ps=ps)))
        names = [repr(name) for name, _ in self.topology.core.vertices()]
        links = ", ".join(
            f"({names[link.source]}, {names[link.target]}, {rate_text(link.rate)}, "
            f"{latency_text(link.latency_ps)})"
            for link in self.topology.core.links()
        )
        text = f"({self._core!r}, [{links}])"
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._fingerprint

    def most_loaded(self, schedule: Schedule) -> TimePerByte:
        """Returns the time per byte that the most loaded link of a schedule takes.

        Compare it with `Topology.bound_by_links` to see how well a schedule fits the graph.

        Raises:
            TopologyError: The graph has fewer NPUs than the schedule has ranks.
        """
        return _rate(self._core.most_loaded(schedule.core))

    def path(self, source: int, target: int) -> list[Link]:
        """Returns the links from one rank to another, in order; empty from a rank to itself.

        Raises:
            TopologyError: An argument is not a rank.
        """
        return [self.topology.links[index] for index in self._core.path(source, target)]

    def pair(self, source: int, target: int) -> Wire:
        """Returns latency, rate and hops of the path between two ranks.

        Raises:
            TopologyError: An argument is not a rank.
        """
        wire = self._core.pair(source, target)
        bottleneck = _rate(wire.bottleneck)
        return Wire(latency=Time(ps=wire.latency_ps), bottleneck=bottleneck, hops=wire.hops)


def families() -> list[_core.TopologyFamily]:
    """Returns every family of topologies, with summary, argument and example."""
    return _core.topology_families()


def link_classes(notation: str) -> list[str]:
    """Returns the link classes of a topology whose parameters may differ, in order.

    Examples:
        >>> link_classes("hierarchical:switch:8/ring:16")
        ['level 0 (switch:8)', 'level 1 (ring:16)']

    Raises:
        TopologyError: The notation is invalid.
    """
    return _core.topology_link_classes(notation)


def _seed(seed: int | None) -> int:
    if seed is None:
        return 0
    if not 0 <= seed < 1 << 64:
        message = f"the seed {seed} is out of range: expected an integer from 0 to 2^64 - 1"
        raise TopologyError(message, kind="argument")
    return seed


def _built(notation: str, links: list[Any]) -> _core.Topology:
    """Returns a graph of the core; errors get the syntax of the family as a hint."""
    try:
        return _core.Topology.build(notation, links)
    except TopologyError as error:
        known = {family.name: family for family in families()}
        family = known.get(str(error.fields.get("family")))
        if family is None:
            raise
        hint = f"{family.name}:{family.argument}, such as `{family.example}`"
        raise error.reworded(error.problem, hint=hint) from None


def _parameters(
    rate: object, latency: object, length: object
) -> tuple[_core.TimePerByte, int, int | None]:
    um = None if length is None else Length.of_any(length).um
    return TimePerByte.of_any(rate).core, Time.of_any(latency).ps, um


def _rate(core: _core.TimePerByte) -> TimePerByte:
    # Every time per byte parsed from text has an exact text, and no other reaches the core here.
    return TimePerByte(core, core.exact_text or str(core))
