"""Platforms of SimGrid: latency and rate of paths, by hand from the XML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from damaged import refused
from tutti.base.errors import ConfigError
from tutti.base.units import TimePerByte
from tutti.formats.simgrid.platform_file import read_platform
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.topologies import Topology

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
CLUSTER = 'id="c" prefix="n" suffix="" speed="1Gf" bw="100MBps" lat="10us"'


def platform(tmp_path: Path, body: str) -> tuple[Topology, tuple[str, ...]]:
    path = tmp_path / "p.xml"
    path.write_text(f'{HEAD}<platform version="4.1">{body}</platform>\n')
    return read_platform(path)


def zone(body: str, routing: str = "Full") -> str:
    return f'<zone id="z" routing="{routing}">{body}</zone>'


def wire(topology: Topology, a: str, b: str) -> tuple[str, str]:
    ranks = {v.name: v.rank for v in topology.vertices if v.rank is not None}
    found = topology.routes().pair(ranks[a] or 0, ranks[b] or 0)
    return str(found.latency), str(found.bottleneck.core.exact_text)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("125MBps", "125 MB/s"),
        ("1Gbps", "125 MB/s"),
        ("1Kibps", "128 B/s"),
        ("1KiBps", "1 KiB/s"),
        ("1.25E9Bps", "1.25 GB/s"),
        ("41.279125MBps", "41279125 B/s"),
        ("5", "5 B/s"),
    ],
)
def test_rates_are_exact(tmp_path: Path, rate: str, expected: str) -> None:
    topology, _ = platform(
        tmp_path,
        zone(
            '<host id="a" speed="1f"/><host id="b" speed="1f"/>'
            f'<link id="l" bandwidth="{rate}" latency="1.5ms"/>'
            '<route src="a" dst="b"><link_ctn id="l"/></route>'
        ),
    )
    assert topology.links[0].rate == TimePerByte.parse(expected)
    assert wire(topology, "b", "a")[0] == "1.5 ms"


@pytest.mark.parametrize(
    ("attributes", "latency", "rate"),
    [
        ("", "20 us", "100 MB/s"),
        ('bb_bw="80MBps" bb_lat="5us"', "25 us", "80 MB/s"),
        ('limiter_link="60MBps"', "20 us", "60 MB/s"),
        ('bb_bw="1GBps" bb_lat="7us" sharing_policy="SHARED"', "27 us", "100 MB/s"),
    ],
)
def test_flat_clusters(tmp_path: Path, attributes: str, latency: str, rate: str) -> None:
    topology, losses = platform(tmp_path, f'<cluster {CLUSTER} radical="0-2,7" {attributes}/>')
    assert [v.name for v in topology.vertices[:4]] == ["n0", "n1", "n2", "n7"]
    assert wire(topology, "n0", "n7") == (latency, rate)
    assert any("SHARED" in loss for loss in losses) == ("SHARED" in attributes)


@pytest.mark.parametrize(
    ("kind", "parameters", "hosts", "links", "longest"),
    [
        ("TORUS", "4,3", 12, 48, "30 us"),
        ("TORUS", "2,2", 4, 8, "20 us"),
        ("FAT_TREE", "2;4,4;1,2;1,2", 16, 64, "40 us"),
        ("DRAGONFLY", "3,1;2,1;3,2;2", 36, 72 + 2 * (6 * 3 + 9 + 3), "70 us"),
    ],
)
def test_regular_clusters(
    tmp_path: Path, kind: str, parameters: str, hosts: int, links: int, longest: str
) -> None:
    body = f'topology="{kind}" topo_parameters="{parameters}"'
    topology, _ = platform(tmp_path, f'<cluster {CLUSTER} radical="0-{hosts - 1}" {body}/>')
    assert (topology.ranks, len(topology.links)) == (hosts, links)
    routes = topology.routes()
    slowest = max(
        (routes.pair(a, b).latency for a in range(hosts) for b in range(hosts)),
        key=lambda latency: latency.ps,
    )
    assert str(slowest) == longest


def test_cables_of_a_dragonfly_have_the_rate_of_their_links(tmp_path: Path) -> None:
    body = 'topology="DRAGONFLY" topo_parameters="2,4;1,1;2,3;1"'
    topology, _ = platform(tmp_path, f'<cluster {CLUSTER} radical="0-3" {body}/>')
    rates = sorted({link.rate.core.bytes_per_second for link in topology.links})
    assert rates == [1e8, 3e8, 4e8]


LINKS = "".join(
    f'<link id="{name}" bandwidth="{rate}MBps" latency="{ms}ms"/>'
    for name, rate, ms in (("1", 10, 1), ("2", 20, 2), ("3", 30, 4))
)
HOSTS = "".join(f'<host id="{name}" speed="1Gf"/>' for name in "abc")


def route(source: str, target: str, links: Sequence[str], extra: str = "") -> str:
    inner = "".join(f'<link_ctn id="{name}"/>' for name in links)
    return f'<route src="{source}" dst="{target}" {extra}>{inner}</route>'


def test_links_meet_where_routes_join_them(tmp_path: Path) -> None:
    routes = route("a", "b", "12") + route("a", "c", "13") + route("b", "c", "23")
    topology, losses = platform(tmp_path, zone(HOSTS + LINKS + routes))
    assert (len(topology.vertices), len(topology.links)) == (4, 6)
    assert wire(topology, "c", "b") == ("6 ms", "20 MB/s")
    assert not any("routes" in loss for loss in losses)


def test_a_link_of_several_places_is_a_bus(tmp_path: Path) -> None:
    routes = route("a", "b", "1") + route("a", "c", "1") + route("b", "c", "1")
    topology, _ = platform(tmp_path, zone(HOSTS + LINKS + routes))
    assert [wire(topology, *pair) for pair in ("ab", "bc", "ca")] == [("1 ms", "10 MB/s")] * 3
    assert sum(link.latency.ps > 0 for link in topology.links) == 1


def test_routes_that_are_not_the_shortest_are_listed(tmp_path: Path) -> None:
    routes = route("a", "b", "12", 'symmetrical="NO"') + route("b", "a", "3", 'symmetrical="NO"')
    routes += route("a", "c", "1") + route("b", "c", "2")
    _, losses = platform(tmp_path, zone(HOSTS + LINKS + routes))
    assert not any("fewest hops" in loss for loss in losses)
    long = route("a", "b", "123") + route("a", "c", "1") + route("b", "c", "2")
    _, losses = platform(tmp_path, zone(HOSTS + LINKS + long))
    assert [loss for loss in losses if "fewest hops" in loss] == [
        "1 x routes that are not the path with the fewest hops, such as that from a to b"
    ]


def test_zones_with_cabinets_and_gateways(tmp_path: Path) -> None:
    cabinet = 'prefix="{0}" suffix="" speed="1Gf" bw="100MBps" lat="10us" radical="0-1"'
    zones = "".join(
        f'<zone id="{name}" routing="Cluster"><cabinet id="k" {cabinet.format(name)}/>'
        f'<router id="r{name}"/><backbone id="b{name}" bandwidth="1GBps" latency="5us"/></zone>'
        for name in "xy"
    )
    between = (
        '<link id="l" bandwidth="50MBps" latency="100us"/>'
        '<zoneRoute src="x" dst="y" gw_src="rx" gw_dst="ry"><link_ctn id="l"/></zoneRoute>'
    )
    topology, _ = platform(tmp_path, zone(zones + between))
    assert wire(topology, "x0", "x1") == ("25 us", "100 MB/s")
    assert wire(topology, "x0", "y1") == ("130 us", "50 MB/s")


def test_peers_have_the_latency_of_their_coordinates(tmp_path: Path) -> None:
    peers = "".join(
        f'<peer id="{name}" coordinates="{at}" speed="1Gf" bw_in="2MBps" bw_out="{out}MBps"/>'
        for name, at, out in (("p", "0 0 1", 1), ("q", "3 4 2", 9))
    )
    topology, _ = platform(tmp_path, zone(peers, "Vivaldi"))
    assert wire(topology, "p", "q") == ("8 ms", "1 MB/s")
    assert wire(topology, "q", "p") == ("8 ms", "2 MB/s")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (zone('<host id="h" speed="1f"/>', "Wifi"), "attribute `routing` is invalid"),
        (zone('<host id="h" speed="1f"/><host id="h" speed="1f"/>'), "have the name"),
        (f'<cluster {CLUSTER} radical="0-99999999"/>', "at most 131,072 hosts"),
        (f'<cluster {CLUSTER} radical="0" topology="TORUS" topo_parameters="9,9"/>', "has 81"),
        (zone(HOSTS + LINKS + route("a", "b", "9")), "there is no link"),
        (
            zone(
                HOSTS
                + LINKS.replace("/>", ' sharing_policy="SPLITDUPLEX"/>')
                + route("a", "b", "1")
            ),
            "has no direction",
        ),
        (zone(HOSTS + LINKS + route("a", "d", "1")), "attribute `dst` is invalid"),
        (zone(HOSTS + LINKS + route("a", "b", "1") + route("b", "a", "2")), "a route already"),
        (zone('<link id="l" bandwidth="1MBqs"/>'), "attribute `bandwidth` is invalid"),
        (zone('<link id="l" bandwidth="0"/>'), "attribute `bandwidth` is invalid"),
        (zone('<link id="l" bandwidth="1Bps" sharing_policy="WIFI"/>'), "SHARED, SPLITDUPLEX"),
    ],
)
def test_invalid_platforms_are_refused_with_their_line(
    tmp_path: Path, body: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=r"p\.xml, line 3") as caught:
        platform(tmp_path, body)
    assert problem in str(caught.value)


THREE = "".join(
    f'<cluster id="{name}" router_id="r{name}" prefix="{name}" suffix="" radical="0-1" '
    'speed="1Gf" bw="125MBps" lat="50us"/>'
    for name in "abc"
) + "".join(
    f'<link id="{ends}" bandwidth="{rate}" latency="{latency}"/>'
    for ends, rate, latency in (("ab", "1GBps", "10us"), ("ac", "10MBps", "7ms"),
                                ("bc", "1GBps", "20us"))
)  # fmt: skip


def gateways(first: str, second: str = "rb") -> str:
    """Three clusters, of which the route from a to b has these gateways."""
    ends = (("a", "b", first, second), ("a", "c", "ra", "rc"), ("b", "c", "rb", "rc"))
    routes = "".join(
        f'<zoneRoute src="{a}" dst="{b}" gw_src="{up}" gw_dst="{down}"><link_ctn id="{a}{b}"/>'
        "</zoneRoute>"
        for a, b, up, down in ends
    )
    return zone(THREE + routes)


def test_gateways_are_in_their_zone(tmp_path: Path) -> None:
    """oar-team/batsim#57: with a gateway of zone c, messages from a to b would pass c."""
    topology, _ = platform(tmp_path, gateways("ra"))
    assert wire(topology, "a0", "b0")[0] == "110 us"  # 50 us + 10 us + 50 us
    with pytest.raises(ConfigError) as caught:
        platform(tmp_path, gateways("rc"))
    assert 'gw_src "rc" of the zoneRoute from "a" to "b" belongs to zone "c"' in str(caught.value)
    with pytest.raises(ConfigError, match="may be swapped"):
        platform(tmp_path, gateways("rb", "ra"))


INNER = '<zone id="y" routing="Full"><host id="h" speed="1f"/></zone>'
OUTER = f'<zone id="x" routing="Full">{INNER}</zone>'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (gateways("ra", "a0"), 'gw_dst "a0"'),
        (gateways("a"), "attribute `gw_src` is invalid"),
        (zone(THREE + route("a", "b", ["ab"])), "is a zone: <zoneRoute> joins zones"),
        (zone(THREE + route("a0", "b0", ["ab"])), 'src "a0" of <route> belongs to zone "a"'),
        (zone(HOSTS + LINKS + route("a", "b", "1", 'symmetrical="Yes"')), "YES, NO, yes or no"),
        (zone(HOSTS + LINKS + route("a", "a", "1") + route("a", "a", "2")), "a route already"),
        (zone(HOSTS + LINKS + route("a", "b", "1"), "None"), "zone with routing None"),
        (zone(HOSTS + LINKS + route("a", "b", "1"), "Cluster"), "zone with routing Cluster"),
        (zone(OUTER.replace('"y"', '"x"')), "two zones, hosts or routers have the name"),
        (zone(OUTER.replace('"h"', '"x"')), "two zones, hosts or routers have the name"),
        (f'<cluster {CLUSTER} radical="5-2"/>', "the smaller number first: 2-5"),
        (f'<cluster {CLUSTER} radical="0-3,2"/>', 'have the name "n2"'),
        (f'<cluster {CLUSTER} radical="0-3" bb_lat="5us"/>', "has `bb_lat` without `bb_bw`"),
        (f'<cluster {CLUSTER} radical="0-3" bb_sharing_policy="X"/>', "SHARED or FATPIPE"),
        (f'<cluster {CLUSTER} radical="0-3" bb_bandwidth="1Bps"/>', "attribute `bb_bandwidth`"),
        (zone('<host id="a" speed="1f"><cpu/></host>'), "unknown element <cpu> in <host>"),
        (zone('<link id="l" bandwidth="1Bps" sharing_policy="SPLITDUPLEX"/>'
              '<link id="l_UP" bandwidth="1Bps"/>'), "two links have the name"),
        (zone('<host id="a" speed="1f"/><link id="l" bandwidth="1Bps"/>'
              '<host_link id="a" up="l" down="l"/><host_link id="a" up="l" down="l"/>',
              "Cluster"), "without another <host_link>"),
        (zone('<backbone id="b" bandwidth="1Bps" latency="0"/>'
              '<backbone id="c" bandwidth="1Bps" latency="0"/>', "Cluster"), "a second <backbone>"),
    ],
)  # fmt: skip
def test_what_a_platform_states_twice_agrees(tmp_path: Path, body: str, problem: str) -> None:
    """SimGrid 4.1 refuses these, except for values that it would replace or ignore."""
    with pytest.raises(ConfigError, match=r"p\.xml, line 3") as caught:
        platform(tmp_path, body)
    assert problem in str(caught.value)


def test_gateways_may_be_in_inner_zones(tmp_path: Path) -> None:
    other = '<zone id="v" routing="Full"><host id="w" speed="1f"/></zone>'
    link = '<link id="l" bandwidth="1MBps" latency="1us"/>'
    between = '<zoneRoute src="x" dst="v" gw_src="h" gw_dst="w"><link_ctn id="l"/></zoneRoute>'
    topology, _ = platform(tmp_path, zone(OUTER + other + link + between))
    assert wire(topology, "h", "w") == ("1 us", "1 MB/s")


def test_attributes_without_effect_are_listed(tmp_path: Path) -> None:
    body = 'topology="TORUS" topo_parameters="2,2" bb_bw="1GBps" router_id="r"'
    _, losses = platform(tmp_path, f'<cluster {CLUSTER} radical="0-3" {body}/>')
    assert [loss for loss in losses if "no effect" in loss] == [
        "1 x `bb_bw` of TORUS clusters, which has no effect in SimGrid",
        "1 x `router_id` of TORUS clusters, which has no effect in SimGrid",
    ]


def test_hosts_without_routes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="cannot reach"):
        platform(tmp_path, zone(HOSTS, "None"))


def test_entities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text(
        '<!DOCTYPE platform [<!ENTITY a "a"><!ENTITY b "&a;&a;">]><platform>&b;</platform>'
    )
    with pytest.raises(ConfigError, match="document type"):
        read_platform(path)


@pytest.mark.parametrize("routing", ["Full", "Cluster"])
def test_damaged_platforms_are_refused(tmp_path: Path, routing: str) -> None:
    body = HOSTS + LINKS + route("a", "b", "12") + route("a", "c", "13") + route("b", "c", "23")
    if routing == "Cluster":
        body = (
            '<cabinet id="k" prefix="x" suffix="" speed="1f" bw="1GBps" lat="1us" radical="0-1"/>'
            + "".join(f'<host id="{name}" speed="1f"/>' for name in "ab")
            + LINKS
            + '<host_link id="a" up="1" down="1"/><host_link id="b" up="2" down="3"/>'
            + '<backbone id="4" bandwidth="1GBps" latency="0"/>'
        )
    text = f'{HEAD}<platform version="4.1">{zone(body, routing)}</platform>'
    path = tmp_path / "p.xml"
    path.write_text(text)
    read_platform(path)
    assert refused(read_platform, text.encode(), path, count=150) > 75
