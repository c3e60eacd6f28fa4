"""Messages on the most loaded link of a torus, and their hops, by dimension-order routes.

All rings of a dimension carry the same messages, since partners differ by the coordinate in one
dimension. The load of a step is therefore that of one ring per dimension. Messages half a ring
apart use both directions; a ring of two nodes is one link.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tutti.measured.predict.stages import Stage

    Floats = NDArray[np.float64]

_UNIFORM = 1 / 8
"""Links of a ring of L nodes carry L / 8 of what a node sends to uniformly chosen nodes."""


def negabinary_distance(step: int) -> int:
    """Returns the distance of partners in a step of a Bine butterfly: 1, 1, 3, 5, 11, ..."""
    return max(1, abs(1 - int((-2) ** (step + 1))) // 3)


def box_of(sides: Sequence[int]) -> tuple[int, ...]:
    """Returns the sides of the box that is closest to a cube, if a job requested two sides.

    Such a job is folded into a torus of more dimensions, whose routes are shorter than its sides.
    """
    if len(sides) != 2:
        return tuple(sides)
    nodes = math.prod(sides)
    boxes = [
        (nodes // (a * b), b, a)
        for a in range(1, round(nodes ** (1 / 3)) + 1)
        if nodes % a == 0
        for b in range(a, math.isqrt(nodes // a) + 1)
        if nodes % (a * b) == 0
    ]
    return min(boxes, key=lambda box: (max(box), sum(box)))


def link_load(stage: Stage, sides: Sequence[int]) -> float:
    """Returns the messages of a stage on the most loaded link of a torus.

    Ranks are numbered along the first side first. A collective that is striped over network
    interfaces runs once per interface, each with another first dimension; after all dimensions, in
    the mirror image of the torus (De Sensi et al., "Swing", NSDI '24).

    Args:
        stage: the stage.
        sides: the sides that the job requested; one side means an uncongested network. How two
            sides are folded is unknown: the load is the geometric mean of those of the plane and of
            the box closest to a cube.
    """
    if len(sides) == 1 or stage.partners == "root":
        return 1.0
    copies = math.ceil(stage.ports / len(sides))
    if stage.partners == "neighbour" or stage.is_tree:
        # At most one message of a copy is on a link; mirror images use the other directions.
        return float(copies if min(sides) == 2 else math.ceil(copies / 2))
    load = _load(stage, tuple(sides), stage.ports)
    box = box_of(sides)
    if len(box) == len(sides):
        return load
    # As many copies per dimension as in the plane.
    return math.sqrt(load * _load(stage, box, copies * len(box) if stage.ports > 1 else 1))


def mean_hops(stage: Stage, sides: Sequence[int]) -> float:
    """Returns the hops of a message on a torus beyond the first.

    Args:
        stage: the stage.
        sides: as in :func:`link_load`.
    """
    if len(sides) == 1 or stage.partners == "neighbour":
        return 0.0
    return math.sqrt(math.prod(_hops(stage, tuple(one)) for one in (sides, box_of(sides))))


def _load(stage: Stage, sides: tuple[int, ...], ports: int) -> float:
    if stage.partners == "all":
        # Messages leave over all interfaces at once, so that their time is added to that of links.
        return 1.0 + max(side * _UNIFORM * (2 if side == 2 else 1) for side in sides)
    if stage.partners == "shift":
        return _of_shifts(sides)
    return _of_exchange(stage.step, stage.alternating, stage.in_turn, sides, ports)


def _hops(stage: Stage, sides: tuple[int, ...]) -> float:
    if stage.partners in {"all", "shift", "root"}:
        # Half of the ring at most, a quarter on average; the root waits for the farthest.
        share = 2 if stage.partners == "root" else 4
        return max(0.0, sum(side / share for side in sides) - 1)
    dimension, within = _dimension(stage.step, stage.in_turn, sides, 0)
    distance = negabinary_distance(within) if stage.alternating else 1 << within
    return max(0.0, min(distance, sides[dimension] / 2) - 1.0)


def _dimension(step: int, in_turn: bool, sides: tuple[int, ...], first: int) -> tuple[int, int]:
    """The dimension that a step uses, and the step's number within it."""
    order = [(first + turn) % len(sides) for turn in range(len(sides))]
    steps = [(within, one) for one in order for within in range(int(math.log2(sides[one])))]
    if in_turn:
        steps.sort(key=lambda one: one[0])
    within, dimension = steps[min(step, len(steps) - 1)] if steps else (0, first)
    return dimension, within


@cache
def _of_exchange(
    step: int, alternating: bool, in_turn: bool, sides: tuple[int, ...], ports: int
) -> float:
    """The largest load of an exchange that runs once per port."""
    links = [np.zeros(2 * side) for side in sides]
    for port in range(ports):
        turn, first = divmod(port, len(sides))
        dimension, within = _dimension(step, in_turn, sides, first)
        links[dimension] += _ring(sides[dimension], within, alternating, turn % 2 == 1)
    return max(float(one.max()) for one in links)


def _ring(side: int, within: int, alternating: bool, mirrored: bool) -> Floats:
    """The load of each link of a ring, forwards and then backwards."""
    node = np.arange(side)
    if alternating:
        shift = np.where(node % 2 == 0, 1, -1) * negabinary_distance(within)
    else:
        shift = (node ^ (1 << within)) - node
    if mirrored:
        shift = -np.roll(shift[::-1], 1)
    return _carried(node, shift, side)


def _carried(node: NDArray[np.int64], shift: NDArray[np.int64], side: int) -> Floats:
    """The messages on each link of a ring, if each node sends one by the shortest route."""
    shift = shift % side
    links = np.zeros((2, side))
    for start, hops in zip(node.tolist(), shift.tolist(), strict=True):
        forwards = 0.5 if 2 * hops == side else float(2 * hops < side)
        links[0, (start + np.arange(hops)) % side] += forwards
        links[1, (start - np.arange(side - hops)) % side] += 1 - forwards
    return links.ravel() if side > 2 else 2 * links.ravel()


@cache
def _of_shifts(sides: tuple[int, ...]) -> float:
    """The mean over all distances of the largest load, if each rank sends to one at a distance."""
    shifts = np.arange(1, math.prod(sides))
    largest = np.zeros(len(shifts))
    below = 1
    for side in sides:
        here, carry = shifts // below % side, shifts % below > 0
        for one in (here, np.where(carry, (here + 1) % side, here)):
            largest = np.maximum(largest, np.minimum(one, side - one))
        below *= side
    return float(largest.mean())
