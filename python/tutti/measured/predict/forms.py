"""Stages of algorithms for which the core has no closed form.

Trees whose ranks forward to several others end at a time that depends on the network; their stages
here are those of the longest path.

The manual of Fujitsu MPI names its algorithms for the Tofu interconnect without defining their
messages. Their forms are inferred from their names, and from the scaling of measured times between
2x2x2 and 4x4x4 nodes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.measured.predict.stages import Stage, closed_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EMPTY = 1e-9
"""Fraction of a message that has a latency but no size."""
_TREES = 5.0
"""Edge-disjoint spanning trees that `trinaryx6` fills: a node that forwards uses five of its six
interfaces to send."""
_THIRD = 2.0
_REDUCED = 2.4
"""Links that trees which reduce fill: 512 MiB take 35 ms, with three interfaces and with six."""
_CHAINS = 4

Stages = list[Stage]


def _latency(steps: int, messages: float = 1) -> Stages:
    return [Stage(steps, messages, _EMPTY)]


def _steps(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


def _linear(ranks: int) -> Stages:
    return [Stage(1, ranks - 1, 1.0, partners="root")]


def _trees(sides: Sequence[int], trees: float) -> Stages:
    hops = sum(side // 2 for side in sides)
    return [*_latency(hops, 3), Stage(1, 1, 1 / trees)]


def _pipelined_reduce(ranks: int) -> Stages:
    """A rank receives two blocks and sends one, sequentially."""
    return [*_latency(_steps(ranks), 2), Stage(3, 1, 1.0, 2 / 3)]


def _flat(sides: Sequence[int]) -> bool:
    """Whether a side is too short for six trees: the library then uses another algorithm."""
    return min(sides) <= 2


def _default_broadcast(ranks: int, sides: Sequence[int]) -> Stages:
    return _linear(ranks) if _flat(sides) else _trees(sides, _TREES)


def _tree_broadcast(_collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    return _default_broadcast(ranks, sides) if wide else _trees(sides, _THIRD)


def _tree_reduce(_collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    if wide and _flat(sides):
        return _pipelined_reduce(ranks)
    return _trees(sides, _REDUCED)


def _tree_all_reduce(_collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    if wide and _flat(sides):
        return list(closed_form("ring", "all_reduce", ranks, "neighbour") or ())
    return _trees(sides, _REDUCED) + _trees(sides, _TREES if wide else _THIRD)


def _reduce_broadcast(_collective: str, ranks: int, sides: Sequence[int], _wide: bool) -> Stages:
    return _pipelined_reduce(ranks) + _default_broadcast(ranks, sides)


def _gather_broadcast(collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    return _simple_gather(collective, ranks, sides, wide) + _default_broadcast(ranks, sides)


def _scatter_by_broadcast(
    _collective: str, ranks: int, sides: Sequence[int], _wide: bool
) -> Stages:
    return _default_broadcast(ranks, sides)


def _simple_gather(_collective: str, ranks: int, _sides: Sequence[int], _wide: bool) -> Stages:
    return [*_latency(2 * _steps(ranks)), Stage(1, 1, 0.5)]


def _binary_reduce(_collective: str, ranks: int, _sides: Sequence[int], _wide: bool) -> Stages:
    return _pipelined_reduce(ranks)


def _reduce_then_scatter(
    _collective: str, ranks: int, _sides: Sequence[int], _wide: bool
) -> Stages:
    scatter = closed_form("binomial", "scatter", ranks, "large_far") or ()
    return [*_pipelined_reduce(ranks), *scatter]


def _binary_trees(_collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    if _flat(sides):
        return _linear(ranks)
    hops = sum(side // 2 for side in sides)
    return [*_latency(hops), Stage(1, 1, 3.0 / (2.5 if wide else 1.0))]


def _blacc(_collective: str, ranks: int, _sides: Sequence[int], wide: bool) -> Stages:
    exchange = Stage(1, max(1.0, (ranks - 1) / 3), 3 / ranks, partners="all")
    return [exchange] if wide else [*_latency(ranks), exchange]


def _bucket(_collective: str, ranks: int, sides: Sequence[int], _wide: bool) -> Stages:
    """A ring in each dimension and direction at once; a side of two has one link."""
    links = sum(1 if side == 2 else 2 for side in sides)
    return [*_latency(sum(side - 1 for side in sides), links), Stage(1, 1, (1 - 1 / ranks) / links)]


def _slow_bucket(collective: str, ranks: int, sides: Sequence[int], wide: bool) -> Stages:
    """A bucket with further messages for each rank: 0.3 ms on 8 nodes, 1.4 ms on 64, any size."""
    return [*_latency(8 * ranks), *_bucket(collective, ranks, sides, wide)]


def _rings(collective: str, ranks: int, sides: Sequence[int], _wide: bool) -> Stages:
    """A ring in one dimension after the other, with what the dimensions before have gathered."""
    gather, gathered = [], 1
    for side in sides:
        gather.append(Stage(side - 1, 1, gathered / ranks))
        gathered *= side
    if collective == "all_gather":
        return gather
    scatter = [replace(one, folded=one.fraction) for one in reversed(gather)]
    return scatter + (gather if collective == "all_reduce" else [])


def _binary_tree(collective: str, ranks: int, _sides: Sequence[int], _wide: bool) -> Stages:
    folds = 2.0 if collective == "reduce" else 0.0
    return [Stage(1, 2, 1.0, folds, "doubling", step) for step in range(_depth(ranks))]


def _split_binary_tree(_collective: str, ranks: int, _sides: Sequence[int], _wide: bool) -> Stages:
    halves = [Stage(1, 2, 0.5, 0.0, "doubling", step) for step in range(_depth(ranks))]
    return [*halves, Stage(1, 1, 0.5)]


def _depth(ranks: int) -> int:
    return max(1, int(math.log2(ranks + 1)))


def _chains(collective: str, ranks: int, _sides: Sequence[int], _wide: bool) -> Stages:
    """Four chains from one root, as in Open MPI."""
    folds = 1.0 if collective == "reduce" else 0.0
    hops = max(1, math.ceil((ranks - 1) / _CHAINS) - 1)
    return [Stage(1, _CHAINS, 1.0, _CHAINS * folds), Stage(hops, 1, 1.0, folds)]


def _linear_broadcast(_collective: str, ranks: int, sides: Sequence[int], _wide: bool) -> Stages:
    """The messages of the root share its links: two per dimension, at short sides."""
    return [Stage(1, ranks - 1, 1.0 if _flat(sides) else 3.0, partners="root")]


FORMS: dict[str, Callable[[str, int, Sequence[int], bool], Stages]] = {
    "binary_tree": _binary_tree,
    "split_binary_tree": _split_binary_tree,
    "chains": _chains,
    "tree_broadcast": _tree_broadcast,
    "tree_reduce": _tree_reduce,
    "tree_all_reduce": _tree_all_reduce,
    "reduce_broadcast": _reduce_broadcast,
    "gather_broadcast": _gather_broadcast,
    "scatter_by_broadcast": _scatter_by_broadcast,
    "simple_gather": _simple_gather,
    "binary_reduce": _binary_reduce,
    "reduce_then_scatter": _reduce_then_scatter,
    "binary_trees": _binary_trees,
    "blacc": _blacc,
    "bucket": _bucket,
    "slow_bucket": _slow_bucket,
    "rings": _rings,
    "linear_broadcast": _linear_broadcast,
}
"""The forms that the catalogue names: functions of the collective, the ranks, the sides of the
torus, and whether six interfaces are used instead of three."""


_REPLACED = frozenset(
    {
        "binary_trees",
        "gather_broadcast",
        "linear_broadcast",
        "reduce_broadcast",
        "scatter_by_broadcast",
        "tree_all_reduce",
        "tree_broadcast",
        "tree_reduce",
    }
)


def replaced(form: str | None, sides: Sequence[int]) -> bool:
    """Returns whether the library runs another algorithm on a torus with sides this short.

    Args:
        form: a name of :data:`FORMS`, if any.
        sides: the sides of the torus; one number on any other network.
    """
    return len(sides) > 1 and form in _REPLACED and _flat(sides)


def stages_of_form(
    form: str, collective: str, ranks: int, sides: Sequence[int], *, wide: bool
) -> list[Stage]:
    """Returns the stages of a form.

    Args:
        form: a name of :data:`FORMS`.
        collective: the collective.
        ranks: the number of ranks.
        sides: the sides of the torus.
        wide: whether it uses six network interfaces instead of three.
    """
    return FORMS[form](collective, ranks, sides, wide)
