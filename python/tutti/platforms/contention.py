"""Contention: what concurrent messages of a platform share.

The types mirror the core's `Contention`: `Free`, `FlowLevel`, `Packets`, `Flits` and `MeshFlits`.

Examples:
    >>> Packets(size="1 KiB", buffer="8 KiB").kind
    'packet'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, Strict, field_serializer

from tutti import _core
from tutti.base.declared.groups import FlowParameters, PacketParameters
from tutti.base.errors import ConfigError
from tutti.base.parameters import Parameters
from tutti.base.units import Length, Size, Time
from tutti.energy.link_classes import Technologies
from tutti.energy.package import Package  # noqa: TC001 - pydantic resolves it
from tutti.energy.technology import Technology
from tutti.networks.flit.settings import Deadlock, NarrowLinks, Router
from tutti.networks.mesh.mesh import SmartMesh
from tutti.topologies.routing import CHOICES

if TYPE_CHECKING:
    from tutti.networks.flit import Network
    from tutti.topologies import Routes

Count = Annotated[int, Strict(), Field(ge=0, lt=1 << 32)]


class Free(Parameters):
    """No contention: several messages may use the full rate of a link together, which no real
    network allows.
    """

    kind: ClassVar[Literal["free"]] = "free"
    """The name in results, which omit it."""
    key: ClassVar[str] = "contention_free"
    """The key in platform files."""
    choices: ClassVar[frozenset[str]] = frozenset()
    """The routings with several routes per pair of ranks that may be combined with it."""
    no_links: ClassVar[str] = "messages have no links to share without a topology"
    """The error for a platform without routes."""

    @property
    def core(self) -> _core.Contention:
        """The core's contention."""
        return _core.Contention.free()


class FlowLevel(FlowParameters):
    """The flow model: concurrent messages share the links of the platform's topology by max-min
    fairness.
    """

    kind: ClassVar[Literal["flow"]] = "flow"
    """The name in results."""
    key: ClassVar[str] = "flow"
    """The key in platform files."""
    choices: ClassVar[frozenset[str]] = frozenset({"adaptive"})
    """As for `Free`; minimal adaptive routing spreads a flow evenly."""
    no_links: ClassVar[str] = "flows share links, but the platform has no links"
    """The error for a platform without routes."""

    @property
    def core(self) -> _core.Contention:
        """The core's contention."""
        return _core.Contention.flow(_core.FlowLevel(self.texts(FlowParameters)))


class Packets(PacketParameters):
    """Packets that queue for the links of the platform's topology.

    Attributes:
        package: The routers behind the links, for energy and area; times do not depend on it.
    """

    kind: ClassVar[Literal["packet"]] = "packet"
    """The name in results."""
    key: ClassVar[str] = "packets"
    """The key in platform files."""
    choices: ClassVar[frozenset[str]] = frozenset(CHOICES)
    """As for `Free`."""
    no_links: ClassVar[str] = "packets queue for links, but the platform has no links"
    """The error for a platform without routes."""

    package: Package | None = None

    @property
    def core(self) -> _core.Contention:
        """The core's contention.

        Raises:
            ModelError: Packets are empty, or exceed the buffer.
        """
        return _core.Contention.packets(_core.Packets(self.texts(PacketParameters)))


class Flits(Parameters):
    """Packets of flits that pass the platform's topology cycle by cycle.

    Every switch and router of the topology is a router. An NPU is a router, too, unless a single
    link in each direction connects it to a switch or router; see `tutti.networks.flit.Network`.

    Attributes:
        cycle: The clock period.
        flit: The size of a flit.
        packet: The most flits of a packet, including its header.
        header: Flits of a packet that carry no payload.
        routing: The routing; that of the platform's routes if absent.
        router: The parameters of the routers.
        narrow_links: The treatment of links that need several cycles per flit.
        deadlock: The treatment of a routing that can deadlock; `warn` prints a remark.
        technology: Energy of events; times do not depend on it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: ClassVar[Literal["flit"]] = "flit"
    """The name in results."""
    key: ClassVar[str] = "flits"
    """The key in platform files."""
    choices: ClassVar[frozenset[str]] = frozenset(CHOICES)
    """As for `Free`."""
    no_links: ClassVar[str] = "flits need a topology, but the platform has none"
    """The error for a platform without routes."""

    cycle: Time = Field(Time(ps=1000), description="The clock period.")
    flit: Size = Field(Size(bytes=16), description="The size of a flit.")
    packet: Count = Field(4, description="The most flits of a packet, including its header.")
    header: Count = Field(0, description="Flits of a packet that carry no payload.")
    routing: Annotated[str, Strict()] | None = Field(
        None,
        description="The routing, as `name` or `name:argument`; docs/models/flit.md lists "
        "them. If absent, that of the topology.",
    )
    router: Router = Field(default_factory=Router, description="The parameters of all routers.")
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
    technology: Technologies | None = None

    def network(self, routes: Routes) -> Network:
        """Returns the network of routers on the topology of the routes.

        Raises:
            ConfigError: Neither the flits nor the routes name a routing.
        """
        from tutti.networks.flit.network import Network

        routing = self.routing or routes.rule
        if routing is None:
            message = "flits need a routing by name, but the routes are explicit"
            raise ConfigError(message, kind="invalid", hint='for example routing="shortest_path"')
        return Network(
            topology=routes.topology,
            routing=routing,
            router=self.router,
            cycle=self.cycle,
            flit=self.flit,
            narrow_links=self.narrow_links,
            deadlock=self.deadlock,
        )

    def core_on(self, routes: Routes) -> tuple[_core.FlitNetwork, _core.Contention]:
        """Returns the core's routers on the topology of the routes, and its contention.

        Raises:
            ConfigError: Neither the flits nor the routes name a routing.
            NocError: The routers do not match the topology.
        """
        network = self.network(routes).core([None])
        flits = _core.Flits(network, packet=self.packet, header=self.header)
        return network, _core.Contention.flits(flits)

    @field_serializer("technology")
    def _technology_by_name(self, technology: Technologies | None) -> str | None:
        return repr(technology) if technology else None


class MeshFlits(Parameters):
    """Flits of a mesh whose routers support multicast and reduction; rank i is at node i.

    With multicast, a multicast of a schedule sends one flit to all receivers per `flit` of its
    bytes. With reduction, a combine is one reduction per flit. All other messages are packets
    between nodes. See docs/models/smart.md.

    Attributes:
        mesh: The mesh. Routers that combine need a `reducer`; they have one unless `mesh` disables
            it.
        technology: Energy of routers and links; None to report no energy.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: ClassVar[Literal["mesh"]] = "mesh"
    """The name in results."""
    key: ClassVar[str] = "mesh"
    """The key in platform files."""

    mesh: SmartMesh
    cycle: Time = Field(Time(ps=1000), description="The clock period.")
    flit: Size = Field(Size(bytes=16), description="Payload of a flit.")
    packet: Count = Field(
        1, description="The most flits of a unicast packet, at most the depth of a VC."
    )
    tile: Length = Field(
        Length(um=1000), description="Distance of neighbouring routers, for the energy of links."
    )
    technology: Technology | None = None

    @field_serializer("technology")
    def _technology_by_name(self, technology: Technology | None) -> str | None:
        return repr(technology) if technology else None

    @property
    def carrying(self) -> SmartMesh:
        """The mesh, with a reducer if required and not set."""
        combines = self.mesh.settings["fan_in"] != "unicasts"
        if combines and self.mesh.reducer is None:
            return replace(self.mesh, reducer=True)
        return self.mesh

    @property
    def core(self) -> _core.Contention:
        """The core's contention.

        Raises:
            NocError: The flit parameters are invalid, or the mesh cannot combine contributions.
        """
        mesh = _core.MeshFlits(
            self.carrying.core, cycle_ps=self.cycle.ps, flit=self.flit.bytes, packet=self.packet
        )
        return _core.Contention.mesh(mesh)


Contention: TypeAlias = Free | FlowLevel | Packets | Flits | MeshFlits
"""What concurrent messages of a platform share."""


def check_contention(contention: Contention, routes: Routes | None) -> None:
    """Rejects contention that does not match the routes, or whose parameters are invalid together.

    Raises:
        ConfigError: The contention needs a topology or has a separate one, or the routing depends
            on queues that the contention does not model.
        ModelError: Packets are empty, or exceed the buffer.
        NocError: The flit parameters of a mesh are invalid, or it cannot combine contributions.
    """
    if isinstance(contention, MeshFlits):
        if routes is not None:
            message = "the platform has both a mesh and another network"
            raise ConfigError(message, kind="invalid", hint="remove `routes`")
    elif routes is None:
        raise ConfigError(contention.no_links, kind="invalid", hint="give `routes`, too")
    elif routes.choice is not None and routes.choice not in contention.choices:
        message = f"routing {routes.choice!r} depends on queues of packets"
        raise ConfigError(message, kind="invalid", hint="set `contention=tutti.Packets()`")
    if isinstance(contention, Packets | MeshFlits):
        contention.core  # noqa: B018 - the core checks the parameters together
