"""Graphs of networkx, networks of BookSim and topologies of NCCL, as formats of `tutti convert`."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import mistake
from tutti.base.units import Time, TimePerByte
from tutti.formats.formats import INFERRED, Format, Options
from tutti.formats.nccl import platform_from_topology, read_topology
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Link

__all__ = ["FORMATS"]

_CYCLE: Final = Time(ps=1000)
_RATE: Final = "16 GB/s"
_ANYNET: Final = re.compile(rb"\s*(?:router|node)[ \t]+[0-9]+[ \t]+(?:router|node)[ \t]+[0-9]+")
_Losses = tuple[str, ...]


def _read_graph(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    return Topology.read(path), ()


def _write_graph(topology: Topology, path: Path, _options: Options) -> _Losses:
    topology.write(path)
    return ()


def _read_nccl(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    found = read_topology(path)
    node = platform_from_topology(found)
    omitted = [f"line {each.line}: {each.reason}" for each in found.omitted]
    return node.topology, (
        *omitted,
        *node.remarks,
        *(f"{INFERRED}{source}" for source in node.sources),
    )


def _read_anynet(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    topology = Topology.from_anynet(path, cycle=_CYCLE, rate=_RATE)
    assumed = f"the file has neither cycle nor rate: {_CYCLE} and {_RATE} are assumed"
    return topology, (assumed,)


def _write_anynet(topology: Topology, path: Path, _options: Options) -> _Losses:
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


FORMATS = (
    Format(
        name="anynet",
        content="topology",
        endings=(".anynet", "anynet_file"),
        summary="Networks of BookSim 2 (anynet), in cycles of 1 ns and flits of 16 B.",
        source="BookSim 2.0, src/networks/anynet.cpp",
        read=_read_anynet,
        write=_write_anynet,
        matches=lambda head: _ANYNET.match(head) is not None,
    ),
    Format(
        name="graphml",
        content="topology",
        endings=(".graphml",),
        summary="Graphs of networkx in GraphML.",
        source="networkx 3.6.1, readwrite/graphml.py",
        read=_read_graph,
        write=_write_graph,
        matches=lambda head: b"<graphml" in head,
    ),
    Format(
        name="node-link",
        content="topology",
        endings=(".json",),
        summary="Graphs of networkx in node-link JSON.",
        source="networkx 3.6.1, readwrite/json_graph/node_link.py",
        read=_read_graph,
        write=_write_graph,
        matches=lambda head: b'"nodes"' in head and head.lstrip().startswith(b"{"),
    ),
    Format(
        name="nccl-topology-xml",
        content="topology",
        endings=(".xml",),
        summary="Node topologies of NCCL and RCCL (NCCL_TOPO_DUMP_FILE).",
        source="NCCL 2.30.7, src/graph/xml.cc",
        read=_read_nccl,
        matches=lambda head: b"<system" in head,
    ),
)
