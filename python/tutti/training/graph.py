"""Endpoints as graphs of servers, described without Rust.

A graph has servers, and for each operation of an endpoint on a packet the servers that the packet
visits in sequence. The operations are those of the data flow of a schedule: a send, a receive that
is stored or reduced, and their fusions. :func:`graph_of` returns the built-in endpoint models as
graphs, as a start for variants.

Examples:
    >>> from dataclasses import replace
    >>> from tutti.training.endpoint import Npu, configurations
    >>> ace = graph_of(configurations()["ace"], Npu())
    >>> [server.name for server in ace.graph.servers][:3]
    ['memory', 'bus_out', 'sram_read']
    >>> ace.graph.visits.reduce_send
    ('sram_read', 'alu')
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Strict, Tag

from tutti import _core
from tutti.base.files.described import Count, InFiles, Positive, key
from tutti.base.files.tables import kind_of
from tutti.base.units import Size, Time, TimePerByte
from tutti.training.errors import EndpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.endpoint import Configuration, Npu

__all__ = ["EndpointGraph", "GraphServer", "Scratchpad", "Visit", "Visits", "graph_of"]

Handover = Literal["ahead", "at_end"]
FsmDivision = Literal["by_time", "evenly"]
ExchangeFsms = Literal["any", "of_phase"]
_CHUNKS = (64, 16)
"""Chunks in flight, in total and per phase (ASTRA-sim 2020)."""
_NO_WAIT = Time(ps=0)


@dataclass(frozen=True, kw_only=True)
class Scratchpad(InFiles):
    """An SRAM with a partition per phase of a collective, and the FSMs that process its chunks."""

    sram: Size = key(Size.parse("4 MiB"), description="Size of the scratchpad.")
    shares: Annotated[tuple[Positive, ...], Strict(strict=False)] | None = key(
        None,
        description="Partition of the scratchpad: the shares of the phases, then of finished "
        "chunks; by default by rate x chunk.",
    )
    handover: Handover = key(
        "at_end",
        description="When a chunk allocates buffer space in the partition of its next phase: "
        "at the end of a phase, or ahead.",
    )
    fsms: Annotated[
        Annotated[Positive, Tag("value")]
        | Annotated[tuple[Count, ...], Strict(strict=False), Tag("list")],
        Discriminator(kind_of),
    ] = key(16, description="Number of FSMs, in total or per phase.")
    division: FsmDivision = key(
        "by_time",
        description="Assignment of FSMs to phases: by the time of a chunk in each, or evenly.",
    )
    exchanges: ExchangeFsms = key(
        "any",
        description="FSMs that process all-to-alls: any, in addition to its phase, or those of "
        "the phase whose partition they share.",
    )

    @property
    def machines(self) -> tuple[str, list[int]]:
        """The division of the FSMs, and their total number or the number of each phase."""
        if isinstance(self.fsms, int):
            return self.division, [self.fsms]
        return "each", list(self.fsms)

    @property
    def core(self) -> _core.Scratchpad:
        """The scratchpad of the core."""
        return _core.Scratchpad(
            size=self.sram.bytes,
            shares=list(self.shares) if self.shares else None,
            late=self.handover == "at_end",
            fsms=self.machines,
            any_fsm=self.exchanges == "any",
        )


@dataclass(frozen=True, kw_only=True)
class GraphServer(InFiles):
    """A server of an endpoint: a memory, a bus, or units that process packets, first come, first
    served.
    """

    name: Annotated[
        str,
        Field(pattern="^[a-z][a-z0-9_]*$", description="The name, in snake case."),
    ]
    rate: TimePerByte | None = key(
        None, description="Bandwidth of a unit; if absent, bytes take no time."
    )
    per_packet: Time = key(
        _NO_WAIT, description="Time that each packet occupies a unit, in addition to its bytes."
    )
    latency: Time = key(
        _NO_WAIT, description="Time from the end of service until the packet continues (pipelined)."
    )
    units: Positive = key(1, description="Units that serve packets in parallel.")


@dataclass(frozen=True, kw_only=True)
class Visit(InFiles):
    """A visit of a packet to a server."""

    server: Annotated[str, Field(description="The server.")]
    times: Positive = key(1, description="How often each byte passes the server.")
    aside: bool = key(
        False,
        description="Whether the packet continues at once, while the server still works, as "
        "for writes that nothing awaits.",
    )


_Visited = Annotated[
    Annotated[str, Tag("value")] | Annotated[Visit, Tag("table")], Discriminator(kind_of)
]
_Path = Annotated[tuple[_Visited, ...], Strict(strict=False)]


@dataclass(frozen=True, kw_only=True)
class Visits(InFiles):
    """The servers that each operation on a packet visits, in sequence.

    An operation stands for one or more ops of a schedule: `send`, `recv`, `reduce`, and the fusion
    of a receive with the send that follows. A visit is the name of a server or a table.
    """

    send: Annotated[_Path, Field(description="`send` of local data.")]
    send_reduced: Annotated[
        _Path,
        Field(description="`send` of data that an earlier phase has reduced, the first time."),
    ]
    reduce_send: Annotated[
        _Path, Field(description="`recv`, `reduce` with local data, `send` of the result.")
    ]
    reduce_store: Annotated[
        _Path, Field(description="`recv`, `reduce` with local data; the result is used later.")
    ]
    reduce_store_send: Annotated[
        _Path, Field(description="`recv`, `reduce`, `send`; the result is also used later.")
    ]
    store_send: Annotated[_Path, Field(description="`recv` and `send`; data are also used later.")]
    store: Annotated[_Path, Field(description="`recv`; data are used later.")]
    relay: Annotated[_Path, Field(description="`recv` and `send`, or a packet for another NPU.")]
    load: _Path = key((), description="Load of a message of a chunk before its first phase.")
    write_back: _Path = key(
        (), description="Write-back of a message of the result after the last phase."
    )


_ORDER = (
    "load", "send", "send_reduced", "reduce_send", "reduce_store", "reduce_store_send",
    "store_send", "store", "relay", "write_back",
)  # fmt: skip
"""The operations in the order of the core."""


@dataclass(frozen=True, kw_only=True)
class EndpointGraph(InFiles):
    """An endpoint as a graph of servers."""

    servers: Annotated[
        Annotated[tuple[GraphServer, ...], Strict(strict=False)],
        Field(description="The servers."),
    ]
    visits: Annotated[Visits, Field(description="What each operation on a packet visits.")]
    memory: str | None = key(
        None, description="The server that uses the memory bandwidth `memory` of the configuration."
    )
    packet: Size = key(Size.parse("256 B"), description="The unit of handling and sending.")
    delay: Time = key(_NO_WAIT, description="Delay of every packet at its receiver.")
    chunks: Positive | None = key(
        None, description="Most chunks in flight without a scratchpad; 64 if absent."
    )
    chunks_per_phase: Positive | None = key(
        None, description="Most chunks in a phase without a scratchpad; 16 if absent."
    )
    scratchpad: Scratchpad | None = key(
        None, description="An SRAM that limits the chunks in flight by its space and its FSMs."
    )
    loads: Positive | None = key(
        None, description="Most messages loaded concurrently; if absent, all."
    )
    port: Annotated[
        Positive | None,
        Field(description="Most packets that wait for a link, the oldest chunk first; if absent, "
              "all, first come, first served."),
    ] = None  # fmt: skip
    launches: bool = key(
        True, description="Whether a collective starts after the launch of the platform."
    )

    def check(self) -> None:
        """Checks the names of servers and the limits of chunks.

        Raises:
            EndpointError: A name is unknown or repeated, or a limit has no effect.
        """
        names = [server.name for server in self.servers]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated:
            message = f"two servers have the name `{repeated}`: expected different names"
            raise EndpointError(message, kind="unknown_server")
        for place, name in self._named():
            if name not in names:
                known = ", ".join(names) or "none"
                message = f"{place} names the server `{name}`: expected one of {known}"
                raise EndpointError(message, kind="unknown_server")
        if self.scratchpad and (self.chunks or self.chunks_per_phase):
            message = (
                "the scratchpad limits the chunks in flight, so `chunks` and `chunks_per_phase` "
                "have no effect: expected either of both"
            )
            raise EndpointError(message, kind="no_effect")

    def _named(self) -> list[tuple[str, str]]:
        """Returns the places that name a server, and the name."""
        visited = [
            (f"visits.{one.name}", visit if isinstance(visit, str) else visit.server)
            for one in fields(Visits)
            for visit in getattr(self.visits, one.name)
        ]
        return visited + ([("memory", self.memory)] if self.memory else [])

    @property
    def memory_rate(self) -> TimePerByte | None:
        """The rate of the memory server."""
        found = [server.rate for server in self.servers if server.name == self.memory]
        return found[0] if found else None

    def endpoint(
        self,
        name: str,
        fabric: _core.StepFabric,
        chunk: Size,
        transfers: Sequence[_core.Transfer],
    ) -> _core.Endpoint:
        """Returns the endpoint of the core; its arguments are those of `Configuration.endpoint`.

        Raises:
            EndpointError: As :meth:`check`.
        """
        self.check()
        numbers = {server.name: number for number, server in enumerate(self.servers)}

        def visited(visit: str | Visit) -> _core.ServerVisit:
            if isinstance(visit, str):
                return _core.ServerVisit(numbers[visit])
            return _core.ServerVisit(numbers[visit.server], times=visit.times, aside=visit.aside)

        return _core.Endpoint.graph(
            fabric,
            chunk=chunk.bytes,
            transfers=list(transfers),
            name=name,
            packet=self.packet.bytes,
            delay_ps=self.delay.ps,
            servers=[_server(server) for server in self.servers],
            memory=numbers[self.memory] if self.memory else None,
            visits=[[visited(each) for each in getattr(self.visits, part)] for part in _ORDER],
            chunks_at_once=(self.chunks or _CHUNKS[0], self.chunks_per_phase or _CHUNKS[1]),
            scratchpad=self.scratchpad.core if self.scratchpad else None,
            loads=self.loads,
            port=self.port,
        )


_NO_TIME = TimePerByte.parse("0 ps/B")


def _server(server: GraphServer) -> _core.EndpointServer:
    return _core.EndpointServer(
        server.name,
        (server.rate or _NO_TIME).core,
        per_packet_ps=server.per_packet.ps,
        latency_ps=server.latency.ps,
        units=server.units,
    )


def graph_of(configuration: Configuration, npu: Npu, message: Size | None = None) -> Configuration:
    """Returns a configuration with a built-in endpoint model as a graph of servers.

    The two take the same time, to the picosecond.

    Args:
        configuration: The configuration; one with a graph is returned unmodified.
        npu: The NPU.
        message: The largest message, which is the packet of the baseline; 8 KiB if absent.
    """
    if configuration.kind == "graph":
        return configuration
    if configuration.kind == "ideal":
        graph = _ideal(npu)
    elif configuration.kind == "baseline":
        graph = _baseline(configuration, npu, message or Size.parse("8 KiB"))
    else:
        graph = _ace(configuration, npu)
    return replace(configuration, kind="graph", graph=graph)


_EVERY = [one.name for one in fields(Visits)]


def _ideal(npu: Npu) -> EndpointGraph:
    nothing = Visits(**dict.fromkeys(_EVERY, ()))
    cycle = npu.clock.cycles(1)
    return EndpointGraph(servers=(), visits=nothing, delay=cycle, port=1)


def _baseline(configuration: Configuration, npu: Npu, message: Size) -> EndpointGraph:
    memory = configuration.memory or npu.memory
    sms = configuration.sms if configuration.overlap else npu.sms
    together = npu.per_sm.core.bytes_per_second * sms
    rates = {
        "memory": memory,
        "sms": TimePerByte.parse(f"{round(together)} B/s"),
        "bus_out": npu.bus,
        "bus_in": npu.bus,
        "memory_writes": memory,
    }
    charged = configuration.charge_writes
    separate = not configuration.fused

    def path(reads: int, writes: int, *, sends: bool) -> tuple[str | Visit, ...]:
        found: list[str | Visit] = ["bus_in"] if writes else []
        if writes:
            server = "memory" if charged else "memory_writes"
            found.append(Visit(server=server, times=writes, aside=not charged))
        if reads:
            found += [Visit(server="memory", times=reads), Visit(server="sms", times=reads)]
        return (*found, "bus_out") if sends else tuple(found)

    visits = Visits(
        send=path(1, 0, sends=True),
        send_reduced=path(int(separate), 0, sends=True),
        reduce_send=path(2, 1, sends=True),
        reduce_store=path(2, 2, sends=False),
        reduce_store_send=path(2 + separate, 2, sends=True),
        store_send=path(1, 1, sends=True),
        store=path(0, 1, sends=False),
        relay=path(1, 1, sends=True),
    )
    servers = tuple(GraphServer(name=name, rate=rate) for name, rate in rates.items())
    return EndpointGraph(servers=servers, visits=visits, memory="memory", packet=message)


def _ace(configuration: Configuration, npu: Npu) -> EndpointGraph:
    ace, memory = configuration.ace, configuration.memory or npu.memory
    per_second = ace.width * npu.clock.hertz
    sram = TimePerByte.parse(f"{ace.banks * per_second} B/s")
    rates = {
        "memory": memory,
        "bus_out": npu.bus,
        "sram_read": sram,
        "sram_write": sram,
        "alu": TimePerByte.parse(f"{ace.alus * per_second} B/s"),
        "bus_in": npu.bus,
        "memory_writes": memory,
    }
    written = Visit(server="sram_write", aside=True)
    visits = Visits(
        load=("memory", "bus_out", "sram_write"),
        send=("sram_read",),
        send_reduced=("sram_read",),
        reduce_send=("sram_read", "alu"),
        reduce_store=("sram_read", "alu", "sram_write"),
        reduce_store_send=("sram_read", "alu", written),
        store_send=(written,),
        store=("sram_write",),
        relay=("sram_write", "sram_read"),
        write_back=("sram_read", "bus_in", "memory" if ace.charge_writes else "memory_writes"),
    )
    own = {one.name: getattr(ace, one.name) for one in fields(Scratchpad)}
    return EndpointGraph(
        servers=tuple(GraphServer(name=name, rate=rate) for name, rate in rates.items()),
        visits=visits,
        memory="memory",
        packet=ace.packet,
        delay=npu.clock.cycles(1),
        scratchpad=Scratchpad(**own),
        loads=ace.loads,
        port=ace.port,
        launches=False,
    )
