"""MPICH's selections (CSEL): rules merged into the stock tree, since a tree has to be whole.

The stock tree is compiled into every MPICH as text; it is read from the library that is to be
tuned, so it is always that of its version. Where a tree lacks a collective, MPICH stops at the
first call of one.

Communicators that share a host, or have several hosts, may be served by the device before these
selections are asked: settings turn that off for the collectives that are tuned.

Source: ``src/mpi/coll/src/csel.c`` and ``maint/tuning/coll/json_gen.sh`` of MPICH 5.0.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tutti.errors import TuningError
from tutti.tune.decisions import HOST
from tutti.tune.targets import counterpart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.mpi.host import Host
    from tutti.tune.decisions import Decision
    from tutti.tune.targets import Counterpart

__all__ = ["merged", "settings", "stock", "stock_of_file"]

Tree = dict[str, Any]

_NAMES = {
    "all_reduce": "allreduce",
    "broadcast": "bcast",
    "reduce": "reduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
    "reduce_scatter": "reduce_scatter_block",
    "barrier": "barrier",
}
_BY_TOTAL = frozenset({"all_gather", "all_to_all", "reduce_scatter"})
"""Collectives whose ``total_msg_size`` is what we call their size."""
_FOLDING = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_IN_PARTS = ("ring", "recursive_halving_doubling", "reduce_scatter_gather")
"""Schedules whose algorithms need an element for each rank, and operations of MPI's own."""
_START = b'{"collective='
_LIBRARIES = ("libmpi.so*", "libmpi_abi.so*", "libmpich*.so*", "libmpi.*dylib")


def stock(host: Host) -> Tree:
    """The stock tree out of the library of an MPICH.

    Raises:
        TuningError: its library is not found, or holds no such tree.
    """
    for folder in ("lib", "lib64"):
        for pattern in _LIBRARIES:
            for path in sorted((host.prefix / folder).glob(pattern)):
                found = _within(path.read_bytes())
                if found is not None:
                    return found
    message = f"no library below {host.prefix} holds the selections of {host}"
    raise TuningError(message, kind="csel")


def stock_of_file(path: Path) -> Tree:
    """A whole tree from a file, such as ``maint/tuning/coll/mpir/generic.json`` of MPICH's sources.

    Raises:
        TuningError: it cannot be read, or is no whole tree.
    """
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: cannot be read as JSON: {error}"
        raise TuningError(message, kind="csel", fields={"path": str(path)}) from None
    if not _whole(tree):
        message = f"{path}: has not all collectives: expected MPICH's whole tree"
        raise TuningError(message, kind="csel", fields={"path": str(path)})
    return dict(tree)


def _within(data: bytes) -> Tree | None:
    """The largest tree in a library: those of the device have fewer collectives."""
    found: list[Tree] = []
    at = data.find(_START)
    while at >= 0:
        end = data.find(b"\0", at)
        try:
            tree = json.loads(data[at:end])
        except ValueError:
            end = at + 1
        else:
            found += [tree] if _whole(tree) else []
        at = data.find(_START, end)
    return max(found, key=len, default=None)


def _whole(tree: object) -> bool:
    return isinstance(tree, dict) and {f"collective={name}" for name in _NAMES.values()} <= set(
        tree
    )


def settings(path: str, decisions: Sequence[Decision]) -> dict[str, str]:
    """The variables under which MPICH reads a file of selections, and goes by it."""
    tuned = {one.collective for one in decisions if _algorithm(one) is not None}
    named = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": path,
             "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll"}  # fmt: skip
    for collective in sorted(tuned):
        named[f"MPIR_CVAR_{_NAMES[collective].upper()}_DEVICE_COLLECTIVE"] = "0"
    return named


def merged(tree: Tree, decisions: Sequence[Decision]) -> str:
    """The text of a file: the stock tree, with the decisions before its own conditions.

    Args:
        tree: the whole stock tree; it is not changed.
        decisions: for the target `mpich`; those without a schedule go by the stock tree.

    Raises:
        TuningError: no decision can be expressed.
    """
    tuned = dict(tree)
    for collective, some in groupby(decisions, lambda one: one.collective):
        by_ranks = {ranks: list(mine) for ranks, mine in groupby(some, lambda one: one.ranks)}
        told = {
            ranks: mine
            for ranks, mine in by_ranks.items()
            if any(_algorithm(one) is not None for one in mine)
        }
        if collective in _NAMES and told:
            key = f"collective={_NAMES[collective]}"
            whole = dict(tree[key])
            whole["comm_type=intra"] = _by_ranks(told, tree[key]["comm_type=intra"])
            tuned[key] = whole
    if tuned == tree:
        message = "MPICH has none of the schedules that are the fastest anywhere"
        raise TuningError(message, kind="nothing")
    return json.dumps(tuned, indent=2) + "\n"


def _by_ranks(told: dict[int, list[Decision]], before: Tree) -> Tree:
    """Conditions are tested in order, so sizes in between go by the tree from before."""
    node: Tree = {}
    above = 0
    for ranks in sorted(told):
        if ranks - 1 > above:
            node[f"comm_size<={ranks - 1}"] = before
        node[f"comm_size<={ranks}"] = _by_sizes(told[ranks], before)
        above = ranks
    node["comm_size=any"] = before
    return node


def _by_sizes(decisions: list[Decision], before: Tree) -> Tree:
    collective = decisions[0].collective
    if collective == "barrier":
        return _leaf(decisions[0], before)
    size = "total_msg_size" if collective in _BY_TOTAL else "avg_msg_size"
    node: Tree = {}
    for one in decisions:
        end = "=any" if one.last is None else f"<={one.last}"
        node[f"{size}{end}"] = _leaf(one, before)
    return node


def _algorithm(decision: Decision) -> Counterpart | None:
    if decision.schedule is None or decision.schedule == HOST:
        return None
    return counterpart("mpich", decision.collective, decision.ranks, decision.schedule)


def _leaf(decision: Decision, before: Tree) -> Tree:
    """The algorithm, and the tree from before where it would not be allowed."""
    found = _algorithm(decision)
    if found is None:
        return before
    leaf: Tree = {f"algorithm={found.name}": {f"{k}={v}": {} for k, v in found.parameters.items()}}
    if found.schedule.startswith(_IN_PARTS):
        # Of reduce_scatter_block no count is told; its parts are of equal size anyway.
        if decision.collective != "reduce_scatter":
            leaf = {"count<pow2": before, "count=any": leaf}
        leaf = {"is_op_built_in=yes": leaf, "is_op_built_in=no": before}
    if decision.collective in _FOLDING:
        leaf = {"is_commutative=yes": leaf, "is_commutative=no": before}
    elif decision.collective == "all_to_all":
        leaf = {"is_sendbuf_inplace=yes": before, "is_sendbuf_inplace=no": leaf}
    return leaf
