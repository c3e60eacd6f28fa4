"""MPICH's selections (CSEL): rules merged into the stock trees, since a tree has to be whole.

A call goes through two of them. The device's says of which parts a collective is composed on
communicators whose ranks share hosts, or leaves it to the tree of algorithms. Both are compiled
into every MPICH as text; they are read from the library that is to be tuned, so they are always
those of its version. Where a tree lacks a collective, MPICH stops at the first call of one.

For the ranks and sizes that are tuned the device's tree gets a rule that leaves the collective to
the algorithms, and the tree of algorithms gets one that names it. All others go by the stock trees.

Source: ``src/mpi/coll/src/csel.c``, ``src/mpid/ch4/src/ch4_coll.h`` and ``maint/tuning/coll`` of
MPICH 5.0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tutti.errors import TuningError
from tutti.mpi.sizes import DEALT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tutti.mpi.underneath import Mpi
    from tutti.tune.decisions import TuningDecision
    from tutti.tune.targets import Counterpart

__all__ = ["Stock", "merged", "merged_device", "settings", "stock", "stock_of_file"]

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
_FLAT = {
    "all_reduce": "MPIDI_Allreduce_intra_composition_beta",
    "broadcast": "MPIDI_Bcast_intra_composition_gamma",
    "reduce": "MPIDI_Reduce_intra_composition_gamma",
    "barrier": "MPIDI_Barrier_intra_composition_beta",
}
"""What the device calls leaving a collective to the algorithms. The others are left to them anyway.
"""
_FOLDING = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_COUNTED = frozenset({"all_reduce", "reduce"})
"""Collectives of which MPICH can be asked for the operation's kind: of others it stops the job."""
_IN_PARTS = ("ring", "recursive_halving_doubling", "reduce_scatter_gather")
"""Schedules whose algorithms need an element for each rank, and operations of MPI's own."""
_START = b'{"collective='
_LIBRARIES = ("libmpi.so*", "libmpi_abi.so*", "libmpich*.so*", "libmpi.*dylib")


@dataclass(frozen=True)
class Stock:
    """The trees of an MPICH that nobody has tuned.

    Attributes:
        algorithms: the one that names algorithms.
        device: the one of the device's compositions; None where it is not known.
    """

    algorithms: Tree
    device: Tree | None = None


def stock(mpi: Mpi) -> Stock:
    """The stock trees out of the library of an MPICH.

    Raises:
        TuningError: its library is not found, or holds no such tree.
    """
    for folder in ("lib", "lib64"):
        for pattern in _LIBRARIES:
            for path in sorted((mpi.prefix / folder).glob(pattern)):
                found = _within(path.read_bytes())
                if found is not None:
                    return found
    message = f"no library below {mpi.prefix} holds the selections of {mpi}"
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


def _within(data: bytes) -> Stock | None:
    """The trees in a library. The device's is the one that composes collectives."""
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
    composing = [tree for tree in found if "composition=" in json.dumps(tree)]
    naming = [tree for tree in found if tree not in composing]
    if not naming:
        return None
    return Stock(max(naming, key=len), max(composing, key=len, default=None))


def _whole(tree: object) -> bool:
    return isinstance(tree, dict) and {f"collective={name}" for name in _NAMES.values()} <= set(
        tree
    )


def settings(path: str, device: str | None, decisions: Sequence[TuningDecision]) -> dict[str, str]:
    """The variables under which MPICH reads files of selections, and goes by them.

    Args:
        path: of the selections of algorithms.
        device: of the device's; None where there are none: then what the device does by itself for
            the tuned collectives is turned off, for other ranks and sizes too.
        decisions: that were written.
    """
    named = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": path}
    if device is not None:
        return named | {"MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": device}
    tuned = {one.collective for one in decisions if one.counterpart("mpich") is not None}
    for collective in sorted(tuned):
        named[f"MPIR_CVAR_{_NAMES[collective].upper()}_DEVICE_COLLECTIVE"] = "0"
    return named


def merged(tree: Tree, decisions: Sequence[TuningDecision]) -> str:
    """The text of a file: the stock tree, with the decisions before its own conditions.

    Args:
        tree: the whole stock tree; it is not changed.
        decisions: for the target `mpich`; those without a schedule go by the stock tree.

    Raises:
        TuningError: no decision can be expressed.
    """
    tuned = _merged(tree, decisions, _named)
    if tuned == tree:
        message = "MPICH has none of the schedules that are the fastest anywhere"
        raise TuningError(message, kind="nothing")
    return json.dumps(tuned, indent=2) + "\n"


def merged_device(tree: Tree, decisions: Sequence[TuningDecision]) -> str:
    """The text of the device's file: just what :func:`merged` has rules for is left to these."""
    mine = [one for one in decisions if one.collective in _FLAT]
    return json.dumps(_merged(tree, mine, _left_to_algorithms), indent=2) + "\n"


def _named(found: Counterpart) -> Tree:
    return {f"algorithm={found.name}": {f"{k}={v}": {} for k, v in found.parameters.items()}}


def _left_to_algorithms(found: Counterpart) -> Tree:
    return {f"composition={_FLAT[found.collective]}": {}}


def _merged(
    tree: Tree, decisions: Sequence[TuningDecision], write: Callable[[Counterpart], Tree]
) -> Tree:
    tuned = dict(tree)
    for collective, some in groupby(decisions, lambda one: one.collective):
        by_ranks = {ranks: list(mine) for ranks, mine in groupby(some, lambda one: one.ranks)}
        told = {
            ranks: mine
            for ranks, mine in by_ranks.items()
            if any(one.counterpart("mpich") is not None for one in mine)
        }
        if collective in _NAMES and told:
            key = f"collective={_NAMES[collective]}"
            whole = dict(tree[key])
            whole["comm_type=intra"] = _by_ranks(told, tree[key]["comm_type=intra"], write)
            tuned[key] = whole
    return tuned


def _by_ranks(
    told: dict[int, list[TuningDecision]], before: Tree, write: Callable[[Counterpart], Tree]
) -> Tree:
    """Conditions are tested in order, so sizes in between go by the tree from before."""
    node: Tree = {}
    above = 0
    for ranks in sorted(told):
        if ranks - 1 > above:
            node[f"comm_size<={ranks - 1}"] = before
        node[f"comm_size<={ranks}"] = _by_sizes(told[ranks], _of_ranks(before, ranks), write)
        above = ranks
    node["comm_size=any"] = before
    return node


def _of_ranks(tree: Tree, ranks: int) -> Tree:
    """A tree for so many ranks, without the conditions on them.

    Below one on sizes MPICH takes ``comm_size<8`` for ``comm_size<=8``.
    """
    kept: Tree = {}
    for key, below in tree.items():
        holds = _holds(key, ranks)
        if holds is False:
            continue
        if holds is None:
            kept[key] = _of_ranks(below, ranks)
            continue
        if not kept:
            return _of_ranks(below, ranks)
        kept["comm_size=any"] = _of_ranks(below, ranks)
        break
    return kept


def _holds(key: str, ranks: int) -> bool | None:
    """Whether a condition on the number of ranks is met; None of any other."""
    name, sign, value = next(
        (key.partition(sign) for sign in ("<=", "<", "=") if sign in key), (key, "", "")
    )
    if name != "comm_size" or value == "node_comm_size":
        return None
    if value in {"any", "pow2"}:
        return value == "any" or ranks & (ranks - 1) == 0
    return ranks <= int(value) if sign == "<=" else ranks < int(value)


def _by_sizes(
    decisions: list[TuningDecision], before: Tree, write: Callable[[Counterpart], Tree]
) -> Tree:
    collective = decisions[0].collective
    if collective == "barrier":
        return _leaf(decisions[0], before, write)
    size = "total_msg_size" if collective in DEALT_OUT else "avg_msg_size"
    node: Tree = {}
    for one in decisions:
        end = "=any" if one.last is None else f"<={one.last}"
        node[f"{size}{end}"] = _leaf(one, before, write)
    return node


def _leaf(decision: TuningDecision, before: Tree, write: Callable[[Counterpart], Tree]) -> Tree:
    """What is written of the algorithm, and the tree from before where it would not be allowed."""
    found = decision.counterpart("mpich")
    if found is None:
        return before
    leaf = write(found)
    if decision.collective in _COUNTED and found.schedule.startswith(_IN_PARTS):
        leaf = {"count<pow2": before, "count=any": leaf}
        leaf = {"is_op_built_in=yes": leaf, "is_op_built_in=no": before}
    if decision.collective in _FOLDING:
        leaf = {"is_commutative=yes": leaf, "is_commutative=no": before}
    elif decision.collective == "all_to_all":
        leaf = {"is_sendbuf_inplace=yes": before, "is_sendbuf_inplace=no": leaf}
    return leaf
