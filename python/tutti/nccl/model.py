"""Latency and bandwidth of each algorithm and protocol.

NCCL predicts the time as latency + bytes / bandwidth. Source: ncclTopoTuneModel and
ncclTopoGetAlgoTime in src/graph/tuning.cc. Latencies are in us, bandwidths in GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

from tutti.nccl.channels import channel_counts, has_nvls
from tutti.nccl.settings import PROTOCOLS, Settings
from tutti.nccl.system import NO_GRAPH, Graph, NcclSystem
from tutti.nccl.tuned import UNCORRECTED, Corrections
from tutti.nccl.versions import Version, tree_correction

_GRAPH_OF = {
    "Tree": "tree",
    "Ring": "ring",
    "CollNetDirect": "collnet_direct",
    "CollNetChain": "collnet_chain",
    "NVLS": "nvls",
    "NVLSTree": "nvls",
    "PAT": "tree",
}
_RING_PLATEAU = {"volta": 1.9}
"""Factor on the latency of Ring with Simple between nodes; 1.4 from Ampere on."""


@dataclass(frozen=True)
class Model:
    """The model of one collective on one system.

    Attributes:
        system: The system.
        rules: The version of NCCL.
        settings: The user's settings.
        collective: The collective, in tutti's name.
    """

    system: NcclSystem
    rules: Version
    settings: Settings
    collective: str

    def graph(self, algorithm: str) -> Graph:
        """Returns the graph on which an algorithm runs; one without channels if unsupported."""
        name = _GRAPH_OF[algorithm]
        if name == "nvls" and not has_nvls(self.system, self.settings):
            return NO_GRAPH
        return self.system.graph(name)

    @property
    def gathers(self) -> bool:
        """The collective is all_gather or reduce_scatter."""
        return self.collective in {"all_gather", "reduce_scatter"}

    @property
    def steps(self) -> int:
        """The number of steps of a ring."""
        ranks = self.system.ranks
        if self.collective == "all_reduce":
            return 2 * (ranks - 1)
        return ranks - 1 if self.gathers else ranks

    @property
    def _column(self) -> int:
        """The column of tables by the number of nodes."""
        return min(self.system.nodes, 3) - 1

    def bandwidth(self, algorithm: str, protocol: str) -> float:
        """Returns the bandwidth before corrections for the size, in GB/s; 0 if not defined."""
        graph = self.graph(algorithm)
        bus = self._bus_bandwidth(algorithm, protocol, graph)
        if self.gathers and algorithm != "Ring":
            if algorithm == "NVLS" and self.rules.nvls_ratio_of_gather:
                return bus * 5 / 6
            return bus
        if algorithm == "Ring":
            return bus * self.system.ranks / self.steps
        if algorithm in {"NVLS", "NVLSTree"}:
            by_steps = self.rules.nvls_bandwidth == "efficiency"
            return bus * (self.system.ranks / self.steps if by_steps else 5 / 6)
        return bus * 0.5

    def _bus_bandwidth(self, algorithm: str, protocol: str, graph: Graph) -> float:
        collnet = algorithm in {"CollNetDirect", "CollNetChain"}
        one = graph.intra if self.system.nodes <= 2 or collnet else graph.inter
        if algorithm in {"NVLS", "NVLSTree"}:
            return graph.channels * self._nvls_channel(algorithm, graph)
        bus = graph.channels * one
        if algorithm == "Ring":
            return self._ring(protocol, graph, bus)
        if algorithm == "Tree":
            return self._tree(protocol, graph, bus)
        if algorithm == "PAT":
            return bus * self.rules.pat_factor
        if algorithm == "CollNetDirect":
            return self._collnet_direct(graph, bus)
        return bus

    def _ring(self, protocol: str, graph: Graph, bus: float) -> float:
        rules, system = self.rules, self.system
        if protocol == "LL":
            factor = 0.5
            if rules.ring_ll == "quarter":
                reduces = self.collective in {"all_reduce", "reduce"}
                factor = 1 / 4 if system.nodes > 1 or reduces else 1 / 3
            return min(self._ll_bandwidth, bus * factor)
        if protocol == "LL128":
            factor = 0.92
            if system.gpus_per_node < 2:
                factor = rules.ring_ll128_one_gpu_per_node
            channel = rules.ring_ll128_per_channel[system.architecture][self._column]
            return min(bus * factor, graph.channels * channel)
        return bus

    def _tree(self, protocol: str, graph: Graph, bus: float) -> float:
        rules, architecture = self.rules, self.system.architecture
        bus = min(bus * 0.92, graph.channels * rules.tree_per_channel[architecture][self._column])
        if protocol == "LL":
            bus = min(bus / 3.8, self._ll_bandwidth)
        if protocol == "LL128":
            factor = 7 / 9 if self.system.nodes == 1 else 120 / 128
            channel = rules.tree_ll128_per_channel[architecture][self._column]
            bus = min(bus * factor, graph.channels * channel)
        return bus * 0.85 if graph.pattern == "tree" else bus

    @property
    def _ll_bandwidth(self) -> float:
        """The limit on LL: by GPU on one node, by CPU between nodes."""
        row: str = self.system.architecture
        if self.system.nodes > 1:
            cpu = self.system.cpu
            amd = cpu == "amd" or (cpu == "mixed" and self.rules.mixed_cpus_are_amd)
            row = "ampere" if amd else "volta"
        return self.rules.ll_bandwidth[row][self._column]

    def _nvls_channel(self, algorithm: str, graph: Graph) -> float:
        """Returns the bandwidth of a channel of NVLS or NVLSTree."""
        rules, nodes, gpus = self.rules, self.system.nodes, self.system.gpus_per_node
        if rules.nvls_bandwidth == "efficiency":
            return self._nvls_efficient(algorithm, graph)
        if algorithm == "NVLSTree":
            return min(graph.intra, graph.inter if nodes <= 2 else graph.inter / 2)
        if rules.nvls_bandwidth == "per_collective" and self.collective != "all_reduce":
            return min(graph.intra * (gpus - 1) / gpus, graph.inter * 0.9)
        return min(graph.intra, graph.inter)

    def _nvls_efficient(self, algorithm: str, graph: Graph) -> float:
        rules, system = self.rules, self.system
        if graph.channels < 2:
            return 0.0
        efficiency = rules.nvls_efficiency[system.architecture]
        intra = graph.intra * efficiency * (graph.channels - 1) / graph.channels
        if self.collective == "all_reduce":
            intra *= 2  # NCCL pipelines its two operations
        else:
            intra *= (system.gpus_per_node - 1) / system.gpus_per_node
        tree = algorithm == "NVLSTree"
        inter = graph.inter * (2 if tree and system.nodes <= 2 else 1)
        if not tree:
            return min(intra, inter)
        return min(intra, inter, rules.nvls_tree_per_channel[system.architecture][self._column])

    def _collnet_direct(self, graph: Graph, bus: float) -> float:
        gpus = self.system.gpus_per_node
        if graph.channels == 0:
            return 0.0
        if self.gathers:
            if self.rules.collnet_gather == "minimum":
                return gpus * min(graph.intra, graph.inter * 0.9)
            weight = (gpus - 1) / 7
            return gpus * graph.intra * (weight * 0.85 + (1 - weight) * 0.95)
        factor = gpus / graph.channels
        bus /= factor - (factor - 1) / 2
        return bus * 0.85 if self.system.compute_capability >= 90 else bus

    def latency(self, algorithm: str, protocol: str) -> float:
        """Returns the latency before corrections for the size, in us."""
        base = self.rules.base_latency.get(algorithm, (0.0, 0.0, 0.0))[PROTOCOLS.index(protocol)]
        intra, inter = self._hops(algorithm, protocol)
        nodes, gpus = self.system.nodes, self.system.gpus_per_node
        depth = nodes.bit_length() - 1
        if algorithm == "Ring":
            return base + self._ring_latency(protocol, intra, inter)
        terms = {
            "Tree": 2 * ((gpus - 1) * intra + depth * inter),
            "CollNetDirect": 2 * (min(1, gpus - 1) * intra + (gpus - 1) * 0.4) + inter,
            "CollNetChain": 2 * (gpus - 1) * intra + inter,
            "NVLS": intra + (inter if nodes > 1 else 0.0),
            "NVLSTree": intra + 2 * depth * inter,
            "PAT": depth * inter / 3.5 + self.system.ranks * 2.8,
        }
        return base + terms[algorithm]

    def _hops(self, algorithm: str, protocol: str) -> tuple[float, float]:
        """Returns the latency of a step within a node and of one between nodes, in us."""
        graph = self.graph(algorithm)
        one = self.rules.one_gpu_per_node_tree_latency and self.system.gpus_per_node == 1
        inter = self._hardware("net", "Tree" if one else algorithm, protocol)
        # Simple flushes the data of the network interface, which takes its latency once more.
        inter += graph.inter_latency * (2 if protocol == "Simple" else 1)
        return self._hardware(self._intra(algorithm), algorithm, protocol), inter

    def _intra(self, algorithm: str) -> str:
        return "nvlink" if self.graph(algorithm).intra_path == "NVL" else "pci"

    def _hardware(self, link: str, algorithm: str, protocol: str) -> float:
        if self.system.cpu == "power" and (link, algorithm, protocol) == ("pci", "Tree", "Simple"):
            algorithm = "Ring"
        rows = self.rules.latency[link]
        return rows.get(algorithm, (0.0, 0.0, 0.0))[PROTOCOLS.index(protocol)]

    def _ring_latency(self, protocol: str, intra: float, inter: float) -> float:
        nodes = self.system.nodes
        if self.collective in {"reduce", "broadcast"}:
            link = self._intra("Ring") if nodes == 1 else "net"
            if self.graph("Ring").same_channels:
                return self._hardware(link, "Ring", protocol)
            chunked = "Tree" if protocol == "Simple" else "Ring"
            return self.steps * self._hardware(link, chunked, protocol)
        between = 0
        if nodes > 1:
            # Each step between nodes posts to the network, also where data stay in a node.
            intra = max(intra, self._post * (3 if protocol == "Simple" else 1))
            between = nodes - 1
            if self.collective == "all_reduce":
                all_nodes = self.rules.ring_all_reduce_inter_steps == "nodes"
                between = 2 * (nodes if all_nodes else nodes - 1)
        return (self.steps - between) * intra + between * inter

    @property
    def _post(self) -> float:
        """The overhead of a post to the network, in us."""
        if self.settings.net_overhead is not None:
            return self.settings.net_overhead * 0.001
        return 2.0 if self.system.cpu == "amd" else 1.0

    def terms(self, algorithm: str, protocol: str, size: int) -> tuple[float, float]:
        """Returns latency in us and bandwidth in GB/s, with the corrections for a size in bytes."""
        latency = self.latency(algorithm, protocol)
        bandwidth = self.bandwidth(algorithm, protocol)
        if self.collective != "all_reduce":
            return latency, bandwidth
        if algorithm == "Tree":
            bandwidth *= self._tree_factor(protocol, size)
        if (algorithm, protocol) == ("Ring", "Simple") and self._plateau(size):
            latency *= self._plateau_factor
        return latency, bandwidth

    def corrections(self, algorithm: str, protocol: str, size: int) -> Corrections:
        """Returns the empirical factors of :meth:`terms` for a size."""
        if self.collective != "all_reduce":
            return UNCORRECTED
        factor = self._tree_factor(protocol, size) if algorithm == "Tree" else 1.0
        if factor != 1.0:
            rate = f"NCCL multiplies the rate of trees by {factor:g} at this size"
            return Corrections(transfer=rate)
        if (algorithm, protocol) == ("Ring", "Simple") and self._plateau(size):
            factor = self._plateau_factor
            return Corrections(f"NCCL multiplies the latency of rings between nodes by {factor:g}")
        return UNCORRECTED

    @property
    def _plateau_factor(self) -> float:
        return _RING_PLATEAU.get(self.system.architecture, 1.4)

    def _tree_factor(self, protocol: str, size: int) -> float:
        factors = tree_correction(protocol)
        index = (size >> 6).bit_length() - 1
        if index < 0:
            return factors[0] if self.rules.tree_correction_below_64_bytes else 1.0
        return factors[index] if index < len(factors) else 1.0

    def _plateau(self, size: int) -> bool:
        """Returns whether each channel has 64 bytes or more per rank, between nodes."""
        if self.system.nodes == 1:
            return False
        counts = channel_counts(self.system, self.rules, self.settings)
        return size // (counts.communicator * self.system.ranks) >= 64
