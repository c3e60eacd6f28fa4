"""The obvious evaluation of MPICH's selection trees, as `src/mpi/coll/src/csel.c` has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_OF_COMMUNICATOR = re.compile(r"comm_|is_node_consecutive=|.*=any$")
_CONDITION = re.compile(r"(\w+)(<=|<|=)(.*)")


@dataclass(frozen=True)
class Call:
    """A call of a collective.

    Attributes:
        ranks: Ranks of the communicator.
        size: Bytes of a message, `avg_msg_size`.
        total: Bytes of all messages, `total_msg_size`.
        nodes: Nodes of the communicator.
        is_parent: Whether the communicator has communicators of its nodes.
        count: Number of elements.
        flags: Whether the other conditions hold, by name.
    """

    ranks: int
    size: int
    total: int
    nodes: int = 1
    is_parent: bool = True
    count: int = 1 << 20
    flags: frozenset[str] = frozenset({"is_commutative", "is_op_built_in", "is_node_consecutive"})


def selected(tree: dict[str, Any], call: Call, *, by_call: bool = False) -> dict[str, Any]:
    """Returns the leaf that a tree has for a call.

    Args:
        tree: The conditions.
        call: The call.
        by_call: Whether a condition on the call precedes: before, the communicator evaluates them.
    """
    for key, below in tree.items():
        if key.startswith(("algorithm=", "composition=")):
            return tree
        by_call = by_call or not _OF_COMMUNICATOR.match(key)
        if key.endswith("=any") or _holds(key, call, by_call=by_call):
            return selected(below, call, by_call=by_call)
    raise AssertionError(tree)


def _holds(key: str, call: Call, *, by_call: bool) -> bool:
    found = _CONDITION.fullmatch(key)
    assert found, key
    name, sign, value = found.groups()
    if value == "node_comm_size":
        return call.is_parent and call.nodes == 1
    if value == "pow2":
        power = 1 << (call.ranks.bit_length() - 1)
        return call.count < power if name == "count" else call.ranks == power
    if name == "comm_type":
        return value == "intra"
    if name == "comm_hierarchy":
        return call.is_parent == (value == "parent")
    if sign == "=":
        return (name in call.flags) == (value == "yes")
    if name == "comm_avg_ppn" and not call.is_parent:
        return False
    numbers = {"comm_size": call.ranks, "avg_msg_size": call.size, "total_msg_size": call.total,
               "count": call.count, "comm_avg_ppn": call.ranks / call.nodes}  # fmt: skip
    is_most = sign == "<=" or (name == "comm_size" and by_call)  # csel.c compares so in calls
    return numbers[name] <= int(value) if is_most else numbers[name] < int(value)
