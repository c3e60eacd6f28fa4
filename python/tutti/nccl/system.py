"""The facts about a system that NCCL's tuning model reads.

NCCL searches the topology of a node for graphs: rings, trees and NVLink SHARP graphs, each with a
number of channels and a bandwidth per channel. ``NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH`` prints
them, one line ``Pattern`` for each graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tutti.base.files.mistakes import known_name, mistake

if TYPE_CHECKING:
    from collections.abc import Mapping

PATHS = (
    *("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"),
)  # fmt: skip
"""Types of paths, closest first. Source: NCCL v2.28.9-1, src/graph/topo.h."""

GRAPHS = ("ring", "tree", "collnet_direct", "collnet_chain", "nvls")

Architecture = Literal["volta", "ampere", "hopper", "blackwell"]
Cpu = Literal["intel", "amd", "arm", "power", "mixed", "other"]
Pattern = Literal["balanced_tree", "split_tree", "tree", "ring", "nvls", "collnet_direct"]


def _one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a value that is not in the list."""
    known_name(value, known, what="value", source="NCCL system", key=key)


def _invalid(key: str, value: object, expected: str) -> Exception:
    """Returns the error for an invalid value."""
    return mistake("is invalid", source="NCCL system", key=key, value=str(value), expected=expected)


@dataclass(frozen=True)
class Graph:
    """A graph that NCCL's topology search found.

    Attributes:
        channels: The number of channels; 0 if the search found none.
        intra: The bandwidth of a channel within a node, in GB/s.
        inter: The bandwidth of a channel between nodes, in GB/s.
        intra_path: The type of the paths between GPUs, such as ``NVL``; one of ``PATHS``.
        inter_path: The type of the paths between GPUs and network interfaces, such as ``PXB``.
        inter_latency: The latency of the network interface, in us.
        same_channels: All channels connect the GPUs in the same order.
        pattern: The pattern of a tree graph: ``tree`` has all network traffic at one GPU.
    """

    channels: int
    intra: float
    inter: float
    intra_path: str = "NVL"
    inter_path: str = "PIX"
    inter_latency: float = 0.0
    same_channels: bool = True
    pattern: Pattern = "balanced_tree"

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            ConfigError: A value is invalid.
        """
        for key in ("channels", "intra", "inter", "inter_latency"):
            if getattr(self, key) < 0:
                raise _invalid(key, getattr(self, key), "a number from 0 on")
        for key in ("intra_path", "inter_path"):
            _one_of(key, getattr(self, key), PATHS)
        _one_of("pattern", self.pattern, get_args(Pattern))


NO_GRAPH = Graph(channels=0, intra=0.0, inter=0.0)


@dataclass(frozen=True)
class NcclSystem:
    """A communicator's system, as NCCL's tuning model reads it.

    Attributes:
        name: The name in messages.
        nodes: The number of nodes; an NVLink domain of several hosts counts as one.
        gpus_per_node: The number of GPUs of each node; each GPU has one rank.
        compute_capability: That of the GPUs, without its point: 90 for H100.
        cpu: The vendor of the CPUs, or the architecture if it is not x86.
        graphs: The graphs by name, see ``GRAPHS``; ring and tree are mandatory.
        nvls: The GPUs and the driver support NVLink SHARP multicast.
        nvswitch: The GPUs of a node are connected by NVLink switches.
        collnet: An in-network reduction plugin such as SHARP is enabled.
        collnet_heads: The number of GPUs of a node that the CollNet graph connects to the network.
        channels: The number of channels that NCCL reports as ``coll channels``; None computes it
            from the graphs.
        nvlink: The bandwidth between a GPU and the others of its node, in GB/s; 0 for that of the
            ring, which is less between nodes.
        adapter: The bandwidth of a GPU's network interfaces, in GB/s; 0 for its share of the ring,
            which uses only some interfaces of large NVLink domains.
        source: Where the graphs are from.
        gfx: The architecture of GPUs of AMD, such as ``gfx942``, whose library is RCCL; else empty.
    """

    name: str
    nodes: int
    gpus_per_node: int
    compute_capability: int
    cpu: Cpu = "intel"
    graphs: Mapping[str, Graph] = field(default_factory=dict)
    nvls: bool = False
    nvswitch: bool = False
    collnet: bool = False
    collnet_heads: int = 0
    channels: int | None = None
    nvlink: float = 0.0
    adapter: float = 0.0
    source: str = ""
    gfx: str = ""

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            ConfigError: A value is invalid.
        """
        if min(self.nodes, self.gpus_per_node) < 1 or self.ranks < 2:
            value = f"{self.nodes} x {self.gpus_per_node}"
            raise _invalid("nodes x gpus_per_node", value, "2 GPUs or more")
        _one_of("cpu", self.cpu, get_args(Cpu))
        for name in self.graphs:
            _one_of("graphs", name, GRAPHS)
        for name in ("ring", "tree"):
            if self.graph(name).channels < 1:
                raise _invalid(f"graphs.{name}", self.graph(name).channels, "1 channel or more")
        if self.channels is not None and self.channels < 1:
            raise _invalid("channels", self.channels, "1 channel or more")

    @property
    def library(self) -> str:
        """The name of the library, NCCL or RCCL."""
        return "RCCL" if self.gfx else "NCCL"

    @property
    def ranks(self) -> int:
        """The number of ranks, one per GPU."""
        return self.nodes * self.gpus_per_node

    @property
    def architecture(self) -> Architecture:
        """The row of NCCL's tables that holds for the compute capability."""
        if self.compute_capability >= 100:
            return "blackwell"
        if self.compute_capability >= 90:
            return "hopper"
        return "ampere" if self.compute_capability >= 80 else "volta"

    @property
    def gpu_rate(self) -> float:
        """The bandwidth between a GPU and the others of its node, in GB/s."""
        return self.nvlink or self.graph("ring").channels * self.graph("ring").intra

    def graph(self, name: str) -> Graph:
        """Returns a graph by name; one without channels if the system has none."""
        return self.graphs.get(name, NO_GRAPH)
