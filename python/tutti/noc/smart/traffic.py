"""What is sent over a mesh of several hops per cycle, for how long, and what no mesh can better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tutti import _core
from tutti.errors import NocError, TrafficError
from tutti.files.described import beyond_bounds
from tutti.noc.settings import Cycles, PacketFlits, Process  # noqa: TC001 - tables look at them

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc.smart.mesh import SmartMesh

Kind = Literal["unicast", "broadcast", "multicast", "reduction"]

UNITS: dict[Kind, str] = {
    "unicast": "flits per node and cycle",
    "broadcast": "broadcasts per source and cycle",
    "multicast": "multicasts per source and cycle",
    "reduction": "reductions per cycle",
}
"""What the rate of each kind of traffic is in."""

_MOST_CLASSES = 16

TrafficKind = Annotated[
    Kind,
    Field(
        description="`unicast`; `broadcast`, a flit to every other node; `multicast`, a flit "
        "to some; `reduction`, a flit from every other node at once to one that is drawn."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Messages of one kind.

    A mesh has all message classes up to the largest that its traffic names.
    """

    kind: TrafficKind = "broadcast"
    rate: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="Unicasts: flits per node and cycle; broadcasts and multicasts: "
            "messages per source and cycle; reductions: messages per cycle on the"
            " complete mesh.",
        ),
    ]
    sources: Annotated[
        Literal["all", "corners"],
        Field(description="Source nodes of broadcasts and multicasts."),
    ] = "all"
    members: Annotated[
        Literal["any_number", "half"],
        Field(
            description="Destinations of multicasts: all group sizes equally likely, or each "
            "node with probability 1/2.",
        ),
    ] = "any_number"
    pattern: Annotated[
        str,
        Field(
            description="Where unicasts go, as `name` or `name:argument`; docs/models/flit.md "
            "lists them.",
        ),
    ] = "uniform"
    packet: Annotated[
        PacketFlits,
        Field(
            description='Flits of unicasts: a number, several such as "1,5", or with weights, '
            '"1,5/3,1".',
        ),
    ] = 1
    process: Process = "bernoulli"
    message_class: Annotated[
        int,
        Field(
            ge=0,
            le=_MOST_CLASSES - 1,
            description="The message class; messages of a class share VCs.",
        ),
    ] = 0

    def core(self) -> _core._SmartLoad:
        """As the core takes it.

        Raises:
            TrafficError: A number that is none.
        """
        given: object = self.message_class
        if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < _MOST_CLASSES:
            message = f"`message_class` is {given!r}: expected 0 to {_MOST_CLASSES - 1}"
            raise TrafficError(message, kind="message_class")
        return {
            "kind": self.kind,
            "sources": self.sources,
            "members": self.members,
            "pattern": self.pattern,
            "packet": str(self.packet),
            "process": self.process,
            "rate": float(self.rate),
            "message_class": given,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPlan:
    """How long to run, and how often.

    Raises:
        NocError: A number is none.
    """

    warmup: Annotated[Cycles, Field(description="Cycles before the measurement window.")] = 2_000
    measure: Annotated[
        int,
        Field(ge=1, le=1 << 40, description="Cycles of the measurement window."),
    ] = 10_000
    drain: Annotated[
        Cycles,
        Field(description="Most cycles after the window until all its packets have arrived."),
    ] = 10_000
    seeds: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description="Runs with different seeds, for confidence intervals.",
        ),
    ] = 5
    seed: Annotated[
        int, Field(ge=0, lt=1 << 62, description="The first seed of all that is random.")
    ] = 1

    def __post_init__(self) -> None:
        """Refuses numbers that cannot be."""
        for name, value, least, most in beyond_bounds(self):
            message = f"`{name}` is {value!r}: expected a whole number from {least} to {most}"
            raise NocError(message, kind="out_of_range", fields={"what": name})

    def core(self) -> tuple[int, int, int]:
        """As the core takes it."""
        return self.warmup, self.measure, self.drain


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """What no mesh can better: every message in a cycle, until a link or port is always busy.

    Attributes:
        latency: In cycles.
        load: The rate of the traffic at which a link or port is always busy, in its own unit.
        throughput: Messages per cycle of all sources then.
        hops: Hops of a unicast in the mean; of other messages to the node farthest from the root.
    """

    latency: float
    load: float
    throughput: float
    hops: float


def ideal(mesh: SmartMesh, traffic: Traffic) -> Ideal | None:
    """The bound for a mesh of that size; None for patterns of unicasts but `uniform` and `others`.

    Raises:
        TrafficError: There is no such traffic.
    """
    found = case_of(mesh, [traffic], ReplicationPlan(), seed=1).ideals()[0]
    if found is None:
        return None
    throughput, hops = found
    return Ideal(
        latency=1.0, load=throughput / sources_of(mesh, traffic), throughput=throughput, hops=hops
    )


def sources_of(mesh: SmartMesh, traffic: Traffic) -> float:
    """Messages per cycle of all sources at a rate of 1."""
    if traffic.kind == "reduction":
        return 1.0
    if traffic.kind == "unicast":
        return mesh.nodes / mean_size(traffic.packet)
    return 4.0 if traffic.sources == "corners" else float(mesh.nodes)


def mean_size(packet: int | str) -> float:
    """Flits of a packet in the mean, of a size that the core has taken."""
    sizes, _, weights = str(packet).partition("/")
    each = [float(size) for size in sizes.split(",")]
    parts = [float(weight) for weight in weights.split(",")] if weights else [1.0] * len(each)
    return sum(a * b for a, b in zip(each, parts, strict=True)) / sum(parts)


def case_of(
    mesh: SmartMesh, traffic: Sequence[Traffic], plan: ReplicationPlan, *, seed: int
) -> _core.SmartCase:
    """What the core runs.

    Raises:
        NocError: Traffic does not fit the mesh.
        TrafficError: There is no such traffic.
    """
    return _core.SmartCase(mesh.core, [one.core() for one in traffic], plan.core(), seed)
