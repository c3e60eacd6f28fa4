"""Flit-by-flit recording of a single-cycle multi-hop mesh."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from tutti.base.files.typed import refuse_arguments
from tutti.networks.errors import NocError
from tutti.networks.mesh.mesh import SmartMesh
from tutti.networks.mesh.runs import as_tuple, check
from tutti.networks.mesh.traffic import SEVERAL, ReplicationPlan, case_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh.traffic import Traffic

MOST_CYCLES = 5_000
"""The most cycles of a recording."""

PORTS = ("E", "W", "N", "S")


class Event(NamedTuple):
    """An event of a flit.

    Attributes:
        cycle: The cycle.
        router: The router.
        packet: Index of the flit's packet in `Watched.packets`.
        what: `injected`, `granted`, `requested`, `crossed`, `turned`, `retained`, `dropped`,
            `merged`, `arrived`, `idle`, or `stopped:` with the cause: `end`, `local`, `farther`,
            `passing`, `no_buffer`, `order`, `responses`, `preset`. A flit that passes the router
            where it turns has a `turned` there, and a second `requested`.
        port: The output port, or the input port of a stop or a retained copy: 0 to 3 for E, W, N,
            S. For `granted` a bit per output, L last.
        hops: Hops of a request or a crossing.
        crossing: The cycle in which the flit crosses links.
    """

    cycle: int
    router: int
    packet: int
    what: str
    port: int
    hops: int
    crossing: int


class Packet(NamedTuple):
    """A packet: creation cycle, index of its traffic, message, source and destinations."""

    cycle: int
    load: int
    message: int
    source: int
    to: list[int]


class Flight(NamedTuple):
    """A flit that crosses links in a cycle.

    Attributes:
        packet: Index of its packet.
        router: The router that it leaves.
        port: The output port: 0 to 3 for E, W, N, S.
        hops: Links crossed.
        retained: Routers on its path that retained a copy.
        why: The cause of its stop; `turn` if it goes on as another flight, from where this one
            ends.
    """

    packet: int
    router: int
    port: int
    hops: int
    retained: tuple[int, ...]
    why: str


class Stay(NamedTuple):
    """A flit in a buffer: router, packet, first and last cycle."""

    router: int
    packet: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Watched:
    """A recording of a mesh from cycle 0.

    Attributes:
        mesh: The mesh.
        traffic: The traffic.
        cycles: Number of cycles.
        events: All events, in order.
        packets: All packets, in order.
    """

    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    cycles: int
    events: tuple[Event, ...]
    packets: tuple[Packet, ...]

    def flights(self) -> dict[int, list[Flight]]:
        """Returns the flits that cross links in each cycle."""
        ends: dict[tuple[int, int, int], tuple[str, int]] = {}
        turns = {
            (event.cycle, event.packet, event.router)
            for event in self.events
            if event.what == "turned"
        }
        for event in self.events:
            if event.what == "retained" or event.what.startswith("stopped"):
                # A flit enters at the port opposite to the one that it left by.
                key = (event.cycle, event.packet, event.router * 4 + (event.port ^ 1))
                ends[key] = (event.what, event.router)
        found: dict[int, list[Flight]] = defaultdict(list)
        for event in self.events:
            if event.what not in {"crossed", "turned"}:
                continue
            path = self.path(event.router, event.port, event.hops)
            marks = [ends.get((event.cycle, event.packet, at * 4 + event.port)) for at in path]
            copies = [mark[1] for mark in marks[:-1] if mark is not None and mark[0] == "retained"]
            last = marks[-1][0] if marks[-1] is not None else "stopped:end"
            why = last.partition(":")[2] or "end"
            if marks[-1] is None and (event.cycle, event.packet, path[-1]) in turns:
                why = "turn"
            flight = Flight(event.packet, event.router, event.port, event.hops, tuple(copies), why)
            found[event.crossing].append(flight)
        return dict(found)

    def stays(self) -> list[Stay]:
        """Returns the stays of flits in buffers."""
        came: dict[tuple[int, int], list[int]] = defaultdict(list)
        done: dict[tuple[int, int], int] = {}
        gone: set[tuple[int, int]] = set()
        for event in self.events:
            key = (event.router, event.packet)
            if event.what == "injected":
                came[key].append(event.cycle)
            elif event.what in {"granted", "crossed", "arrived"}:
                done[key] = event.cycle
            elif event.what in {"dropped", "merged"}:
                done[key] = event.cycle
                gone.add(key)
        for cycle, flights in self.flights().items():
            for flight in flights:
                path = self.path(flight.router, flight.port, flight.hops)
                last = [] if flight.why == "turn" else path[-1:]
                for router in (*flight.retained, *last):
                    came[router, flight.packet].append(cycle + 1)
        found = []
        for key, times in came.items():
            start = min(times)
            # A flit without a grant stays until the end.
            end = done.get(key, self.cycles - 1)
            if start <= end:
                found.append(Stay(key[0], key[1], start, end))
        return sorted(found, key=lambda stay: (stay.start, stay.router, stay.packet))

    def path(self, router: int, port: int, hops: int) -> list[int]:
        """Returns the routers on a path of `hops` hops."""
        columns = self.mesh.columns
        step = (1, -1, columns, -columns)[port]
        return [router + step * hop for hop in range(1, hops + 1)]


def watch(
    mesh: SmartMesh, traffic: Traffic | Sequence[Traffic], cycles: int, *, seed: int = 1
) -> Watched:
    """Runs traffic on an empty mesh and records all events.

    Args:
        mesh: The mesh; a fully connected one has no routers to record.
        traffic: Traffic of one kind, or several concurrent kinds.
        cycles: Number of cycles, 1 to 5000.
        seed: Random seed.

    Raises:
        NocError: The traffic does not fit the mesh, or the mesh has no routers.
        TrafficError: The traffic is invalid.
    """
    refuse_arguments(
        "watch", NocError, mesh=(mesh, SmartMesh), traffic=(traffic, SEVERAL),
        cycles=(cycles, Annotated[int, Field(ge=1, le=MOST_CYCLES)]), seed=(seed, int),
    )  # fmt: skip
    every = as_tuple(traffic)
    plan = ReplicationPlan(seed=seed, seeds=1)
    check(mesh, every, plan)
    events, packets = case_of(mesh, every, plan, seed=seed).watch(cycles)
    return Watched(
        mesh=mesh,
        traffic=every,
        cycles=cycles,
        events=tuple(Event(*event) for event in events),
        packets=tuple(Packet(*packet) for packet in packets),
    )
