"""A network of routers on a topology, and the registries of routings and traffic patterns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files.described import Positive  # noqa: TC001 - needed at run time
from tutti.base.files.typed import refuse_fields
from tutti.base.units import Size, Time
from tutti.networks.errors import NocError
from tutti.networks.flit.default_routing import default_routing
from tutti.networks.flit.idle import idle_routers
from tutti.networks.flit.memory import refuse_too_large
from tutti.networks.flit.router_buffers import buffers_of
from tutti.networks.flit.router_clocks import clocks_of
from tutti.networks.flit.settings import (
    Deadlock,
    NarrowLinks,
    Router,
    RouterBuffers,
    RouterClock,
    Trace,
    Traffic,
)
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.topologies import Topology

Supply = Traffic | tuple[Traffic, ...] | Trace
"""Traffic of one class, of several, or recorded."""
_LONGEST_ROUTING = 60
"""Characters of a routing that are shown."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network of routers, without traffic.

    Every switch and router of the topology is a router. So is every NPU, except an NPU with one
    link in each direction to one switch or router: it injects and ejects over that link.

    Attributes:
        topology: The graph. Latencies are rounded up to an integer number of cycles.
        routing: Routing algorithm, as `name` or `name:argument`; `routings` lists them. Default:
            that of the family (`default_routing`), such as dimension order on a mesh.
        router: Parameters of the routers.
        routers: Routers with fewer VCs or smaller buffers.
        clocks: Clock domains: routers with slower clocks. Other routers have the clock of the
            network.
        cycle: Cycle time of the network, such as ``"1 ns"``: the unit of latencies and loads, and
            the shortest period of a clock.
        flit: Flit size, such as ``"16 B"``.
        grid: Nodes in each dimension, for patterns on a grid; default: the dimensions of the mesh
            or torus.
        seed: Seed of the random numbers.
        narrow_links: Links that need more than a cycle per flit. `refuse` raises an error,
            `serialize` occupies the link for the time of each flit.
        deadlock: A routing with a cycle in its channel dependency graph. `refuse` raises an error,
            also if the network is too large to check; `warn` adds a warning to `remarks`.
    """

    topology: Topology
    routing: str = ""
    router: Router = field(default_factory=Router)
    routers: tuple[RouterBuffers, ...] = ()
    clocks: tuple[RouterClock, ...] = ()
    cycle: str | Time = "1 ns"
    flit: str | Size = "16 B"
    grid: tuple[Positive, ...] | None = None
    seed: int = 1
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"

    def __post_init__(self) -> None:
        """Refuses values of a wrong type, and selects the default routing.

        Raises:
            NocError: A value is of a wrong type.
        """
        from tutti.topologies import Topology

        refuse_fields(self, NocError, words=True, Topology=Topology)
        if not self.routing:
            name = self.topology.name if self.topology.is_family else ""
            object.__setattr__(self, "routing", default_routing(name))

    @property
    def cycle_ps(self) -> int:
        """The length of a cycle in picoseconds."""
        return Time.of_any(self.cycle).ps

    def core(self, classes: Sequence[tuple[int, int] | None]) -> _core.FlitNetwork:
        """Returns the core's network.

        Args:
            classes: The first and the last VC of each traffic class; `None` for all VCs.

        Raises:
            NocError: Settings are out of range or conflict, or the routing does not fit. With
                `deadlock="refuse"`, also if the routing can deadlock or cannot be checked.
        """
        if not 0 <= self.seed < 1 << 64:
            message = f"invalid seed {self.seed}: expected an integer from 0 to 2^64 - 1"
            raise NocError(message, kind="out_of_range")
        built = self._build(classes)
        if self.deadlock == "refuse" and not built.check_deadlock():
            message = f"{self._unchecked}: expected a routing known to be deadlock-free"
            raise NocError(message, kind="deadlock_unknown")
        return built

    @property
    def routing_name(self) -> str:
        """The routing; without its flows or paths, where these are many."""
        name, colon, flows = self.routing.partition(":")
        if name not in {"source_routed", "paths"} or len(self.routing) <= _LONGEST_ROUTING:
            return self.routing
        return f"{name}{colon}{flows.count(';') + 1:,} {'flows' if name != 'paths' else name}"

    def remarks(
        self, classes: Sequence[tuple[int, int] | None] = (None,), longest: int = 1
    ) -> list[str]:
        """Returns warnings: deadlock, low buffers, paths by hops, parameters without effect.

        Args:
            classes: As for `core`.
            longest: Flits of the longest packet.

        Raises:
            NocError: Settings are out of range or conflict, or the routing does not fit.
        """
        built = self._build(classes)
        idle = idle_routers(self, self._ranges(classes))
        return [*self._deadlocks(built), *self._throttled(built, longest), *self._by_hops(), *idle]

    def _ranges(self, classes: Sequence[tuple[int, int] | None]) -> list[tuple[int, int]]:
        """Returns the first and the last VC of each traffic class."""
        every = (0, max(self.router.vcs - 1, 0))
        return [every if given is None else (given[0], given[1]) for given in classes]

    def _by_hops(self) -> list[str]:
        """Warns that paths of the fewest hops may not be the fastest."""
        graph = self.topology
        if self.routing != "shortest_path" or graph.is_family:
            return []
        if len({link.latency for link in graph.links}) < 2:
            return []
        remark = (
            "links differ in latency, and `shortest_path` minimises hops; routing = "
            '"least_latency" minimises cycles, as anynet of BookSim 2 does'
        )
        return [remark]

    def can_deadlock(self, classes: Sequence[tuple[int, int] | None] = (None,)) -> str:
        """Returns the cyclic dependency that packets can form, in words.

        Args:
            classes: As for `core`.

        Returns:
            Empty if there is none, or if the network is too large to check.

        Raises:
            NocError: Settings are out of range or conflict, or the routing does not fit.
        """
        return _cycle_of(self._build(classes))[0]

    def _deadlocks(self, built: _core.FlitNetwork) -> list[str]:
        if self.deadlock != "warn":
            return []
        cycle, is_known = _cycle_of(built)
        if cycle:
            return [f"{cycle}; `up_down` is deadlock-free"]
        return [] if is_known else [f"{self._unchecked}; the run reports a deadlock"]

    def _throttled(self, built: _core.FlitNetwork, longest: int) -> list[str]:
        link = built.throttled(longest)
        if link is None:
            return []
        vcs = link.slots // link.depth
        size = f"{longest}-flit packets on" if vcs == 1 else "packets on"
        others = f" (the longest of {link.links:,} such links)" if link.links > 1 else ""
        remark = (
            f"the credit round trip of {link.source} > {link.target}{others} is "
            f"{plural(link.round_trip, 'cycle')}: {size} {plural(vcs, 'VC')} of depth {link.depth} "
            f"use at most {100 * link.slots // link.needs} % of the link; "
            f"buffer = {link.buffer} allows 100 %"
        )
        return [remark]

    @property
    def _unchecked(self) -> str:
        """The warning that the routing is too large to check for deadlock."""
        nodes = plural(self.topology.ranks, "node")
        return (
            f"routing `{self.routing_name}` was not checked for deadlock: it has too many routes "
            f"between {nodes}"
        )

    def _build(self, classes: Sequence[tuple[int, int] | None]) -> _core.FlitNetwork:
        refuse_too_large(self.topology, self.router)
        ranges = self._ranges(classes)
        if not (self.routers or self.clocks):
            return self._build_with(self.router.core_settings(ranges, self.seed))
        # Whether links are narrow depends on clocks, which need the names of routers.
        plain = self.router.core_settings(ranges, self.seed)
        names = self._build_with(plain, narrow_links=True).router_names()
        buffers = buffers_of(names, self.router, self.routers, ranges) if self.routers else None
        clocks = clocks_of(names, self.cycle_ps, self.clocks) if self.clocks else None
        return self._build_with(self.router.core_settings(ranges, self.seed, buffers, clocks))

    def _build_with(
        self, settings: _core._Settings, *, narrow_links: bool = False
    ) -> _core.FlitNetwork:
        return _core.FlitNetwork(
            self.topology.core,
            self.routing,
            settings,
            cycle_ps=self.cycle_ps,
            flit=Size.of_any(self.flit).bytes,
            narrow_links=narrow_links or self.narrow_links == "serialize",
            grid=None if self.grid is None else list(self.grid),
        )


def _cycle_of(built: _core.FlitNetwork) -> tuple[str, bool]:
    """Returns a cyclic dependency, empty if none was found, and whether all were checked."""
    try:
        return "", built.check_deadlock()
    except NocError as error:
        if error.kind != "can_deadlock":
            raise
        return error.problem, True


def every(traffic: Traffic | Sequence[Traffic]) -> tuple[Traffic, ...]:
    """Returns traffic of one class or several as a tuple."""
    return (traffic,) if isinstance(traffic, Traffic) else tuple(traffic)


def is_batch(traffic: Supply) -> bool:
    """Returns whether every class has a number of packets, so that the run ends with the last."""
    return not isinstance(traffic, Trace) and all(load.requests for load in every(traffic))


def classes_of(traffic: Supply) -> list[tuple[int, int] | None]:
    """Returns the first and the last VC of each traffic class."""
    if isinstance(traffic, Trace):
        return [None] if traffic.vcs is None else list(traffic.vcs)
    return [vcs for load in every(traffic) for vcs in _vcs_of(load)]


def _vcs_of(load: Traffic) -> list[tuple[int, int] | None]:
    return [load.vcs, *([load.reply.vcs] if load.reply else [])]


def core_for(network: Network, traffic: Supply) -> _core.FlitNetwork:
    """Returns the core's network for traffic; errors name classes as the traffic does.

    Raises:
        NocError: As for `Network.core`. Its field `traffic_class` is the name of a class, if the
            error is about one.
    """
    try:
        return network.core(classes_of(traffic))
    except NocError as error:
        number, names = error.fields.get("class"), class_names(traffic)
        if not isinstance(number, int) or number >= len(names):
            raise
        index, _, part = names[number].partition(" ")
        name = f"class {index} ({part})" if part else f"class {index}"
        problem = error.problem.replace(f"class {number} ", f"{name} ", 1)
        raise error.reworded(problem, hint=error.hint, traffic_class=names[number]) from None


def class_names(traffic: Supply) -> list[str]:
    """Returns the name of each traffic class: its number, and whether it has requests or replies.

    Examples:
        >>> from tutti.networks.flit.settings import Reply
        >>> class_names((Traffic(rate=0.1), Traffic(rate=0.1, reply=Reply())))
        ['0', '1 requests', '1 replies']
    """
    if isinstance(traffic, Trace):
        return [str(number) for number in range(len(classes_of(traffic)))]
    names = []
    for number, load in enumerate(every(traffic)):
        names += [f"{number} requests", f"{number} replies"] if load.reply else [str(number)]
    return names


def longest_of(traffic: Supply) -> int:
    """Returns the flits of the longest packet; 1 for a trace, which is not scanned."""
    if isinstance(traffic, Trace):
        return 1
    packets = [load.packet for load in every(traffic)]
    packets += [load.reply.packet for load in every(traffic) if load.reply]
    sizes = (size for packet in packets for size in str(packet).partition("/")[0].split(","))
    return max((int(size) for size in sizes if size.strip().isdecimal()), default=1)


def routings() -> list[_core.FlitRegistryEntry]:
    """Returns every routing, with its argument and a description."""
    return _core.flit_routings()


def patterns() -> list[_core.FlitRegistryEntry]:
    """Returns every traffic pattern, with its argument and a description."""
    return _core.flit_patterns()
