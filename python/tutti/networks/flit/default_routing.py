"""The default routing of networks of routers: the best deadlock-free one of each family.

Files, options and Python share it.

Examples:
    >>> [default_routing(name) for name in ("mesh:8x8", "fat_tree:k=4,n=2", "ring:8")]
    ['dimension_order', 'nca', 'shortest_path']
"""

from __future__ import annotations

from tutti.topologies.routing import rule_of_family


def default_routing(notation: str) -> str:
    """Returns the routing that a network has unless another one is given.

    Rings and chiplet meshes with few boundary routers have no deadlock-free routing; they get
    `shortest_path`, and `Network.remarks` warns.

    Args:
        notation: The topology, as `family:argument`; a graph without a family gets
            `shortest_path`.
    """
    family = notation.partition(":")[0]
    if family == "fat_tree":
        return "nca"
    if family == "chiplet_mesh" and "boundary=" not in notation:
        return "dimension_order"
    return rule_of_family(notation)
