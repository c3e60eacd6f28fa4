"""Parameters of gem5's objects in the configuration of a run, by what tutti does with them.

gem5 writes every parameter of an object. Those that are neither read nor listed here as without
effect are refused, since they may change results.

Source: gem5 `BasicRouter.py`, `BasicLink.py`, `Network.py`, `GarnetNetwork.py`, `GarnetLink.py`,
`GarnetSyntheticTraffic.py`, `ClockedObject.py`.
"""

from __future__ import annotations

from itertools import product
from typing import Final

_SIM_OBJECT: Final = frozenset(
    {"type", "children", "eventq_index", "name", "path", "cxx_class", "clk_domain"}
    | {"power_model", "power_state", "default_p_state"}
    | {f"p_state_clk_gate_{name}" for name in ("bins", "max", "min")}
)
BRIDGES: Final = tuple(
    f"{end}_{unit}" for end, unit in product(("src", "dst", "ext", "int"), ("cdc", "serdes"))
)
"""Flags of a link for clock domain crossings and SerDes."""

COUNTS: Final = {
    "router": ("latency", "width", "vcs_per_vnet", "virt_nets"),
    "link": ("latency", "weight", "width"),
}
"""Integers of an object, which it must state if it has the key."""

KNOWN: Final = {
    "router": _SIM_OBJECT | {"router_id", *COUNTS["router"]},
    "link": _SIM_OBJECT
    | {"link_id", "ext_node", "int_node", "src_node", "dst_node", "bandwidth_factor"}
    | {"src_outport", "dst_inport", "supported_vnets", *COUNTS["link"], *BRIDGES}
    | {f"{kind}_link{plural}" for kind in ("network", "credit") for plural in ("", "s")}
    | {f"{end}_{kind}_bridge" for end in ("src", "dst", "ext", "int") for kind in ("net", "cred")},
    "network": _SIM_OBJECT
    | {"routers", "ext_links", "int_links", "netifs", "ruby_system", "topology", "num_rows"}
    | {"ni_flit_size", "vcs_per_vnet", "buffers_per_data_vc", "buffers_per_ctrl_vc"}
    | {"routing_algorithm", "enable_fault_model", "fault_model", "garnet_deadlock_threshold"}
    | {"number_of_virtual_networks", "control_msg_size", "data_msg_size"}
    | {"in_port", "out_port", "master", "slave"},
    "tester": _SIM_OBJECT
    | {"block_offset", "memory_size", "num_dest", "num_packets_max", "single_sender"}
    | {"single_dest", "traffic_type", "inj_rate", "inj_vnet", "precision", "response_limit"}
    | {"sim_cycles", "system", "test"},
}
"""Keys that are read, or that do not change the steady state of the network."""
