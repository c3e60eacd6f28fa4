"""Reads the zones, hosts, links and routes of a SimGrid platform file.

Source: ``src/kernel/xml/simgrid.dtd`` (DTD 4.1), ``platf_sax_cb.cpp`` and ``sg_platf.cpp`` of
SimGrid 4.1.
"""

from __future__ import annotations

import re
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, cast

from tutti.base.files import limits
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.formats.simgrid.clusters import add_cluster, cost_of, radicals
from tutti.formats.simgrid.grammar import GRAMMAR
from tutti.formats.simgrid.network import Cost, Hop, Network
from tutti.formats.simgrid.quantities import rate_of
from tutti.formats.xml_files import Limits, check_attributes, check_elements, read_xml

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.formats.simgrid.network import Direction, Policy
    from tutti.formats.xml_files import Element
    from tutti.topologies import Topology

_EXPECTED: Final = "a platform of SimGrid, version 4 or 4.1"
_WITHIN: Final = Limits(bytes=limits.Bytes.SCHEDULE, elements=1 << 18, document_type=True)
_ZONES: Final = {"zone", "AS"}
_ROUTES: Final = {"route", "zoneRoute", "ASroute"}
_BYPASSES: Final = {"bypassRoute", "bypassZoneRoute", "bypassASroute"}
_LOST: Final = {
    "prop": "properties",
    "config": "configurations of SimGrid",
    "trace": "profiles over time",
    "trace_connect": "profiles over time",
    "actor": "actors",
    "process": "actors",
    "storage": "disks",
    "storage_type": "disks",
    "mount": "disks",
    "random": "random generators",
}
_ROUTING: Final = {"full", "floyd", "dijkstra", "dijkstracache", "none", "cluster", "vivaldi"}
_MOST_PEERS: Final = 256
_COORDINATE: Final = re.compile(r"[-+]?[0-9]{1,7}(?:\.[0-9]{0,12})?")


def read_platform(path: str | Path) -> tuple[Topology, tuple[str, ...]]:
    """Reads a platform file.

    Hosts are the NPUs, in the order of the file, which is that of their ranks. A zone's routing is
    not part of a topology: its routes are compared with the paths of fewest hops.

    Args:
        path: The file.

    Returns:
        The topology, and a line for each kind of content that it does not represent.

    Raises:
        ConfigError: The file cannot be read, is invalid, or has wireless zones or coordinates
            without rates. The message has the line.
        TopologyError: There is no host, or hosts cannot reach each other.
    """
    root = read_xml(Path(path), "platform", _EXPECTED, _WITHIN)
    check_elements(root, GRAMMAR)
    check_attributes(root, GRAMMAR)
    if root.text("version", "0") not in {"4", "4.0", "4.1"}:
        root.refuse("version", "4 or 4.1; simgrid_update_xml converts older files")
    reader = _Reader(str(path))
    for child in root.children:
        reader.child(child, "none")
    topology = reader.network.topology(Path(path).stem or str(path))
    losses = reader.network.losses
    return topology, tuple(f"{count:,} x {text}" for text, count in sorted(losses.items()))


class _Reader:
    """Adds the elements of a file to a network."""

    def __init__(self, source: str) -> None:
        self.network = Network(source)
        self._pairs: set[tuple[str, ...]] = set()

    def child(self, element: Element, routing: str) -> None:
        """Adds an element of a zone."""
        tag = element.tag
        if tag in _ZONES:
            self._zone(element)
        elif tag == "cluster":
            with self.network.zones.within(element, "cluster"):
                add_cluster(self.network, element)
        elif tag == "host":
            self._host(element)
        elif tag == "router":
            self.network.netpoint(element, element.text("id"), "router")
        elif tag == "link":
            self._link(element)
        elif tag in _ROUTES:
            self._route(element, routing)
        elif tag in _BYPASSES:
            self.network.lose(f"{tag} elements, which replace a route for one pair")
        elif tag in _LOST:
            self.network.lose(_LOST[tag])
        elif not (tag in {"host_link", "cabinet", "backbone"} and routing == "cluster") and not (
            tag == "peer" and routing == "vivaldi"
        ):
            self._refuse_element(element, routing)

    def _refuse_element(self, element: Element, routing: str) -> NoReturn:
        known = _ZONES | _ROUTES | _LOST.keys() | {"cluster", "host", "router", "link"}
        raise mistake(
            f"<{shown(element.tag)[1:-1]}> is not supported in a zone with routing {routing}",
            source=element.place,
            expected="elements of DTD 4.1 without wireless links",
            hint=did_you_mean(element.tag, known),
        )

    def _zone(self, element: Element) -> None:
        routing = element.text("routing").lower()
        if routing not in _ROUTING:
            element.refuse("routing", "Full, Floyd, Dijkstra, None, Cluster or Vivaldi")
        before = set(self.network.netpoints)
        with self.network.zones.within(element, routing):
            if routing == "vivaldi":
                self._vivaldi(element)
                return
            for child in element.children:
                self.child(child, routing)
            if routing == "cluster":
                self._star(element, before)

    def _host(self, element: Element) -> None:
        self.network.netpoint(element, element.text("id"), "npu")
        self.network.lose("hosts with a computing speed")
        for child in element.children:
            self.network.lose("properties" if child.tag == "prop" else "disks")
        self._count_profiles(element)

    def _count_profiles(self, element: Element) -> None:
        for name in element.attributes:
            if name.endswith("_file") and element.attributes[name]:
                self.network.lose("profiles over time")

    def _link(self, element: Element) -> None:
        policy = element.text("sharing_policy", "SHARED")
        policy = {"FULLDUPLEX": "SPLITDUPLEX"}.get(policy, policy)
        if policy not in {"SHARED", "SPLITDUPLEX", "FATPIPE"}:
            element.refuse("sharing_policy", "SHARED, SPLITDUPLEX or FATPIPE")
        self._count_profiles(element)
        cost = cost_of(self.network, element, "bandwidth", "latency")
        self.network.link(element, element.text("id"), cost, cast("Policy", policy))
        if element.children:
            self.network.lose("properties", len(element.children))

    def _hop(self, element: Element, name: str, direction: str) -> Hop:
        """Returns the link of a name; ``l_UP`` is a direction of the link ``l``."""
        links = self.network.links
        if name not in links and name.endswith(("_UP", "_DOWN")) and direction == "NONE":
            name, _, direction = name.rpartition("_")
        link = links.get(name)
        split = link is not None and link.policy == "SPLITDUPLEX"
        if (
            link is None
            or split != (direction != "NONE")
            or direction not in {"UP", "DOWN", "NONE"}
        ):
            raise mistake(
                f"there is no link {shown(name)}"
                if link is None
                else f"link {shown(name)} has "
                + ("no direction" if direction == "NONE" else f"the direction {shown(direction)}"),
                source=element.place,
                expected="a link above, with direction UP or DOWN if it is SPLITDUPLEX, else none",
                hint=did_you_mean(name, links) if link is None else "",
            )
        return Hop(link, cast("Direction", direction))

    def _route(self, element: Element, routing: str) -> None:
        self.network.zones.check_route(element)
        ends = ("src", "dst") if element.tag == "route" else ("gw_src", "gw_dst")
        source, target = (self.network.netpoints[element.text(end)] for end in ends)
        symmetrical = element.text("symmetrical", "YES")
        if symmetrical not in {"YES", "NO", "yes", "no"}:
            element.refuse("symmetrical", "YES, NO, yes or no")
        hops = []
        for child in element.children:
            if child.tag != "link_ctn":
                self._refuse_element(child, element.tag)
            hops.append(self._hop(child, child.text("id"), child.text("direction", "NONE")))
        if not hops:
            raise mistake(
                f"<{element.tag}> has no link",
                source=element.place,
                expected='<link_ctn id="..."/>',
            )
        pair = element.text("src"), element.text("dst")
        is_symmetrical = symmetrical.upper() == "YES"
        both = [pair, pair[::-1]] if is_symmetrical else [pair]
        if not self._pairs.isdisjoint(both):
            raise mistake(
                "the two ends have a route already",
                source=element.place,
                expected='one route per pair; symmetrical="NO" for one direction',
            )
        self._pairs.update(both)
        if source == target:
            self.network.lose("loopback links")
            for hop in hops:
                hop.link.used = hop.link.used or hop.link.policy == "FATPIPE"
            return
        self.network.route(
            source, target, hops, symmetrical=is_symmetrical, fixed=routing == "full"
        )

    def _star(self, element: Element, before: set[str]) -> None:
        """Joins the hosts and routers of a zone with routing Cluster at its backbone."""
        network = self.network
        entry = exit_ = network.point("", "switch")
        backbones = list(element.each("backbone"))
        for second in backbones[1:]:
            raise mistake(
                "the zone has a second <backbone>", source=second.place, expected="one per zone"
            )
        costs = []
        for backbone in backbones:
            exit_ = network.point("", "switch")
            costs = [cost_of(network, backbone, "bandwidth", "latency")]
            network.edge(entry, exit_, costs[0])
        for cabinet in element.each("cabinet"):
            costs.append(self._cabinet(cabinet, entry, exit_))
        linked = set()
        for child in element.each("host_link"):
            network.zones.check_host_link(child)
            host = network.netpoints[child.text("id")]
            if host in linked:
                child.refuse("id", "a host or router without another <host_link>")
            linked.add(host)
            up, down = (self._hop(child, child.text(name), "NONE") for name in ("up", "down"))
            network.route(host, entry, [up], symmetrical=False)
            network.route(exit_, host, [down], symmetrical=False)
            costs += [up.link.cost, down.link.cost]
        self._join_routers(element, before, linked, (entry, exit_), costs)

    def _cabinet(self, cabinet: Element, entry: int, exit_: int) -> Cost:
        prefix, suffix = cabinet.text("prefix"), cabinet.text("suffix")
        cost = cost_of(self.network, cabinet, "bw", "lat")
        for number in radicals(cabinet):
            host = self.network.netpoint(cabinet, f"{prefix}{number}{suffix}", "npu")
            self.network.lose("hosts with a computing speed")
            self.network.edge(host, entry, cost)
            self.network.edge(exit_, host, cost)
        return cost

    def _join_routers(
        self,
        element: Element,
        before: set[str],
        linked: set[int],
        hub: tuple[int, int],
        costs: list[Cost],
    ) -> None:
        """Joins routers, which have no link, at the highest rate, so that it limits no message."""
        network = self.network
        fastest = max((cost.rate for cost in costs), default=None, key=_bytes_per_second)
        for child in element.children:
            if child.tag not in {"router", "host"} or child.text("id") in before:
                continue
            point = network.netpoints[child.text("id")]
            if point in linked:
                continue
            if fastest is None:
                raise mistake(
                    f"{child.tag} {shown(child.text('id'))} has no link",
                    source=child.place,
                    expected="a <host_link>, <cabinet> or <backbone> in the zone",
                )
            network.edge(point, hub[0], Cost(fastest, 0))
            network.edge(hub[1], point, Cost(fastest, 0))

    def _vivaldi(self, element: Element) -> None:
        """Joins peers; the latency between two peers follows from their coordinates."""
        peers: list[tuple[Element, int, int]] = []
        for child in element.children:
            if child.tag == "prop":
                self.child(child, "vivaldi")
                continue
            if child.tag != "peer":
                raise mistake(
                    f"<{shown(child.tag)[1:-1]}> in a zone with routing Vivaldi has no rate",
                    source=child.place,
                    expected="<peer> elements, whose links have rates",
                )
            host = self.network.netpoint(child, child.text("id"), "npu")
            self.network.lose("hosts with a computing speed")
            if child.attributes.get("lat"):
                self.network.lose("`lat` of peers, which has no effect in SimGrid")
            self._count_profiles(child)
            up, down = self.network.point(), self.network.point()
            self.network.edge(host, up, Cost(rate_of(child, "bw_out"), 0))
            self.network.edge(down, host, Cost(rate_of(child, "bw_in"), 0))
            peers.append((child, up, down))
        if len(peers) > _MOST_PEERS:
            raise mistake(
                f"has {len(peers):,} peers", source=element.place, expected=f"at most {_MOST_PEERS}"
            )
        places = [_coordinates(peer) for peer, _, _ in peers]
        for (peer, up, _), (x, y, z) in zip(peers, places, strict=True):
            rate = rate_of(peer, "bw_out")
            for (other, _, down), (u, v, w) in zip(peers, places, strict=True):
                if other is not peer:
                    ms = hypot(x - u, y - v) + abs(z) + abs(w)
                    self.network.edge(up, down, Cost(rate, round(ms * 1e9)))


def _coordinates(peer: Element) -> tuple[float, float, float]:
    words = peer.text("coordinates").split()
    if len(words) != 3 or not all(_COORDINATE.fullmatch(word) for word in words):
        peer.refuse("coordinates", "three numbers in ms, such as 25.5 9.4 1.4")
    x, y, z = (float(word) for word in words)
    return x, y, z


def _bytes_per_second(rate: TimePerByte) -> float:
    return rate.core.bytes_per_second
