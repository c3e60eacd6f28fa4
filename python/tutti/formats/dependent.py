"""Traces whose packets wait for others, from those that list the packets that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class TracePacket(NamedTuple):
    """A packet.

    Attributes:
        cycle: The first cycle in which it can be sent.
        source: The node that sends it.
        destination: The node that receives it.
        flits: Its length.
        kind: Its message class.
        id: Its id.
        dependents: The ids of the packets that wait for its arrival.
    """

    cycle: int
    source: int
    destination: int
    flits: int
    kind: int
    id: int
    dependents: Sequence[int]


def dependent_trace(packets: Iterable[TracePacket], *, delay: int, source: str) -> tuple[str, int]:
    """Returns packets as comma-separated values, and the number of dependencies on others.

    Args:
        packets: The packets.
        delay: Cycles from the last arrival that a packet waits for to the packet.
        source: The file, for errors.

    Raises:
        ConfigError: Two packets have the same id.
    """
    read = list(packets)
    waits: dict[int, list[int]] = {}
    for packet in read:
        if packet.id in waits:
            raise mistake(f"packet {packet.id} appears twice", source=source)
        waits[packet.id] = []
    unknown = 0
    for packet in read:
        for later in packet.dependents:
            if later in waits:
                waits[later].append(packet.id)
            else:
                unknown += 1
    lines = ["cycle,source,destination,flits,class,id,after,delay"]
    for packet in read:
        before = waits[packet.id]
        ends = f"{packet.source},{packet.destination},{packet.flits},{packet.kind}"
        after = f"{packet.id},{' '.join(map(str, before))},{delay if before else 0}"
        lines.append(f"{packet.cycle},{ends},{after}")
    return "\n".join(lines) + "\n", unknown
