"""Event counts of a network's channels, and their energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tutti.energy.errors import EnergyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    import tutti.energy.technology
    from tutti import _core
    from tutti.energy.link_classes import ClassTechnologies, Technologies
    from tutti.networks.flit.network import Network

Report = TypeVar("Report", "tutti.energy.EnergyReport", "tutti.energy.AreaReport")


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Event counts of the measurement window, for energy models; counted when flits are sent.

    Attributes:
        buffer_writes: Flits written to router buffers.
        buffer_reads: Flits read from router buffers.
        crossbar_traversals: Flits through a crossbar.
        vc_grants: VCs allocated by routers to packets that arrived in the window.
        link_flits: Flits sent between routers.
        link_flit_mm: Sum of link length in mm over `link_flits`; `None` if a length is unknown.
    """

    buffer_writes: int
    buffer_reads: int
    crossbar_traversals: int
    vc_grants: int
    link_flits: int
    link_flit_mm: float | None


def kind_of(channel: _core.FlitChannel) -> str:
    """Returns whether a channel is an injection channel, a link or an ejection channel."""
    if not channel.source.is_router:
        return "injection"
    return "link" if channel.target.is_router else "ejection"


class Sent(NamedTuple):
    """The flits of a channel in the window: a row of `NocRun.channels`.

    Attributes:
        kind: `injection`, `link` or `ejection`.
        source: The name of its source.
        target: The name of its target.
        flits: Flits sent.
        utilisation: The share of the window in which it sends, 0 to 1.
        latency: Cycles.
        cycles_per_flit: At least 1.
        length_um: The length; None if it is unknown.
    """

    kind: str
    source: str
    target: str
    flits: int
    utilisation: float
    latency: int
    cycles_per_flit: float
    length_um: int | None


def sent_by_channel(made: _core.FlitNetwork, sent: bytes, *, cycle: int, window: int) -> list[Sent]:
    """Returns the flits of each channel.

    Args:
        made: The core's network.
        sent: Flits over each channel, as little-endian 64-bit integers.
        cycle: Cycle time of the network, in ps.
        window: Cycles of the measurement window.
    """
    ends = (made.node_names(), made.router_names())
    rows = []
    flits_sent = memoryview(sent).cast("Q")
    for channel, flits in zip(made.channels(), flits_sent, strict=True):
        a, b = channel.source, channel.target
        kind = kind_of(channel)
        source, target = (ends[end.is_router][end.number] for end in (a, b))
        each = max(channel.flit_time_ps / cycle, 1.0)
        busy = flits * each / window if window else 0.0
        parameters = channel.latency, each, channel.length_um
        rows.append(Sent(kind, source, target, flits, busy, *parameters))
    return rows


def channel_frame(channels: Sequence[Sent]) -> pl.DataFrame:
    """Returns a row per channel, with the fields of `Sent` as columns."""
    import polars as pl

    types = (pl.String, pl.String, pl.String, pl.UInt64, pl.Float64, pl.UInt32, pl.Float64,
             pl.UInt64)  # fmt: skip
    schema = dict(zip(Sent._fields, types, strict=True))
    return pl.DataFrame(channels, schema=schema, orient="row")


def busiest_first(channels: Sequence[Sent]) -> list[Sent]:
    """Returns the channels by descending utilisation, and equal ones in their order."""
    return sorted(channels, key=lambda channel: -channel.utilisation)


def events_of(channels: Sequence[Sent], vc_grants: int) -> Events:
    """Returns the event counts that follow from the flits of each channel."""
    by_kind = dict.fromkeys(("injection", "link", "ejection"), 0)
    for channel in channels:
        by_kind[channel.kind] += channel.flits
    into, between, out = by_kind.values()
    links = [channel for channel in channels if channel.kind == "link"]
    lengths = [(link.flits, link.length_um) for link in links if link.length_um is not None]
    mm = sum(flits * length for flits, length in lengths) / 1000
    return Events(
        buffer_writes=into + between,
        buffer_reads=between + out,
        crossbar_traversals=between + out,
        vc_grants=vc_grants,
        link_flits=between,
        link_flit_mm=mm if len(lengths) == len(links) else None,
    )


@dataclass(frozen=True)
class Powered:
    """The hardware and event counts of a network, for energy and area models.

    Routers with the same number of ports, the same buffers and the same period form a group. A link
    belongs to the router that drives it, or to the receiving router if an NPU drives it. VC grants
    are known in total only, and are distributed over routers in proportion to the flits sent.

    Attributes:
        network: The network.
        made: The core's network.
        channels: The flits of each channel.
        cycles: Cycles of the measurement window.
        vc_grants: VCs allocated by all routers.
    """

    network: Network
    made: _core.FlitNetwork
    channels: Sequence[Sent]
    cycles: int
    vc_grants: int

    def energy(self, technology: Technologies) -> tutti.energy.EnergyReport:
        """Returns the dynamic and leakage energy.

        Args:
            technology: One technology, or one per link class, each of which is a component then.

        Raises:
            EnergyError: A link has no length, or its class no technology.
        """
        from tutti.energy.link_classes import energy_of_class, energy_of_routers
        from tutti.energy.technology import Technology, energy

        if isinstance(technology, Technology):
            return _sum([energy(*group, technology) for group in self._groups()])
        routers = [energy(*group, technology.routers) for group in self._groups()]
        reports = [energy_of_routers(_sum(routers))]
        for name in self._classes(technology):
            chosen = [energy(*group, technology.links[name]) for group in self._groups(name)]
            reports.append(energy_of_class(_sum(chosen), name))
        return _sum(reports)

    def area(self, technology: Technologies) -> tutti.energy.AreaReport:
        """Returns the area of routers and links.

        Args:
            technology: As for `energy`.

        Raises:
            EnergyError: A link has no length, or its class no technology.
        """
        from tutti.energy.link_classes import area_of_class, area_of_routers
        from tutti.energy.technology import Technology, area

        if isinstance(technology, Technology):
            return _sum([area(network, technology) for network, _ in self._groups()])
        routers = [area(network, technology.routers) for network, _ in self._groups()]
        reports = [area_of_routers(_sum(routers))]
        for name in self._classes(technology):
            chosen = [area(network, technology.links[name]) for network, _ in self._groups(name)]
            reports.append(area_of_class(_sum(chosen), name))
        return _sum(reports)

    def _classes(self, technology: ClassTechnologies) -> list[str]:
        """Returns the classes of the links, each of which has a technology."""
        names = list(dict.fromkeys(self._class_of_links.values()))
        for name in names:
            if name not in technology.links:
                message = f"the links of class `{name}` have no technology"
                raise EnergyError(message, kind="no_technology")
        return names

    @cached_property
    def _class_of_links(self) -> dict[tuple[str, str], str]:
        from tutti.topologies.classes import class_of_links

        return class_of_links(self.network.topology)

    def _groups(
        self, name: str | None = None
    ) -> Iterator[tuple[tutti.energy.NetworkHardware, tutti.energy.EventCounts]]:
        """Yields the hardware and event counts of each group of routers with their links.

        Args:
            name: The class of the links; None for all.
        """
        from tutti.base.units import Length, Time
        from tutti.energy.technology import EventCounts, LinkHardware, NetworkHardware

        groups = self._by_hardware()
        sent = [sum(router.out for router in group) for group in groups.values()]
        grants = _distribute(self.vc_grants, sent)
        for (key, group), out, granted in zip(groups.items(), sent, grants, strict=True):
            *hardware, period = key
            by_length: dict[int, list[int]] = {}
            for one in group:
                for length, count, ends in one.wires:
                    if name is None or self._class_of_links.get(ends) == name:
                        by_length.setdefault(length, []).append(count)
            links = tuple(
                LinkHardware(length=Length(um=um), count=len(flits))
                for um, flits in by_length.items()
            )
            network = NetworkHardware(
                router=self._router(*hardware),
                routers=len(group),
                links=links,
                cycle=Time(ps=period),
            )
            events = EventCounts(
                cycles=round(self.cycles * self.network.cycle_ps / period),
                buffer_writes=sum(router.into for router in group),
                buffer_reads=out,
                crossbar_traversals=(out,),
                vc_allocations=granted,
                switch_allocations=out,
                link_flits=tuple(sum(flits) for flits in by_length.values()),
            )
            yield network, events

    def _router(self, ports: int, vcs: int, buffer: int) -> tutti.energy.RouterHardware:
        from tutti.base.units import Size
        from tutti.energy.technology import RouterHardware

        return RouterHardware(
            ports=ports,
            vcs=vcs,
            buffer_flits=vcs * buffer,
            flit_bits=8 * Size.of_any(self.network.flit).bytes,
        )

    def _by_hardware(self) -> dict[tuple[int, int, int, int], list[_Router]]:
        """Returns the routers by number of ports, VCs, buffer depth and clock period in ps."""
        routers = [_Router() for _ in self.made.router_names()]
        for channel, sent in zip(self.made.channels(), self.channels, strict=True):
            a, b = channel.source, channel.target
            source, target, count = sent.source, sent.target, sent.flits
            if b.is_router:
                routers[b.number].inputs += 1
                routers[b.number].into += count
                routers[b.number].buffers = (channel.vcs, channel.buffer)
                routers[b.number].period = channel.period_ps
            if a.is_router:
                routers[a.number].outputs += 1
                routers[a.number].out += count
            if source == target:
                continue  # between an NPU and its router
            if channel.length_um is None:
                message = f"the length of the link from {source} to {target} is unknown"
                raise EnergyError(message, kind="no_length")
            home = a.number if a.is_router else b.number
            routers[home].wires.append((channel.length_um, count, (source, target)))
        groups: dict[tuple[int, int, int, int], list[_Router]] = {}
        for router in routers:
            key = (max(router.inputs, router.outputs), *router.buffers, router.period)
            groups.setdefault(key, []).append(router)
        return groups


class _Router:
    """Ports, buffers, clock and flits of a router, and length and flits of each of its links."""

    __slots__ = ("buffers", "inputs", "into", "out", "outputs", "period", "wires")

    def __init__(self) -> None:
        self.buffers = (0, 0)
        self.period = 0
        self.inputs = self.outputs = self.into = self.out = 0
        self.wires: list[tuple[int, int, tuple[str, str]]] = []


def _sum(reports: list[Report]) -> Report:
    total = reports[0]
    for report in reports[1:]:
        total += report
    return total


def _distribute(count: int, weights: list[int]) -> list[int]:
    """Divides a count into integers in proportion to weights; the integers add up to the count."""
    total, before, parts, given = sum(weights), 0, [], 0
    for weight in weights:
        before += weight
        upto = count * before // total if total else 0
        parts.append(upto - given)
        given = upto
    return parts
