"""Platforms: a machine as a network model with parameters, and the costs of local work.

The classes hold the parameters of the core's models; the core checks and uses them.

Examples:
    >>> machine = Platform(
    ...     name="demo",
    ...     model=PipeliningPostal(
    ...         alpha_p="1.34 us", alpha_r="0.34 us", beta="0.1 ns/B", gamma="0.05 ns/B"
    ...     ),
    ... )
    >>> machine.model.kind
    'pipelining_postal'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import ConfigDict, Field, PrivateAttr, Strict, field_serializer, model_validator

from tutti import _core
from tutti.base.declared.groups import FlowParameters, PacketParameters
from tutti.base.declared.models import (
    MODELS,
    LogfP,
    LogGP,
    LogP,
    LoP,
    Model,
    PipeliningPostal,
    Postal,
    Protocols,
)
from tutti.base.declared.network_model import NetworkModel
from tutti.base.errors import ConfigError
from tutti.base.parameters import Parameters
from tutti.base.units import Size, Time
from tutti.energy.package import Package  # noqa: TC001 - pydantic resolves it
from tutti.energy.technology import Technology
from tutti.networks.flit.settings import Deadlock, NarrowLinks, Router
from tutti.networks.mesh.mesh import SmartMesh
from tutti.topologies import Routes

if TYPE_CHECKING:
    from tutti.networks.flit import Network

__all__ = [
    "MODELS",
    "Flits",
    "FlowLevel",
    "LoP",
    "LogGP",
    "LogP",
    "LogfP",
    "MeshFlits",
    "Model",
    "NetworkModel",
    "Packets",
    "PipeliningPostal",
    "Platform",
    "Postal",
    "Protocols",
]

_EXCLUSIVE = ("flow", "packets", "flits", "contention_free")
"""The fields that select what messages share; at most one is given."""

Count = Annotated[int, Strict(), Field(ge=0, lt=1 << 32)]


class FlowLevel(FlowParameters):
    """The flow model: concurrent messages share the links of the platform's topology by max-min
    fairness.
    """

    @property
    def core(self) -> _core.FlowLevel:
        """The core's parameters."""
        return _core.FlowLevel(self.texts(FlowParameters))


class Packets(PacketParameters):
    """Packets that queue for the links of the platform's topology.

    Attributes:
        package: The routers behind the links, for energy and area; times do not depend on it.
    """

    package: Package | None = None

    @property
    def core(self) -> _core.Packets:
        """The core's packets.

        Raises:
            ModelError: Packets are empty, or exceed the buffer.
        """
        return _core.Packets(self.texts(PacketParameters))


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

    cycle: Annotated[Time, Field(description="The clock period.")] = Time(ps=1000)
    flit: Annotated[Size, Field(description="The size of a flit.")] = Size(bytes=16)
    packet: Annotated[
        Count, Field(description="The most flits of a packet, including its header.")
    ] = 4
    header: Annotated[Count, Field(description="Flits of a packet that carry no payload.")] = 0
    routing: Annotated[
        Annotated[str, Strict()] | None,
        Field(
            description="The routing, as `name` or `name:argument`; docs/models/flit.md lists "
            "them. If absent, that of the topology."
        ),
    ] = None
    router: Annotated[Router, Field(description="The parameters of all routers.")] = Router()
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
    technology: Technology | None = None

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

    @field_serializer("technology")
    def _technology_by_name(self, technology: Technology | None) -> str | None:
        return repr(technology) if technology else None


class MeshFlits(Parameters):
    """Flits of a mesh whose routers support multicast and reduction; rank i is at node i.

    With multicast, a multicast of a schedule sends one flit to all receivers per `flit` of its
    bytes. With reduction, a combine is one reduction per flit. All other messages are packets
    between nodes. See docs/models/smart.md.

    Attributes:
        mesh: The mesh. Routers that combine need a `reducer`; they have one unless `mesh` disables
            it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    mesh: SmartMesh
    cycle: Annotated[Time, Field(description="The clock period.")] = Time(ps=1000)
    flit: Annotated[Size, Field(description="Payload of a flit.")] = Size(bytes=16)
    packet: Annotated[
        Count, Field(description="The most flits of a unicast packet, at most the depth of a VC.")
    ] = 1

    @property
    def carrying(self) -> SmartMesh:
        """The mesh, with a reducer if required and not set."""
        combines = self.mesh.settings["fan_in"] != "unicasts"
        if combines and self.mesh.reducer is None:
            return replace(self.mesh, reducer=True)
        return self.mesh

    @property
    def core(self) -> _core.MeshFlits:
        """The core's mesh and flit parameters.

        Raises:
            NocError: The flit parameters are invalid, or the mesh cannot combine contributions.
        """
        return _core.MeshFlits(
            self.carrying.core, cycle_ps=self.cycle.ps, flit=self.flit.bytes, packet=self.packet
        )


class Platform(Parameters):
    """A machine.

    Attributes:
        name: The name in results.
        model: The network model and the costs of local work.
        routes: Routes through a topology whose first NPUs host the ranks. The latency of each link
            of its route delays a message. Its bytes take the time of the slowest link, if that
            exceeds the time of the model. Without routes all ranks are at equal distance.
        flow: The ports of the flow model, which is the default with routes: concurrent messages
            share links.
        packets: Contention in queues of packets at links, instead of `flow`.
        flits: Contention in routers, flit by flit, instead of `flow`.
        contention_free: Whether messages do not share links: several may use the full rate of a
            link together, which no real network can do.
        mesh: Contention on a mesh with several hops per cycle, multicast and reduction, instead of
            `routes`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: Annotated[str, Strict(), Field(min_length=1)]
    model: Model
    routes: Routes | None = None
    flow: FlowLevel | None = None
    packets: Packets | None = None
    flits: Flits | None = None
    mesh: MeshFlits | None = None
    contention_free: Annotated[bool, Strict()] = False

    _made: dict[int, tuple[Routes, _core.FlitNetwork, _core.Flits]] = PrivateAttr(
        default_factory=dict
    )

    def __copy__(self) -> Self:
        """Returns a copy without cached values, as copies may be changed."""
        copied = super().__copy__()
        copied._made = {}
        return copied

    @property
    def network(self) -> str:
        """The name of the network in results: the kind of model, and that of contention."""
        networks = {
            "flow": self.sharing,
            "packet": self.packets,
            "flit": self.flits,
            "mesh": self.mesh,
        }
        kinds = (name for name, one in networks.items() if one is not None)
        return "+".join([self.model.kind, *kinds])

    @property
    def sharing(self) -> FlowLevel | None:
        """The flow model, if messages share links by it."""
        others = self.packets or self.flits or self.mesh or self.contention_free
        if self.routes is None or others:
            return None
        return self.flow or FlowLevel()

    @property
    def is_in_network(self) -> bool:
        """Whether switches of the topology multicast or reduce, with flows or packets."""
        found = self.packets or self.sharing
        return found is not None and bool(found.multicast or found.reduce)

    @property
    def routers(self) -> _core.FlitNetwork | None:
        """The core's network of routers; None without flits.

        Raises:
            NocError: The routers do not match the topology.
        """
        made = self._flits()
        return made[1] if made else None

    @property
    def core(self) -> _core.Platform:
        """The core's platform.

        Raises:
            NocError: The routers do not match the topology, or the packets are invalid.
            TopologyError: The contention does not match the routes.
        """
        routes = self.routes.core if self.routes else None
        return _core.Platform(self.model.core, self._contention(), routes=routes)

    def _contention(self) -> _core.Contention:
        """Returns what messages share; at most one of the fields is set."""
        made = self._flits()
        if made is not None:
            return _core.Contention.flits(made[2])
        if self.mesh is not None:
            return _core.Contention.mesh(self.mesh.core)
        if self.packets is not None:
            return _core.Contention.packets(self.packets.core)
        if self.sharing is not None:
            return _core.Contention.flow(self.sharing.core)
        return _core.Contention.free()

    def _flits(self) -> tuple[Routes, _core.FlitNetwork, _core.Flits] | None:
        if self.flits is None or self.routes is None:
            return None
        # The search for cyclic dependencies takes long, so runs share the network.
        key = id(self.routes)
        if key not in self._made:
            network = self.flits.network(self.routes).core([None])
            flits = _core.Flits(network, packet=self.flits.packet, header=self.flits.header)
            self._made[key] = self.routes, network, flits
        return self._made[key]

    def checked(self) -> Self:
        """Returns the platform after the core has checked its routers.

        Raises:
            NocError: The routers do not match the topology, or the packets are invalid.
        """
        self._flits()
        return self

    @property
    def remarks(self) -> list[str]:
        """Remarks to print before a run."""
        if self.flits is None or self.routes is None:
            return []
        return self.flits.network(self.routes).remarks([None], self.flits.packet)

    @model_validator(mode="after")
    def _network_fits(self) -> Platform:
        self._check_single()
        if self.routes is None:
            self._check_without_routes()
        elif self.routes.choice is not None and self.packets is None and self.flits is None:
            self._check_choice(self.routes.choice)
        if self.mesh is not None:
            self.mesh.core  # noqa: B018 - the core checks the flit parameters
        if self.packets is not None:
            self.packets.core  # noqa: B018 - the core checks sizes together
        return self

    def _check_single(self) -> None:
        """Rejects two network models."""
        if self.mesh is not None and (self.routes or self.packets or self.flits or self.flow):
            message = "the platform has both a mesh and another network"
            hint = "remove `routes`, `flow`, `packets` and `flits`"
            raise ConfigError(message, kind="invalid", hint=hint)
        values = {name: getattr(self, name) for name in _EXCLUSIVE}
        given = [name for name, value in values.items() if value]
        if len(given) > 1:
            message = f"the platform has both `{given[0]}` and `{given[1]}`"
            raise ConfigError(message, kind="invalid", hint="remove one of them")

    def _check_without_routes(self) -> None:
        messages = {
            "flow": "flows share links, but the platform has no links",
            "packets": "packets queue for links, but the platform has no links",
            "flits": "flits need a topology, but the platform has none",
            "contention_free": "messages have no links to share without a topology",
        }
        for name, message in messages.items():
            if getattr(self, name):
                raise ConfigError(message, kind="invalid", hint="give `routes`, too")

    def _check_choice(self, choice: str) -> None:
        """Rejects routing that needs queues; minimal adaptive routing spreads a flow evenly."""
        if self.contention_free or choice != "adaptive":
            message = f"routing {choice!r} depends on queues of packets"
            raise ConfigError(message, kind="invalid", hint="give `packets`, too")

    def __repr__(self) -> str:
        topology = f", {self.routes.topology.name}" if self.routes else ""
        return f"<Platform {self.name}: {self.network}{topology}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The HTML for notebooks: parameters with units, and a drawing of the topology."""
        from tutti.platforms.view.notebook import platform_html

        return platform_html(self)

    @field_serializer("routes")
    def _routes_by_fingerprint(self, routes: Routes | None) -> str | None:
        return routes.fingerprint if routes else None
