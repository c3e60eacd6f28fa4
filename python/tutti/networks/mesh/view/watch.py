"""A page that animates the flits of a mesh cycle by cycle.

The page is one self-contained file and reproducible byte by byte.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.view.page import LIMIT, render
from tutti.view.quantity import plural
from tutti.view.view import Fact, View, json_facts

from . import text as words

if TYPE_CHECKING:
    from tutti.networks.mesh.recording import Watched

_MARKS = ("injected", "dropped", "merged", "arrived", "idle")
"""Events that are marked at a router in their cycle."""
_CAUSES = {
    "local": "a flit buffered at the router uses the port",
    "farther": "a flit from farther away uses the port",
    "passing": "another passing flit uses the port",
    "no_buffer": "the next router has no free buffer",
    "order": "earlier flits of its packet are buffered there",
    "responses": "the router waits for further responses of the reduction",
    "preset": "the port is reserved for the preset path of a broadcast",
}
"""Why a flit stops before the end of its path."""
_WIDE = 1.4
"""Ratio of columns to rows above which the legend is below the mesh, not to its right."""


def watch_view(watched: Watched, title: str = "", *, start: int = 0) -> View:
    """Returns what recorded flits show: their numbers, and the page.

    Args:
        watched: The recorded events.
        title: The title of the experiment, above the question of the page.
        start: The initial cycle of the page.
    """
    flits = sum(event.what == "crossed" for event in watched.events)
    messages = len({packet.message for packet in watched.packets})
    counts = ((watched.cycles, "cycle"), (messages, "message"), (flits, "path"))
    return View(
        headline=Fact("", ", ".join(plural(count, noun) for count, noun in counts)),
        facts=json_facts(cycles=watched.cycles, messages=messages, paths=flits),
        drawings={"watch.html": lambda path: write_watch(path, watched, title, start=start)},
    )


def write_watch(
    path: str | Path, watched: Watched, title: str = "", *, start: int = 0, limit: int = LIMIT
) -> Path:
    """Writes the page, with the first cycles only if it would exceed `LIMIT` bytes.

    Args:
        path: The file to write; its folder must exist.
        watched: The recorded events.
        title: The title of the experiment, above the question of the page.
        start: The initial cycle.
        limit: The maximum size in bytes.

    Returns:
        The path written.
    """
    data = scene(watched, start=start)
    shown: dict[str, Any] = {
        "question": f"Which flits stop early on {watched.mesh.design}, and why?",
        "answer": _answer(watched),
        "subject": title,
        "mesh": words.describe_mesh(watched.mesh),
        "wide": watched.mesh.columns > _WIDE * watched.mesh.rows,
        "traffic": [words.describe_traffic(one) for one in watched.traffic],
    }
    text = render("watch", "watch", data=data, sampled="", **shown)
    while len(text) > limit and data["cycles"] > 1:
        data = _first(data, max(data["cycles"] * limit // len(text) * 9 // 10, 1))
        note = f"Shows the first {data['cycles']:,} of {plural(watched.cycles, 'cycle')}."
        text = render("watch", "watch", data=data, sampled=note, **shown)
    target = Path(path)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target


def _first(data: dict[str, Any], cycles: int) -> dict[str, Any]:
    """Returns the first cycles of a scene."""
    cut = {name: data[name][:cycles] for name in ("flights", "requests", "marks")}
    stays = [stay for stay in data["stays"] if stay[2] < cycles]
    return data | cut | {"cycles": cycles, "start": min(data["start"], cycles - 1), "stays": stays}


def _answer(watched: Watched) -> list[str]:
    """Returns the number of completed messages and of early stops, and their main cause."""
    messages = _messages(watched)
    done = sum(one["end"] >= 0 for one in messages)
    created = plural(len(messages), "message")
    lines = [f"{done:,} of {created} arrive completely within {plural(watched.cycles, 'cycle')}."]
    causes = Counter(one.why for some in watched.flights().values() for one in some)
    del causes["turn"]
    early = causes.total() - causes["end"]
    if not causes.total():
        return [*lines, "No flit crosses a link."]
    if not early:
        if causes["end"] == 1:
            return [*lines, "The flit on links covers the requested path."]
        return [*lines, f"All {causes['end']:,} flits on links cover the requested path."]
    stop = "stops before the end of its path" if early == 1 else "stop before the end of their path"
    share = f"{early:,} of {plural(causes.total(), 'flit')} on links {stop}"
    cause, count = max(((why, n) for why, n in causes.items() if why != "end"),
                       key=lambda item: item[1])  # fmt: skip
    return [*lines, f"{share}, {count:,} of them because {_CAUSES[cause]}."]


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
