"""Energy and area of a network of routers: event counts times energy per event.

The counts come from a simulation or a formula, the constants from a technology. Each constant has a
source and bounds and can be replaced.

Examples:
    >>> router = RouterHardware(ports=5, vcs=4, buffer_flits=12, flit_bits=128)
    >>> mesh = NetworkHardware(
    ...     router=router, routers=64, links=[LinkHardware(length="1 mm", count=224)], cycle="1 ns"
    ... )
    >>> hop = EventCounts(
    ...     buffer_writes=1,
    ...     buffer_reads=1,
    ...     crossbar_traversals=[1],
    ...     switch_allocations=1,
    ...     link_flits=[1],
    ... )
    >>> report = energy(mesh, hop, Technology(router="dsent_45nm", link="dsent_45nm"))
    >>> print(f"{report.dynamic.nominal * 1e12:.1f} pJ")
    14.8 pJ
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field, Strict

from tutti import _core
from tutti.base.parameters import Parameters
from tutti.base.units import Length, Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl
    from rich.table import Table

Count = Annotated[int, Strict(), Field(ge=0, lt=1 << 64)]
Number = Annotated[int, Strict(), Field(ge=0, lt=1 << 32)]


class Interval(NamedTuple):
    """A value with the bounds of its sources, as if all errors had the same direction."""

    low: float
    nominal: float
    high: float

    @classmethod
    def of_core(cls, value: _core.Bounded) -> Interval:
        """Converts a value of the core."""
        return cls(value.low, value.nominal, value.high)

    def plus(self, other: Interval) -> Interval:
        """Returns the sum."""
        return Interval(self.low + other.low, self.nominal + other.nominal, self.high + other.high)


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """An entry of the registries of technologies.

    Attributes:
        part: ``router`` or ``link``.
        name: The name for `Technology`.
        summary: A summary of one sentence.
    """

    part: str
    name: str
    summary: str


def technologies() -> list[TechnologyEntry]:
    """Returns every technology of routers, then of links."""
    return [
        TechnologyEntry(entry.part, entry.name, entry.summary) for entry in _core.technologies()
    ]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a technology.

    Attributes:
        name: Name with unit.
        part: ``router`` or ``link``.
        meaning: What it describes.
        value: Value.
        low_factor: Lower bound as a factor.
        high_factor: Upper bound as a factor.
        source: Origin.
        inferred: Whether the value is inferred.
    """

    name: str
    part: str
    meaning: str
    value: float
    low_factor: float
    high_factor: float
    source: str
    inferred: bool


class Technology:
    """The constants of a router technology and a link technology of `technologies`."""

    __hash__ = None  # type: ignore[assignment] # constants are compared, not looked up

    def __init__(self, *, router: str, link: str) -> None:
        """Combines two technologies.

        Raises:
            EnergyError: A name is unknown.
        """
        self._core = _core.Technology(router, link)

    def with_value(
        self,
        name: str,
        value: float,
        *,
        source: str,
        low_factor: float = 1.0,
        high_factor: float = 1.0,
    ) -> Technology:
        """Returns the technology with another value of a constant.

        Args:
            name: Name of the constant, as in `constants`.
            value: Value in the unit of the name.
            source: Origin of the value.
            low_factor: Lower bound as a factor.
            high_factor: Upper bound as a factor.

        Raises:
            EnergyError: The name is unknown, or value, bounds or source are invalid.
        """
        other = object.__new__(Technology)
        other._core = self._core.with_value(
            name, value, source=source, low_factor=low_factor, high_factor=high_factor
        )
        return other

    @property
    def router(self) -> str:
        """The name of the router technology."""
        return self._core.router

    @property
    def link(self) -> str:
        """The name of the link technology."""
        return self._core.link

    @property
    def constants(self) -> dict[str, Constant]:
        """Every constant by name."""
        return {
            each.name: Constant(
                name=each.name,
                part=each.part,
                meaning=each.meaning,
                value=each.value,
                low_factor=each.low_factor,
                high_factor=each.high_factor,
                source=each.source,
                inferred=each.inferred,
            )
            for each in self._core.constants()
        }

    @property
    def core(self) -> _core.Technology:
        """The constants of the core."""
        return self._core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Technology) and self._core == other._core

    def __reduce__(self) -> tuple[object, ...]:
        """Supports copies and other processes: both names and the replaced constants."""
        usual = Technology(router=self.router, link=self.link).constants
        replaced = [each for each in self.constants.values() if each != usual[each.name]]
        return _again, (self.router, self.link, replaced)

    def __repr__(self) -> str:
        return f"Technology(router={self.router!r}, link={self.link!r})"


def _again(router: str, link: str, constants: list[Constant]) -> Technology:
    """Returns a technology with replaced constants."""
    made = Technology(router=router, link=link)
    for each in constants:
        made = made.with_value(
            each.name,
            each.value,
            source=each.source,
            low_factor=each.low_factor,
            high_factor=each.high_factor,
        )
    return made


class RouterHardware(Parameters):
    """A router, with the parameters that determine energy and area.

    Attributes:
        ports: Inputs, and as many outputs, including local ones.
        vcs: VCs of an input port.
        buffer_flits: Buffer size of an input port in flits, for all VCs.
        flit_bits: Width of a flit, buffers, crossbar and links.
    """

    ports: Number
    vcs: Number
    buffer_flits: Number
    flit_bits: Number

    @property
    def core(self) -> _core.RouterHardware:
        """The router of the core.

        Raises:
            EnergyError: A parameter is zero.
        """
        return _core.RouterHardware(**dict(self))


class LinkHardware(Parameters):
    """Links of equal length, each in one direction and as wide as a flit."""

    length: Length
    count: Number


class NetworkHardware(Parameters):
    """Identical routers and the links between them; reports of several networks can be added.

    Attributes:
        router: The router.
        routers: Number of routers.
        links: Links in groups of equal length.
        cycle: Cycle time.
    """

    router: RouterHardware
    routers: Number
    links: tuple[LinkHardware, ...] = ()
    cycle: Time

    @property
    def core(self) -> _core.NetworkHardware:
        """The network of the core.

        Raises:
            EnergyError: A router parameter or the cycle time is zero.
        """
        return _core.NetworkHardware(
            router=self.router.core,
            routers=self.routers,
            links=[(group.length.um, group.count) for group in self.links],
            cycle_ps=self.cycle.ps,
        )


class EventCounts(Parameters):
    """Event counts of a window over all routers and links of a network.

    Attributes:
        cycles: Clock cycles of the window.
        buffer_writes: Flits written.
        buffer_reads: Flits read.
        crossbar_traversals: Flits to one output, to two, and so on.
        vc_allocations: Packets.
        switch_allocations: Flits.
        link_flits: Flits per group of links.
        signal_bit_um: Control signals, bits times micrometres.
    """

    cycles: Count = 0
    buffer_writes: Count = 0
    buffer_reads: Count = 0
    crossbar_traversals: tuple[Count, ...] = ()
    vc_allocations: Count = 0
    switch_allocations: Count = 0
    link_flits: tuple[Count, ...] = ()
    signal_bit_um: Count = 0

    @property
    def core(self) -> _core.EventCounts:
        """The counts of the core."""
        return _core.EventCounts(**dict(self))

    def __add__(self, other: EventCounts) -> EventCounts:
        """Returns the events of two windows on one network.

        Raises:
            EnergyError: The link groups differ, or a sum exceeds 64 bits.
        """
        total = self.core.plus(other.core)
        return EventCounts(**{name: getattr(total, name) for name in type(self).model_fields})


@dataclass(frozen=True, slots=True)
class EnergyReport:
    """The energy of a window in joules, by component.

    Attributes:
        dynamic_by_component: Energy of events.
        leakage_by_component: Leakage energy of the window.
    """

    dynamic_by_component: Mapping[str, Interval]
    leakage_by_component: Mapping[str, Interval]

    @classmethod
    def of_core(cls, components: Sequence[_core.ComponentEnergy]) -> EnergyReport:
        """Returns the report of the core's components."""
        return cls(
            {each.name: Interval.of_core(each.dynamic) for each in components},
            {each.name: Interval.of_core(each.leakage) for each in components},
        )

    @property
    def dynamic(self) -> Interval:
        """The dynamic energy of all components."""
        return _sum(self.dynamic_by_component.values())

    @property
    def leakage(self) -> Interval:
        """The leakage energy of all components."""
        return _sum(self.leakage_by_component.values())

    @property
    def total(self) -> Interval:
        """The total energy."""
        return self.dynamic.plus(self.leakage)

    @property
    def frame(self) -> pl.DataFrame:
        """A row per component: dynamic, leakage and their sum in joules, and the sum's bounds."""
        import polars as pl

        rows = []
        for name, dynamic in self.dynamic_by_component.items():
            leakage = self.leakage_by_component[name]
            both = dynamic.plus(leakage)
            rows.append((name, dynamic.nominal, leakage.nominal, both.nominal, both.low, both.high))
        columns = ["component", "dynamic_j", "leakage_j", "total_j", "low_j", "high_j"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def table(self) -> Table:
        """Returns a table for the terminal, with the share of each component."""
        from tutti.view.quantity import format_energy

        rows = [*self.frame.iter_rows()]
        dynamic, leakage, both = self.dynamic, self.leakage, self.total
        rows.append(("total", dynamic.nominal, leakage.nominal, both.nominal, both.low, both.high))
        table = _table("dynamic", "leakage", "total", "between", "share")
        for name, *parts, low, high in rows:
            share = f"{parts[2] / both.nominal:.0%}" if both.nominal else "-"
            between = f"{format_energy(low)} .. {format_energy(high)}"
            table.add_row(name, *(format_energy(part) for part in parts), between, share)
        return table

    def __add__(self, other: EnergyReport) -> EnergyReport:
        """Adds two windows of a network, or two networks."""
        return EnergyReport(
            _both(self.dynamic_by_component, other.dynamic_by_component),
            _both(self.leakage_by_component, other.leakage_by_component),
        )


@dataclass(frozen=True, slots=True)
class AreaReport:
    """The area of a network in square micrometres, by component."""

    um2_by_component: Mapping[str, Interval]

    @property
    def total_um2(self) -> Interval:
        """The total area."""
        return _sum(self.um2_by_component.values())

    @property
    def frame(self) -> pl.DataFrame:
        """A row per component: area and bounds in square micrometres."""
        import polars as pl

        rows = [
            (name, um2.nominal, um2.low, um2.high) for name, um2 in self.um2_by_component.items()
        ]
        columns = ["component", "area_um2", "low_um2", "high_um2"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def table(self) -> Table:
        """Returns a table for the terminal, with the share of each component."""
        total = self.total_um2
        table = _table("area", "between", "share")
        for name, um2 in (*self.um2_by_component.items(), ("total", total)):
            share = f"{um2.nominal / total.nominal:.0%}" if total.nominal else "-"
            low, nominal, high = (f"{value / 1e6:.4g} mm2" for value in um2)
            table.add_row(name, nominal, f"{low} .. {high}", share)
        return table

    def __add__(self, other: AreaReport) -> AreaReport:
        """Adds two networks."""
        return AreaReport(_both(self.um2_by_component, other.um2_by_component))


def energy(network: NetworkHardware, events: EventCounts, technology: Technology) -> EnergyReport:
    """Returns the energy of the events of a window on a network.

    Raises:
        EnergyError: The network is invalid, or the events do not fit it.
    """
    return EnergyReport.of_core(network.core.energy(events.core, technology.core))


def area(network: NetworkHardware, technology: Technology) -> AreaReport:
    """Returns the area of a network.

    Raises:
        EnergyError: The network is invalid.
    """
    rows = network.core.area(technology.core)
    return AreaReport({name: Interval.of_core(um2) for name, um2 in rows})


def costs(
    router: RouterHardware, technology: Technology, *, lengths: Iterable[str | Length] = ()
) -> dict[str, Interval]:
    """Returns the energy of each event on a router, in picojoules.

    Args:
        router: The router.
        technology: The constants.
        lengths: Link lengths; the energy of a flit over each is added.

    Raises:
        EnergyError: The router is invalid.
        UnitError: A length cannot be parsed.
    """
    read = [Length.parse(length) if isinstance(length, str) else length for length in lengths]
    rows = router.core.costs(technology.core, [length.um for length in read])
    return {name: Interval.of_core(pj) for name, pj in rows}


def _sum(intervals: Iterable[Interval]) -> Interval:
    total = Interval(0.0, 0.0, 0.0)
    for interval in intervals:
        total = total.plus(interval)
    return total


def _both(one: Mapping[str, Interval], other: Mapping[str, Interval]) -> dict[str, Interval]:
    """Adds the components of both."""
    nothing = Interval(0.0, 0.0, 0.0)
    names = {**one, **other}
    return {name: one.get(name, nothing).plus(other.get(name, nothing)) for name in names}


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table()
    table.add_column("component")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
