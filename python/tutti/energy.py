"""Energy and area of a network of routers: counted events times what each costs.

The counts come from a simulation or from a formula; the constants from a technology, each with its
source and its bounds, and any of them can be replaced.

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
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, Strict

from tutti import _core
from tutti.parameters import Parameters
from tutti.units import Length, Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl
    from rich.table import Table

__all__ = [
    "AreaReport",
    "Constant",
    "EnergyReport",
    "EventCounts",
    "Interval",
    "LinkHardware",
    "NetworkHardware",
    "RouterHardware",
    "Technology",
    "TechnologyEntry",
    "area",
    "costs",
    "energy",
    "technologies",
]

_Bounds = tuple[float, float, float]
Count = Annotated[int, Strict(), Field(ge=0, lt=1 << 64)]
Number = Annotated[int, Strict(), Field(ge=0, lt=1 << 32)]


class Interval(NamedTuple):
    """A value between the bounds that its sources leave it, as if all of them erred alike."""

    low: float
    nominal: float
    high: float

    def plus(self, other: Interval) -> Interval:
        """Both together."""
        return Interval(self.low + other.low, self.nominal + other.nominal, self.high + other.high)


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """A line of the registries of technologies.

    Attributes:
        part: ``router`` or ``link``.
        name: what `Technology` calls it.
        summary: one sentence.
    """

    part: str
    name: str
    summary: str


def technologies() -> list[TechnologyEntry]:
    """Every technology of routers, then of links."""
    return [TechnologyEntry(*entry) for entry in _core.technologies()]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a technology.

    Attributes:
        name: ends in its unit.
        part: ``router`` or ``link``.
        meaning: what it costs, and for what.
        value: in the unit of its name.
        low_factor: the lower bound, as a part of the value.
        high_factor: the upper bound, as a multiple of the value.
        source: paper and table, or tool with version and configuration.
        inferred: whether it was concluded, not read from its source.
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
    """What routers and links cost, each by one of `technologies`."""

    __hash__ = None  # type: ignore[assignment] # constants are compared, not looked up

    def __init__(self, *, router: str, link: str) -> None:
        """Takes the constants of two technologies.

        Raises:
            EnergyError: there is no technology of that name.
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
        """The same with another value of a constant.

        Args:
            name: of the constant, as in `constants`.
            value: in the unit of the name.
            source: where it is from.
            low_factor: the lower bound, as a part of the value.
            high_factor: the upper bound, as a multiple of the value.

        Raises:
            EnergyError: there is no such constant, or it cannot have this value, bounds or source.
        """
        other = object.__new__(Technology)
        other._core = self._core.with_value(
            name, value, source=source, low_factor=low_factor, high_factor=high_factor
        )
        return other

    @property
    def router(self) -> str:
        """The name of the routers' technology."""
        return self._core.router

    @property
    def link(self) -> str:
        """The name of the links' technology."""
        return self._core.link

    @property
    def constants(self) -> dict[str, Constant]:
        """Every constant by its name."""
        return {row[0]: Constant(*row) for row in self._core.constants()}

    @property
    def core(self) -> _core.Technology:
        """The core's constants."""
        return self._core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Technology) and self._core == other._core

    def __reduce__(self) -> tuple[object, ...]:
        """For copies and other processes: the two names, and the constants that were replaced."""
        usual = {row[0]: row for row in _core.Technology(self.router, self.link).constants()}
        other = [row for row in self._core.constants() if row != usual[row[0]]]
        return _again, (self.router, self.link, other)

    def __repr__(self) -> str:
        return f"Technology(router={self.router!r}, link={self.link!r})"


def _again(router: str, link: str, constants: list[tuple[Any, ...]]) -> Technology:
    """A technology with constants replaced, as it was."""
    made = Technology(router=router, link=link)
    for name, _, _, value, low_factor, high_factor, source, _ in constants:
        made = made.with_value(
            name, value, source=source, low_factor=low_factor, high_factor=high_factor
        )
    return made


class RouterHardware(Parameters):
    """A router, as far as energy and area depend on it.

    Attributes:
        ports: inputs, and as many outputs, the local ones included.
        vcs: virtual channels of an input port.
        buffer_flits: flits that an input port has room for, all its VCs together.
        flit_bits: bits of a flit: the width of buffers, crossbar and links.
    """

    ports: Number
    vcs: Number
    buffer_flits: Number
    flit_bits: Number

    @property
    def core(self) -> _core.RouterHardware:
        """The core's router.

        Raises:
            EnergyError: one of the numbers is zero.
        """
        return _core.RouterHardware(**dict(self))


class LinkHardware(Parameters):
    """Links of equal length, each in one direction and as wide as a flit."""

    length: Length
    count: Number


class NetworkHardware(Parameters):
    """Equal routers and the links between them; reports of several networks can be added.

    Attributes:
        router: what each router is.
        routers: how many there are.
        links: in groups of equal length.
        cycle: the time of a clock cycle.
    """

    router: RouterHardware
    routers: Number
    links: tuple[LinkHardware, ...] = ()
    cycle: Time

    @property
    def core(self) -> _core.NetworkHardware:
        """The core's network.

        Raises:
            EnergyError: the router lacks something, or a cycle takes no time.
        """
        return _core.NetworkHardware(
            router=self.router.core,
            routers=self.routers,
            links=[(group.length.um, group.count) for group in self.links],
            cycle_ps=self.cycle.ps,
        )


class EventCounts(Parameters):
    """Counts over a window of cycles, all routers and links of a network together.

    Attributes:
        cycles: clock cycles of the window, in which everything leaks.
        buffer_writes: flits written into input buffers.
        buffer_reads: flits read from input buffers.
        crossbar_traversals: flits through a crossbar to one output, to two at once, and so on.
        vc_allocations: packets that were given a VC downstream.
        switch_allocations: flits that were given a crossbar's output.
        link_flits: flits that crossed a link, for each group of links of the network.
        signal_bit_um: control signals on wires of their own: bits times micrometres.
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
        """The core's counts."""
        return _core.EventCounts(**dict(self))

    def __add__(self, other: EventCounts) -> EventCounts:
        """The events of two windows on one network.

        Raises:
            EnergyError: they count flits on different links, or a sum is too large.
        """
        counts = self.core.plus(other.core)
        return EventCounts(**dict(zip(type(self).model_fields, counts, strict=True)))


@dataclass(frozen=True, slots=True)
class EnergyReport:
    """What a window cost, in joules, by component.

    Attributes:
        dynamic_by_component: what the events cost.
        leakage_by_component: what leaked in the window's time.
    """

    dynamic_by_component: Mapping[str, Interval]
    leakage_by_component: Mapping[str, Interval]

    @classmethod
    def of_core(cls, rows: Iterable[tuple[str, _Bounds, _Bounds]]) -> EnergyReport:
        """The report of the core's rows: component, dynamic and leakage."""
        parts = {name: (Interval(*dynamic), Interval(*leakage)) for name, dynamic, leakage in rows}
        dynamic, leakage = ({name: part[at] for name, part in parts.items()} for at in (0, 1))
        return cls(dynamic, leakage)

    @property
    def dynamic(self) -> Interval:
        """Of all components."""
        return _sum(self.dynamic_by_component.values())

    @property
    def leakage(self) -> Interval:
        """Of all components."""
        return _sum(self.leakage_by_component.values())

    @property
    def total(self) -> Interval:
        """Everything."""
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
        """The same for people, with the share of each component."""
        rows = [*self.frame.iter_rows()]
        dynamic, leakage, both = self.dynamic, self.leakage, self.total
        rows.append(("total", dynamic.nominal, leakage.nominal, both.nominal, both.low, both.high))
        table = _table("dynamic", "leakage", "total", "between", "share")
        for name, *parts, low, high in rows:
            share = f"{parts[2] / both.nominal:.0%}" if both.nominal else "-"
            between = f"{_joules(low)} .. {_joules(high)}"
            table.add_row(name, *(_joules(part) for part in parts), between, share)
        return table

    def __add__(self, other: EnergyReport) -> EnergyReport:
        """Two windows of a network, or two networks side by side."""
        return EnergyReport(
            _both(self.dynamic_by_component, other.dynamic_by_component),
            _both(self.leakage_by_component, other.leakage_by_component),
        )


@dataclass(frozen=True, slots=True)
class AreaReport:
    """What a network takes up, in square micrometres, by component."""

    um2_by_component: Mapping[str, Interval]

    @property
    def total_um2(self) -> Interval:
        """Everything."""
        return _sum(self.um2_by_component.values())

    @property
    def frame(self) -> pl.DataFrame:
        """A row per component: its area and the bounds of it, in square micrometres."""
        import polars as pl

        rows = [
            (name, um2.nominal, um2.low, um2.high) for name, um2 in self.um2_by_component.items()
        ]
        columns = ["component", "area_um2", "low_um2", "high_um2"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def table(self) -> Table:
        """The same for people, with the share of each component."""
        total = self.total_um2
        table = _table("area", "between", "share")
        for name, um2 in (*self.um2_by_component.items(), ("total", total)):
            share = f"{um2.nominal / total.nominal:.0%}" if total.nominal else "-"
            low, nominal, high = (f"{value / 1e6:.4g} mm2" for value in um2)
            table.add_row(name, nominal, f"{low} .. {high}", share)
        return table

    def __add__(self, other: AreaReport) -> AreaReport:
        """Two networks side by side."""
        return AreaReport(_both(self.um2_by_component, other.um2_by_component))


def energy(network: NetworkHardware, events: EventCounts, technology: Technology) -> EnergyReport:
    """What the events of a window on a network cost.

    Raises:
        EnergyError: the events do not fit the network, or the network cannot be.
    """
    return EnergyReport.of_core(network.core.energy(events.core, technology.core))


def area(network: NetworkHardware, technology: Technology) -> AreaReport:
    """What a network takes up.

    Raises:
        EnergyError: the network cannot be.
    """
    rows = network.core.area(technology.core)
    return AreaReport({name: Interval(*um2) for name, um2 in rows})


def costs(
    router: RouterHardware, technology: Technology, *, lengths: Iterable[str | Length] = ()
) -> dict[str, Interval]:
    """What each event costs on a router, in picojoules.

    Args:
        router: the kind of router.
        technology: what routers and links cost.
        lengths: of links, whose cost is added for a flit each.

    Raises:
        EnergyError: the router cannot be.
        UnitError: a length cannot be read.
    """
    read = [Length.parse(length) if isinstance(length, str) else length for length in lengths]
    rows = router.core.costs(technology.core, [length.um for length in read])
    return {name: Interval(*pj) for name, pj in rows}


def _sum(intervals: Iterable[Interval]) -> Interval:
    total = Interval(0.0, 0.0, 0.0)
    for interval in intervals:
        total = total.plus(interval)
    return total


def _both(one: Mapping[str, Interval], other: Mapping[str, Interval]) -> dict[str, Interval]:
    """Of each component that either has."""
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


def _joules(joules: float) -> str:
    """Three digits in a fitting unit."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ")):
        if joules >= scale:
            return f"{joules / scale:.3g} {unit}"
    return f"{joules / 1e-12:.3g} pJ"
