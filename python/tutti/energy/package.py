"""Package networks: energy of traffic between chiplets, and area of their routers.

The packet simulator counts bytes over links and bytes that NPUs send, from which follow the bytes
through each router. Energies are per bit, from :mod:`tutti.energy.technology`
(``docs/models/energy.md``).

Examples:
    >>> mesh = packages(4)["mesh"]
    >>> mesh.ports, mesh.width, str(mesh.pitch)
    (5, 128, '5 mm')
    >>> print(f"{mesh.area(64).total_um2.nominal / 1e6:.2f} mm2")
    8.34 mm2
    >>> packages(8)["flattened_butterfly"].width  # the pin count of four links of 128 bits
    37
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field, Strict, field_serializer

from tutti.base.parameters import Parameters
from tutti.base.units import Length, Time
from tutti.energy.errors import EnergyError
from tutti.energy.technology import (
    AreaReport,
    EnergyReport,
    EventCounts,
    Interval,
    NetworkHardware,
    RouterHardware,
    Technology,
    area,
    costs,
    energy,
)

if TYPE_CHECKING:
    from tutti.collectives.result import Run
    from tutti.topologies import Topology

Muxes = Literal["own", "sign", "any"]
_Positive = Annotated[int, Strict(), Field(ge=1, lt=1 << 32)]

_SIDES = 4
"""Ports of a router on a grid, without the local port."""

_MUX_UM2 = 1.33 * 1.4
_LATCH_UM2 = 1.9 * 1.4
CELLS = (
    "NanGate 45 nm open cell library: MUX2_X1 takes 1.33 x 1.4 um, DLH_X1 1.9 x 1.4 um; how the "
    "multiplexers consist of them is inferred"
)

PUBLISHED_UM2 = {
    "crossbar": 17806.0,
    "switch_allocator": 4589.0,
    "vc_allocator": 9066.0,
    "buffers": 98740.0,
    "bypass": 0.3e6 / 64,
}
"""Areas of an ARIES router (Yin et al., ICCAD 2023, section V-D), 45 nm: 64 routers take 8.33 mm2,
and their bypass wires 0.3 mm2, or 3.6 %."""


def scaled_um2(ports: int, width: int) -> float:
    """Returns the published area scaled to other ports and bits by simple scaling.

    The crossbar grows with the square of ports and bits, allocators with the square of ports, and
    buffers with both. The published router is taken to have 128 bits (inferred).
    """
    p, w = ports / 5, width / 128
    allocators = PUBLISHED_UM2["switch_allocator"] + PUBLISHED_UM2["vc_allocator"]
    return (
        PUBLISHED_UM2["crossbar"] * (p * w) ** 2
        + allocators * p**2
        + PUBLISHED_UM2["buffers"] * p * w
    )


def _usual() -> Technology:
    return Technology(router="aries_45nm", link="muchisim_interposer")


@dataclass(frozen=True, kw_only=True)
class PackageTraffic:
    """The traffic of a network, headers included.

    Attributes:
        link_bytes: Bytes over each link of the topology.
        sent_bytes: Bytes sent by all NPUs.
        time: Duration.
        circuit_bytes: Sent bytes that bypass the destination buffer by a circuit; all by default.
    """

    link_bytes: tuple[int, ...]
    sent_bytes: int
    time: Time
    circuit_bytes: int | None = None

    @classmethod
    def of(cls, run: Run) -> PackageTraffic:
        """Returns the traffic of a run, from the first rank's start to the last rank's end.

        Raises:
            EnergyError: The run has no packets.
        """
        packets = run.platform.effective_contention
        if packets.kind != "packet":
            message = "bytes over links are counted where packets queue for them"
            raise EnergyError(message, kind="no_packets")
        sent = run.message_bytes
        if header := packets.header.bytes:
            sizes = run.messages_frame["bytes"].to_list()
            sent += header * sum(max(1, -(-size // packets.size.bytes)) for size in sizes)
        counted = tuple(run.links["bytes"].to_list())
        return cls(link_bytes=counted, sent_bytes=sent, time=Time(ps=run.completion_ps))


class Package(Parameters):
    """Identical routers, one per chiplet, and the links between them.

    Attributes:
        pitch: Chiplet distance on a square grid, row by row; None for the topology's lengths.
        technology: Constants of routers and links.
        on_chip: Constants of the links inside the chiplets of a `chiplet_mesh`; `technology` by
            default.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    ports: _Positive = Field(
        5, description="Inputs of a router, and as many outputs, the local one included."
    )
    width: _Positive = Field(128, description="Bits of a link, of buffers and crossbar.")
    vcs: _Positive = Field(4, description="Virtual channels of an input.")
    vc_flits: _Positive = Field(
        32, description="Flits of each VC's buffer; a flit is as wide as a link."
    )
    pitch: Length | None = Length(um=5000)
    circuit: Annotated[bool, Strict()] = Field(
        False, description="Whether flits for the local port use a circuit and bypass the buffer."
    )
    muxes: Muxes | None = Field(
        None,
        description="Multiplexers of bypass wires, for the area: wires of the `own` axis, of "
        "the same `sign`, or `any`; no bypass wires by default.",
    )
    wires: Annotated[int, Strict()] = Field(
        1, ge=1, le=63, description="Bypass wires in each direction of a row or column."
    )
    cycle: Time = Field(Time(ps=1000), description="Cycle time.")
    technology: Technology = Field(default_factory=_usual)
    on_chip: Technology | None = None

    @field_serializer("technology", "on_chip")
    def _technology_by_name(self, technology: Technology | None) -> str | None:
        return None if technology is None else repr(technology)

    @property
    def router(self) -> RouterHardware:
        """The router."""
        return RouterHardware(
            ports=self.ports,
            vcs=self.vcs,
            buffer_flits=self.vcs * self.vc_flits,
            flit_bits=self.width,
        )

    def check(self, topology: Topology) -> None:
        """Checks that energy and area can be computed on this topology.

        Raises:
            EnergyError: A router parameter is zero, a link has no length or is off the grid, or
                some NPUs are routers and others attach to one, or `on_chip` is given for a
                topology other than a `chiplet_mesh`.
        """
        self.router.core  # noqa: B018 - the core checks it
        self._lengths(topology)
        self._inside(topology)
        _routers(topology)

    def energy(self, topology: Topology, traffic: PackageTraffic) -> EnergyReport:
        """Returns the energy of traffic on links of this package.

        Each bit is charged for its links, and for crossbar, allocation and buffer of each router on
        its path, including those of source and destination. A circuit omits the last buffer. Clock
        and leakage of all routers are charged for the full duration.

        Args:
            topology: The topology.
            traffic: The traffic on it.

        Raises:
            EnergyError: A link has no length or is off the grid, the traffic is of another
                topology, or some NPUs are routers and others attach to one.
        """
        given, expected = len(traffic.link_bytes), len(topology.links)
        if given != expected:
            message = f"traffic of {given} links on a topology of {expected}"
            raise EnergyError(message, kind="wrong_links")
        lengths = self._lengths(topology)
        routers, passed = _passed(topology, traffic)
        direct = 0
        if self.circuit:
            known = traffic.circuit_bytes
            direct = traffic.sent_bytes if known is None else known
        each = costs(self.router, self.technology, lengths=())
        inside = self._inside(topology)
        buffered = each["buffer_write"].plus(each["buffer_read"])
        dynamic = {
            "buffers": self._joules(buffered, passed - direct),
            "crossbar": self._joules(each["crossbar_to_1"], passed),
            "switch_allocator": self._joules(each["switch_allocation"], passed),
            "links": self._of_links(traffic, lengths, inside, False),
        }
        idle = self.idle(routers, traffic.time)
        report = EnergyReport(
            {name: dynamic.get(name, cost) for name, cost in idle.dynamic_by_component.items()},
            idle.leakage_by_component,
        )
        if self.on_chip is None:
            return report
        on_chip = {"on_chip_links": self._of_links(traffic, lengths, inside, True)}
        return report + EnergyReport(on_chip, {"on_chip_links": Interval(0.0, 0.0, 0.0)})

    def _of_links(
        self, traffic: PackageTraffic, lengths: list[int], inside: list[bool], on_chip: bool
    ) -> Interval:
        """Returns the energy of the links inside chiplets, or of all others."""
        technology = self.on_chip if on_chip and self.on_chip else self.technology
        each = costs(self.router, technology, lengths=[Length(um=um) for um in set(lengths)])
        links = Interval(0.0, 0.0, 0.0)
        for um, size, is_inside in zip(lengths, traffic.link_bytes, inside, strict=True):
            if is_inside == on_chip:
                links = links.plus(self._joules(each[f"link of {Length(um=um)}"], size))
        return links

    def _inside(self, topology: Topology) -> list[bool]:
        """Returns whether each link is inside a chiplet; False for all without `on_chip`."""
        if self.on_chip is None:
            return [False] * len(topology.links)
        found = re.match(r"chiplet_mesh:.*tiles=(\d+)x(\d+)", topology.name)
        if found is None:
            message = f"{topology.name} has no links inside chiplets: expected a chiplet_mesh"
            raise EnergyError(message, kind="no_chiplets")
        tiles = int(found[1]) * int(found[2])
        ranks = {vertex.name: vertex.rank or 0 for vertex in topology.vertices}
        return [ranks[one.source] // tiles == ranks[one.target] // tiles for one in topology.links]

    def energy_of(self, run: Run) -> EnergyReport:
        """Returns the energy of a run with packets.

        Raises:
            EnergyError: The run has no packets, or a link has no length or is off the grid.
        """
        traffic = PackageTraffic.of(run)
        routes = run.platform.routes
        assert routes is not None  # noqa: S101 - packets have routes: the platform checks it
        return self.energy(routes.topology, traffic)

    def area_of(self, topology: Topology) -> AreaReport:
        """Returns the area of the routers of a topology.

        Raises:
            EnergyError: A router parameter is zero, or only some NPUs are routers.
        """
        return self.area(len(_routers(topology)))

    def area(self, routers: int) -> AreaReport:
        """Returns the area of a number of routers and of the multiplexers of bypass wires.

        Raises:
            EnergyError: A router parameter is zero.
        """
        network = NetworkHardware(router=self.router, routers=routers, links=(), cycle=self.cycle)
        found = dict(area(network, self.technology).um2_by_component)
        muxes = self.mux_um2 * routers
        return AreaReport({**found, "muxes": Interval(muxes, muxes, muxes)})

    @property
    def mux_um2(self) -> float:
        """Returns the area that bypass wires add to a router; 0 without bypass wires.

        The area consists of multiplexers with two inputs and latches that hold the selection
        (`CELLS`). A port selects its mesh link or a bypass wire; a wire selects an output port that
        can drive it, or its previous segment.
        """
        if self.muxes is None:
            return 0.0
        reached = _SIDES if self.muxes == "any" else _SIDES // 2
        wires = _SIDES * self.wires
        taken, drivers = reached * self.wires, reached
        muxes = self.width * (_SIDES * taken + wires * (drivers - 1))
        selects = _SIDES * _select_bits(1 + taken) + wires * _select_bits(1 + drivers)
        return muxes * _MUX_UM2 + selects * _LATCH_UM2

    def _joules(self, per_flit: Interval, size: int) -> Interval:
        """Returns the energy of `size` bytes from the picojoules per flit."""
        flits = 8 * size / self.width
        return Interval(*(pj * 1e-12 * flits for pj in per_flit))

    def idle(self, routers: int, time: Time) -> EnergyReport:
        """Returns the clock and leakage energy of routers for a duration.

        Raises:
            EnergyError: A router parameter is zero.
        """
        network = NetworkHardware(router=self.router, routers=routers, links=(), cycle=self.cycle)
        return energy(network, EventCounts(cycles=-(-time.ps // self.cycle.ps)), self.technology)

    def _lengths(self, topology: Topology) -> list[int]:
        if self.pitch is not None:
            return [span * self.pitch.um for span in _spans(topology)]
        for link in topology.links:
            if link.length is None:
                message = f"the length of the link from {link.source} to {link.target} is not known"
                raise EnergyError(message, kind="no_length")
        return [link.length.um for link in topology.links if link.length is not None]


def packages(side: int, technology: Technology | None = None) -> dict[str, Package]:
    """Returns the packages of k x k chiplets that Yin et al. 2023 compare, by network.

    Mesh, torus and bypass mesh have routers of 5 ports. The flattened butterfly has one port for
    each router of its row and column; its links are narrowed to the same pin count.

    Args:
        side: Chiplets per side.
        technology: Constants for all packages.
    """
    usual = {"technology": technology or _usual()}
    ports = max(2 * (side - 1), 1)
    width = max(1, round(128 * _SIDES / ports))
    return {
        "mesh": Package(**usual),
        "torus": Package(**usual),
        "flattened_butterfly": Package(ports=ports + 1, width=width, **usual),
        "bypass": Package(circuit=True, muxes="any", **usual),
    }


def technologies() -> dict[str, Technology]:
    """Returns the default technology of a package, and alternatives for sensitivity analysis.

    ``synthesis``: routers of constant power, and wires without transceivers.
    """
    return {
        "usual": _usual(),
        "simba links": Technology(router="aries_45nm", link="simba_package"),
        "grs links": Technology(router="aries_45nm", link="grs_package"),
        "ucie links": Technology(router="aries_45nm", link="ucie_standard"),
        "flip-flop buffers": Technology(router="dsent_45nm", link="muchisim_interposer"),
        "synthesis": Technology(router="synthesis_45nm", link="dsent_45nm"),
    }


def _select_bits(choices: int) -> int:
    return (choices - 1).bit_length()


def _spans(topology: Topology) -> list[int]:
    """Returns the chiplets that each link spans, along rows and columns of a square grid."""
    side = math.isqrt(topology.ranks)
    ranks = {vertex.name: vertex.rank for vertex in topology.vertices}
    spans = []
    for link in topology.links:
        source, target = ranks[link.source], ranks[link.target]
        if source is None or target is None or side * side != topology.ranks:
            ends = f"{link.source} to {link.target}"
            message = f"the link from {ends} is not on a square grid of chiplets"
            raise EnergyError(message, kind="off_grid")
        spans.append(abs(source // side - target // side) + abs(source % side - target % side))
    return spans


def _passed(topology: Topology, traffic: PackageTraffic) -> tuple[int, int]:
    """Returns the number of routers and the total bytes through them."""
    routers = _routers(topology)
    arrived = sum(
        size
        for link, size in zip(topology.links, traffic.link_bytes, strict=True)
        if link.target in routers
    )
    attaches = topology.vertices[0].name not in routers
    return len(routers), arrived + (0 if attaches else traffic.sent_bytes)


def _routers(topology: Topology) -> set[str]:
    """Returns the names of routers: all vertices except NPUs attached by one link pair."""
    kinds = {vertex.name: vertex.kind for vertex in topology.vertices}
    out: dict[str, list[str]] = {name: [] for name in kinds}
    into: dict[str, list[str]] = {name: [] for name in kinds}
    for link in topology.links:
        out[link.source].append(link.target)
        into[link.target].append(link.source)

    def attaches(name: str) -> bool:
        ends = out[name]
        return len(ends) == 1 and into[name] == ends and kinds[ends[0]] != "npu"

    npus = [name for name, kind in kinds.items() if kind == "npu"]
    attached = {name for name in npus if attaches(name)}
    if attached and len(attached) < len(npus):
        message = f"NPU {min(attached)} attaches to a router, but other NPUs are routers"
        raise EnergyError(message, kind="mixed_ends")
    return set(kinds) - attached
