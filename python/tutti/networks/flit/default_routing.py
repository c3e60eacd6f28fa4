"""The default routing of networks of routers: the best deadlock-free one of each family.

Files, options and Python share it.

Examples:
    >>> [default_routing(name) for name in ("mesh:8x8", "fat_tree:k=4,n=2", "ring:8")]
    ['dimension_order', 'nca', 'shortest_path']
    >>> default_routing("chiplet_mesh:chiplets=2x2,tiles=3x3,boundary=1")
    'up_down'
"""

from __future__ import annotations

from tutti.topologies.routing import rule_of_family


def default_routing(notation: str) -> str:
    """Returns the routing that a network has unless another one is given.

    On rings and graphs without a family, `shortest_path` can deadlock, and `Network.remarks` warns:
    the deadlock-free `up_down` can have longer paths there.

    Args:
        notation: The topology, as `family:argument`; a graph without a family gets
            `shortest_path`.
    """
    family = notation.partition(":")[0]
    if family == "fat_tree":
        return "nca"
    if family == "chiplet_mesh":
        return "up_down" if "boundary=" in notation else "dimension_order"
    return rule_of_family(notation)
