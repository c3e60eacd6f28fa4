"""The graph and its routes, as the core laid them out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from tutti import _core, display
from tutti.errors import TopologyError
from tutti.units import Length, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import networkx as nx

    from tutti.schedule import Schedule

Kind = Literal["npu", "switch", "router"]
Rule = Literal["shortest_path", "dimension_order", "minimal", "d_mod_k", "ecmp"]
RULES: tuple[str, ...] = get_args(Rule)
Choice = Literal["adaptive", "valiant", "ugal"]
CHOICES: tuple[str, ...] = get_args(Choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """An NPU, a switch or a router."""

    name: str
    kind: Kind
    rank: int | None
    """The rank that an NPU hosts; None for switches and routers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link in one direction; a cable is two of them."""

    index: int
    source: str
    target: str
    rate: TimePerByte
    latency: Time
    length: Length | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A path between two ranks, as a single wire."""

    latency: Time
    """The sum of the links' latencies."""
    bottleneck: TimePerByte
    """The time per byte of the slowest link; zero from a rank to itself."""
    hops: int


class Topology:
    """An immutable graph of NPUs, switches and routers, joined by one-directional links.

    The NPUs are the first vertices, and hold the ranks 0, 1, ... in this order. Two topologies are
    equal when they have the same vertices and links, however they were built.
    """

    __hash__ = None  # type: ignore[assignment] # equal graphs of different origin are not told apart

    def __init__(self, core: _core.Topology) -> None:
        """Wraps what the core laid out; use `build`, `from_networkx` or `read`."""
        self._core = core

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
        """Builds a family of topologies.

        Args:
            notation: ``family:argument``, such as ``"torus:4x4x4"`` or
                ``"hierarchical:switch:8/ring:16"``; `families` lists them.
            rate: of every link in its direction, such as ``"50 GB/s"``.
            latency: of every link, such as ``"300 ns"``.
            length: of every link, such as ``"2 m"``; may be left out.
            links: instead of these, one table of ``rate``, ``latency`` and ``length`` for each of
                `link_classes`, where links differ.

        Raises:
            TopologyError: the notation or the link parameters do not fit.
            UnitError: a value without a unit.
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
        """Builds the topology that a networkx graph describes.

        An edge of a directed graph is a link, an edge of an undirected graph a cable: a link each
        way. Edges have ``rate`` and ``latency``, and may have ``length``; nodes have ``kind``
        (``npu``, ``switch`` or ``router``; all are NPUs when no node has it), and NPUs may have
        ``rank`` (their order in the graph counts when none has it).

        Args:
            graph: any graph or multigraph of networkx.
            name: what the topology is called; the graph's own name if it is left out.
            source: what errors call the graph, such as a file's name.

        Raises:
            TopologyError: an attribute is missing or wrong, or the graph cannot be a topology.
        """
        from tutti.topology.interchange import core_of

        return cls(core_of(graph, name=name, source=source))

    @classmethod
    def read(cls, path: str | Path) -> Topology:
        """Reads a GraphML (``.graphml``) or node-link JSON file (``.json``) of networkx.

        Raises:
            TopologyError: the file cannot be read, or is no topology; the message names the place.
        """
        from tutti.topology.files import read

        graph, name = read(path)
        return cls.from_networkx(graph, name=name, source=str(path))

    @classmethod
    def from_anynet(
        cls, path: str | Path, *, cycle: str | Time, rate: str | TimePerByte
    ) -> Topology:
        """Reads a network file of BookSim 2 (`anynet`): its nodes are the NPUs, by number.

        Args:
            path: the file. Lines are such as ``router 0 node 0 node 1 router 1 15``: a latency in
                cycles may follow what a router is linked to, otherwise it is 1. Between routers it
                is that of one direction; the other is 1 cycle unless it is given, too.
            cycle: what a cycle lasts, such as ``"1 ns"``.
            rate: of every link in its direction, such as ``"16 GB/s"``.

        Raises:
            TopologyError: the file cannot be read, or is no such network; the message names the
                line.
            UnitError: a value without a unit.
        """
        from pathlib import Path

        from tutti.topology import anynet

        time, per_byte = Time.of_any(cycle), TimePerByte.of_any(rate)
        name = Path(path).stem or str(path)
        return cls(anynet.core_of(anynet.read(path), name=name, cycle=time, rate=per_byte))

    def write(self, path: str | Path) -> None:
        """Writes a GraphML or node-link JSON file that `read` turns into an equal topology.

        Raises:
            TopologyError: the name ends in neither ``.graphml`` nor ``.json``.
        """
        from tutti.topology.files import write

        write(self, path)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph with an edge per link and the attributes that `from_networkx` reads."""
        from tutti.topology.interchange import networkx_of

        return networkx_of(self)

    def draw(self, path: str | Path, *, names: bool | None = None) -> Path:
        """Draws the graph: shape by kind of vertex, colour and width by kind of link.

        Args:
            path: where to; ``.svg``, ``.png`` or ``.pdf``.
            names: whether vertices carry their names; by default if they are few.

        Returns:
            The path written.

        Raises:
            TopologyError: the graph has too many vertices to be drawn, or the ending is unknown.
        """
        return display.renderers().draw_topology(path, self, names)

    def routes(self, rule: Rule | Choice = "shortest_path", *, seed: int | None = None) -> Routes:
        """The routes between all ranks; each is found when it is first asked for.

        Args:
            rule: ``shortest_path`` takes the fewest hops, then the least latency, then the lowest
                link indices. ``ecmp`` draws one of the paths with the fewest hops for every pair.
                ``dimension_order`` goes through a mesh or torus one dimension after the other,
                ``minimal`` through a dragonfly over at most one global link, ``d_mod_k`` up a fat
                tree by the destination's number.
                By the others each packet chooses, so they need a platform with packets:
                ``adaptive`` takes the minimal way with the shortest queues, ``valiant`` a detour
                over a random switch, ``ugal`` whichever of the two promises to be faster.
            seed: for ``ecmp``, what the draws depend on besides the pair; 0 if it is left out.

        Raises:
            TopologyError: no such rule, one that does not suit this topology, or a seed for a rule
                that takes none.
        """
        if rule not in RULES + CHOICES:
            known = ", ".join(RULES + CHOICES)
            message = f"there is no routing rule `{rule}`: expected one of {known}"
            fields = {"name": rule, "known": known}
            raise TopologyError(message, kind="unknown_routing", fields=fields)
        if rule == "ecmp":
            return Routes(self, _core.Routes.ecmp(self._core, _seed(seed)), f"ecmp:{_seed(seed)}")
        if seed is not None:
            message = f"`{rule}` takes no seed: it is for ecmp"
            raise TopologyError(message, kind="argument", hint="leave the seed out")
        if rule in CHOICES:
            return Routes(self, _core.Routes.chosen(self._core, rule), rule)
        find = getattr(_core.Routes, rule)
        return Routes(self, find(self._core), rule)

    def routes_by_path(self, paths: Mapping[tuple[int, int], Sequence[int]]) -> Routes:
        """Routes that are written down: for every pair of ranks the indices of its links.

        Raises:
            TopologyError: a path does not fit the topology, loops, ends elsewhere, or is missing.
        """
        given = [(source, target, list(path)) for (source, target), path in paths.items()]
        return Routes(self, _core.Routes.paths(self._core, given))

    def routes_by_next_link(self, hops: Iterable[tuple[int, int, int]]) -> Routes:
        """Routes by a table of (vertex, destination rank, index of the next link).

        Raises:
            TopologyError: an entry does not fit, contradicts another or is missing, or messages
                would go round in a loop.
        """
        return Routes(self, _core.Routes.next_hops(self._core, list(hops)))

    def bound_by_links(
        self, collective: str, *, ranks: int | None = None, root: int = 0
    ) -> TimePerByte:
        """The least time per byte of a collective's size, by what the links can carry.

        No schedule on this graph takes less, whatever the latencies and the endpoints: the bound is
        made of cuts (docs/models/lower-bounds.md). Sizes follow nccl-tests.

        Args:
            collective: such as ``"all_gather"``.
            ranks: how many take part, on the first NPUs; all unless given.
            root: of a rooted collective.

        Raises:
            AlgorithmError: there is no such collective.
            TopologyError: the graph has fewer NPUs.
        """
        count = self.ranks if ranks is None else ranks
        return _rate(self._core.bound_by_links(collective, count, root=root))

    @property
    def core(self) -> _core.Topology:
        """What the core laid out."""
        return self._core

    @property
    def name(self) -> str:
        """Its notation, or the name it was given."""
        return self._core.name

    @property
    def ranks(self) -> int:
        """How many NPUs, hence ranks, it has."""
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
        """All links, by where they start, where they end, then fastest first."""
        names = [name for name, _ in self._core.vertices()]
        return tuple(
            Link(
                index=index,
                source=names[source],
                target=names[target],
                rate=_rate(rate),
                latency=Time(ps=latency_ps),
                length=None if length_um is None else Length(um=length_um),
            )
            for index, (source, target, rate, latency_ps, length_um) in enumerate(
                self._core.links()
            )
        )

    @cached_property
    def facts(self) -> _core.TopologyFacts:
        """Counts of vertices and links, degrees, diameter in hops, and bisection where known."""
        return self._core.facts()

    @property
    def is_family(self) -> bool:
        """Whether it was built from a notation, not from a graph."""
        return self._core.is_family

    @property
    def grid(self) -> tuple[list[int], bool] | None:
        """The sizes of a mesh or torus and whether its rows wrap; None for other topologies."""
        return self._core.grid()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self._core == other._core

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {self.ranks} NPUs, {self._core.link_count} links>"


class Routes:
    """Over which links a message travels from one rank to another."""

    __slots__ = ("_core", "_fingerprint", "rule", "topology")

    def __init__(self, topology: Topology, core: _core.Routes, rule: str | None = None) -> None:
        """Wraps what the core found; use `Topology.routes`."""
        self.topology = topology
        self.rule = rule
        self._core = core
        # Of a large graph it takes long: many comparisons ask for it.
        self._fingerprint: str | None = None

    @property
    def core(self) -> _core.Routes:
        """What the core works with."""
        return self._core

    @property
    def choice(self) -> str | None:
        """The rule by which packets choose their way; None where each pair has one route."""
        return self._core.choice

    @property
    def fingerprint(self) -> str:
        """Names the links and the rule: equal for equal machines, however they were built."""
        if self._fingerprint is not None:
            return self._fingerprint
        text = repr(
            (self._core, [(x.source, x.target, x.rate, x.latency) for x in self.topology.links])
        )
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._fingerprint

    def most_loaded(self, schedule: Schedule) -> TimePerByte:
        """The time per byte of the size for which a schedule keeps its most loaded link busy.

        Beside `Topology.bound_by_links` it says how well a schedule fits the graph.

        Raises:
            TopologyError: the graph has fewer NPUs than the schedule has ranks.
        """
        return _rate(self._core.most_loaded(schedule.core))

    def path(self, source: int, target: int) -> list[Link]:
        """The links from one rank to another, in order; none from a rank to itself.

        Raises:
            TopologyError: one of them is not a rank.
        """
        return [self.topology.links[index] for index in self._core.path(source, target)]

    def pair(self, source: int, target: int) -> Wire:
        """What the way from one rank to another comes to.

        Raises:
            TopologyError: one of them is not a rank.
        """
        wire = self._core.pair(source, target)
        bottleneck = _rate(wire.bottleneck)
        return Wire(latency=Time(ps=wire.latency_ps), bottleneck=bottleneck, hops=wire.hops)


def families() -> list[_core.TopologyFamily]:
    """Every family of topologies, with its summary, its argument and an example."""
    return _core.topology_families()


def link_classes(notation: str) -> list[str]:
    """The kinds of link in a topology whose parameters may differ, in order.

    >>> link_classes("hierarchical:switch:8/ring:16")
    ['level 0 (switch:8)', 'level 1 (ring:16)']

    Raises:
        TopologyError: the notation does not fit.
    """
    return _core.topology_link_classes(notation)


def _seed(seed: int | None) -> int:
    if seed is None:
        return 0
    if not 0 <= seed < 1 << 64:
        message = f"{seed} is no seed: expected a whole number from 0 to 2^64 - 1"
        raise TopologyError(message, kind="argument")
    return seed


def _built(notation: str, links: list[Any]) -> _core.Topology:
    """A graph of the core; what does not fit a family is told what it takes."""
    try:
        return _core.Topology.build(notation, links)
    except TopologyError as error:
        known = {family.name: family for family in families()}
        family = known.get(str(error.fields.get("family")))
        if family is None:
            raise
        hint = f"{family.name}:{family.argument}, such as `{family.example}`"
        raise TopologyError(
            error.problem, kind=error.kind, hint=hint, fields=error.fields
        ) from None


def _parameters(
    rate: object, latency: object, length: object
) -> tuple[_core.TimePerByte, int, int | None]:
    um = None if length is None else Length.of_any(length).um
    return TimePerByte.of_any(rate).core, Time.of_any(latency).ps, um


def _rate(core: _core.TimePerByte) -> TimePerByte:
    # Whatever was read from text has an exact one; nothing else reaches the core from here.
    return TimePerByte(core, core.exact_text or str(core))
