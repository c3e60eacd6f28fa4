"""The zones of a SimGrid platform: where hosts and routers are, which routes state again.

Source: ``RoutedZone::add_route_check_params``, ``StarZone::check_add_route_param`` and
``NetZoneImpl`` of SimGrid 4.1, which refuse the same routes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import did_you_mean, mistake, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.formats.xml_files import Element

_WITHOUT_ROUTES: Final = {
    "none": "no routes",
    "vivaldi": "peers only",
    "cluster": "routes from a host to itself only: a host_link or a cabinet joins a host",
}
"""What zones accept whose routing takes no routes between two points."""


@dataclass
class _Zone:
    """A zone with the zone that contains it; None for the file."""

    name: str
    routing: str
    parent: _Zone | None = None

    def contains(self, other: _Zone | None) -> bool:
        """Returns whether another zone is this one or is in it."""
        while other is not None and other is not self:
            other = other.parent
        return other is self


@dataclass
class Zones:
    """Records where hosts, routers and zones are, and checks routes against that."""

    _zones: dict[str, _Zone] = field(default_factory=dict)
    _places: dict[str, _Zone] = field(default_factory=dict)
    _current: _Zone = field(default_factory=lambda: _Zone("", "none"))

    @contextmanager
    def within(self, element: Element, routing: str) -> Iterator[None]:
        """Opens a zone or a cluster: what is added is in it.

        Raises:
            ConfigError: The name exists.
        """
        name = element.text("id")
        self._check_new(element, name, "a zone")
        outer = self._current
        self._current = self._zones[name] = _Zone(name, routing, outer)
        yield
        self._current = outer

    def add(self, element: Element, name: str) -> None:
        """Adds a host or router to the current zone.

        Raises:
            ConfigError: The name is empty, or exists.
        """
        self._check_new(element, name, "a host or router")
        self._places[name] = self._current

    def _check_new(self, element: Element, name: str, noun: str) -> None:
        if name and name not in self._places and name not in self._zones:
            return
        if not name:
            problem = f"the name of {noun} is empty"
        elif name in self._places and noun != "a zone":
            problem = f"two hosts or routers have the name {shown(name)}"
        else:
            problem = f"two zones, hosts or routers have the name {shown(name)}"
        raise mistake(problem, source=element.place, expected="each name once")

    def check_host_link(self, element: Element) -> None:
        """Checks that a host_link joins a host or router of its zone.

        Raises:
            ConfigError: It does not.
        """
        self._check_point(element, "id")

    def check_route(self, element: Element) -> None:
        """Checks that the ends of a route are in its zone, and gateways in theirs.

        Raises:
            ConfigError: They are not, or the routing of the zone has no such routes.
        """
        is_loop = element.text("src") == element.text("dst")
        routing = self._current.routing
        if routing in _WITHOUT_ROUTES and not (is_loop and routing == "cluster"):
            raise mistake(
                f"<{element.tag}> in a zone with routing {routing.capitalize()}",
                source=element.place,
                expected=_WITHOUT_ROUTES[routing],
                hint='SimGrid refuses it, too; routing="Full" has a route for each pair',
            )
        if element.tag == "route":
            self._check_point(element, "src")
            self._check_point(element, "dst")
            return
        for end in ("src", "dst"):
            self._check_zone(element, end)
            self._check_gateway(element, end)
        if element.text("gw_src") == element.text("gw_dst"):
            element.refuse("gw_dst", "another gateway than gw_src")

    def _check_point(self, element: Element, end: str) -> None:
        """Checks that a host or router is in the current zone."""
        name = element.text(end)
        place = self._places.get(name)
        if place is None:
            hint = did_you_mean(name, self._places)
            if name in self._zones:
                hint = f"{shown(name)} is a zone: <zoneRoute> joins zones at their gateways"
            element.refuse(end, "the name of a host or router above", hint)
        if place is not self._current:
            raise mistake(
                f"{end} {shown(name)} of <{element.tag}> belongs to {_noun(place)}",
                source=element.place,
                expected=f"a host or router of {_noun(self._current)}",
                hint="a <zoneRoute> of the zone above joins hosts of different zones",
            )

    def _check_zone(self, element: Element, end: str) -> None:
        """Checks that a zone is in the current zone."""
        name = element.text(end)
        zone = self._zones.get(name)
        if zone is None:
            hint = did_you_mean(name, self._zones)
            if name in self._places:
                hint = f"{shown(name)} is a host or router: <route> joins those"
            element.refuse(end, "the name of a zone or cluster above", hint)
        if zone.parent is not self._current:
            raise mistake(
                f"{end} {shown(name)} of <{element.tag}> is not in {_noun(self._current)}",
                source=element.place,
                expected="a zone of the zone that has the route",
            )

    def _check_gateway(self, element: Element, end: str) -> None:
        """Checks that a gateway is in the zone whose gateway it is."""
        gateway, name = element.text(f"gw_{end}"), element.text(end)
        place = self._places.get(gateway)
        if place is None:
            known = [
                each for each, zone in self._places.items() if self._zones[name].contains(zone)
            ]
            element.refuse(
                f"gw_{end}", f"a host or router of zone {name}", did_you_mean(gateway, known)
            )
        if not self._zones[name].contains(place):
            other = "dst" if end == "src" else "src"
            is_swapped = self._zones[name].contains(self._places.get(element.text(f"gw_{other}")))
            raise mistake(
                f"gw_{end} {shown(gateway)} of the {element.tag} from {shown(element.text('src'))}"
                f" to {shown(element.text('dst'))} belongs to {_noun(place)}",
                source=element.place,
                expected=f"a host or router of {_noun(self._zones[name])}",
                hint="gw_src and gw_dst may be swapped" if is_swapped else "",
            )


def _noun(zone: _Zone) -> str:
    return f"zone {shown(zone.name)}" if zone.parent is not None else "no zone"
