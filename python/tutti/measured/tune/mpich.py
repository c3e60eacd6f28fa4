"""MPICH's selections (CSEL): rules merged into the stock trees, since a tree must be complete.

A call passes two trees. The device's tree selects the composition of a collective on communicators
with ranks that share hosts, or leaves it to the tree of algorithms. Both are compiled into every
MPICH as text, and are read from the library to be tuned, so that they have its version. If a tree
lacks a collective, MPICH aborts at the first call of it.

For the tuned ranks and sizes the device's tree gets a rule that leaves the collective to the
algorithms, and the tree of algorithms gets a rule that names the algorithm. All other calls use the
stock trees.

Source: ``src/mpi/coll/src/csel.c``, ``src/mpid/ch4/src/ch4_coll.h`` and ``maint/tuning/coll`` of
MPICH 5.0.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tutti.collectives.sizes import DEALT_OUT
from tutti.measured.errors import TuningError
from tutti.measured.tune.decisions import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tutti.measured.tune.decisions import TuningDecision
    from tutti.measured.tune.targets import Counterpart
    from tutti.mpi.underneath import Mpi

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
"""The device's compositions that leave a collective to the algorithms; others have no composition.
"""
_FOLDING = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_COUNTED = frozenset({"all_reduce", "reduce"})
"""Collectives with the condition is_op_built_in: for others MPICH aborts the job."""
_OF_COMMUNICATOR = re.compile(r"comm_|is_node_consecutive=|algorithm=|composition=|.*=any$")
"""Keys that are no conditions on a call."""
_START = b'{"collective='
_LIBRARIES = ("libmpi.so*", "libmpi_abi.so*", "libmpich*.so*", "libmpi.*dylib")


@dataclass(frozen=True)
class Stock:
    """The default trees of MPICH.

    Attributes:
        algorithms: the tree that names algorithms.
        device: the tree of the device's compositions; None if unknown.
    """

    algorithms: Tree
    device: Tree | None = None


def stock(mpi: Mpi) -> Stock:
    """Reads the stock trees from the library of an MPICH.

    Raises:
        TuningError: Its library is not found, or has no such tree.
    """
    for folder in ("lib", "lib64"):
        for pattern in _LIBRARIES:
            for path in sorted((mpi.prefix / folder).glob(pattern)):
                found = _within(path.read_bytes())
                if found is not None:
                    return found
    message = f"no library in {mpi.prefix} contains the selections of {mpi}"
    raise TuningError(message, kind="csel")


def stock_for(base: Path | None, mpi: Mpi | None, *, strict: bool = False) -> Stock | None:
    """Returns the stock selections of a file, or of an MPI library if it is MPICH.

    Args:
        base: MPICH's generic.json; None for that of the library.
        mpi: The MPI library, or None.
        strict: Whether a library without them is an error.

    Raises:
        TuningError: The file is not a tree, or the library has none.
    """
    if base is not None:
        return Stock(stock_of_file(base))
    if mpi is None or mpi.kind != "mpich":
        return None
    try:
        return stock(mpi)
    except TuningError:
        if strict:
            raise
        return None


def stock_of_file(path: Path) -> Tree:
    """Reads a complete tree, such as ``maint/tuning/coll/mpir/generic.json`` of MPICH's sources.

    Raises:
        TuningError: It cannot be read, or is incomplete.
    """
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: cannot be read as JSON: {error}"
        raise TuningError(message, kind="csel", fields={"path": str(path)}) from None
    if not _is_complete(tree):
        message = f"{path}: lacks some collectives: expected MPICH's complete tree"
        raise TuningError(message, kind="csel", fields={"path": str(path)})
    return dict(tree)


def _within(data: bytes) -> Stock | None:
    """Finds the trees in a library. The device's tree is the one with compositions."""
    found: list[Tree] = []
    at = data.find(_START)
    while at >= 0:
        end = data.find(b"\0", at)
        try:
            tree = json.loads(data[at:end])
        except ValueError:
            end = at + 1
        else:
            found += [tree] if _is_complete(tree) else []
        at = data.find(_START, end)
    composing = [tree for tree in found if "composition=" in json.dumps(tree)]
    naming = [tree for tree in found if tree not in composing]
    if not naming:
        return None
    return Stock(max(naming, key=len), max(composing, key=len, default=None))


def _is_complete(tree: object) -> bool:
    return isinstance(tree, dict) and {f"collective={name}" for name in _NAMES.values()} <= set(
        tree
    )


def settings(path: str, device: str | None, decisions: Sequence[TuningDecision]) -> dict[str, str]:
    """Returns the variables that make MPICH read and apply files of selections.

    Args:
        path: the selections of algorithms.
        device: the device's selections, or None: then the device's compositions of
            the tuned collectives are turned off, also for other ranks and sizes.
        decisions: the written decisions.
    """
    named = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": path}
    if device is not None:
        return named | {"MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": device}
    tuned = {one.collective for one in decisions if one.counterpart("mpich") is not None}
    for collective in sorted(tuned):
        named[f"MPIR_CVAR_{_NAMES[collective].upper()}_DEVICE_COLLECTIVE"] = "0"
    return named


def merged(tree: Tree, decisions: Sequence[TuningDecision]) -> str:
    """Returns the text of a file: the stock tree, with the decisions before its conditions.

    Args:
        tree: the complete stock tree; it is not modified.
        decisions: for the target `mpich`; those without a schedule use the stock tree.

    Raises:
        TuningError: No decision can be expressed.
    """
    tuned = _merged(tree, decisions, _named)
    if tuned == tree:
        message = "MPICH has none of the fastest schedules"
        raise TuningError(message, kind="nothing")
    return json.dumps(tuned, indent=2) + "\n"


def merged_device(tree: Tree, decisions: Sequence[TuningDecision]) -> str:
    """Returns the device's file: collectives with rules of :func:`merged` are left to these."""
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
    for collective, some in groupby(complete(decisions), lambda one: one.collective):
        by_ranks = {ranks: list(mine) for ranks, mine in groupby(some, lambda one: one.ranks)}
        ruled = {
            ranks: mine
            for ranks, mine in by_ranks.items()
            if any(one.counterpart("mpich") is not None for one in mine)
        }
        if collective in _NAMES and ruled:
            key = f"collective={_NAMES[collective]}"
            conditions = dict(tree[key])
            conditions["comm_type=intra"] = _by_ranks(ruled, tree[key]["comm_type=intra"], write)
            tuned[key] = conditions
    return tuned


def _by_ranks(
    ruled: dict[int, list[TuningDecision]], before: Tree, write: Callable[[Counterpart], Tree]
) -> Tree:
    """Conditions are tested in order, so rank counts in between use the stock tree."""
    node: Tree = {}
    above = 0
    for ranks in sorted(ruled):
        if ranks - 1 > above:
            node[f"comm_size<={ranks - 1}"] = before
        node[f"comm_size<={ranks}"] = _by_nodes(ruled[ranks], _of_ranks(before, ranks), write)
        above = ranks
    node["comm_size=any"] = before
    return node


def _by_nodes(
    decisions: list[TuningDecision], before: Tree, write: Callable[[Counterpart], Tree]
) -> Tree:
    """Returns the rules; for a number of ranks per node below conditions on their average."""
    rules, each = _by_sizes(decisions, before, write), decisions[0].ranks_per_node
    if each is None:
        return rules
    fewer = {f"comm_avg_ppn<={each - 1}": before} if each > 1 else {}
    return fewer | {f"comm_avg_ppn<={each}": rules, "comm_avg_ppn=any": before}


def _of_ranks(tree: Tree, ranks: int, *, is_call: bool = False) -> Tree:
    """Returns the tree for this number of ranks, without conditions on ranks.

    MPICH evaluates conditions on the communicator when it creates one, up to the first condition on
    a call, and there ``comm_size<8`` has its meaning. From that condition on each call evaluates
    all, and takes ``comm_size<8`` for ``comm_size<=8``.

    Args:
        tree: The conditions.
        ranks: The number of ranks.
        is_call: Whether a condition on a call precedes them.
    """
    kept: Tree = {}
    for key, below in tree.items():
        is_call = is_call or not _OF_COMMUNICATOR.match(key)
        holds = _holds(key, ranks, is_call=is_call)
        if holds is False:
            continue
        found = _of_ranks(below, ranks, is_call=is_call)
        if holds is None:
            kept[key] = found
            continue
        if not kept:
            return found
        kept["comm_size=any"] = found
        break
    return kept


def _holds(key: str, ranks: int, *, is_call: bool) -> bool | None:
    """Whether a condition on the number of ranks is met; None for other conditions."""
    name, sign, value = next(
        (key.partition(sign) for sign in ("<=", "<", "=") if sign in key), (key, "", "")
    )
    if name != "comm_size" or value == "node_comm_size":
        return None
    if value in {"any", "pow2"}:
        return value == "any" or ranks & (ranks - 1) == 0
    return ranks <= int(value) if sign == "<=" or is_call else ranks < int(value)


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
    """Returns the tree of an algorithm, and the stock tree where the algorithm is not allowed."""
    found = decision.counterpart("mpich")
    if found is None:
        return before
    leaf = write(found)
    if decision.collective in _COUNTED and found.algorithm.elements:
        # It needs an element for each rank, and a predefined operation.
        leaf = {"count<pow2": before, "count=any": leaf}
        leaf = {"is_op_built_in=yes": leaf, "is_op_built_in=no": before}
    if decision.collective in _FOLDING:
        leaf = {"is_commutative=yes": leaf, "is_commutative=no": before}
    elif decision.collective == "all_to_all":
        leaf = {"is_sendbuf_inplace=yes": before, "is_sendbuf_inplace=no": leaf}
    return leaf
