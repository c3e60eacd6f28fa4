"""The elements and attributes of a SimGrid platform file.

Source: ``src/kernel/xml/simgrid.dtd`` (DTD 4.1) of SimGrid 4.1, whose parser refuses others.
"""

from __future__ import annotations

from typing import Final

from tutti.formats.xml_files import Content, content

_ZONE: Final = content("id routing", None)
_ROUTE: Final = content("src dst symmetrical", None)
_ZONE_ROUTE: Final = content("src dst gw_src gw_dst symmetrical", None)
_BYPASS: Final = content("src dst gw_src gw_dst", "link_ctn")
_ACTOR: Final = content("host function start_time kill_time on_failure", "argument prop")

GRAMMAR: Final[dict[str, Content]] = {
    "platform": content("version", None),
    "zone": _ZONE,
    "AS": _ZONE,
    "host": content(
        "id speed core speed_file availability_file state_file coordinates pstate",
        "disk prop mount",
    ),
    "disk": content("id read_bw write_bw", "prop"),
    "host_link": content("id up down"),
    "cluster": content(
        "id prefix suffix radical speed core bw lat sharing_policy topology topo_parameters bb_bw "
        "bb_lat bb_sharing_policy router_id limiter_link loopback_bw loopback_lat",
        "prop",
    ),
    "cabinet": content("id prefix suffix radical speed bw lat"),
    "peer": content(
        "id speed bw_in bw_out lat coordinates speed_file availability_file state_file"
    ),
    "router": content("id coordinates"),
    "backbone": content("id bandwidth latency"),
    "link": content(
        "id bandwidth bandwidth_file latency latency_file state_file sharing_policy", "prop"
    ),
    "route": _ROUTE,
    "zoneRoute": _ZONE_ROUTE,
    "ASroute": _ZONE_ROUTE,
    "link_ctn": content("id direction"),
    "bypassRoute": content("src dst", "link_ctn"),
    "bypassZoneRoute": _BYPASS,
    "bypassASroute": _BYPASS,
    "actor": _ACTOR,
    "process": _ACTOR,
    "prop": content("id value"),
}
"""`None` where the reader checks the children, and names the reason, such as a zone's routing."""
