"""A schedule on a bypass mesh: configured once for all of it, or anew for each of its phases.

>>> from tutti.bypass import BypassMesh
>>> from tutti.schedule import schedule
>>> trees = schedule("double_binary_tree:nccl,phased", ranks=16)
>>> planned = plan(trees, BypassMesh(side=4), switched=True)
>>> [len(mapping.dedicated) for mapping in planned.mappings]
[30, 30]
>>> str(planned.run("64 KiB", rate="68 GB/s", latency="12 ns", switch="100 ns").time)
'4.075113 us'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.bypass.flows import flows_of
from tutti.bypass.mapping import map_flows, spread_flows
from tutti.phases import simulate_phases
from tutti.platform import Packets, Platform, Postal
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.bypass.flows import Flow
    from tutti.bypass.mapping import Mapping, Method
    from tutti.bypass.network import BypassMesh
    from tutti.phases import PhasedRun
    from tutti.schedule import Schedule
    from tutti.topology import Routes
    from tutti.units import Length, TimePerByte

__all__ = ["MappedSchedule", "asked_flows", "chunk_packets", "plan", "run_on"]

_PACKETS_OF_CHUNK = 32
"""Into so many packets a chunk is cut: ways of several hops are pipelined by packets."""
_FLIT, _VC = 68, 2176
"""Bytes of a flit, the least of a packet, and of the 32 flits of a VC (Yin et al. 2023)."""


def chunk_packets(size: Size, schedule: Schedule) -> Packets:
    """Packets that suit the chunks of a schedule: fine enough for pipelines, and not too many."""
    chunk = max(1, size.bytes // schedule.chunks)
    # An even number, so that two links side by side carry as many each.
    pairs = min(_PACKETS_OF_CHUNK, chunk // _FLIT) // 2
    packet = max(1, -(-chunk // max(1, 2 * pairs)))
    return Packets(size=Size(bytes=packet), buffer=Size(bytes=4 * max(packet, _VC)))


def run_on(
    schedule: Schedule,
    routes: Sequence[Routes],
    size: str | Size,
    *,
    switch: str | Time = "0 ns",
    datatype: str = "float32",
    verify: bool = True,
) -> PhasedRun:
    """Runs a schedule between chiplets: messages take what links take.

    Args:
        schedule: what to run.
        routes: for all of it, or for each of its phases; the same ones again are not switched.
        size: the payload.
        switch: what a change to other routes takes.
        datatype: of the elements.
        verify: whether to verify the schedule first.

    Raises:
        TuttiError: as :func:`tutti.simulate`.
    """
    size = Size.of_any(size)
    packets = chunk_packets(size, schedule)
    # Endpoints cost a picosecond, for nothing.
    machines = {
        id(ways): Platform(
            name="chiplets", model=Postal(alpha="1 ps"), routes=ways, packets=packets
        )
        for ways in routes
    }
    return simulate_phases(
        schedule,
        [machines[id(ways)] for ways in routes],
        size=size,
        datatype=datatype,
        switch=Time.of_any(switch),
        verify=verify,
    )


@dataclass(frozen=True)
class MappedSchedule:
    """Where a schedule's messages go.

    Attributes:
        schedule: What is performed.
        mappings: One for all of it, or one for each of its phases.
    """

    schedule: Schedule
    mappings: tuple[Mapping, ...]

    def routes(
        self,
        rate: str | TimePerByte,
        latency: str | Time,
        *,
        length: str | Length | None = None,
        per_span: bool = False,
    ) -> tuple[Routes, ...]:
        """The ways of each mapping; equal mappings have the same.

        Args:
            rate: of every link.
            latency: of every link.
            length: of a mesh link.
            per_span: whether a piece takes as many times the latency as it spans nodes.
        """
        made: dict[int, Routes] = {}
        for mapping in self.mappings:
            if id(mapping) not in made:
                graph = mapping.configuration.topology(
                    rate, latency, length=length, per_span=per_span
                )
                made[id(mapping)] = mapping.routes(graph)
        return tuple(made[id(mapping)] for mapping in self.mappings)

    def run(
        self,
        size: str | Size,
        *,
        rate: str | TimePerByte,
        latency: str | Time,
        switch: str | Time = "0 ns",
        datatype: str = "float32",
        verify: bool = True,
    ) -> PhasedRun:
        """Simulates it packet by packet.

        Args:
            size: the payload.
            rate: of every link.
            latency: of every link.
            switch: what it takes to configure the mesh for the next phase.
            datatype: of the elements.
            verify: whether to verify the schedule first.

        Raises:
            TuttiError: as :func:`tutti.simulate`.
        """
        routes = self.routes(rate, latency)
        return run_on(self.schedule, routes, size, switch=switch, datatype=datatype, verify=verify)


def plan(
    schedule: Schedule,
    mesh: BypassMesh,
    *,
    switched: bool = False,
    copies: int = 1,
    method: Method = "auto",
    time_limit: str | Time = "20 s",
) -> MappedSchedule:
    """Maps a schedule: most flows on links of their own, or spread where fewer then meet on one.

    Args:
        schedule: what is performed; rank r is node r.
        mesh: where.
        switched: whether the mesh is configured anew for each phase.
        copies: how many links side by side each pair asks for.
        method: as :func:`tutti.bypass.map_flows` takes it.
        time_limit: for each search, in the solver's own count of its work.

    Raises:
        BypassError: the schedule has other ranks than the mesh has nodes, or no such method.
    """
    asked = asked_flows(schedule, switched=switched, copies=copies)
    found = {
        flows: _less_loaded(map_flows(mesh, flows, method=method, time_limit=time_limit))
        for flows in dict.fromkeys(asked)
    }
    return MappedSchedule(schedule, tuple(found[flows] for flows in asked))


def asked_flows(
    schedule: Schedule, *, switched: bool = False, copies: int = 1
) -> list[tuple[Flow, ...]]:
    """What each configuration is for: all of a schedule, or, switched, each of its phases."""
    phases = range(schedule.phases) if switched else (None,)
    return [tuple(flows_of(schedule, phase=phase)) * copies for phase in phases]


def _less_loaded(mapping: Mapping) -> Mapping:
    """This, or all flows spread over the mesh, where fewer then meet on a link."""
    if not mapping.shared and not mapping.unplaced:
        return mapping
    spread = spread_flows(mapping.mesh, mapping.flows)
    if mapping.unplaced and not spread.unplaced:
        return spread
    return min(mapping, spread, key=lambda one: (one.most_loaded, one.hops))
