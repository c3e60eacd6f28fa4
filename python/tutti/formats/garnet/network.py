"""A network of Garnet: routers, controllers and links, as a topology script or a run states them.

Source: gem5 `BasicLink.py`, `GarnetLink.py`, `GarnetNetwork.py`, `BasicRouter.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.base.files.mistakes import mistake
from tutti.formats.garnet.run_keys import BRIDGES

if TYPE_CHECKING:
    from tutti.base.errors import ConfigError

MOST_ROUTERS: Final = 1 << 10
"""Routes are searched between all pairs of routers."""
MOST_LINKS: Final = 1 << 16
MOST_CONTROLLERS: Final = 1 << 12
MOST_VCS: Final = 64
"""Of a vnet."""
MOST_WEIGHT: Final = 9_999
"""gem5 takes a sum of weights of 10,000 for an absent path (`INFINITE_LATENCY`)."""
_MOST_CYCLES: Final = 1 << 20
_LISTED: Final = 20

_MODELLED: Final = {
    "link": frozenset(
        {"link_id", "ext_node", "int_node", "src_node", "dst_node", "latency", "weight"}
        | {"src_outport", "dst_inport", "bandwidth_factor", "width", "supported_vnets"}
        | {*BRIDGES}
    ),
    "router": frozenset({"router_id", "latency", "width", "vcs_per_vnet"}),
}
_BRIDGES: Final = frozenset(BRIDGES)


class Place(NamedTuple):
    """Where a link or a router is defined, and the values that it was given."""

    source: str
    """File and line, or file and section."""
    values: dict[str, object]


class ExtLink(NamedTuple):
    """The link between a controller and a router, in both directions."""

    controller: int
    router: int
    cycles: int
    weight: int
    source: str


class IntLink(NamedTuple):
    """The link from a router to another."""

    start: int
    end: int
    cycles: int
    weight: int
    source: str
    outport: str = ""


@dataclass(frozen=True, kw_only=True)
class GarnetNetwork:
    """A network.

    Attributes:
        source: The file.
        routers: The number of routers.
        controllers: The type of each controller, such as `L1Cache_Controller`.
        ext_links: The link of each controller, in the order of the controllers.
        int_links: The links between routers.
        router_cycles: The pipeline depth of all routers.
        router_vcs: `vcs_per_vnet` of the routers that state it, by number.
    """

    source: str
    routers: int
    controllers: tuple[str, ...]
    ext_links: tuple[ExtLink, ...]
    int_links: tuple[IntLink, ...]
    router_cycles: int
    router_vcs: dict[int, int] = field(default_factory=dict)


@dataclass
class NetworkBuilder:
    """Checks routers and links one by one, and collects what tutti does not model.

    Attributes:
        source: The file, for errors of the complete network.
        flit_bits: The width that links and routers may state.
        controllers: The type of each controller.
    """

    source: str
    flit_bits: int
    controllers: list[str]
    _routers: dict[int, str] = field(default_factory=dict)
    _cycles: dict[int, str] = field(default_factory=dict)
    _vcs: dict[int, int] = field(default_factory=dict)
    _ext: dict[int, ExtLink] = field(default_factory=dict)
    _int: dict[tuple[int, int], IntLink] = field(default_factory=dict)
    _unsupported: list[str] = field(default_factory=list)

    def router(self, place: Place) -> None:
        """Adds a router."""
        self._refuse_others(place, "router")
        number = _integer(place, "router_id", 0, MOST_ROUTERS - 1)
        if number in self._routers:
            before = self._routers[number]
            raise mistake(f"router_id {number} appears twice", source=place.source,
                          expected=f"another number than that of {before}")  # fmt: skip
        self._routers[number] = place.source
        cycles = _integer(place, "latency", 1, _MOST_CYCLES, default=1)
        self._cycles.setdefault(cycles, place.source)
        if place.values.get("vcs_per_vnet") is not None:
            self._vcs[number] = _integer(place, "vcs_per_vnet", 1, MOST_VCS)

    def ext_link(self, place: Place, controller: int, router: int) -> None:
        """Adds the link of a controller."""
        self._refuse_others(place, "link")
        if controller in self._ext:
            raise mistake(
                f"controller {controller} has a second external link",
                source=place.source,
                expected=f"one link per controller, as that of {self._ext[controller].source}",
            )
        cycles, weight = self._cycles_and_weight(place)
        self._ext[controller] = ExtLink(controller, router, cycles, weight, place.source)

    def int_link(self, place: Place, start: int, end: int) -> None:
        """Adds a link between routers."""
        self._refuse_others(place, "link")
        if start == end:
            raise mistake(f"router {start} is linked to itself", source=place.source,
                          expected="src_node and dst_node that differ")  # fmt: skip
        if (start, end) in self._int:
            raise mistake(
                f"a second link from router {start} to router {end}",
                source=place.source,
                expected=f"one link per direction, as that of {self._int[start, end].source}",
                hint="parallel links of Garnet serve different vnets, which tutti does not model",
            )
        cycles, weight = self._cycles_and_weight(place)
        outport = str(place.values.get("src_outport", ""))
        link = IntLink(start, end, cycles, weight, place.source, outport)
        self._int[start, end] = link
        if len(self._int) > MOST_LINKS:
            raise mistake("too many links", source=place.source, expected=f"at most {MOST_LINKS:,}")

    def network(self) -> GarnetNetwork:
        """Returns the network.

        Raises:
            ConfigError: It is incomplete, or states what tutti does not model; all such values are
                listed with their places.
        """
        self._refuse_unsupported()
        if not self._ext or not self._routers:
            what = "external link" if self._routers else "router"
            expected = "network.routers, network.ext_links and network.int_links"
            raise mistake(f"has no {what}", source=self.source, expected=expected)
        missing = next((n for n in range(len(self._routers)) if n not in self._routers), None)
        if missing is not None:
            raise mistake(f"router {missing} is missing", source=self.source,
                          expected=f"router_id 0 to {len(self._routers) - 1}")  # fmt: skip
        lost = next((n for n in range(len(self.controllers)) if n not in self._ext), None)
        if lost is not None:
            raise mistake(
                f"controller {lost} ({self.controllers[lost]}) has no external link",
                source=self.source,
                expected="an ExtLink for each controller",
            )
        return GarnetNetwork(
            source=self.source,
            routers=len(self._routers),
            controllers=tuple(self.controllers),
            ext_links=tuple(self._ext[n] for n in range(len(self.controllers))),
            int_links=tuple(self._int.values()),
            router_cycles=next(iter(self._cycles)),
            router_vcs=self._vcs,
        )

    def _cycles_and_weight(self, place: Place) -> tuple[int, int]:
        return (
            _integer(place, "latency", 1, _MOST_CYCLES, default=1),
            _integer(place, "weight", 1, MOST_WEIGHT, default=1),
        )

    def _refuse_others(self, place: Place, kind: str) -> None:
        """Collects the values that change results and have no counterpart."""
        values = place.values
        lost = [key for key in values if key not in _MODELLED[kind]]
        lost += [key for key in _BRIDGES & values.keys() if values[key]]
        if values.get("supported_vnets"):
            lost.append("supported_vnets")
        if values.get("width") not in {None, self.flit_bits, self.flit_bits // 8}:
            lost.append("width")
        self._unsupported += [f"{place.source}: {key} = {values[key]}" for key in sorted(lost)]

    def _refuse_unsupported(self) -> None:
        if len(self._cycles) > 1:
            self._unsupported += [
                f"{place}: router latency = {cycles}" for cycles, place in self._cycles.items()
            ]
        if self._unsupported:
            raise unsupported(self.source, self._unsupported)


def unsupported(source: str, lines: list[str]) -> ConfigError:
    """Returns the error that lists all values without a counterpart."""
    shown = lines[:_LISTED]
    if len(lines) > _LISTED:
        shown.append(f"and {len(lines) - _LISTED} more")
    return mistake(
        "has settings that tutti does not model:\n  " + "\n  ".join(shown),
        source=source,
        expected="routers that differ in vcs_per_vnet only, one clock, one flit width, and links "
        "for all vnets",
        hint="remove them to simulate the network without their effect",
    )


def _integer(place: Place, key: str, least: int, most: int, default: int | None = None) -> int:
    value = place.values.get(key, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        given = "missing" if value is None else str(value)[:60] or "empty"
        raise mistake(f"`{key}` is {given}", source=place.source,
                      expected=f"an integer from {least} to {most:,}")  # fmt: skip
    return value
