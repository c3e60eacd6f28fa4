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

from typing import Annotated, Any, Self

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    field_serializer,
    field_validator,
    model_validator,
)

from tutti import _core
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
from tutti.platforms.contention import (
    Contention,
    Flits,
    FlowLevel,
    Free,
    Packets,
    check_contention,
)
from tutti.platforms.library import Library
from tutti.topologies import Routes
from tutti.topologies.idle import default_routing, idle_links

__all__ = [
    "MODELS",
    "LoP",
    "LogGP",
    "LogP",
    "LogfP",
    "Model",
    "NetworkModel",
    "PipeliningPostal",
    "Platform",
    "Postal",
    "Protocols",
]


class Platform(Parameters):
    """A machine.

    Attributes:
        name: The name in results.
        model: The network model and the costs of local work.
        routes: Routes through a topology whose first NPUs host the ranks. The latency of each link
            of its route delays a message. Its bytes take the time of the slowest link, if that
            exceeds the time of the model. Without routes all ranks are at equal distance.
        contention: What concurrent messages share. If None, they share the links of the routes by
            the flow model, or nothing without routes. `MeshFlits` replaces `routes`.
        library: The communication library that runs on it; None if it is not known.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: Annotated[str, Strict()] = Field(min_length=1)
    model: Model
    routes: Routes | None = None
    contention: Contention | None = None
    library: Library | None = None

    _made: dict[int, tuple[Routes, _core.FlitNetwork, _core.Contention]] = PrivateAttr(
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
        kind = self.effective_contention.kind
        return self.model.kind if kind == "free" else f"{self.model.kind}+{kind}"

    @property
    def effective_contention(self) -> Contention:
        """The contention, or its default: the flow model with routes, `Free` without."""
        if self.contention is not None:
            return self.contention
        return Free() if self.routes is None else FlowLevel()

    @property
    def is_in_network(self) -> bool:
        """Whether switches of the topology multicast or reduce, with flows or packets."""
        contention = self.effective_contention
        if not isinstance(contention, FlowLevel | Packets):
            return False
        return bool(contention.multicast or contention.reduce)

    @property
    def inputs(self) -> dict[str, Any]:
        """The values that determine results, for hashes; contention has its key of files."""
        values = self.model_dump(mode="json", exclude={"contention"})
        values |= dict.fromkeys(("flow", "packets", "flits", "mesh")) | {"contention_free": False}
        if self.contention is not None:
            parameters = self.contention.model_dump(mode="json")
            values[self.contention.key] = True if self.contention.kind == "free" else parameters
        if self.library is None:
            del values["library"]
        return values

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
        return _core.Platform(self.model.core, self._core_contention(), routes=routes)

    def _core_contention(self) -> _core.Contention:
        made = self._flits()
        if made is not None:
            return made[2]
        contention = self.effective_contention
        assert not isinstance(contention, Flits)  # noqa: S101 - flits have routes
        return contention.core

    def _flits(self) -> tuple[Routes, _core.FlitNetwork, _core.Contention] | None:
        if not isinstance(self.contention, Flits) or self.routes is None:
            return None
        # The search for cyclic dependencies takes long, so runs share the network.
        key = id(self.routes)
        if key not in self._made:
            self._made[key] = self.routes, *self.contention.core_on(self.routes)
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
        if self.routes is None:
            return []
        if not isinstance(self.contention, Flits):
            texts = (default_routing(self.routes), idle_links(self.routes))
            return [text for text in texts if text]
        return self.contention.network(self.routes).remarks([None], self.contention.packet)

    @property
    def routing(self) -> str:
        """The name of the routing rule; ``shortest_path`` for explicit paths, which replace it."""
        rule = None if self.routes is None else self.routes.rule
        return (rule or "shortest_path").partition(":")[0]

    @field_validator("contention", mode="before")
    @classmethod
    def _is_contention(cls, contention: object) -> object:
        """Rejects tables, whose keys may fit several types."""
        if contention is None or isinstance(contention, Contention):
            return contention
        names = "Free, FlowLevel, Packets, Flits, MeshFlits"
        message = f"{contention!r} is not a contention: expected None or one of {names}"
        raise ConfigError(message, kind="invalid")

    @model_validator(mode="after")
    def _contention_fits(self) -> Platform:
        if self.contention is not None or self.routes is not None:
            check_contention(self.effective_contention, self.routes)
        return self

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
