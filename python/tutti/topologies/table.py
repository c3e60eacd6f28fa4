"""Topologies that a table of a file describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.base.files import key_paths as paths
from tutti.base.files.sourced import written
from tutti.topologies.graph import Topology, link_classes

if TYPE_CHECKING:
    from collections.abc import Iterable
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


def with_link_tables(
    tables: dict[str, Any], keys: Iterable[str], *, first: int = 1
) -> dict[str, Any]:
    """Returns tables with a table of links for each link class, if a key names that of a class.

    Otherwise one table of links describes all classes.

    Args:
        tables: The tables of a file, with `topology` or `platform.topology`.
        keys: Paths of keys, such as ``platform.topology.links[1].latency``.
        first: The first index that names a class; smaller ones are those of the tables.
    """
    for path in filter(None, (paths.parse(key.strip()) for key in keys)):
        start = int(path[0] == "platform")
        if path[start : start + 2] != ("topology", "links") or len(path) < start + 3:
            continue
        index, inner = path[start + 2], tables.get("platform") if start else tables
        topology = inner.get("topology") if isinstance(inner, dict) else None
        if isinstance(index, int) and index >= first and isinstance(topology, dict):
            of_class = {**topology, "links": _of_classes(topology)}
            tables = paths.with_value(tables, path[: start + 1], of_class)
    return tables


def _of_classes(topology: dict[str, Any]) -> object:
    """Returns the links of a topology: a table for each class, if one describes all."""
    links, build = topology.get("links", [{}]), topology.get("build")
    is_shared = isinstance(links, list) and len(links) == 1 and isinstance(links[0], dict)
    if not is_shared or not isinstance(build, str):
        return links
    try:
        return [dict(links[0]) for _ in link_classes(build)]
    except TuttiError:
        return links  # the reader of the tables refuses the topology
