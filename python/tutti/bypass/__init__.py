"""Package networks whose links are chosen: meshes with bypass wires, and configurations of them.

After ARIES (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023): see docs/concepts/bypass.md. Which links
to choose for what a schedule sends is found, too:

>>> from tutti.bypass import BypassMesh, flows_of, map_flows
>>> from tutti.schedule import schedule
>>> trees = schedule("double_binary_tree:nccl", collective="all_reduce", ranks=16)
>>> mapping = map_flows(BypassMesh(side=4), flows_of(trees))
>>> len(mapping.flows), len(mapping.dedicated), mapping.optimal
(52, 44, True)
"""

from __future__ import annotations

from tutti.bypass.flows import Flow, flows_of, shares_of
from tutti.bypass.improve import Improved, improve
from tutti.bypass.mapping import Mapping, Method, map_flows, spread_flows
from tutti.bypass.network import BypassConfiguration, BypassMesh, IdlePort, LiveLink, Muxes, Port
from tutti.bypass.plans import MappedSchedule, plan

__all__ = [
    "BypassConfiguration",
    "BypassMesh",
    "Flow",
    "IdlePort",
    "Improved",
    "LiveLink",
    "MappedSchedule",
    "Mapping",
    "Method",
    "Muxes",
    "Port",
    "flows_of",
    "improve",
    "map_flows",
    "plan",
    "shares_of",
    "spread_flows",
]
