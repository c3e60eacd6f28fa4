"""Routing rules, and the default rule of each family of topologies."""

from __future__ import annotations

import re
from typing import Literal, get_args

Rule = Literal["shortest_path", "dimension_order", "minimal", "d_mod_k", "ecmp"]
RULES: tuple[Rule, ...] = get_args(Rule)
Choice = Literal["adaptive", "valiant", "ugal"]
CHOICES: tuple[str, ...] = get_args(Choice)

_RULES_OF_FAMILIES: dict[str, Rule] = {
    "mesh": "dimension_order",
    "torus": "dimension_order",
    "cmesh": "dimension_order",
    "flattened_butterfly": "dimension_order",
    "hyperx": "dimension_order",
    "dragonfly": "minimal",
    "fat_tree": "d_mod_k",
    "rail_optimized": "ecmp",
}
_TREE = re.compile("fat_tree:|rail_optimized:|dragonfly:")
"""Families of a hierarchy with several equal paths."""


def rule_of_family(notation: str) -> Rule:
    """Returns the default routing rule of a topology in notation.

    Examples:
        >>> rule_of_family("fat_tree:k=4,n=2"), rule_of_family("ring:8")
        ('d_mod_k', 'shortest_path')
    """
    family = notation.partition(":")[0]
    if family == "hierarchical" and _TREE.search(notation):
        return "ecmp"
    return _RULES_OF_FAMILIES.get(family, "shortest_path")
