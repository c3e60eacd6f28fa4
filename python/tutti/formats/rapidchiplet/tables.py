"""The tables of RapidChiplet's input files (JSON).

Source: RapidChiplet 66e63e5, `rapidchiplet.py`, `validation.py`, `inputs/`. Lengths are in mm,
latencies in cycles, power in W.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tutti.base.files.tables import Table

MOST_CYCLES = 1 << 16
"""The longest latency of a router, a PHY or a link."""
_MOST_MM = 1e5
_LEAST_PITCH_MM = 1e-5
"""10 nm, far below hybrid bonding."""


class Point(Table):
    """A position or a size, in mm."""

    x: float = Field(ge=-_MOST_MM, le=_MOST_MM)
    y: float = Field(ge=-_MOST_MM, le=_MOST_MM)


class Phy(Table):
    """A PHY of a chiplet, at the end of a link."""

    x: float = Field(ge=-_MOST_MM, le=_MOST_MM)
    y: float = Field(ge=-_MOST_MM, le=_MOST_MM)
    fraction_bump_area: float = Field(ge=0, le=1)


class Chiplet(Table):
    """A type of chiplet."""

    dimensions: Point
    phys: list[Phy]
    fraction_power_bumps: float = Field(ge=0, le=1)
    technology: str
    relay: bool
    internal_latency: float = Field(gt=0, le=MOST_CYCLES)
    unit_count: int = Field(ge=1, le=1 << 12)
    power: float = Field(default=0.0, ge=0)
    type: str = ""


class Technology(Table):
    """A technology of chiplets or interposers; its cost has no effect here."""

    phy_latency: float = Field(ge=0, le=MOST_CYCLES)
    wafer_radius: float | None = None
    wafer_cost: float | None = None
    defect_density: float | None = None


class PlacedChiplet(Table):
    """A chiplet of a package; its number is its place in the list."""

    position: Point
    rotation: Literal[0, 90, 180, 270]
    name: str


class InterposerRouter(Table):
    """A router on the interposer."""

    position: Point
    ports: int = Field(ge=0, le=1 << 16)


class Placement(Table):
    """Where chiplets and interposer routers are."""

    chiplets: list[PlacedChiplet] = Field(min_length=1, max_length=1 << 12)
    interposer_routers: list[InterposerRouter] = Field(default_factory=list, max_length=1 << 12)


class End(Table):
    """An end of a link: a PHY of a chiplet, or a port of an interposer router."""

    type: Literal["chiplet", "irouter"]
    outer_id: int = Field(ge=0)
    inner_id: int = Field(ge=0)


class Link(Table):
    """A link, in both directions."""

    ep1: End
    ep2: End
    color: str = ""


class Topology(Table):
    """The links of a package."""

    links: list[Link] = Field(max_length=1 << 16)


class Packaging(Table):
    """The package: how links run, and how long they take."""

    link_routing: Literal["manhattan", "euclidean"]
    link_latency_type: Literal["constant", "function"]
    link_latency: float | str
    link_power_type: Literal["constant", "function"] = "constant"
    link_power: float | str = 0.0
    bump_pitch: float = Field(ge=_LEAST_PITCH_MM, le=_MOST_MM)
    non_data_wires: float = Field(ge=0)
    is_active: bool = False
    latency_irouter: float | None = Field(default=None, ge=0, le=MOST_CYCLES)
    power_irouter: float | None = Field(default=None, ge=0)
    packaging_yield: float | None = None
    has_interposer: bool = False
    interposer_technology: str | None = None


class TracePacket(Table):
    """A packet of a trace."""

    id: int = Field(ge=0, lt=1 << 53)
    injection_cycle: int = Field(ge=0, lt=1 << 39)
    source_chiplet: int = Field(ge=0)
    source_unit: int = Field(ge=0)
    destination_chiplet: int = Field(ge=0)
    destination_unit: int = Field(ge=0)
    size_in_flits: int = Field(ge=1, le=1 << 24)
    reverse_dependencies: list[int]


class Trace(Table):
    """The packets of a trace."""

    packets: list[TracePacket] = Field(min_length=1, max_length=1_000_000)


class Design(Table):
    """The files of a design, relative to the folder of RapidChiplet."""

    design_name: str = ""
    technologies: str
    chiplets: str
    placement: str
    topology: str
    packaging: str
    routing_table: str
    traffic_by_unit: str = "none"
    traffic_by_chiplet: str = "none"
    trace: str = "none"
    booksim_config: str = "none"


NOT_HONOURED = {
    Technology: ("wafer_radius", "wafer_cost", "defect_density"),
    Packaging: ("packaging_yield", "has_interposer", "interposer_technology"),
}
"""Keys of manufacturing cost."""
