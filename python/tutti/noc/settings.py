"""What a network of routers is told: routers, traffic, and how long to measure.

All delays are in clock cycles, all lengths of packets and buffers in flits, all rates in flits per
node and cycle. Numbers are checked against each other when a network is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from tutti.declared.groups import RouterParameters, Speculation
from tutti.errors import NocError
from tutti.files.described import Count, beyond_bounds

__all__ = [
    "Deadlock",
    "MeasurementPlan",
    "NarrowLinks",
    "Router",
    "Speculation",
    "Trace",
    "Traffic",
]

if TYPE_CHECKING:
    from tutti import _core

NarrowLinks = Annotated[
    Literal["refuse", "serialize"],
    Field(
        description="What becomes of links that need more than a cycle for a flit: `serialize` "
        "occupies them for as long as each flit takes."
    ),
]
Deadlock = Annotated[
    Literal["warn", "refuse", "ignore"],
    Field(
        description="What becomes of a routing that can deadlock; `refuse` also refuses a network "
        "too large to check."
    ),
]

Cycles = Annotated[int, Field(ge=0, le=1 << 40)]
PacketFlits = Annotated[
    Annotated[int, Field(ge=1, lt=1 << 32), Tag("value")] | Annotated[str, Tag("text")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "value"),
]
Process = Annotated[
    str,
    Field(
        description="When: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:` with two of "
        "`alpha=`, `beta=`, `r1=`."
    ),
]


def _switched(value: object) -> object:
    """True is speculation with its defaults, false is none."""
    return ({} if value else None) if isinstance(value, bool) else value


class Router(RouterParameters):
    """The routers of a network; all are identical. Delays are in cycles, buffers in flits.

    Attributes:
        speculation: whether heads request a VC and the switch in the same cycle: true, or how.
    """

    refused_as = NocError

    speculation: Annotated[
        Speculation | None,
        BeforeValidator(_switched, json_schema_input_type=Speculation | bool | None),
        Field(description="Whether heads request a VC and the switch in the same cycle."),
    ] = None

    def core_settings(self, classes: list[tuple[int, int]], seed: int) -> _core._Settings:
        """The settings of the core."""
        ahead = self.speculation
        return {
            "router": self.texts(RouterParameters),
            "speculation": ahead.texts(Speculation) if ahead else None,
            "classes": classes,
            "seed": seed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Packets of one class, generated.

    Attributes:
        vcs: The first and the last VC of the class; None is all.
    """

    rate: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="Flits per node and cycle.")
    ]
    pattern: Annotated[
        str,
        Field(
            description="Where packets go, as `name` or `name:argument`; docs/models/flit.md lists "
            "them."
        ),
    ] = "uniform"
    process: Process = "bernoulli"
    packet: Annotated[
        PacketFlits,
        Field(
            description='Flits of a packet: a number, several such as "1,5", each as likely, or '
            'with weights, "1,5/3,1".'
        ),
    ] = 1
    vcs: tuple[int, int] | None = None
    priority: Annotated[
        int,
        Field(
            ge=-(1 << 62),
            le=1 << 62,
            description="Larger goes first, where the routers' is `ordered`.",
        ),
    ] = 0

    def core_load(self, share: float = 1.0) -> tuple[str, str, float, str, int]:
        """As the core takes it, with so many times its rate."""
        return self.pattern, self.process, self.rate * share, str(self.packet), self.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Recorded packets, of one class or several.

    Attributes:
        text: Comma-separated values with the columns cycle, source, destination, flits and, where
            there are classes, class.
        vcs: For each class its first and its last VC; None is one class on all VCs.
    """

    text: str
    vcs: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """How long to run, in cycles; `NocRun.vcs_over_time` needs `keep_vcs`."""

    warmup: Annotated[Cycles, Field(description="Cycles before the measurement window.")] = 5_000
    measure: Annotated[Cycles, Field(description="Cycles of the measurement window.")] = 20_000
    batches: Annotated[
        Count,
        Field(
            description="Batches of the window, 2 or more, whose means give the confidence "
            "intervals."
        ),
    ] = 20
    drain: Annotated[
        Cycles,
        Field(description="Cycles after the window in which its packets must arrive."),
    ] = 20_000
    patience: Annotated[
        Cycles,
        Field(
            description="Cycles without any flit moving after which packets in flight count as "
            "deadlocked."
        ),
    ] = 5_000
    sample: Annotated[
        Cycles, Field(description="Cycles between samples of the buffers; no samples if 0.")
    ] = 100
    keep_vcs: Annotated[
        bool, Field(description="Keep every VC's buffer and flits at each sample.")
    ] = False

    def __post_init__(self) -> None:
        """Refuses numbers that the core cannot take at all.

        Raises:
            NocError: one of them is none.
        """
        for name, value, least, most in beyond_bounds(self):
            message = f"`{name}` is {value!r}: expected a whole number from {least} to {most}"
            raise NocError(message, kind="out_of_range", fields={"what": name})

    def core_plan(self) -> tuple[int, int, int, int, int, int, bool]:
        """As the core takes it."""
        times = (self.warmup, self.measure, self.batches, self.drain, self.patience, self.sample)
        return (*times, self.keep_vcs)
