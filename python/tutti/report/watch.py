"""A page that animates the flits of a mesh cycle by cycle.

The page is one self-contained file and reproducible byte by byte.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from . import smart_words as words
from .page import write_html

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.noc.smart.watched import Watched

_MARKS = ("injected", "dropped", "merged", "arrived", "idle")
"""Events that are marked at a router in their cycle."""
_WIDE = 1.4
"""Ratio of columns to rows above which the legend is below the mesh, not to its right."""


def write_watch(path: str | Path, watched: Watched, title: str = "", *, start: int = 0) -> Path:
    """Writes the page.

    Args:
        path: The file to write; its folder must exist.
        watched: The recorded events.
        title: The title; by default derived from the mesh.
        start: The initial cycle.

    Returns:
        The path written.
    """
    return write_html(
        path,
        "watch",
        "watch",
        data=scene(watched, start=start),
        title=title or f"{watched.mesh.design} cycle by cycle",
        mesh=words.describe_mesh(watched.mesh),
        wide=watched.mesh.columns > _WIDE * watched.mesh.rows,
        traffic=[words.describe_traffic(one) for one in watched.traffic],
    )


def scene(watched: Watched, *, start: int = 0) -> dict[str, Any]:
    """Returns the data of the page: messages, and flights, requests and marks by cycle."""
    flights: dict[int, list[Any]] = defaultdict(list)
    for cycle, some in watched.flights().items():
        for one in some:
            flights[cycle].append(
                [one.packet, one.router, one.port, one.hops, list(one.retained), one.why]
            )
    requests: dict[int, list[Any]] = defaultdict(list)
    marks: dict[int, list[Any]] = defaultdict(list)
    for event in watched.events:
        if event.what == "requested":
            requests[event.cycle].append([event.packet, event.router, event.port, event.hops])
        elif event.what in _MARKS:
            marks[event.cycle].append([event.packet, event.router, event.what, event.port])
    return {
        "columns": watched.mesh.columns,
        "rows": watched.mesh.rows,
        "cycles": watched.cycles,
        "start": min(max(start, 0), watched.cycles - 1),
        "messages": _messages(watched),
        "packets": [[one.message, one.source, one.cycle] for one in watched.packets],
        "flights": _by_cycle(flights, watched.cycles),
        "requests": _by_cycle(requests, watched.cycles),
        "marks": _by_cycle(marks, watched.cycles),
        "stays": [list(stay) for stay in watched.stays() if stay.start < watched.cycles],
    }


def _by_cycle(found: dict[int, list[Any]], cycles: int) -> list[list[Any]]:
    return [found.get(cycle, []) for cycle in range(cycles)]


def _messages(watched: Watched) -> list[dict[str, Any]]:
    """Returns kind, source, destinations, start and end of each message."""
    packets: dict[int, list[int]] = defaultdict(list)
    for serial, packet in enumerate(watched.packets):
        packets[packet.message].append(serial)
    arrived: dict[int, list[int]] = defaultdict(list)
    last: dict[int, int] = {}
    for event in watched.events:
        message = watched.packets[event.packet].message
        last[message] = max(last.get(message, 0), event.cycle)
        if event.what == "arrived":
            arrived[message].append(event.cycle)
    waiting = {watched.packets[s.packet].message for s in watched.stays()
               if s.end >= watched.cycles - 1}  # fmt: skip
    found = []
    for message, serials in sorted(packets.items()):
        first = watched.packets[serials[0]]
        kind = watched.traffic[first.load].kind
        expected = sum(len(watched.packets[serial].to) for serial in serials)
        times = arrived[message]
        if kind == "reduction":
            ended = bool(times) and message not in waiting and last[message] == max(times)
        else:
            ended = len(times) >= expected
        found.append(
            {
                "kind": kind,
                "from": -1 if kind == "reduction" else first.source,
                "to": first.to if kind != "multicast" or len(serials) == 1 else
                [node for serial in serials for node in watched.packets[serial].to],
                "cycle": first.cycle,
                "end": max(times) if ended else -1,
                "arrivals": len(times),
            }
        )  # fmt: skip
    return found
