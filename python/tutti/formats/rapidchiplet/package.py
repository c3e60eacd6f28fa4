"""The network of a RapidChiplet design: routers, links with latencies and widths, and routes.

A chiplet is a router with a node for each unit, as in RapidChiplet's export to BookSim. Between two
routers a packet crosses the PHY of the sender, the link and the PHY of the receiver.

Source: RapidChiplet 66e63e5, `rapidchiplet.py` (`compute_link_lengths`, `compute_link_latencies`,
`compute_link_bandwidths`, `compute_latency`), `helpers.py` (`rotate_chiplet`).
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.rapidchiplet.functions import function_of
from tutti.formats.rapidchiplet.tables import MOST_CYCLES
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.base.errors import ConfigError
    from tutti.formats.rapidchiplet.files import DesignFiles
    from tutti.formats.rapidchiplet.tables import End

_TUPLE = "__tuple__:"
_START = "-1"
"""The previous node of a packet at its source, in extended routing tables."""


class PackageLink(NamedTuple):
    """A link between routers, in one direction."""

    start: int
    end: int
    cycles: int
    """PHYs and link."""
    um: int
    """Length in micrometres."""
    bits: int | None
    """Bits per cycle of both directions together; None between interposer routers."""


def routers_of(files: DesignFiles) -> int:
    """Returns the number of chiplets and interposer routers."""
    return len(files.placement.chiplets) + len(files.placement.interposer_routers)


def router_of(files: DesignFiles, kind: str, number: int) -> int:
    """Returns the router of a chiplet or an interposer router: chiplets come first."""
    return number if kind == "chiplet" else len(files.placement.chiplets) + number


def router_cycles(files: DesignFiles) -> list[int]:
    """Returns the latency of each router in cycles, rounded up.

    Raises:
        ConfigError: The latency of interposer routers is missing, or below a cycle.
    """
    cycles = [
        math.ceil(files.chiplet(number).internal_latency)
        for number in range(len(files.placement.chiplets))
    ]
    if files.placement.interposer_routers:
        given = files.packaging.latency_irouter
        if given is None or given <= 0:
            problem = "`latency_irouter` is missing" if given is None else "is 0"
            raise mistake(problem, source=files.place("packaging"), key="latency_irouter",
                          expected="cycles, 1 or more")  # fmt: skip
        cycles += [math.ceil(given)] * len(files.placement.interposer_routers)
    return cycles


def links_of(files: DesignFiles) -> list[PackageLink]:
    """Returns the links, each in both directions.

    Raises:
        ConfigError: A link is parallel to another or leads to its own router, has no bandwidth, or
            its latency is invalid.
    """
    latency = _latency(files)
    found: dict[tuple[int, int], PackageLink] = {}
    for number, link in enumerate(files.topology.links):
        key = f"[{number}]"
        ends = (link.ep1, link.ep2)
        start, end = (router_of(files, each.type, each.outer_id) for each in ends)
        if start == end or (start, end) in found:
            what = "ends where it starts" if start == end else "is parallel to another one"
            raise mistake(f"the link {what}", source=files.place("topology"), key=key,
                          expected="one link between two routers: routing tables name the next "
                          "router only")  # fmt: skip
        mm = _length(files, link.ep1, link.ep2)
        cycles = math.ceil(latency(mm)) + math.ceil(sum(_phy_cycles(files, each) for each in ends))
        if not 0 <= cycles <= MOST_CYCLES:
            problem = f"the link takes {plural(cycles, 'cycle')}"
            raise mistake(problem, source=files.place("topology"), key=key,
                          expected=f"0 to {MOST_CYCLES:,}")  # fmt: skip
        bits = _bits(files, ends, key)
        um = round(mm * 1000)
        found[start, end] = PackageLink(start, end, max(cycles, 1), um, bits)
        found[end, start] = PackageLink(end, start, max(cycles, 1), um, bits)
    return list(found.values())


def _latency(files: DesignFiles) -> Callable[[float], float]:
    """Returns the latency of a link of a length in mm, in cycles."""
    packaging = files.packaging
    value = packaging.link_latency
    place = {"source": files.place("packaging"), "key": "link_latency"}
    if packaging.link_latency_type == "function":
        if not isinstance(value, str):
            raise mistake("is not text", **place, value=shown(value),
                          expected="a function such as `lambda x: 0.25 * x`")  # fmt: skip
        return function_of(value, **place)
    if isinstance(value, str) or value < 0:
        raise mistake("is not a number from 0", **place, value=shown(value), expected="cycles")
    return lambda _: value


def _phy_cycles(files: DesignFiles, end: End) -> float:
    if end.type == "irouter":
        return 0.0
    return files.technologies[files.chiplet(end.outer_id).technology].phy_latency


def _length(files: DesignFiles, one: End, other: End) -> float:
    (x1, y1), (x2, y2) = _position(files, one), _position(files, other)
    if files.packaging.link_routing == "manhattan":
        return abs(x1 - x2) + abs(y1 - y2)
    return math.hypot(x1 - x2, y1 - y2)


def _position(files: DesignFiles, end: End) -> tuple[float, float]:
    """Returns the position of an end of a link in mm; rotations are counterclockwise."""
    if end.type == "irouter":
        point = files.placement.interposer_routers[end.outer_id].position
        return point.x, point.y
    placed, chiplet = files.placement.chiplets[end.outer_id], files.chiplet(end.outer_id)
    phy, size = chiplet.phys[end.inner_id], chiplet.dimensions
    x, y = {
        0: (phy.x, phy.y),
        90: (size.y - phy.y, phy.x),
        180: (size.x - phy.x, size.y - phy.y),
        270: (phy.y, size.x - phy.x),
    }[placed.rotation]
    return placed.position.x + x, placed.position.y + y


def _bits(files: DesignFiles, ends: tuple[End, End], key: str) -> int | None:
    """Returns the data bits per cycle of the narrower PHY, both directions together."""
    packaging = files.packaging
    widths = []
    for end in ends:
        if end.type == "chiplet":
            chiplet = files.chiplet(end.outer_id)
            area = chiplet.dimensions.x * chiplet.dimensions.y
            signals = area * (1 - chiplet.fraction_power_bumps)
            share = signals * chiplet.phys[end.inner_id].fraction_bump_area
            bits = math.floor(share * (1 / packaging.bump_pitch) ** 2 - packaging.non_data_wires)
            if not 1 <= bits < 1 << 40:
                raise mistake(
                    f"a PHY of chiplet {end.outer_id} has {bits} data wires",
                    source=files.place("topology"), key=key,
                    expected="a bump area for at least one data wire and `non_data_wires`",
                )  # fmt: skip
            widths.append(bits)
    return min(widths, default=None)


# --- routes ---------------------------------------------------------------------------------------


class RoutingTable:
    """The next router of the route to a chiplet, at each router.

    Args:
        files: The design.
        raw: The table of the file.
        links: The links of the design.

    Raises:
        ConfigError: The table is invalid.
    """

    def __init__(
        self, files: DesignFiles, raw: Mapping[str, Any], links: Sequence[PackageLink]
    ) -> None:
        self._files = files
        self._source = files.place("routing_table")
        kind = raw.get("type")
        if kind not in ("default", "extended"):  # a list cannot be in a set
            raise mistake("unknown type of routing table", source=self._source, key="type",
                          value=shown(kind), expected="default or extended")  # fmt: skip
        self._extended = kind == "extended"
        self._next = self._read(raw.get("table"))
        self._links = {(link.start, link.end) for link in links}

    def path(self, start: int, end: int) -> list[int]:
        """Returns the routers from one chiplet to another, both included.

        Raises:
            ConfigError: The table has no route, a loop, or a hop without a link or through a
                chiplet that does not relay.
        """
        path, previous = [start], -1
        chiplets = len(self._files.placement.chiplets)
        while path[-1] != end:
            here = path[-1]
            following = self._next.get((here, end, previous if self._extended else -1))
            if following is None:
                raise self._refused(start, end, f"no next hop at {self._name(here)}")
            if (here, following) not in self._links:
                hop = f"{self._name(here)} to {self._name(following)}"
                raise self._refused(start, end, f"there is no link from {hop}")
            is_chiplet = following != end and following < chiplets
            if is_chiplet and not self._files.chiplet(following).relay:
                problem = f"{self._name(following)} does not relay packets"
                raise self._refused(start, end, problem)
            if len(path) > routers_of(self._files):
                raise self._refused(start, end, "the route has a loop")
            previous = here
            path.append(following)
        return path

    def _refused(self, start: int, end: int, problem: str) -> ConfigError:
        return mistake(problem, source=self._source,
                       key=f"from {self._name(start)} to {self._name(end)}",
                       expected="a route over links and chiplets that relay",
                       hint="generate_routing.py of RapidChiplet writes the table")  # fmt: skip

    def _name(self, router: int) -> str:
        chiplets = len(self._files.placement.chiplets)
        return f"chiplet {router}" if router < chiplets else f"irouter {router - chiplets}"

    def _read(self, table: object) -> dict[tuple[int, int, int], int]:
        """Returns next routers by router, destination and previous router (-1: not used)."""
        found: dict[tuple[int, int, int], int] = {}
        for here, row in self._rows(table, "table"):
            for end, value in self._rows(row, f"table of {self._name(here)}"):
                key = f"table of {self._name(here)}, {self._name(end)}"
                if value is None or here == end:
                    continue
                if self._extended:
                    for before, following in self._rows(value, key):
                        found[here, end, before] = self._router(following, key)
                else:
                    found[here, end, -1] = self._router(value, key)
        return found

    def _rows(self, table: object, key: str) -> list[tuple[int, Any]]:
        if not isinstance(table, dict):
            raise mistake("is not a table", source=self._source, key=key, value=shown(table),
                          expected="a table of nodes")  # fmt: skip
        return [(self._router(name, key), value) for name, value in table.items()]

    def _router(self, value: object, key: str) -> int:
        """Returns the router of a pair of kind and number, as RapidChiplet writes it in JSON."""
        pair: object = None
        if isinstance(value, str) and value.startswith(_TUPLE):
            pair = decoded_key(value)
        elif isinstance(value, dict) and value.get("__tuple__") is True:
            pair = value.get("items")
        elif value == _START:
            return -1
        match pair:
            case [("chiplet" | "irouter") as kind, int() as number] if not isinstance(number, bool):
                if 0 <= number < self._count(kind):
                    return router_of(self._files, kind, number)
        raise mistake("is not a node", source=self._source, key=key, value=shown(value),
                      expected='such as "__tuple__:[\\"chiplet\\", 0]"')  # fmt: skip

    def _count(self, kind: str) -> int:
        placement = self._files.placement
        return len(placement.chiplets if kind == "chiplet" else placement.interposer_routers)


def decoded_key(text: str) -> object:
    """Returns the list that RapidChiplet writes as a key of JSON; None if it is invalid."""
    try:
        found = json.loads(text.removeprefix(_TUPLE)) if text.startswith(_TUPLE) else None
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and any(isinstance(each, bool) for each in found):
        return None
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return [decoded_key(each) for each in found]
    return found
