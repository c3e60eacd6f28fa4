"""Graphs of networkx and topologies of NCCL, as formats of `tutti convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.formats.formats import INFERRED, Options
from tutti.formats.nccl import platform_from_topology, read_topology
from tutti.topologies import Topology, files
from tutti.topologies.interchange import unread_attributes

if TYPE_CHECKING:
    from pathlib import Path

_Losses = tuple[str, ...]


def read_graph(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    """Reads a graph of networkx; other attributes than those of a topology are lost."""
    graph, name = files.read(path)
    topology = Topology.from_networkx(graph, name=name, source=str(path))
    return topology, tuple(unread_attributes(graph))


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
