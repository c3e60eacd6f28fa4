"""Files that NCCL and RCCL write: topologies, channel graphs, debug logs, Inspector output.

Results of nccl-tests are read by :mod:`tutti.formats.measurements`.

Examples:
    >>> topology = read_topology("examples/23_nccl_doctor/topology.xml")
    >>> len(topology.gpus), len(topology.ports)
    (8, 8)
    >>> platform_from_topology(topology).topology.ranks
    8
"""

from __future__ import annotations

from tutti.formats.nccl.debug import DebugLog, parse_debug_log, read_debug_log
from tutti.formats.nccl.graphs import ChannelGraph, read_graphs
from tutti.formats.nccl.inspector import Inspected, parse_inspector, read_inspector
from tutti.formats.nccl.platform import NodePlatform, platform_from_topology
from tutti.formats.nccl.topology import Topology, read_topology

__all__ = [
    "ChannelGraph",
    "DebugLog",
    "Inspected",
    "NodePlatform",
    "Topology",
    "parse_debug_log",
    "parse_inspector",
    "platform_from_topology",
    "read_debug_log",
    "read_graphs",
    "read_inspector",
    "read_topology",
]
