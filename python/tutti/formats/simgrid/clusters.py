"""The regular networks of SimGrid's `cluster` element: flat, torus, fat tree and dragonfly.

Source: ``src/kernel/xml/sg_platf.cpp`` and ``src/kernel/routing/*Zone.cpp`` of SimGrid 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import TimePerByte
from tutti.formats.simgrid.network import Cost
from tutti.formats.simgrid.quantities import latency_of, rate_of

if TYPE_CHECKING:
    from tutti.formats.simgrid.network import Network
    from tutti.formats.xml_files import Element

_MOST_HOSTS: Final = 1 << 17
_SHARED: Final = "SHARED links of clusters, whose directions share the rate: each has it"
_ROUTING: Final = "{} clusters, whose routes are {} in SimGrid: select the routing in the platform"


@dataclass
class _Leaf:
    """Where traffic enters and leaves a vertex; they differ for a vertex with a limiter."""

    entry: int
    exit: int


def radicals(element: Element) -> list[int]:
    """Returns the numbers of a radical such as ``0-3,8``.

    Raises:
        ConfigError: It is not such a list, or is too long.
    """
    found: list[int] = []
    for part in element.text("radical").split(","):
        ends = [parse_count(end.strip(), most=1 << 31) for end in part.split("-")]
        first, last = ends[0], ends[-1]
        if len(ends) > 2 or first is None or last is None:
            element.refuse("radical", "numbers and ranges, such as 0-3,8")
        if last < first:
            element.refuse("radical", f"the smaller number first: {last}-{first}")
        if len(found) + last - first >= _MOST_HOSTS:
            element.refuse("radical", f"at most {_MOST_HOSTS:,} hosts")
        found += range(first, last + 1)
    return found


def cost_of(network: Network, element: Element, rate: str, latency: str) -> Cost:
    """Returns the rate and latency in two attributes of an element."""
    first, *more = element.text(rate).replace(";", ",").split(",")
    if more:
        network.lose("rates of power states other than the first")
    ps, exact = latency_of(element, latency, "0")
    if not exact:
        network.lose("latencies that were rounded to a picosecond")
    return Cost(rate_of(element, rate, first), ps)


def add_cluster(network: Network, element: Element) -> None:
    """Adds a cluster.

    Raises:
        ConfigError: An attribute is invalid.
    """
    topology = element.text("topology", "FLAT")
    builders = {"FLAT": _flat, "TORUS": _torus, "FAT_TREE": _fat_tree, "DRAGONFLY": _dragonfly}
    if topology not in builders:
        element.refuse("topology", ", ".join(builders))
    policy = element.text("sharing_policy", "SPLITDUPLEX")
    if policy not in {"SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE"}:
        element.refuse("sharing_policy", "SHARED, SPLITDUPLEX or FATPIPE")
    _check_backbone(network, element, topology)
    prefix, suffix = element.text("prefix"), element.text("suffix")
    names = [f"{prefix}{number}{suffix}" for number in radicals(element)]
    points = [network.netpoint(element, name, "npu") for name in names]
    network.lose("hosts with a computing speed", len(names))
    if element.attributes.get("loopback_bw") or element.attributes.get("loopback_lat"):
        network.lose("loopback links", len(names))
    if policy not in {"SPLITDUPLEX", "FULLDUPLEX"}:
        network.lose(_SHARED, len(names))
    builders[topology](network, element, points)
    if element.children:
        network.lose("properties", len(element.children))


def _check_backbone(network: Network, element: Element, topology: str) -> None:
    """Checks the attributes of a backbone, and counts those without effect on the topology."""
    if element.text("bb_sharing_policy", "SHARED") not in {"SHARED", "FATPIPE"}:
        element.refuse("bb_sharing_policy", "SHARED or FATPIPE")
    rate = element.attributes.get("bb_bw")
    if not rate and latency_of(element, "bb_lat", "0")[0]:
        raise mistake(
            "the cluster has `bb_lat` without `bb_bw`",
            source=element.place,
            expected='the rate of the backbone, such as bb_bw="1GBps"',
        )
    unused = {"topo_parameters"} if topology == "FLAT" else {"bb_bw", "router_id"}
    for name in sorted(unused):
        if element.attributes.get(name):
            network.lose(f"`{name}` of {topology} clusters, which has no effect in SimGrid")


def _leaf(network: Network, element: Element, host: int | None) -> _Leaf:
    """Returns where links meet a host or switch, behind its limiter if the cluster has some."""
    if not element.attributes.get("limiter_link"):
        point = network.point() if host is None else host
        return _Leaf(point, point)
    cost = Cost(rate_of(element, "limiter_link"), 0)
    leaf = _Leaf(network.point(), network.point())
    network.edge(leaf.entry, leaf.exit, cost)
    if host is not None:
        network.edge(host, leaf.entry, cost)
        network.edge(leaf.exit, host, cost)
    return leaf


def _join(network: Network, a: _Leaf, b: _Leaf, cost: Cost) -> None:
    network.edge(a.exit, b.entry, cost)
    network.edge(b.exit, a.entry, cost)


def _flat(network: Network, element: Element, hosts: list[int]) -> None:
    cost = cost_of(network, element, "bw", "lat")
    router_name = element.text("router_id", "") or (
        f"{element.text('prefix')}{element.text('id')}_router{element.text('suffix')}"
    )
    router = network.netpoint(element, router_name, "router")
    hub = _Leaf(router, router)
    if element.attributes.get("bb_bw"):
        backbone = cost_of(network, element, "bb_bw", "bb_lat")
        hub = _Leaf(network.point("", "switch"), network.point("", "switch"))
        network.edge(hub.entry, hub.exit, backbone)
        network.edge(router, hub.entry, Cost(backbone.rate, 0))
        network.edge(hub.exit, router, Cost(backbone.rate, 0))
        if element.text("bb_sharing_policy", "SHARED") == "FATPIPE":
            network.lose(
                "FATPIPE links, whose rate messages do not share in SimGrid: they share it"
            )
    for host in hosts:
        _join(network, _leaf(network, element, host), hub, cost)


def _numbers(element: Element, text: str, count: int | None) -> list[int]:
    found = [parse_count(part.strip(), most=_MOST_HOSTS) for part in text.split(",")]
    if None in found or 0 in found or (count is not None and len(found) != count):
        element.refuse(
            "topo_parameters", "positive integers; see SimGrid's manual for their number"
        )
    return [number for number in found if number is not None]


def _check_count(element: Element, hosts: list[int], expected: int) -> None:
    if len(hosts) != expected:
        raise mistake(
            f"the radical has {len(hosts):,} hosts, but the topology has {expected:,}",
            source=element.place,
            value=shown(element.text("topo_parameters")),
            expected="as many hosts as the topology has",
        )


def _torus(network: Network, element: Element, hosts: list[int]) -> None:
    sizes = _numbers(element, element.text("topo_parameters"), None)
    _check_count(element, hosts, prod(sizes))
    cost = cost_of(network, element, "bw", "lat")
    leaves = [_leaf(network, element, host) for host in hosts]
    network.lose(_ROUTING.format("torus", "`dimension_order`"))
    stride = 1
    for size in sizes:
        for number, leaf in enumerate(leaves):
            last = number // stride % size == size - 1
            if size == 1 or (size == 2 and last):
                # SimGrid has a second cable in dimensions of two, which no route uses.
                continue
            other = number - (size - 1) * stride if last else number + stride
            _join(network, leaf, leaves[other], cost)
        stride *= size


def _fat_tree(network: Network, element: Element, hosts: list[int]) -> None:
    levels, *lists = element.text("topo_parameters").split(";")
    height = parse_count(levels.strip(), most=16)
    if height is None or height < 1 or len(lists) != 3:
        element.refuse("topo_parameters", "levels and three lists, such as 2;4,4;1,2;1,2")
    down, up, ports = (_numbers(element, each, height) for each in lists)
    _check_count(element, hosts, prod(down))
    cost = cost_of(network, element, "bw", "lat")
    network.lose(_ROUTING.format("fat tree", "`d_mod_k`"))
    below = dict(zip(_labels(down), (_leaf(network, element, host) for host in hosts), strict=True))
    for level in range(height):
        sizes = up[: level + 1] + down[level + 1 :]
        if prod(sizes) > _MOST_HOSTS:
            element.refuse("topo_parameters", f"at most {_MOST_HOSTS:,} switches per level")
        above = {label: _leaf(network, element, None) for label in _labels(sizes)}
        for label, leaf in below.items():
            for parent in range(up[level]):
                other = above[(*label[:level], parent, *label[level + 1 :])]
                for _ in range(ports[level]):
                    _join(network, leaf, other, cost)
        below = above


def _labels(sizes: list[int]) -> list[tuple[int, ...]]:
    """Returns all labels; the first digit changes fastest."""
    return [label[::-1] for label in product(*(range(size) for size in reversed(sizes)))]


def _dragonfly(network: Network, element: Element, hosts: list[int]) -> None:
    parts = element.text("topo_parameters").split(";")
    if len(parts) != 4:
        element.refuse("topo_parameters", "four lists, such as 3,4;4,3;5,1;2")
    (groups, blue), (chassis, black), (blades, green) = (
        _numbers(element, part, 2) for part in parts[:3]
    )
    nodes = _numbers(element, parts[3], 1)[0]
    _check_count(element, hosts, groups * chassis * blades * nodes)
    if groups > blades:
        element.refuse("topo_parameters", "at most as many groups as routers in a chassis")
    cost = cost_of(network, element, "bw", "lat")
    network.lose(_ROUTING.format("dragonfly", "minimal with fixed gateways"))
    shape = list(product(range(groups), range(chassis), range(blades)))
    routers = {place: _leaf(network, element, None) for place in shape}
    for number, host in enumerate(hosts):
        _join(network, _leaf(network, element, host), routers[shape[number // nodes]], cost)
    for group, row, blade in shape:
        here = routers[group, row, blade]
        for other in range(blade + 1, blades):
            _join(network, here, routers[group, row, other], _times(cost, green))
        for other in range(row + 1, chassis):
            _join(network, here, routers[group, other, blade], _times(cost, black))
    for a in range(groups):
        for b in range(a + 1, groups):
            _join(network, routers[a, 0, b], routers[b, 0, a], _times(cost, blue))


def _times(cost: Cost, count: int) -> Cost:
    """Returns the cost of parallel links, which SimGrid represents as one link."""
    if count == 1:
        return cost
    number, unit = str(cost.rate).split()
    return Cost(TimePerByte.parse(f"{Decimal(number) * count:f} {unit}"), cost.latency)
