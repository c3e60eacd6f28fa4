"""A schedule on a bypass mesh: one configuration for the schedule, or one for each phase.

Examples:
    >>> from tutti.bypass import BypassMesh
    >>> from tutti.schedules import schedule
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

from tutti.base.units import Size, Time
from tutti.bypass.flows import flows_of
from tutti.bypass.mapping import balanced_flows, map_flows
from tutti.collectives.phases import simulate_phases
from tutti.platforms.contention import Packets
from tutti.platforms.machine import Platform, Postal

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Sequence

    from tutti.base.units import Length, TimePerByte

    Rates = collections.abc.Mapping[int, str | TimePerByte]
    from tutti.bypass.flows import Flow
    from tutti.bypass.mapping import Mapping, Method
    from tutti.bypass.network import BypassMesh
    from tutti.collectives.phases import PhasedRun
    from tutti.schedules.ir import Schedule
    from tutti.topologies import Routes

_PACKETS_OF_CHUNK = 32
"""The packets per chunk; paths of several hops are pipelined by packets."""
_FLIT, _VC = 68, 2176
"""Bytes of a flit, the smallest packet, and of the 32 flits of a VC (Yin et al. 2023)."""


def chunk_packets(size: Size, schedule: Schedule) -> Packets:
    """Returns packets small enough to pipeline the chunks of a schedule, but not too many."""
    chunk = max(1, size.bytes // schedule.chunks)
    # An even number, so that two parallel links carry equal shares.
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
    """Simulates a schedule between chiplets; only links take time.

    Args:
        schedule: The schedule.
        routes: One for the schedule, or one for each phase; equal ones need no switch.
        size: Payload.
        switch: Time of a change of routes.
        datatype: Datatype of the elements.
        verify: Whether to verify the schedule first.

    Raises:
        TuttiError: As :func:`tutti.simulate`.
    """
    size = Size.of_any(size)
    packets = chunk_packets(size, schedule)
    # Endpoints take a picosecond, which is negligible.
    machines = {
        id(route): Platform(
            name="chiplets", model=Postal(alpha="1 ps"), routes=route, contention=packets
        )
        for route in routes
    }
    return simulate_phases(
        schedule,
        [machines[id(route)] for route in routes],
        size=size,
        datatype=datatype,
        switch=Time.of_any(switch),
        verify=verify,
    )


@dataclass(frozen=True)
class MappedSchedule:
    """The mapping of a schedule.

    Attributes:
        schedule: The schedule.
        mappings: One for the schedule, or one for each phase.
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
        chiplets: Rates | None = None,
    ) -> tuple[Routes, ...]:
        """Returns the routes of each mapping; equal mappings share routes.

        Args:
            rate: Rate of every link.
            latency: Latency of every link.
            length: Length of a mesh link.
            per_span: Whether the latency of a piece scales with its span.
            chiplets: By node, the rate of its ports, as for `BypassConfiguration.topology`.
        """
        made: dict[int, Routes] = {}
        for mapping in self.mappings:
            if id(mapping) not in made:
                graph = mapping.configuration.topology(
                    rate, latency, length=length, per_span=per_span, chiplets=chiplets
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
        chiplets: Rates | None = None,
    ) -> PhasedRun:
        """Simulates the schedule with packets.

        Args:
            size: Payload.
            rate: Rate of every link.
            latency: Latency of every link.
            switch: Time to configure the mesh for the next phase.
            datatype: Datatype of the elements.
            verify: Whether to verify the schedule first.
            chiplets: By node, the rate of its ports, as for `BypassConfiguration.topology`.

        Raises:
            TuttiError: As :func:`tutti.simulate`.
        """
        routes = self.routes(rate, latency, chiplets=chiplets)
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
    """Maps a schedule with the most dedicated flows, or balanced if that lowers the link load.

    Args:
        schedule: The schedule; rank r is node r.
        mesh: The mesh.
        switched: Whether to configure the mesh again for each phase.
        copies: Parallel links requested per pair.
        method: As in :func:`tutti.bypass.map_flows`.
        time_limit: Deterministic time of each search.

    Raises:
        BypassError: The ranks do not match the nodes, or the method is unknown.
    """
    requested = flows_of_configurations(schedule, switched=switched, copies=copies)
    found = {
        flows: less_loaded(map_flows(mesh, flows, method=method, time_limit=time_limit))
        for flows in dict.fromkeys(requested)
    }
    return MappedSchedule(schedule, tuple(found[flows] for flows in requested))


def flows_of_configurations(
    schedule: Schedule, *, switched: bool = False, copies: int = 1
) -> list[tuple[Flow, ...]]:
    """Returns the flows of each configuration: of the schedule or, switched, of each phase."""
    phases = range(schedule.phases) if switched else (None,)
    return [tuple(flows_of(schedule, phase=phase)) * copies for phase in phases]


def less_loaded(mapping: Mapping) -> Mapping:
    """Returns the mapping, or all flows balanced over the links if that lowers the link load."""
    if not mapping.shared and not mapping.unplaced:
        return mapping
    balanced = balanced_flows(mapping.mesh, mapping.flows)
    if mapping.unplaced and not balanced.unplaced:
        return balanced
    return min(mapping, balanced, key=lambda one: (one.most_loaded, one.hops))
