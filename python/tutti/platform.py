"""Platforms: a machine as a network model with its parameters, and what local work costs on it.

The classes carry the parameters of the core's models under the field's names; the core checks them
together, and alone computes with them.

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
from tutti.declared.base import NetworkModel
from tutti.declared.groups import PacketParameters
from tutti.declared.models import (
    MODELS,
    LogfP,
    LogGP,
    LogP,
    LoP,
    Model,
    PipeliningPostal,
    Postal,
)
from tutti.energy import Technology
from tutti.errors import ConfigError
from tutti.noc.settings import Deadlock, NarrowLinks, Router
from tutti.noc.smart.mesh import SmartMesh
from tutti.package import Package  # noqa: TC001 - pydantic looks at it
from tutti.parameters import Parameters
from tutti.topology import Routes
from tutti.units import Size, Time

if TYPE_CHECKING:
    from tutti.noc import Network

__all__ = [
    "MODELS",
    "Flits",
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
]

Count = Annotated[int, Strict(), Field(ge=0, lt=1 << 32)]


class Packets(PacketParameters):
    """Messages cut into packets that queue for the links of the platform's topology.

    Attributes:
        package: the routers behind the links, for energy and area; it changes no time.
    """

    package: Package | None = None

    @property
    def core(self) -> _core.Packets:
        """The core's packets.

        Raises:
            ModelError: packets that are empty, or that fit in no buffer.
        """
        return _core.Packets(self.texts(PacketParameters))


class Flits(Parameters):
    """Messages cut into packets of flits, which pass the platform's topology cycle by cycle.

    Every switch and router of the topology is a router, and so is every NPU, unless it hangs on one
    switch or router by one link each way: see `tutti.noc.Network`.

    Attributes:
        cycle: the length of a clock cycle.
        flit: the size of a flit.
        packet: the most flits of a packet, its header included.
        header: flits of a packet that carry nothing of a message.
        routing: which route packets take; the rule of the platform's routes if it is absent.
        router: the routers.
        narrow_links: what becomes of links that need more than a cycle for a flit.
        deadlock: what becomes of a routing that can deadlock; `warn` has the command line say so.
        technology: what events cost in energy; it changes no time.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    cycle: Annotated[Time, Field(description="The length of a clock cycle.")] = Time(ps=1000)
    flit: Annotated[Size, Field(description="The size of a flit.")] = Size(bytes=16)
    packet: Annotated[
        Count, Field(description="The most flits of a packet, its header included.")
    ] = 4
    header: Annotated[
        Count, Field(description="Flits of a packet that carry nothing of a message.")
    ] = 0
    routing: Annotated[
        Annotated[str, Strict()] | None,
        Field(
            description="Which route packets take, as `name` or `name:argument`; "
            "docs/models/flit.md lists them. If absent, the topology's."
        ),
    ] = None
    router: Annotated[Router, Field(description="The routers.")] = Router()
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
    technology: Technology | None = None

    def network(self, routes: Routes) -> Network:
        """The network of routers on the topology of these routes.

        Raises:
            ConfigError: neither these flits nor the routes name a routing.
        """
        from tutti.noc.network import Network

        routing = self.routing or routes.rule
        if routing is None:
            message = "flits need a routing by name, and the routes were written down one by one"
            raise ConfigError(message, kind="invalid", hint='such as routing="shortest_path"')
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
    """Messages cut into flits of a mesh whose routers may fork and combine them; rank i is node i.

    Where routers fork, a multicast of a schedule is one flit to all its receivers for each `flit`
    of its bytes; where they combine, a combine is one reduction of a flit for each. All other
    messages are packets from node to node. See docs/models/smart.md.

    Attributes:
        mesh: the mesh. Schedules carry sums, so where routers combine they need a `reducer`: they
            have one unless `mesh` says otherwise.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    mesh: SmartMesh
    cycle: Annotated[Time, Field(description="The length of a clock cycle.")] = Time(ps=1000)
    flit: Annotated[Size, Field(description="What a flit carries of a message.")] = Size(bytes=16)
    packet: Annotated[
        Count, Field(description="The most flits of a packet to one node; a VC must hold it.")
    ] = 1

    @property
    def carrying(self) -> SmartMesh:
        """The mesh, with a reducer where it needs one and nothing else is said."""
        combines = self.mesh.settings["fan_in"] != "unicasts"
        if combines and self.mesh.reducer is None:
            return replace(self.mesh, reducer=True)
        return self.mesh

    @property
    def core(self) -> _core.MeshFlits:
        """The core's mesh, and how messages are cut for it.

        Raises:
            NocError: messages cannot be cut so, or the mesh cannot combine what schedules carry.
        """
        return _core.MeshFlits(
            self.carrying.core, cycle_ps=self.cycle.ps, flit=self.flit.bytes, packet=self.packet
        )


class Platform(Parameters):
    """A machine.

    Attributes:
        name: its name in results.
        model: how long messages and local work take.
        routes: the ways through a topology whose first NPUs host the ranks: every message takes
            the latency of each link on its way longer, and its bytes as long as the slowest link
            takes where that is longer than in the model. Without routes all ranks are equally far.
        packets: how messages meet on the links of that topology; without it, none is in another's
            way.
        flits: how messages meet, instead: in routers, cycle by cycle.
        mesh: how messages meet, instead of on routes: on a mesh whose flits make several hops in a
            cycle, and whose routers may fork and combine.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: Annotated[str, Strict(), Field(min_length=1)]
    model: Model
    routes: Routes | None = None
    packets: Packets | None = None
    flits: Flits | None = None
    mesh: MeshFlits | None = None

    _made: dict[int, tuple[Routes, _core.FlitNetwork, _core.Flits]] = PrivateAttr(
        default_factory=dict
    )

    def __copy__(self) -> Self:
        """A copy may be changed, so it keeps nothing that was made of the original."""
        copied = super().__copy__()
        copied._made = {}
        return copied

    @property
    def network(self) -> str:
        """What results call the network: the model's kind, and how messages meet, if they do."""
        met = {"packet": self.packets, "flit": self.flits, "mesh": self.mesh}
        return "+".join([self.model.kind, *(name for name, one in met.items() if one is not None)])

    @property
    def routers(self) -> _core.FlitNetwork | None:
        """The core's network of routers, where messages pass one.

        Raises:
            NocError: there can be no such routers on the topology.
        """
        made = self._flits()
        return made[1] if made else None

    @property
    def core_flits(self) -> _core.Flits | None:
        """The core's flits, where messages are cut into some.

        Raises:
            NocError: there can be no such routers on the topology, or no such packets.
        """
        made = self._flits()
        return made[2] if made else None

    def _flits(self) -> tuple[Routes, _core.FlitNetwork, _core.Flits] | None:
        if self.flits is None or self.routes is None:
            return None
        # It takes a while to look for circles: many runs share what was made once.
        key = id(self.routes)
        if key not in self._made:
            network = self.flits.network(self.routes).core([None])
            flits = _core.Flits(network, packet=self.flits.packet, header=self.flits.header)
            self._made[key] = self.routes, network, flits
        return self._made[key]

    def checked(self) -> Self:
        """The same, after the core has looked at its routers.

        Raises:
            NocError: there can be no such routers on the topology, or no such packets.
        """
        self._flits()
        return self

    @property
    def remarks(self) -> list[str]:
        """What a person should know before anything is run."""
        if self.flits is None or self.routes is None:
            return []
        return self.flits.network(self.routes).remarks([None], self.flits.packet)

    @model_validator(mode="after")
    def _packets_fit(self) -> Platform:
        if self.mesh is not None:
            return self._mesh_fits(self.mesh)
        if self.flits is not None:
            return self._flits_fit()
        if self.packets is None:
            if self.routes is not None and self.routes.choice is not None:
                message = (
                    f"routing is {self.routes.choice!r}, a choice of packets, and there are none"
                )
                raise ConfigError(message, kind="invalid", hint="give `packets` too")
            return self
        if self.routes is None:
            message = "packets queue for links, and the platform has none"
            raise ConfigError(message, kind="invalid", hint="give `routes` too")
        self.packets.core  # noqa: B018 - the core checks sizes together
        return self

    def _mesh_fits(self, mesh: MeshFlits) -> Platform:
        if self.routes or self.packets or self.flits:
            message = "a mesh is a network of its own, and the platform has another one"
            hint = "leave out `routes`, `packets` and `flits`"
            raise ConfigError(message, kind="invalid", hint=hint)
        mesh.core  # noqa: B018 - the core checks how messages are cut
        return self

    def _flits_fit(self) -> Platform:
        problem, hint = "", ""
        if self.routes is None:
            problem, hint = "flits pass a topology, and the platform has none", "give `routes` too"
        elif self.packets is not None:
            problem, hint = "messages are cut into packets or into flits", "leave one of them out"
        if problem:
            raise ConfigError(problem, kind="invalid", hint=hint)
        return self

    @field_serializer("routes")
    def _routes_by_fingerprint(self, routes: Routes | None) -> str | None:
        return routes.fingerprint if routes else None
