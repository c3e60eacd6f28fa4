"""Topologies that a table of a file describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.files.sourced import written
from tutti.topologies.graph import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.networks.flit.files.tables import NocTopology
    from tutti.platforms.files.platform_file import TopologyTable


def topology_of(table: NocTopology | TopologyTable, folder: Path) -> Topology:
    """Returns the topology that a table describes; the path of its file starts from `folder`.

    Raises:
        TuttiError: The family is unknown, or the file cannot be read.
    """
    if table.build is None:
        return Topology.read(folder / str(table.file))
    links: list[dict[str, Any]] = [
        {"rate": written(link.rate), "latency": written(link.latency), "length": link.length}
        for link in table.links
    ]
    if len(links) == 1:
        return Topology.build(table.build, **links[0])
    return Topology.build(table.build, links=links)
