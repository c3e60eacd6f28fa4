"""The ideal capacity of a network: the load at which its most loaded channel is fully used.

It follows from topology, routing and traffic alone: routers with unlimited buffers and perfect
allocators would reach it (Dally and Towles, "Principles and Practices of Interconnection Networks",
2004, section 3.3.1). Loads of oblivious routings are exact. Adaptive routings balance links
themselves; their bound is the mean load of all links, or that of the busiest NPU port.

Examples:
    >>> import tutti
    >>> from tutti.networks.flit import Network, Traffic
    >>> mesh = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns")
    >>> found = capacity(Network(topology=mesh), Traffic(rate=0.1, pattern="transpose"))
    >>> round(found.load, 4), found.bottleneck
    (0.3333, 'npu0 to npu4')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.files.typed import refuse_arguments
from tutti.networks.errors import NocError
from tutti.networks.flit.events import kind_of
from tutti.networks.flit.network import Network, core_for, every
from tutti.networks.flit.settings import Trace, Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti import _core
    from tutti.networks.flit.network import Supply


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The ideal capacity of a network under a traffic.

    Attributes:
        load: Offered load in flits per node and cycle, without replies.
        kind: Kind of the channel that is fully used: injection, link or ejection.
        source: Its source.
        target: Its target.
        is_mean: Whether the bound is the mean of all links, as for adaptive routings.
    """

    load: float
    kind: str
    source: str
    target: str
    is_mean: bool

    @property
    def bottleneck(self) -> str:
        """The channel that is fully used, in words."""
        if self.is_mean:
            return "mean of all links"
        if self.source != self.target:
            return f"{self.source} to {self.target}"
        place = "injection" if self.kind == "injection" else "ejection"
        return f"{place} at {self.source}"


def capacity(network: Network, traffic: Supply) -> Capacity | None:
    """Returns the ideal capacity.

    Args:
        network: The network.
        traffic: Traffic of one class or several, whose rates keep their proportions.

    Returns:
        The capacity; None for a trace, for traffic without a rate, and for networks with more
        routes than can be followed.

    Raises:
        NocError: The network is invalid.
        TrafficError: The traffic is invalid.
    """
    refuse_arguments("capacity", NocError, network=(network, Network),
                     traffic=(traffic, Traffic | tuple[Traffic, ...] | Trace))  # fmt: skip
    if isinstance(traffic, Trace):
        return None
    rates = [load.rate for load in every(traffic)]
    made = core_for(network, traffic)
    # With rates of sum 1, the capacity is the inverse of a load.
    shares = [rate / sum(rates) if sum(rates) else 1 / len(rates) for rate in rates]
    scaled = zip(every(traffic), shares, strict=True)
    loads = made.channel_loads([load.core_load(share=share, rate=1.0) for load, share in scaled])
    if loads is None:
        return None
    channels = made.channels()
    used = [flits * max(channel.flit_time_ps / network.cycle_ps, 1.0)
            for flits, channel in zip(loads, channels, strict=True)]  # fmt: skip
    if not max(used, default=0.0) > 0:
        return None
    return _bottleneck(made, channels, used)


def _bottleneck(
    made: _core.FlitNetwork, channels: Sequence[_core.FlitChannel], used: Sequence[float]
) -> Capacity:
    """Returns the capacity of channels that are used so much at a load of 1."""
    kinds = [kind_of(channel) for channel in channels]
    links = [number for number, kind in enumerate(kinds) if kind == "link"]
    if made.is_adaptive and links:
        mean = sum(used[number] for number in links) / len(links)
        ports = (used[number] for number, kind in enumerate(kinds) if kind != "link")
        if mean >= max(ports, default=0.0):
            return Capacity(load=1 / mean, kind="link", source="", target="", is_mean=True)
        used = [0.0 if kind == "link" else use for use, kind in zip(used, kinds, strict=True)]
    # Rounded, so that the first of channels with equal loads is named.
    first = max(range(len(used)), key=lambda number: (round(used[number], 9), -number))
    ends = (made.node_names(), made.router_names())
    source, target = (ends[end.is_router][end.number]
                      for end in (channels[first].source, channels[first].target))  # fmt: skip
    return Capacity(load=1 / used[first], kind=kinds[first], source=source, target=target,
                    is_mean=False)  # fmt: skip
