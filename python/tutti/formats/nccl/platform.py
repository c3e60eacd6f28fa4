"""Platforms of a node topology that NCCL wrote: a graph of GPUs, switches, sockets and ports.

Each GPU is an NPU, by rank. NVSwitches act as one, as in NCCL. With several nodes, the ports of all
nodes are on one non-blocking network, which the file does not describe.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import networkx as nx

from tutti.base.files.mistakes import mistake
from tutti.base.units import Time, TimePerByte
from tutti.formats.nccl.rates import Rate, Rates, cpu_rate, gpu_link_rate, pci_rate, port_rate
from tutti.platforms.machine import Platform, Postal
from tutti.topologies import Topology as Graph

if TYPE_CHECKING:
    from tutti.formats.nccl.topology import Cpu, Gpu, Pci, Topology

_MODEL: Final = (
    "0.5 us",
    "NCCL 2.30.7, src/graph/tuning.cc: hwLat of NVLink, Ring, LL, 0.6 us, less the links",
)
_LAUNCH: Final = ("6.6 us", "NCCL 2.30.7, src/graph/tuning.cc: baseLatencies of Ring, LL")
_LATENCIES: Final = {
    "nvlink": ("50 ns", "assumed: half of an NVSwitch of 100 ns"),
    "pci": ("250 ns", "inferred: two links and the model are 1.0 us, hwLat of PCI, Ring, LL"),
    "socket": ("250 ns", "assumed: as a PCI link"),
    "nic": ("0 ns", "part of the latency of the network"),
    "network": ("600 ns", "inferred: a step over the network is 2.7 us, hwLat of NET, Ring, LL"),
}  # fmt: skip
_NETWORK: Final = "network"
_MOST_NODES: Final = 4096


@dataclass
class NodePlatform:
    """A platform, and the source of each of its rates.

    Attributes:
        name: The name of the platform.
        graph: The vertices with `kind` and `rank`, and the links with `rate`, `latency` and
            `rate_source`.
        sources: A line per distinct rate and source, with the number of links.
        alpha: The time of a step without its links, with its source.
        fastest: The rate of the fastest link of a GPU.
        remarks: Links that were left out, with the line.
    """

    name: str
    graph: nx.DiGraph[str]
    sources: list[str]
    fastest: Rate
    remarks: list[str]
    alpha: tuple[str, str] = field(default=_MODEL)

    @property
    def topology(self) -> Graph:
        """The topology of the graph."""
        return Graph.from_networkx(self.graph, name=self.name, source=self.name)

    @property
    def platform(self) -> Platform:
        """The platform, with the flow model of shared links."""
        beta = TimePerByte.of_any(f"{self.fastest.gb_per_s!r} GB/s")
        return Platform(
            name=self.name,
            model=Postal(
                alpha=Time.of_any(self.alpha[0]), beta=beta, launch=Time.of_any(_LAUNCH[0])
            ),
            routes=self.topology.routes(),
        )

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Writes the platform file and, next to it, the graph as node-link JSON.

        Returns:
            Both files.

        Raises:
            ConfigError: The file ending is not ``.toml``.
        """
        path = Path(path)
        if path.suffix != ".toml":
            raise mistake("unknown file ending", source=str(path), expected="a name in .toml")
        graph = path.with_suffix(".json")
        text = json.dumps(nx.node_link_data(self.graph, edges="edges"), indent=1)
        graph.write_text(text + "\n", encoding="utf-8")
        path.write_text(self.toml(graph.name), encoding="utf-8")
        return path, graph

    def toml(self, graph: str) -> str:
        """Returns the platform file that refers to a graph file."""
        lines = [f"# {line}" for line in ["Rates per direction:", *self.sources]]
        lines += [
            f"name = {json.dumps(self.name)}",
            "",
            "[models.gpu]",
            'kind = "postal"',
            "[models.gpu.alpha]",
            f'value = "{self.alpha[0]}"',
            f"source = {json.dumps(self.alpha[1])}",
            "inferred = true",
            "[models.gpu.beta]",
            f'value = "{self.fastest.gb_per_s!r} GB/s"',
            f"source = {json.dumps(self.fastest.source)}",
            "[models.gpu.launch]",
            f'value = "{_LAUNCH[0]}"',
            f"source = {json.dumps(_LAUNCH[1])}",
            "",
            "[topology]",
            f"file = {json.dumps(graph)}",
        ]
        return "\n".join(lines) + "\n"


def platform_from_topology(
    topology: Topology, *, nodes: int = 1, rates: Rates = "link", name: str | None = None
) -> NodePlatform:
    """Builds the platform of a topology, or of several equal nodes.

    Args:
        topology: The topology of a node, from `read_topology`.
        nodes: The number of equal nodes; more than one are joined by a non-blocking network.
        rates: ``link``, the rates of the links, or ``nccl``, those of NCCL's topology search.
        name: The name of the platform; by default that of the file.

    Returns:
        The platform, with a source for each rate.

    Raises:
        ConfigError: The number of nodes is out of range, or there are several nodes and no NIC.
    """
    if not 1 <= nodes <= _MOST_NODES:
        expected = f"1 to {_MOST_NODES:,}"
        raise mistake(
            "invalid number of nodes", source="nodes", value=str(nodes), expected=expected
        )
    if nodes > 1 and not topology.ports:
        raise mistake(
            "has no port of a NIC, so that nodes cannot be joined",
            source=topology.source,
            expected="a <net> in a <nic>",
            hint="NCCL lists NICs only in runs that use several nodes",
        )
    graph = _Graph(topology, rates)
    for node in range(nodes):
        graph.add_node(node, f"node{node}." if nodes > 1 else "")
    title = name or Path(topology.source).stem or "nccl"
    return NodePlatform(title, graph.graph, graph.sources(), graph.fastest, graph.remarks)


class _Graph:
    """Adds the vertices and links of nodes."""

    def __init__(self, topology: Topology, rates: Rates) -> None:
        self.graph: nx.DiGraph[str] = nx.DiGraph()
        self.fastest = Rate(0.0, "")
        self.remarks: list[str] = []
        self._topology, self._rates = topology, rates
        self._gpus = topology.gpus
        self._counted: dict[tuple[str, Rate], int] = {}

    def sources(self) -> list[str]:
        """Returns a line per kind of link, rate and source."""
        return [
            f"{count} x {what}: {rate.gb_per_s:g} GB/s; {'inferred: ' if rate.inferred else ''}"
            f"{rate.source}"
            for (what, rate), count in self._counted.items()
        ] + [
            f"latency of {what}: {value}; {source}" for what, (value, source) in _LATENCIES.items()
        ]

    def add_node(self, node: int, prefix: str) -> None:
        """Adds a copy of the node."""
        names = {}
        for place, (cpu, device, gpu) in enumerate(self._gpus):
            names[id(gpu)] = f"{prefix}gpu{gpu.dev}@{_place(cpu)}{device.bus}"
            rank = node * len(self._gpus) + place
            self.graph.add_node(names[id(gpu)], kind="npu", rank=rank)
        for cpu in self._topology.cpus:
            self._add_cpu(cpu, prefix, names)
        for cpu, device, gpu in self._gpus:
            self._add_gpu_links(cpu, device, gpu, prefix, names)
        self._join_sockets(prefix)

    def _add_cpu(self, cpu: Cpu, prefix: str, names: dict[int, str]) -> None:
        socket = self._switch(_socket(cpu, prefix))
        for port in cpu.ports:
            self._add_port(port, socket, prefix)
        stack = [(device, socket) for device in cpu.devices]
        while stack:
            device, parent = stack.pop()
            rate = pci_rate(device, self._rates)
            own = [names[id(gpu)] for gpu in device.gpus]
            if device.ports or device.below:
                own.append(self._switch(f"{prefix}pci@{_place(cpu)}{device.bus}"))
            for one in own:
                self._cable(one, parent, rate, "pci")
            for port in device.ports:
                self._add_port(port, own[-1], prefix)
            stack += [(below, own[-1]) for below in device.below]

    def _add_port(self, port: Any, nic: str, prefix: str) -> None:  # noqa: ANN401 - a Port
        rate = port_rate(port)
        name = self._switch(f"{prefix}net{port.dev}:{port.name}")
        self._cable(name, nic, rate, "nic")
        if prefix:
            self._cable(name, self._switch(_NETWORK), rate, "network")

    def _add_gpu_links(
        self, cpu: Cpu, device: Pci, gpu: Gpu, prefix: str, names: dict[int, str]
    ) -> None:
        peers = {other.bus: names[id(one)] for at, other, one in self._gpus if at.host == cpu.host}
        source, switched = names[id(gpu)], dict[str, float]()
        for link in gpu.links:
            rate = gpu_link_rate(gpu, link, self._rates)
            if link.to == "nvswitch":
                switched[rate.source] = switched.get(rate.source, 0) + rate.gb_per_s
            elif link.to == "cpu":
                self._cable(source, _socket(cpu, prefix), rate, "nvlink")
            elif link.target in peers and link.target != device.bus:
                self._link(source, peers[link.target], rate, link.kind)
            else:
                text = f"line {link.line}: {link.kind} to {link.target}, which is not in the file"
                self.remarks += [text] if text not in self.remarks else []
        for origin, total in switched.items():
            self._cable(source, self._switch(f"{prefix}nvswitch"), Rate(total, origin), "nvlink")

    def _join_sockets(self, prefix: str) -> None:
        for first in self._topology.cpus:
            for second in self._topology.cpus:
                if first is not second and first.host == second.host:
                    ends = _socket(first, prefix), _socket(second, prefix)
                    self._link(*ends, cpu_rate(first), "socket")

    def _switch(self, name: str) -> str:
        self.graph.add_node(name, kind="switch")
        return name

    def _cable(self, a: str, b: str, rate: Rate, what: str) -> None:
        self._link(a, b, rate, what)
        self._link(b, a, rate, what)

    def _link(self, a: str, b: str, rate: Rate, what: str) -> None:
        if rate.gb_per_s <= 0:
            return
        latency = _LATENCIES["nvlink" if what in {"xgmi", "c2c"} else what][0]
        known = self.graph.get_edge_data(a, b)
        total = rate.gb_per_s + (known["gb_per_s"] if known else 0.0)
        self.graph.add_edge(
            a, b, rate=f"{total!r} GB/s", latency=latency, rate_source=rate.source, gb_per_s=total
        )
        self._counted[what, rate] = self._counted.get((what, rate), 0) + 1
        ends = self.graph.nodes[a]["kind"], self.graph.nodes[b]["kind"]
        if "npu" in ends and total > self.fastest.gb_per_s:
            self.fastest = Rate(total, rate.source, rate.inferred)


def _place(cpu: Cpu) -> str:
    return f"{cpu.host}/" if cpu.host else ""


def _socket(cpu: Cpu, prefix: str) -> str:
    return f"{prefix}cpu{cpu.numa}@{_place(cpu)}" if cpu.host else f"{prefix}cpu{cpu.numa}"
