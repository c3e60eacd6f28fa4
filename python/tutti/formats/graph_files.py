"""Graphs of networkx, networks of BookSim and topologies of NCCL, as formats of `tutti convert`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import mistake
from tutti.base.units import Time, TimePerByte
from tutti.formats.formats import INFERRED, Options
from tutti.formats.nccl import platform_from_topology, read_topology
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Link

__all__ = ["read_anynet", "read_graph", "read_nccl", "write_anynet", "write_graph"]

_CYCLE: Final = Time(ps=1000)
_RATE: Final = "16 GB/s"
_Losses = tuple[str, ...]


def read_graph(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    """Reads a graph of networkx."""
    return Topology.read(path), ()


def write_graph(topology: Topology, path: Path, _options: Options) -> _Losses:
    """Writes a graph of networkx."""
    topology.write(path)
    return ()


def read_nccl(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    """Reads the topology of a node."""
    found = read_topology(path)
    node = platform_from_topology(found)
    omitted = [f"line {each.line}: {each.reason}" for each in found.omitted]
    return node.topology, (
        *omitted,
        *node.remarks,
        *(f"{INFERRED}{source}" for source in node.sources),
    )


def read_anynet(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    """Reads a network of BookSim."""
    topology = Topology.from_anynet(path, cycle=_CYCLE, rate=_RATE)
    assumed = f"the file has neither cycle nor rate: {_CYCLE} and {_RATE} are assumed"
    return topology, (assumed,)


def write_anynet(topology: Topology, path: Path, _options: Options) -> _Losses:
    """Writes the network; see `_Anynet` for what becomes a router or a node."""
    found = _Anynet(topology, str(path))
    path.write_text("\n".join(found.lines()) + "\n", encoding="utf-8")
    return tuple(found.losses)


class _Anynet:
    """A topology as BookSim's routers and nodes.

    An NPU with one cable to a switch or router is a node on it. Another NPU is a node on a
    separate router, because nodes of BookSim never forward.
    """

    def __init__(self, topology: Topology, source: str) -> None:
        self._topology, self._source = topology, source
        self.losses: list[str] = []
        self._out: dict[str, list[Link]] = defaultdict(list)
        for link in topology.links:
            self._out[link.source].append(link)
        switches = [v.name for v in topology.vertices if v.rank is None]
        npus = [v.name for v in topology.vertices if v.rank is not None]
        self._router = {name: number for number, name in enumerate(switches)}
        self._home: dict[str, int] = {}
        for name in npus:
            targets = [link.target for link in self._out[name]]
            if len(targets) == 1 and targets[0] in self._router:
                self._home[name] = self._router[targets[0]]
            else:
                self._home[name] = self._router[name] = len(self._router)
        own = len(self._router) - len(switches)
        if own:
            self.losses.append(
                f"{own} NPUs with several links became a router and a node, one cycle apart"
            )
        self._npus = npus

    def lines(self) -> list[str]:
        """Returns a line per router.

        Raises:
            ConfigError: A link has no reverse.
        """
        self._check_reverses()
        nodes: dict[int, list[int]] = defaultdict(list)
        for node, name in enumerate(self._npus):
            nodes[self._home[name]].append(node)
        lines, rounded, parallel, at_nodes = [], 0, 0, 0
        for name, number in self._router.items():
            words = [f"router {number}", *(f"node {node}" for node in nodes[number])]
            cycles: dict[int, int] = {}
            for link in self._out[name]:
                exact = link.latency.ps > 0 and link.latency.ps % _CYCLE.ps == 0
                count = max(1, -(-link.latency.ps // _CYCLE.ps))
                if link.target not in self._router:
                    at_nodes += count != 1 or not exact
                    continue
                target = self._router[link.target]
                parallel += target in cycles
                rounded += not exact
                cycles[target] = min(count, cycles.get(target, count))
            words += [f"router {target} {count}" for target, count in cycles.items()]
            lines.append(" ".join(words))
        self._count(rounded, parallel, at_nodes)
        return lines

    def _check_reverses(self) -> None:
        pairs = {(link.source, link.target) for link in self._topology.links}
        for source, target in sorted(pairs):
            if (target, source) not in pairs:
                raise mistake(
                    f"the link from {source} to {target} has no reverse",
                    source=self._source,
                    expected="links in both directions: BookSim adds the reverse of each",
                )

    def _count(self, rounded: int, parallel: int, at_nodes: int) -> None:
        rates = {link.rate for link in self._topology.links}
        if rates != {TimePerByte.parse(_RATE)}:
            self.losses.append(
                f"rates ({', '.join(sorted(map(str, rates)))}): every link of BookSim passes one "
                "flit per cycle"
            )
        if rounded:
            self.losses.append(f"{rounded} latencies were rounded up to cycles of {_CYCLE}")
        if parallel:
            self.losses.append(f"{parallel} parallel links: BookSim has one link per direction")
        if at_nodes:
            self.losses.append(f"{at_nodes} latencies to nodes: they are one cycle in BookSim")
        if any(link.length for link in self._topology.links):
            self.losses.append("lengths of links")
        names = [f"npu{n}" for n in range(len(self._npus))]
        names += [f"router{n}" for n in range(len(self._router))]
        if [v.name for v in self._topology.vertices] != names or any(
            v.kind == "switch" for v in self._topology.vertices
        ):
            self.losses.append("names of vertices, and which of them are switches")
