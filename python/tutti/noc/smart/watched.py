"""What happens on a mesh of several hops per cycle, flit by flit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tutti.errors import NocError
from tutti.noc.smart.runs import at_once, check
from tutti.noc.smart.traffic import ReplicationPlan, case_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc.smart.mesh import SmartMesh
    from tutti.noc.smart.traffic import Traffic

MOST_CYCLES = 5_000
"""That are watched: a person looks at some dozens."""

PORTS = ("E", "W", "N", "S")


class Event(NamedTuple):
    """Something that happened to a flit.

    Attributes:
        cycle: When.
        router: Where.
        packet: To a flit of which packet, by its place in `Watched.packets`.
        what: `injected`, `granted`, `requested`, `crossed`, `retained`, `dropped`, `merged`,
            `arrived`, `idle`, or `stopped:` and why: `end`, `local`, `farther`, `no_room`,
            `order`, `answers`, `preset`.
        port: The output, or where it stopped or a copy stayed the input: 0 to 3 for E, W, N, S; of
            `granted` a bit for each output, L last.
        hops: Of a request and a crossing.
        crossing: Of a crossing, the cycle in which it is.
    """

    cycle: int
    router: int
    packet: int
    what: str
    port: int
    hops: int
    crossing: int


class Packet(NamedTuple):
    """A packet that was sent: when, by which traffic, of which message, from and to where."""

    cycle: int
    load: int
    message: int
    source: int
    to: list[int]


class Flight(NamedTuple):
    """A flit that crosses links in a cycle.

    Attributes:
        packet: Whose.
        router: From where.
        port: By which output: 0 to 3 for E, W, N, S.
        hops: Over how many links.
        retained: Routers on its path where a copy stayed.
        why: Why it ended where it did.
    """

    packet: int
    router: int
    port: int
    hops: int
    retained: tuple[int, ...]
    why: str


class Stay(NamedTuple):
    """A flit in a buffer: where, of which packet, from which cycle to which, both included."""

    router: int
    packet: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Watched:
    """What happened on a mesh from cycle 0 on.

    Attributes:
        mesh: The mesh.
        traffic: What was sent.
        cycles: How many.
        events: All that happened, in order.
        packets: All that was sent, in order.
    """

    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    cycles: int
    events: tuple[Event, ...]
    packets: tuple[Packet, ...]

    def flights(self) -> dict[int, list[Flight]]:
        """What crosses links in each cycle."""
        ends: dict[tuple[int, int, int], tuple[str, int]] = {}
        for event in self.events:
            if event.what == "retained" or event.what.startswith("stopped"):
                # A flit comes in at the port opposite to the one that it left by.
                key = (event.cycle, event.packet, event.router * 4 + (event.port ^ 1))
                ends[key] = (event.what, event.router)
        found: dict[int, list[Flight]] = defaultdict(list)
        for event in self.events:
            if event.what != "crossed":
                continue
            path = self.path(event.router, event.port, event.hops)
            marks = [ends.get((event.cycle, event.packet, at * 4 + event.port)) for at in path]
            kept = [mark[1] for mark in marks[:-1] if mark is not None and mark[0] == "retained"]
            last = marks[-1][0] if marks[-1] is not None else "stopped:end"
            why = last.partition(":")[2] or "end"
            flight = Flight(event.packet, event.router, event.port, event.hops, tuple(kept), why)
            found[event.crossing].append(flight)
        return dict(found)

    def stays(self) -> list[Stay]:
        """What lies in which buffer, and how long."""
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
                end = self.path(flight.router, flight.port, flight.hops)[-1]
                for router in (*flight.retained, end):
                    came[router, flight.packet].append(cycle + 1)
        found = []
        for key, times in came.items():
            start = min(times)
            # What was never granted anything stands there until the end.
            end = done.get(key, self.cycles - 1)
            if start <= end:
                found.append(Stay(key[0], key[1], start, end))
        return sorted(found, key=lambda stay: (stay.start, stay.router, stay.packet))

    def path(self, router: int, port: int, hops: int) -> list[int]:
        """Returns the routers on a path of so many hops."""
        columns = self.mesh.columns
        step = (1, -1, columns, -columns)[port]
        return [router + step * hop for hop in range(1, hops + 1)]


def watch(
    mesh: SmartMesh, traffic: Traffic | Sequence[Traffic], cycles: int, *, seed: int = 1
) -> Watched:
    """Runs traffic on an empty mesh, and keeps all that happens.

    Args:
        mesh: The mesh; not a fully connected one, which has no routers.
        traffic: Of one kind, or several at once.
        cycles: How many, 1 to 5000.
        seed: Of everything that is random.

    Raises:
        NocError: Traffic does not fit the mesh, or cannot be watched.
        TrafficError: There is no such traffic.
    """
    given: object = cycles
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_CYCLES:
        message = f"`cycles` is {cycles!r}: expected a whole number from 1 to {MOST_CYCLES}"
        raise NocError(message, kind="out_of_range", fields={"what": "cycles"})
    every = at_once(traffic)
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
