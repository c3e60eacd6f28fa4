"""Settings of a flit-level simulation: routers, traffic and the measurement plan.

Delays are in clock cycles, sizes of packets and buffers in flits, rates in flits per node and
cycle. Building the core's network checks the settings for consistency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from tutti import _core
from tutti.base.declared.groups import RouterParameters, Speculation
from tutti.base.files.described import Count, key
from tutti.base.files.typed import refuse_fields
from tutti.base.units import Time
from tutti.networks.errors import NocError, TrafficError

__all__ = [
    "Deadlock",
    "MeasurementPlan",
    "NarrowLinks",
    "Reply",
    "Router",
    "RouterBuffers",
    "RouterClock",
    "Speculation",
    "Trace",
    "Traffic",
]

NarrowLinks = Annotated[
    Literal["refuse", "serialize"],
    Field(
        description="Links that need more than a cycle per flit: `refuse` reports an error, "
        "`serialize` occupies the link for the time of each flit."
    ),
]
Deadlock = Annotated[
    Literal["warn", "refuse", "ignore"],
    Field(
        description="A routing that can deadlock: `warn` prints a warning, `refuse` reports an "
        "error, also if the network is too large to check; `ignore` skips the check."
    ),
]

Cycles = Annotated[int, Field(ge=0, le=1 << 40)]
Limit = Annotated[int, Field(ge=1, lt=1 << 32)]
PacketFlits = Annotated[
    Annotated[int, Field(ge=1, lt=1 << 32), Tag("value")] | Annotated[str, Tag("text")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "value"),
]
Process = Annotated[
    str,
    Field(
        description="Injection process: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:` "
        "with two of `alpha=`, `beta=`, `r1=`."
    ),
]


def _switched(value: object) -> object:
    """Converts true to default speculation, and false to no speculation."""
    if isinstance(value, bool):
        return {} if value else None
    if value is None or isinstance(value, dict | Speculation):
        return value
    message = "is neither true, false nor a table"
    raise ValueError(message)


class Router(RouterParameters):
    """The routers of a network; all are identical. Delays are in cycles, buffers in flits.

    Attributes:
        speculation: Speculative switch allocation: head flits request a VC and the switch in the
            same cycle.
    """

    refused_as = NocError

    speculation: Annotated[
        Speculation | None,
        BeforeValidator(_switched, json_schema_input_type=Speculation | bool | None),
    ] = Field(None, description="Head flits request a VC and the switch in the same cycle.")

    def core_settings(
        self,
        classes: list[tuple[int, int]],
        seed: int,
        buffers: list[tuple[int, int]] | None = None,
        clocks: list[tuple[int, int, int]] | None = None,
    ) -> _core._Settings:
        """Returns the settings for the core.

        Args:
            classes: The first and the last VC of each traffic class.
            seed: Seed of the random numbers.
            buffers: VCs (a bit for each) and buffer depth of each router; `None` if all have the
                same.
            clocks: Number, period in ps and cycles of the synchroniser of each router's clock;
                `None` if all have that of the network.
        """
        speculation = self.speculation
        return {
            "router": self.texts(RouterParameters),
            "speculation": speculation.texts(Speculation) if speculation else None,
            "classes": classes,
            "seed": seed,
            "buffers": buffers or [],
            "clocks": clocks or [],
        }


@dataclass(frozen=True, kw_only=True)
class RouterBuffers:
    """Routers whose input ports have fewer VCs or smaller buffers than `router` states.

    Attributes:
        at: Names of routers, or patterns with `*`, `?` and `[...]`, such as ``"0,*"``.
    """

    at: tuple[str, ...]
    vcs: int | None = key(
        None, ge=1, le=64, description="VCs of each port; if absent, those of `router`."
    )
    vcs_per_class: int | None = key(
        None,
        ge=1,
        le=64,
        description="Instead of `vcs`: VCs of each port for each traffic class, the first ones of "
        "its range.",
    )
    buffer: int | None = key(
        None,
        ge=1,
        le=1 << 15,
        description="Flits that the buffer of each VC holds; if absent, those of `router`.",
    )

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range, and VCs that are stated twice."""
        refuse_fields(self, NocError)
        if None not in {self.vcs, self.vcs_per_class}:
            message = "`vcs` and `vcs_per_class` are both given: expected one of them"
            raise NocError(message, kind="router_buffers")


@dataclass(frozen=True, kw_only=True)
class RouterClock:
    """A clock domain: routers with a clock that differs from that of the network.

    Attributes:
        at: Names of routers, or patterns with `*`, `?` and `[...]`, such as ``"0,*"``.
        period: The period, such as ``"2 ns"``; at least `cycle` of the network.
    """

    at: tuple[str, ...]
    period: str | Time
    synchroniser: int = key(
        2,
        ge=0,
        le=64,
        description="Cycles of this clock that flits and credits from other clocks wait.",
    )

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range."""
        refuse_fields(self, NocError)

    @property
    def period_ps(self) -> int:
        """The period in picoseconds."""
        return Time.of_any(self.period).ps


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The packet that a node returns for each request, in a class after that of the requests.

    Attributes:
        vcs: The first and the last VC of replies; `None` for all. Deadlock-free only if requests
            have other VCs.
    """

    packet: PacketFlits = key(
        1,
        description='Size of a reply in flits: a number, several equally likely sizes, "1,5", or '
        'weighted sizes, "1,5/3,1".',
    )
    delay: Cycles = key(
        0, description="Cycles from the arrival of a request to the creation of its reply."
    )
    vcs: tuple[Count, Count] | None = None

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range.

        Raises:
            TrafficError: A value is wrong.
        """
        refuse_fields(self, TrafficError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Generated traffic of one class.

    Attributes:
        vcs: The first and the last VC of the class; `None` for all.
        reply: The replies to its packets; `None` for none.
    """

    rate: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="Flits per node and cycle.")
    ]
    pattern: str = key(
        "uniform",
        description="Traffic pattern, as `name` or `name:argument`; see docs/models/flit.md.",
    )
    process: Process = "bernoulli"
    packet: PacketFlits = key(
        1,
        description='Packet size in flits: a number, several equally likely sizes, "1,5", or '
        'weighted sizes, "1,5/3,1".',
    )
    vcs: tuple[Count, Count] | None = None
    priority: int = key(
        0,
        ge=-(1 << 62),
        le=1 << 62,
        description="Packets of higher priority win arbitration if the routers' priority is "
        "`ordered`.",
    )
    outstanding: Limit | None = key(
        None,
        description="The most packets of a node without a reply or, if there are no replies, in "
        "flight: a closed loop. Unlimited if absent.",
    )
    requests: Limit | None = key(
        None,
        description="Packets of a node in the run, which is a batch then: it ends when all "
        "packets, and their replies, have arrived.",
    )
    queue: Annotated[str, Field(min_length=1)] | None = key(
        None,
        description="Name of the injection queue of each node. Classes with the same name, and "
        "their replies, share a queue, in which replies precede requests. If absent, requests and "
        "replies of the class have a queue each.",
    )
    reply: Reply | None = None

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range.

        Raises:
            TrafficError: A value is wrong.
        """
        refuse_fields(self, TrafficError)

    def core_load(self, share: float = 1.0, rate: float | None = None) -> _core.FlitLoad:
        """Returns the load for the core, with the rate, or another one, multiplied by `share`."""
        return _core.FlitLoad(
            self.pattern,
            self.process,
            rate=(self.rate if rate is None else rate) * share,
            packet=str(self.packet),
            priority=self.priority,
            reply=(str(self.reply.packet), self.reply.delay) if self.reply else None,
            outstanding=self.outstanding,
            requests=self.requests,
            queue=self.queue,
        )


def mean_flits(packet: int | str) -> float:
    """Returns the mean size of packets.

    Examples:
        >>> mean_flits(4), mean_flits("1,5"), mean_flits("1,5/3,1")
        (4.0, 3.0, 2.0)
    """
    sizes, _, weights = str(packet).partition("/")
    numbers = [float(size) for size in sizes.split(",")]
    shares = [float(weight) for weight in weights.split(",")] if weights else [1.0] * len(numbers)
    return sum(a * b for a, b in zip(numbers, shares, strict=True)) / sum(shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Recorded packets of one class or several.

    Attributes:
        text: Comma-separated values with the columns cycle, source, destination, flits; for several
            classes, class; for packets that wait for the arrival of others, id, after (ids between
            blanks) and delay (cycles).
        vcs: The first and the last VC of each class; `None` for one class on all VCs.
    """

    text: str
    vcs: tuple[tuple[Count, Count], ...] | None = None

    def __post_init__(self) -> None:
        """Refuses values of a wrong type.

        Raises:
            TrafficError: A value is wrong.
        """
        refuse_fields(self, TrafficError)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """The phases of a run, in cycles; `NocRun.vcs_over_time` needs `keep_vcs`."""

    warmup: Cycles = key(5_000, description="Cycles before the measurement window.")
    measure: Cycles = key(20_000, description="Cycles of the measurement window.")
    batches: Count = key(
        20, description="Batches of the window, 2 or more, for confidence intervals by batch means."
    )
    drain: Cycles = key(
        20_000, description="Cycles after the window in which all its packets must arrive."
    )
    patience: Cycles = key(
        5_000,
        description="Cycles without flit movement after which packets in flight count as "
        "deadlocked.",
    )
    sample: Cycles = key(
        100, description="Cycles between samples of the buffers; 0 for no samples."
    )
    keep_vcs: bool = key(
        False, description="Record the occupancy and flits of every VC at each sample."
    )

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range.

        Raises:
            NocError: A value is wrong.
        """
        refuse_fields(self, NocError)

    def core_plan(self) -> _core.FlitPlan:
        """Returns the plan for the core."""
        return _core.FlitPlan(
            warmup=self.warmup,
            measure=self.measure,
            batches=self.batches,
            drain=self.drain,
            patience=self.patience,
            sample=self.sample,
            keep_vcs=self.keep_vcs,
        )
