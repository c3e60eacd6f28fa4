"""The class of each link of a topology: the parameters of a class may differ from those of others.

Examples:
    >>> import tutti
    >>> package = tutti.Topology.build(
    ...     "chiplet_mesh:chiplets=2x1,tiles=2x2", rate="16 GB/s", latency="1 ns"
    ... )
    >>> classes = class_of_links(package)
    >>> classes["npu0", "npu1"], classes["npu1", "npu4"]
    ('on-chip', 'die-to-die')
"""

from __future__ import annotations

from tutti.base.units import Size, TimePerByte
from tutti.topologies.graph import Topology, link_classes


def classes_of(topology: Topology) -> list[str]:
    """Returns the link classes of a topology; none for a graph without a family."""
    return link_classes(topology.name) if topology.is_family else []


def class_of_links(topology: Topology) -> dict[tuple[str, str], str]:
    """Returns the class of each link, by source and target; empty for fewer than two classes."""
    classes = classes_of(topology)
    if len(classes) < 2:
        return {}
    # The same graph, with rates that number the classes.
    rates = [f"{number} GB/s" for number in range(1, len(classes) + 1)]
    numbered = Topology.build(
        topology.name, links=[{"rate": rate, "latency": "1 ns"} for rate in rates]
    )
    parsed = (TimePerByte.parse(rate) for rate in rates)
    names = dict(zip(map(_time, parsed), classes, strict=True))
    return {(link.source, link.target): names[_time(link.rate)] for link in numbered.links}


def differing_classes(topology: Topology) -> list[str]:
    """Returns the link classes whose links differ in kind; empty if all links are alike.

    Links within and between chips differ. Others differ in rate, or in latency per length: a link
    that spans several tiles is of the same kind as one that spans one.
    """
    names = class_of_links(topology)
    kinds: dict[str, set[tuple[int, float]]] = {}
    for link in topology.links:
        length = link.length.um if link.length else 1
        kind = (_time(link.rate), round(link.latency.ps / length, 9))
        kinds.setdefault(names.get((link.source, link.target), ""), set()).add(kind)
    is_package = topology.is_family and topology.name.startswith("chiplet_mesh:")
    if len(kinds) < 2 or (not is_package and len(set.union(*kinds.values())) < 2):
        return []
    return [name for name in classes_of(topology) if name in kinds]


def _time(rate: TimePerByte) -> int:
    """Returns the picoseconds of a MiB."""
    return rate.of(Size(bytes=1 << 20)).ps
