"""What a topology of NCCL shows: its GPUs, NIC ports and links, with the source of each rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.view.terminal import indented
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tutti.formats.nccl.platform import NodePlatform
    from tutti.formats.nccl.topology import Topology

    Rows = Iterator[dict[str, Any]]


def topology_view(topology: Topology, platform: NodePlatform, file: Path) -> View:
    """Returns the parts of a topology, and the rates of its platform.

    Args:
        topology: The topology.
        platform: Its platform.
        file: Its file, for remarks.
    """
    hosts = len({cpu.host for cpu in topology.cpus})
    text = (
        f"{topology.writer}: {hosts} host(s), {len(topology.cpus)} sockets, "
        f"{len(topology.gpus)} GPUs, {len(topology.ports)} NIC ports"
    )
    links = platform.graph.edges(data=True)
    omitted = [f"line {line}: {reason}" for line, reason in topology.omitted]
    omitted += [f"{text}: left out" for text in platform.remarks]
    return View(
        headline=Fact("topology", text, "writer", topology.writer),
        data=[
            Data("gpus", lambda: _gpus(topology)),
            Data("ports", lambda: _ports(topology)),
            Data("links", lambda: ({"source": a, "target": b, **data} for a, b, data in links)),
            Data("omitted", lambda: ({"line": line, "reason": reason}
                                     for line, reason in topology.omitted)),
        ],
        below=[indented(line) for line in platform.sources],
        log=[f"{file}, {text}" for text in omitted],
    )  # fmt: skip


def _gpus(topology: Topology) -> Rows:
    for cpu, pci, gpu in topology.gpus:
        yield {"dev": gpu.dev, "rank": gpu.rank, "sm": gpu.sm, "bus": pci.bus, "numa": cpu.numa}


def _ports(topology: Topology) -> Rows:
    for cpu, pci, port in topology.ports:
        yield {
            "dev": port.dev,
            "name": port.name,
            "mbit_per_s": port.mbit_per_s,
            "gdr": port.gdr,
            "bus": pci.bus if pci is not None else None,
            "numa": cpu.numa,
        }
