"""The stages of an algorithm's critical path, as few numbers as predict its time on a machine.

Stages come from the closed form of the algorithm in the core. Where the core has none for a rank
count, those of the next power of two are used. :mod:`tutti.measured.predict.forms` has the stages
of algorithms without a closed form.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from tutti import _core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Partners = Literal["neighbour", "doubling", "large_near", "large_far", "all", "shift", "root"]
"""Which ranks exchange messages in a stage.

- ``neighbour``: the next rank of a ring.
- ``doubling``: in step s ranks at distance 2^s.
- ``large_near``, ``large_far``: distances double, and the largest messages go to the nearest or to
  the farthest partner.
- ``all``: every rank sends to all others at once.
- ``shift``: every rank sends to the rank at the same distance, with one distance after another.
- ``root``: all messages start or end at one rank.
"""


@dataclass(frozen=True)
class Stage:
    """A step of the critical path, or several equal ones.

    Attributes:
        count: how many equal steps follow each other.
        messages: messages that one rank sends or receives in a step; 0 for local work.
        fraction: size of a message, as a fraction of the vector.
        folded: bytes reduced or copied after the messages, as a fraction of the vector.
        partners: which ranks communicate.
        step: the exponent of the distance between partners, for distances that double.
        alternating: whether partners alternate between both sides (Bine trees).
        ports: network interfaces over which each message is striped.
        is_tree: whether few ranks send at a time, each within a separate range of ranks.
        in_turn: whether steps use the dimensions of a torus in turn, not sequentially.
        one_port: whether all messages of a rank pass one network interface sequentially.
    """

    count: int
    messages: float
    fraction: float
    folded: float = 0.0
    partners: Partners = "neighbour"
    step: int = 0
    alternating: bool = False
    ports: int = 1
    is_tree: bool = False
    in_turn: bool = False
    one_port: bool = False


def next_power_of_two(ranks: int) -> int:
    """Returns the smallest power of two that is at least `ranks`."""
    return 1 << (ranks - 1).bit_length()


@cache
def closed_form(
    notation: str,
    collective: str,
    ranks: int,
    partners: Partners = "doubling",
    *,
    alternating: bool = False,
    folds: bool = False,
) -> tuple[Stage, ...] | None:
    """Returns the stages of an algorithm.

    Args:
        notation: the algorithm, in tutti's notation.
        collective: the collective.
        ranks: the number of ranks.
        partners: which ranks communicate.
        alternating: whether partners alternate between both sides.
        folds: whether ranks beyond a power of two hand over their vector before the algorithm, and
            receive their result after it.

    Returns:
        The stages; None if the core has no closed form for this rank count or the next power of
        two.

    Raises:
        AlgorithmError: The notation is invalid.
    """
    path = _path(notation, collective, ranks)
    if path is None and folds:
        inner = closed_form(
            notation, collective, next_power_of_two(ranks) // 2, partners, alternating=alternating
        )
        result = 1 / ranks if collective == "reduce_scatter" else 1.0
        return inner and (Stage(1, 1, 1.0, 1.0), *inner, Stage(1, 1, result))
    if path is None:
        ranks = next_power_of_two(ranks)
        path = _path(notation, collective, ranks)
    return None if path is None else tuple(_separate(_stages(path, ranks, partners, alternating)))


def _stages(
    path: Sequence[_core.Stage], ranks: int, partners: Partners, alternating: bool
) -> Iterator[Stage]:
    """Merges equal steps of a critical path."""
    keys = [
        (max(one.messages, one.receives), one.chunks / one.of, one.reductions * one.chunks / one.of)
        for one in path
    ]
    steps = max(1, math.ceil(math.log2(ranks)))
    for index, (key, group) in enumerate(itertools.groupby(keys)):
        count, one_port = len(list(group)), partners == "root"
        stage = Stage(count, *key, partners, 0, alternating, one_port=one_port)
        yield replace(stage, step=_step(stage, index, steps))


def _path(notation: str, collective: str, ranks: int) -> list[_core.Stage] | None:
    from tutti.schedules.errors import AlgorithmError

    try:
        return _core.critical_path(notation, collective, ranks)
    except AlgorithmError:
        if ranks == next_power_of_two(ranks):
            raise
        return None


def _step(stage: Stage, index: int, steps: int) -> int:
    """The exponent of the distance of a stage."""
    if stage.partners in {"large_near", "large_far"} and stage.fraction > 0:
        near = round(math.log2(0.5 / min(0.5, stage.fraction * max(1.0, stage.messages))))
        return min(steps - 1, near if stage.partners == "large_near" else steps - 1 - near)
    return index % steps


def _separate(stages: Iterable[Stage]) -> list[Stage]:
    """Splits equal steps whose distances differ."""
    separate: list[Stage] = []
    for stage in stages:
        if stage.partners == "doubling" and stage.count > 1:
            separate += [
                replace(stage, count=1, step=stage.step + step) for step in range(stage.count)
            ]
        else:
            separate.append(stage)
    return separate


def segmented(stages: Sequence[Stage], segment_bytes: int, size: float) -> list[Stage]:
    """Divides messages into segments of at most `segment_bytes`, for a vector of `size` bytes."""
    pieces = [max(1, math.ceil(stage.fraction * size / segment_bytes)) for stage in stages]
    return [
        one for stage, count in zip(stages, pieces, strict=True) for one in divided([stage], count)
    ]


def divided(stages: Sequence[Stage], pieces: int) -> list[Stage]:
    """Divides each message into equal messages."""
    return [
        replace(one, messages=one.messages * pieces, fraction=one.fraction / pieces)
        for one in stages
    ]


def striped(stages: Sequence[Stage], ports: int, *, sequential: bool = False) -> list[Stage]:
    """Stripes each message over `ports` network interfaces, at once or sequentially."""
    if sequential:
        parts = [replace(one, folded=one.folded / ports) for one in stages]
        return [
            replace(one, count=one.count * ports, fraction=one.fraction / ports) for one in parts
        ]
    return [replace(one, fraction=one.fraction / ports, ports=ports) for one in stages]
