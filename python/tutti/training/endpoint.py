"""Endpoint models between an NPU and its links, and the resources that they use.

:func:`configurations` returns the configurations of Rashidi et al. 2021, section VI. Parameters of
that paper have their defaults and sources here; ``docs/models/endpoint.md`` states the confidence
in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tutti import _core
from tutti.base.files.described import Count, InFiles, Positive, key
from tutti.base.units import Frequency, OpRate, Size, Time, TimePerByte
from tutti.training.errors import EndpointError
from tutti.training.graph import EndpointGraph, Scratchpad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.platforms.machine import Platform

__all__ = [
    "AceSettings",
    "Configuration",
    "Npu",
    "Ring",
    "configurations",
    "torus",
]

Kind = Literal["ideal", "baseline", "ace", "graph"]
Reservation = Literal["static", "work_conserving"]
Efficiency = Annotated[
    float, Field(gt=0, le=1, description="Fraction of link bandwidth that carries data.")
]


@dataclass(frozen=True)
class Ring(InFiles):
    """A ring of a torus."""

    name: Annotated[str, Field(min_length=1, description="The name.")]
    nodes: Annotated[Positive, Field(description="NPUs of the ring.")]
    rate: Annotated[TimePerByte, Field(description="Bandwidth of a link, in one direction.")]
    latency: Annotated[
        Time, Field(description="Latency of a link, from the end of a packet to its arrival.")
    ]


def torus(rings: Sequence[Ring], efficiency: Efficiency = 1.0) -> _core.StepFabric:
    """Returns a torus of rings, the ring inside a package first.

    Args:
        rings: The rings.
        efficiency: The fraction of link bandwidth that carries data, not headers.

    Raises:
        TopologyError: There are fewer than two NPUs, or a link has no latency.
    """
    return _core.StepFabric.torus(core_rings(rings, efficiency))


def core_rings(rings: Sequence[Ring], efficiency: Efficiency) -> list[_core.TorusRing]:
    """Returns the rings of a torus for the core."""
    return [
        _core.TorusRing(ring.nodes, _scaled(ring.rate, efficiency).core, ring.latency.ps)
        for ring in rings
    ]


@dataclass(frozen=True)
class Npu(InFiles):
    """An NPU; the defaults are the system parameters of Rashidi et al. 2021."""

    arithmetic: OpRate = key(
        OpRate.parse("120 TFLOP/s"), description="Throughput of all SMs together."
    )
    sms: Positive = key(80, description="Number of SMs.")
    memory: TimePerByte = key(TimePerByte.parse("900 GB/s"), description="Memory bandwidth.")
    clock: Frequency = key(
        Frequency.parse("1245 MHz"), description="Clock of the NPU and of its endpoint."
    )
    per_sm: TimePerByte = key(
        TimePerByte.parse("80 GB/s"),
        description="Memory bandwidth of an SM that communicates (64 B per cycle).",
    )
    bus: TimePerByte = key(
        TimePerByte.parse("500 GB/s"),
        description="Bandwidth between the NPU and its links, per direction.",
    )

    def without(self, sms: int, memory: TimePerByte | None) -> tuple[int, TimePerByte]:
        """Returns the operations per second and the memory bandwidth left to compute.

        Args:
            sms: SMs used for communication.
            memory: Memory bandwidth used for communication; None for none.

        Raises:
            EndpointError: Communication uses all resources.
        """
        if sms >= self.sms:
            message = f"{sms} of {self.sms} SMs communicate: expected fewer"
            raise EndpointError(message, kind="nothing_left")
        left = self.arithmetic.per_second * (self.sms - sms) // self.sms
        return left, self.memory if memory is None else _less(self.memory, memory)


@dataclass(frozen=True, kw_only=True)
class AceSettings(Scratchpad):
    """Settings of ACE; the defaults are those of Rashidi et al. 2021.

    Attributes:
        width: Width of buses inside ACE, in bytes; banks and ALUs process as many per cycle.
        charge_writes: Whether writes of results reduce the bandwidth of reads.
    """

    banks: Positive = key(4, description="Banks of the scratchpad.")
    width: int = 64
    alus: Positive = key(4, description="Number of ALUs, of 64 B per cycle each.")
    packet: Size = key(Size.parse("256 B"), description="Unit of reads, reductions and sends.")
    loads: Positive = key(
        2, description="Messages that the DMA engine loads concurrently; 2 is double buffering."
    )
    port: Positive = key(16, description="Most packets that wait for a link.")
    charge_writes: bool = False


@dataclass(frozen=True, kw_only=True)
class Configuration(InFiles):
    """An endpoint configuration: the resources of communication and of computation.

    With the reservation `static`, computation never has the memory bandwidth `memory`. With
    `work_conserving`, it lacks it only while the endpoint reads `memory` (with `charge_writes`,
    also while it writes). At every moment computation thus has the bandwidth of the NPU minus what
    the memory server of the endpoint uses: all of `memory`, or nothing. A pass then progresses at
    the rate of its roofline with this bandwidth, as if its accesses and operations were spread
    evenly over its time, until it is complete to the picosecond. The endpoint never has more than
    `memory`, and reserved SMs remain reserved.
    """

    name: Annotated[str, Field(min_length=1, description="The name.")]
    kind: Annotated[Kind, Field(description="The endpoint model.")]
    memory: TimePerByte | None = key(
        None,
        description="Memory bandwidth reserved for communication; if absent, all of it, "
        "without slowing computation.",
    )
    reservation: Reservation = key(
        "static",
        description="When computation lacks the memory bandwidth `memory`: always (`static`), "
        "or only while the endpoint uses it (`work_conserving`).",
    )
    sms: Count = key(
        0, description="SMs reserved for communication; at least one for the baseline."
    )
    overlap: bool = key(
        True, description="Whether gradients are communicated during the backward pass."
    )
    background: bool = key(
        False, description="Whether one SM looks up and updates embedding tables in the background."
    )
    ace: Annotated[AceSettings, Field(description="Settings of ACE.")] = field(
        default_factory=AceSettings
    )
    graph: EndpointGraph | None = key(
        None, description="The servers of the endpoint, with the model `graph`."
    )
    fused: bool = key(
        True, description="Baseline: whether one kernel performs the final reduction and next send."
    )
    charge_writes: bool = key(
        False, description="Baseline: whether writes reduce the bandwidth of reads."
    )

    @property
    def without_effect(self) -> str:
        """Why `work_conserving` has no reservation to return; empty if it has one."""
        if self.reservation == "static":
            return ""
        if self.kind == "ideal":
            return "the ideal endpoint uses no memory bandwidth"
        if self.graph and self.graph.memory is None:
            return "the graph names no memory server"
        if not self.overlap:
            return "without overlap, computation and communication alternate"
        return "no `memory` is reserved" if self.memory is None else ""

    def check(self) -> None:
        """Checks that the reservation has an effect, and the graph.

        Raises:
            EndpointError: It has none, or the graph is missing, unused or invalid.
        """
        if (self.kind == "graph") != (self.graph is not None):
            message = f"{self.name} has the model {self.kind}, and "
            message += "no graph" if self.graph is None else "a graph"
            raise EndpointError(f"{message}: expected both or neither", kind="no_graph")
        if self.graph:
            self.graph.check()
            self._check_memory(self.graph)
        if self.without_effect:
            message = (
                f"the reservation of {self.name} is work_conserving, but {self.without_effect}: "
                "expected `static`, or an endpoint with overlap and reserved `memory`"
            )
            raise EndpointError(message, kind="no_reservation")

    def _check_memory(self, graph: EndpointGraph) -> None:
        """Checks that the memory server of a graph has the reserved bandwidth.

        Raises:
            EndpointError: It has another one.
        """
        rate = graph.memory_rate
        if rate is None or self.memory is None:
            return
        if rate.core.bytes_per_second != self.memory.core.bytes_per_second:
            message = (
                f"{self.name} reserves {self.memory}, but its memory server `{graph.memory}` has "
                f"{rate}: expected equal rates"
            )
            raise EndpointError(message, kind="other_memory")

    def unreserved(self, npu: Npu) -> tuple[int, TimePerByte]:
        """Returns the same as :meth:`compute` while the endpoint does not use its memory."""
        return replace(self, memory=None, reservation="static").compute(npu)

    def compute(self, npu: Npu) -> tuple[int, TimePerByte]:
        """Returns the operations per second and the memory bandwidth left to compute.

        Without overlap both are unrestricted, as computing and communicating alternate. If the
        reservation is work-conserving, this is what is left while the endpoint uses its memory.
        """
        if not self.overlap:
            return npu.without(0, None)
        sms, memory = self.sms, self.memory
        if self.background:
            sms += 1
            memory = npu.per_sm if memory is None else _more(memory, npu.per_sm)
        return npu.without(sms, memory)

    def launch(self, platform: Platform | None) -> Time:
        """Returns the time of the launch of a collective on an NPU of a platform.

        An endpoint that executes collectives in hardware launches no kernel.
        """
        in_hardware = self.kind == "ace" or (self.graph and not self.graph.launches)
        if platform is None or in_hardware:
            return Time(ps=0)
        return platform.model.launch

    def endpoint(
        self,
        npu: Npu,
        fabric: _core.StepFabric,
        *,
        chunk: Size,
        message: Size,
        transfers: Sequence[_core.Transfer] = (),
    ) -> _core.Endpoint:
        """Returns the endpoint of an NPU on a fabric.

        Args:
            npu: The NPU.
            fabric: The network and the schedules of collectives.
            chunk: The largest chunk.
            message: The largest message.
            transfers: The collectives; all-reduces among all NPUs need not be listed.

        Raises:
            EndpointError: No SM communicates, a phase has no FSM, or the scratchpad is too small.
        """
        if self.kind == "ideal":
            cycle = npu.clock.cycles(1).ps
            return _core.Endpoint.ideal(packet=256, cycle_ps=cycle, chunks_at_once=(64, 16))
        if self.kind == "baseline":
            return self._baseline(npu, message)
        if self.graph:
            return self.graph.endpoint(self.name, fabric, chunk, transfers)
        return self._ace(npu, fabric, chunk, transfers)

    def costs(self, npu: Npu) -> _core.EndpointCosts:
        """Returns what bounds need of the endpoint of an NPU; a graph costs nothing in a bound."""
        if self.kind in {"ideal", "graph"}:
            return _core.EndpointCosts.ideal()
        if self.kind == "baseline":
            return _core.EndpointCosts.baseline(**self._servers(npu))
        return _core.EndpointCosts.ace(memory=self._memory(npu), bus=npu.bus.core)

    def _memory(self, npu: Npu) -> _core.TimePerByte:
        return (self.memory or npu.memory).core

    def _servers(self, npu: Npu) -> dict[str, Any]:
        return {
            "memory": self._memory(npu),
            "per_sm": npu.per_sm.core,
            "sms": self.sms if self.overlap else npu.sms,
            "bus": npu.bus.core,
        }

    def _baseline(self, npu: Npu, message: Size) -> _core.Endpoint:
        return _core.Endpoint.baseline(
            **self._servers(npu),
            message=message.bytes,
            chunks_at_once=(64, 16),
            fused=self.fused,
            charge_writes=self.charge_writes,
        )

    def _ace(
        self,
        npu: Npu,
        fabric: _core.StepFabric,
        chunk: Size,
        transfers: Sequence[_core.Transfer],
    ) -> _core.Endpoint:
        ace = self.ace
        per_second = ace.width * npu.clock.hertz
        return _core.Endpoint.ace(
            fabric,
            chunk=chunk.bytes,
            transfers=list(transfers),
            memory=self._memory(npu),
            bus=npu.bus.core,
            scratchpad=ace.core,
            sram=TimePerByte.parse(f"{ace.banks * per_second} B/s").core,
            alu=TimePerByte.parse(f"{ace.alus * per_second} B/s").core,
            packet=ace.packet.bytes,
            loads=ace.loads,
            port=ace.port,
            cycle_ps=npu.clock.cycles(1).ps,
            charge_writes=ace.charge_writes,
        )


def configurations() -> dict[str, Configuration]:
    """Returns the five configurations of Rashidi et al. 2021, by name.

    `no_overlap` communicates after the backward pass, with the complete NPU. `comm_opt` reserves
    the resources that bring communication close to the ideal (450 GB/s, 6 SMs). `comp_opt` reserves
    the memory bandwidth that ACE needs (128 GB/s), and 2 SMs. `ace` runs collectives in hardware
    with 128 GB/s of memory bandwidth. `ideal` uses no resources.
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
        message = f"communication takes {taken} of {rate}, which leaves no memory bandwidth"
        raise EndpointError(message, kind="nothing_left")
    return TimePerByte.parse(f"{left} B/s")


def _more(rate: TimePerByte, added: TimePerByte) -> TimePerByte:
    return TimePerByte.parse(
        f"{round(rate.core.bytes_per_second + added.core.bytes_per_second)} B/s"
    )
