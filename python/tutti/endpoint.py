"""Endpoints: what stands between an NPU and its links, and what it takes from computing.

The configurations of Rashidi et al. 2021, section VI, are in :func:`configurations`; each parameter
of theirs has its default and its source here (``docs/models/endpoint.md``: how sure that is).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Strict, Tag

from tutti import _core
from tutti.errors import EndpointError
from tutti.files.described import Count, InFiles, Positive
from tutti.files.tables import kind_of
from tutti.units import Frequency, OpRate, Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AceSettings", "Configuration", "Npu", "Ring", "carriage", "configurations", "torus"]

Kind = Literal["ideal", "baseline", "ace"]
Handover = Literal["ahead", "at_end"]
FsmDivision = Literal["by_time", "evenly"]
Efficiency = Annotated[
    float, Field(gt=0, le=1, description="The part of what links carry that is data.")
]


@dataclass(frozen=True)
class Ring(InFiles):
    """A ring of a torus."""

    name: Annotated[str, Field(min_length=1, description="What it is called.")]
    nodes: Annotated[Positive, Field(description="NPUs on it.")]
    rate: Annotated[TimePerByte, Field(description="Of a link, in one direction.")]
    latency: Annotated[Time, Field(description="Of a link, from the end of a packet to its end.")]


def torus(rings: Sequence[Ring], efficiency: Efficiency = 1.0) -> _core.Torus:
    """A torus of these rings, the one inside a package first.

    Args:
        rings: The rings.
        efficiency: The part of what links carry that is data and not headers.

    Raises:
        TopologyError: There are fewer than two NPUs, or a link takes no time.
    """
    return _core.Torus(
        [(ring.nodes, _scaled(ring.rate, efficiency).core, ring.latency.ps) for ring in rings]
    )


def carriage(chunk: Size, message: Size, **otherwise: object) -> dict[str, object]:
    """How the core carries collectives out: in chunks and messages, the newest first, one NPU that
    stands for all and nothing watched over time, where `otherwise` does not say something else.
    """
    usual: dict[str, object] = {
        "chunk": chunk.bytes,
        "message": message.bytes,
        "order": "lifo",
        "parts": None,
        "every_npu": False,
        "window": 0,
    }
    return usual | otherwise


@dataclass(frozen=True)
class Npu(InFiles):
    """An NPU; the defaults are those of Rashidi et al. 2021, table of system parameters."""

    arithmetic: Annotated[OpRate, Field(description="All its SMs together.")] = OpRate.parse(
        "120 TFLOP/s"
    )
    sms: Annotated[Positive, Field(description="How many SMs it has.")] = 80
    memory: Annotated[TimePerByte, Field(description="Bandwidth of its memory.")] = (
        TimePerByte.parse("900 GB/s")
    )
    clock: Annotated[
        Frequency, Field(description="Clock of the NPU and of the endpoint beside it.")
    ] = Frequency.parse("1245 MHz")
    per_sm: Annotated[
        TimePerByte,
        Field(description="What one SM reads and writes when it communicates (64 B a cycle)."),
    ] = TimePerByte.parse("80 GB/s")
    bus: Annotated[
        TimePerByte,
        Field(description="Between the NPU and its links, each direction by itself."),
    ] = TimePerByte.parse("500 GB/s")

    def without(self, sms: int, memory: TimePerByte | None) -> tuple[int, TimePerByte]:
        """What is left to compute: operations a second, and bandwidth of memory.

        Raises:
            EndpointError: Nothing is left.
        """
        if sms >= self.sms:
            message = f"{sms} of {self.sms} SMs communicate: nothing is left to compute"
            raise EndpointError(message, kind="nothing_left")
        left = self.arithmetic.per_second * (self.sms - sms) // self.sms
        return left, self.memory if memory is None else _less(self.memory, memory)


@dataclass(frozen=True, kw_only=True)
class AceSettings(InFiles):
    """ACE; the defaults are those of Rashidi et al. 2021.

    Attributes:
        width: Of buses inside ACE, in bytes; banks and ALUs handle as many a cycle.
        charge_writes: Whether results that go back take from the bandwidth of what is read.
    """

    sram: Annotated[Size, Field(description="The scratchpad.")] = Size.parse("4 MiB")
    shares: Annotated[
        Annotated[tuple[Positive, ...], Strict(strict=False)] | None,
        Field(
            description="Its division among the phases and what is done; by rate x chunk if left "
            "out.",
        ),
    ] = None
    handover: Annotated[
        Handover,
        Field(
            description="When a chunk takes room in the partition of its next phase: when a phase "
            "is over, or ahead of it.",
        ),
    ] = "at_end"
    banks: Annotated[Positive, Field(description="Banks of the scratchpad.")] = 4
    width: int = 64
    fsms: Annotated[
        Annotated[Positive, Tag("value")]
        | Annotated[tuple[Count, ...], Strict(strict=False), Tag("list")],
        Discriminator(kind_of),
        Field(description="State machines in all, or those of each phase."),
    ] = 16
    division: Annotated[
        FsmDivision,
        Field(
            description="How state machines are divided among the phases: by the time that a chunk "
            "takes in each, or evenly.",
        ),
    ] = "by_time"
    alus: Annotated[Positive, Field(description="ALUs, each 64 B a cycle.")] = 4
    packet: Annotated[Size, Field(description="What is read, reduced and sent as one.")] = (
        Size.parse("256 B")
    )
    port: Annotated[Positive, Field(description="Packets that wait at most for a link.")] = 16
    charge_writes: bool = False

    @property
    def machines(self) -> tuple[str, list[int]]:
        """How state machines are divided, and how many there are in all or of each phase."""
        if isinstance(self.fsms, int):
            return self.division, [self.fsms]
        return "each", list(self.fsms)


@dataclass(frozen=True, kw_only=True)
class Configuration(InFiles):
    """What carries collectives, and what that leaves to compute."""

    name: Annotated[str, Field(min_length=1, description="What it is called.")]
    kind: Annotated[Kind, Field(description="The endpoint.")]
    memory: Annotated[
        TimePerByte | None,
        Field(
            description="Bandwidth of memory set aside for communication; if left out, as much as "
            "there is, and nothing taken from computing.",
        ),
    ] = None
    sms: Annotated[
        Count,
        Field(
            description="SMs that communicate while others compute; for the baseline at least one.",
        ),
    ] = 0
    overlap: Annotated[
        bool,
        Field(description="Whether gradients are on their way while the backward pass goes on."),
    ] = True
    background: Annotated[
        bool,
        Field(
            description="Whether embedding tables are looked up and updated beside the loop, with "
            "one SM and what it pulls.",
        ),
    ] = False
    ace: Annotated[AceSettings, Field(description="Settings of ACE.")] = field(
        default_factory=AceSettings
    )
    fused: Annotated[
        bool,
        Field(
            description="Baseline: whether a last reduction and the next send are one kernel.",
        ),
    ] = True
    charge_writes: Annotated[
        bool,
        Field(description="Baseline: whether writes take from the bandwidth of reads."),
    ] = False

    def compute(self, npu: Npu) -> tuple[int, TimePerByte]:
        """Operations a second and bandwidth that are left to compute.

        Without overlap nothing is taken: computing and communicating take turns.
        """
        if not self.overlap:
            return npu.without(0, None)
        sms, memory = self.sms, self.memory
        if self.background:
            sms += 1
            memory = npu.per_sm if memory is None else _more(memory, npu.per_sm)
        return npu.without(sms, memory)

    def endpoint(
        self,
        npu: Npu,
        torus: _core.Torus,
        *,
        chunk: Size,
        message: Size,
        exchanges: bool = False,
    ) -> _core.Endpoint:
        """The endpoint of an NPU on a torus; `exchanges`: there are all-to-alls among collectives.

        Raises:
            EndpointError: It cannot be: no SM, no state machine for a phase, a small scratchpad.
        """
        if self.kind == "ideal":
            return _core.Endpoint.ideal(
                {"packet": 256, "cycle": npu.clock.cycles(1).ps, "chunks": (64, 16)}
            )
        if self.kind == "baseline":
            return self._baseline(npu, message)
        return self._ace(npu, torus, chunk, exchanges)

    def _baseline(self, npu: Npu, message: Size) -> _core.Endpoint:
        return _core.Endpoint.baseline(
            {
                "memory": (self.memory or npu.memory).core,
                "per_sm": npu.per_sm.core,
                "sms": self.sms if self.overlap else npu.sms,
                "bus": npu.bus.core,
                "message": message.bytes,
                "overhead": 0,
                "chunks": (64, 16),
                "fused": self.fused,
                "charge_writes": self.charge_writes,
            }
        )

    def _ace(self, npu: Npu, torus: _core.Torus, chunk: Size, exchanges: bool) -> _core.Endpoint:
        ace = self.ace
        per_second = ace.width * npu.clock.hertz
        sram = TimePerByte.parse(f"{ace.banks * per_second} B/s").core
        return _core.Endpoint.ace(
            {
                "memory": (self.memory or npu.memory).core,
                "bus": npu.bus.core,
                "sram": ace.sram.bytes,
                "shares": list(ace.shares) if ace.shares else None,
                "late": ace.handover == "at_end",
                "sram_read": sram,
                "sram_write": sram,
                "fsms": ace.machines,
                "alu": TimePerByte.parse(f"{ace.alus * per_second} B/s").core,
                "packet": ace.packet.bytes,
                "port": ace.port,
                "cycle": npu.clock.cycles(1).ps,
                "charge_writes": ace.charge_writes,
            },
            torus,
            chunk.bytes,
            exchanges,
        )


def configurations() -> dict[str, Configuration]:
    """The five configurations of Rashidi et al. 2021, by name.

    `no_overlap` communicates when the backward pass is over, with the whole NPU. `comm_opt` sets
    aside what communication needs to come near the ideal (450 GB/s, 6 SMs); `comp_opt` as much
    memory bandwidth as ACE needs (128 GB/s), and 2 SMs. `ideal` is never in the way.
    """
    wide, narrow = TimePerByte.parse("450 GB/s"), TimePerByte.parse("128 GB/s")
    found = (
        Configuration(name="no_overlap", kind="baseline", overlap=False),
        Configuration(name="comm_opt", kind="baseline", memory=wide, sms=6),
        Configuration(name="comp_opt", kind="baseline", memory=narrow, sms=2),
        Configuration(name="ace", kind="ace", memory=narrow),
        Configuration(name="ideal", kind="ideal"),
    )
    return {configuration.name: configuration for configuration in found}


def _scaled(rate: TimePerByte, factor: float) -> TimePerByte:
    return TimePerByte.parse(f"{round(rate.core.bytes_per_second * factor)} B/s")


def _less(rate: TimePerByte, taken: TimePerByte) -> TimePerByte:
    left = round(rate.core.bytes_per_second - taken.core.bytes_per_second)
    if left <= 0:
        message = f"communication takes {taken} of {rate}: that leaves no memory to compute with"
        raise EndpointError(message, kind="nothing_left")
    return TimePerByte.parse(f"{left} B/s")


def _more(rate: TimePerByte, added: TimePerByte) -> TimePerByte:
    return TimePerByte.parse(
        f"{round(rate.core.bytes_per_second + added.core.bytes_per_second)} B/s"
    )
