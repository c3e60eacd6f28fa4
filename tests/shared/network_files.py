"""Small files of other network simulators."""

from __future__ import annotations

FILES = {
    "htsim-cm": "Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 5 size 10 "
    "send_done_trigger 7\n2->0 id 3 trigger 7 size 30\ntrigger id 7 oneshot\n",
    "htsim-topo": "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\n"
    "Radix_Up 1\nDownlink_Latency_ns 10\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\n"
    "Downlink_Latency_ns 20\n",
    "ns3-topology": "3 1 2\n2\n0 2 100Gbps 0.5ms 0\n1 2 1e9bps 1000ns 0.5\n",
    "ns3-simai": "3 2 0 1 2 H100\n2\n0 2 100Gbps 0.5ms 0\n1 2 1e9bps 1000ns 0.5\n",
    "ns3-flows": "2\n2 1 3 100 200000000 2\n0 1 3 100 7 2.000000001\n",
}
