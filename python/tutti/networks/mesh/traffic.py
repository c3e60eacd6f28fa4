"""Traffic, measurement plans and ideal bounds of single-cycle multi-hop meshes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tutti import _core
from tutti.base.files.described import key
from tutti.base.files.typed import refuse_arguments, refuse_fields
from tutti.networks.errors import NocError, TrafficError
from tutti.networks.flit.settings import Cycles, PacketFlits, Process  # noqa: TC001 - needed at run time
from tutti.networks.mesh.mesh import SmartMesh

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["unicast", "broadcast", "multicast", "reduction"]

UNITS: dict[Kind, str] = {
    "unicast": "flits per node and cycle",
    "broadcast": "broadcasts per source and cycle",
    "multicast": "multicasts per source and cycle",
    "reduction": "reductions per cycle",
}
"""The unit of the rate of each kind of traffic."""

_MOST_CLASSES = 16

TrafficKind = Annotated[
    Kind,
    Field(
        description="`unicast`; `broadcast`, a flit to every other node; `multicast`, a flit to "
        "several nodes; `reduction`, a flit from every other node to a random root."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Messages of one kind.

    A mesh has all message classes up to the largest in its traffic.
    """

    kind: TrafficKind = "broadcast"
    rate: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="Offered load. Unicasts: flits per node and cycle; broadcasts and "
            "multicasts: messages per source and cycle; reductions: messages per cycle.",
        ),
    ]
    sources: Literal["all", "corners"] = key(
        "all", description="Source nodes of broadcasts and multicasts."
    )
    members: Literal["any_number", "half"] = key(
        "any_number",
        description="Destinations of multicasts: `any_number` draws the number of nodes "
        "uniformly, `half` includes each node with probability 0.5.",
    )
    pattern: str = key(
        "uniform",
        description="Traffic pattern of unicasts, as `name` or `name:argument`; see "
        "docs/models/flit.md.",
    )
    packet: PacketFlits = key(
        1,
        description="Packet size of unicasts in flits: a number, several equally likely sizes, "
        '"1,5", or weighted sizes, "1,5/3,1".',
    )
    process: Process = "bernoulli"
    message_class: int = key(
        0, ge=0, le=_MOST_CLASSES - 1, description="Message class; messages of a class share VCs."
    )
    outstanding: int | None = key(
        None,
        ge=1,
        lt=1 << 32,
        description="Maximum reductions in flight; further ones wait at their source, as if "
        "each reserved a table entry at its NIC. Default: no limit.",
    )

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range.

        Raises:
            TrafficError: A value is wrong.
        """
        refuse_fields(self, TrafficError)

    def core(self) -> _core._SmartLoad:
        """Returns the traffic for the core."""
        return {
            "kind": self.kind,
            "sources": self.sources,
            "members": self.members,
            "pattern": self.pattern,
            "packet": str(self.packet),
            "process": self.process,
            "rate": float(self.rate),
            "message_class": self.message_class,
            "outstanding": self.outstanding,
        }


SEVERAL = Traffic | tuple[Traffic, ...]
"""Traffic of one kind, or several concurrent kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPlan:
    """The phases of a run, in cycles, and the number of seeds.

    Raises:
        NocError: A value is of a wrong type or out of range.
    """

    warmup: Cycles = key(2_000, description="Cycles before the measurement window.")
    measure: int = key(10_000, ge=1, le=1 << 40, description="Cycles of the measurement window.")
    drain: Cycles = key(
        10_000, description="Cycles after the window in which all its messages must complete."
    )
    seeds: int = key(
        5,
        ge=1,
        le=10_000,
        description="Replications with different seeds, for confidence intervals.",
    )
    seed: int = key(1, ge=0, lt=1 << 62, description="Random seed of the first replication.")

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range."""
        refuse_fields(self, NocError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """The ideal mesh: one-cycle latency, and throughput limited by the busiest link or port only.

    Attributes:
        latency: Lower bound of the latency, in cycles.
        load: Rate of the traffic at which a link or port is fully utilised, in the traffic's unit.
        throughput: Messages per cycle of all sources at that load.
        hops: Mean hops of a unicast; for other messages, hops to the node farthest from the root.
    """

    latency: float
    load: float
    throughput: float
    hops: float


def ideal(mesh: SmartMesh, traffic: Traffic) -> Ideal | None:
    """Returns the ideal bounds for a mesh of this size.

    Returns:
        The bounds; `None` for unicast patterns other than `uniform` and `others`.

    Raises:
        TrafficError: The traffic is invalid.
    """
    refuse_arguments("ideal", NocError, mesh=(mesh, SmartMesh), traffic=(traffic, Traffic))
    found = case_of(mesh, [traffic], ReplicationPlan(), seed=1).ideals()[0]
    if found is None:
        return None
    throughput, hops = found
    return Ideal(
        latency=1.0, load=throughput / sources_of(mesh, traffic), throughput=throughput, hops=hops
    )


def sources_of(mesh: SmartMesh, traffic: Traffic) -> float:
    """Returns the messages per cycle of all sources at a rate of 1."""
    if traffic.kind == "reduction":
        return 1.0
    if traffic.kind == "unicast":
        return mesh.nodes / mean_size(traffic.packet)
    return 4.0 if traffic.sources == "corners" else float(mesh.nodes)


def mean_size(packet: int | str) -> float:
    """Returns the mean packet size in flits, for a size that the core has validated."""
    sizes, _, weights = str(packet).partition("/")
    each = [float(size) for size in sizes.split(",")]
    parts = [float(weight) for weight in weights.split(",")] if weights else [1.0] * len(each)
    return sum(a * b for a, b in zip(each, parts, strict=True)) / sum(parts)


def case_of(
    mesh: SmartMesh, traffic: Sequence[Traffic], plan: ReplicationPlan, *, seed: int
) -> _core.SmartCase:
    """Returns the case for the core.

    Raises:
        NocError: The traffic does not fit the mesh.
        TrafficError: The traffic is invalid.
    """
    loads = [each.core() for each in traffic]
    return _core.SmartCase(
        mesh.core,
        loads,
        warmup=plan.warmup,
        measure=plan.measure,
        drain=plan.drain,
        seed=seed,
    )
