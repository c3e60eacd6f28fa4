"""Rings of NCCL that load all links of a node, or all network adapters, equally."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from tutti.schedules.builder import ScheduleBuilder
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.builder import RankProgram
    from tutti.schedules.ir import Schedule

_Order = tuple[int, ...]
_MOST_PERMUTED = 6
"""Most GPUs of a node for which all Hamiltonian cycles are rings: 120. 4 and 6 GPUs have no set of
cycles that uses each link once."""
MOST_PAIRED = 8
"""Most GPUs of a node without switches whose rings tutti builds."""

_MOST_OPS = 2_000_000
"""Most ops of rings, which are built op by op."""


def rings(collective: str, orders: Sequence[_Order]) -> Schedule:
    """Returns rings that share the payload equally.

    Args:
        collective: all_reduce, all_gather or reduce_scatter.
        orders: The ranks in the order of each ring.

    Raises:
        AlgorithmError: The schedule has too many ops.
    """
    ranks = len(orders[0])
    ops = 6 * ranks * ranks * len(orders)
    if ops > _MOST_OPS:
        problem = f"rings through {ranks:,} GPUs have about {ops:,} ops"
        raise AlgorithmError(f"{problem}: expected at most {_MOST_OPS:,}", kind="too_many_ranks")
    name = f"rings:{len(orders)}"
    builder = ScheduleBuilder(collective, ranks=ranks, chunks=ranks * len(orders), name=name)
    places = [{rank: at for at, rank in enumerate(order)} for order in orders]
    reducing = 0 if collective == "all_gather" else ranks - 1
    steps = reducing + (0 if collective == "reduce_scatter" else ranks - 1)
    for rank in range(ranks):
        program = builder.rank(rank)
        for step in range(steps):
            program.step(f"step {step}")
            _add_step(program, step, orders, [place[rank] for place in places], reducing)
    return builder.build()


def paired(width: int, nodes: int = 1) -> list[_Order]:
    """Returns rings through GPUs that have a link to each other.

    Within a node they are Hamiltonian cycles, which use each link equally often. Between nodes,
    each ring enters and leaves a node by other GPUs, along paths that use each link of the node
    once. Each second node has the reversed paths, so that rings stay on the rails of GPUs;
    the number of nodes is even.

    Args:
        width: The GPUs of a node, at most `MOST_PAIRED`.
        nodes: The number of nodes.

    Raises:
        AlgorithmError: No such rings are known.
    """
    if width > MOST_PAIRED or (nodes > 1 and (width % 2 or nodes % 2)):
        on = f" of each of {nodes} nodes" if nodes > 1 else ""
        problem = f"tutti has no rings through {width} GPUs{on} without switches"
        raise AlgorithmError(problem, kind="wrong_ranks", fields={"ranks": width * nodes})
    return [
        tuple(
            node * width + gpu for node in range(nodes) for gpu in order[:: -1 if node % 2 else 1]
        )
        for order in (_paths(width) if nodes > 1 else cycles(width))
    ]


def rotated(width: int, nodes: int, channels: int) -> list[_Order]:
    """Returns rings through nodes with switches, each of which stays on two rails.

    Ring c enters even nodes at GPU c and leaves them at c - 1, and the reverse on odd nodes. If
    the number of nodes is odd, it leaves the last node but one at c + 1.

    Args:
        width: The GPUs of a node, at least 3 on an odd number of nodes.
        nodes: The number of nodes.
        channels: The number of rings, at most the GPUs of a node.
    """
    found = []
    for channel in range(channels):
        up = [(channel + by) % width for by in range(width)]
        paths = [up if node % 2 == 0 else up[::-1] for node in range(nodes)]
        if nodes % 2 and nodes > 1 and width > 2:
            paths[-2:] = [*up[:0:-1][:-1], up[0], up[1]], [*up[1:], up[0]]
        found.append(tuple(node * width + gpu for node, path in enumerate(paths) for gpu in path))
    return found


def _add_step(
    program: RankProgram, step: int, orders: Sequence[_Order], places: list[int], reducing: int
) -> None:
    """Adds a step of a rank in all rings: a reduction in the first `reducing` steps."""
    folds = step < reducing
    behind = step + 1 if folds else step - reducing
    sent, received, ranks = [], [], len(orders[0])
    for index, (order, at) in enumerate(zip(orders, places, strict=True)):
        right, left = order[(at + 1) % ranks], order[at - 1]
        sent.append((right, order[(at - behind) % ranks] * len(orders) + index))
        received.append((left, order[(at - behind - 1) % ranks] * len(orders) + index))
    for peer, chunk in sent:
        program.send(peer, chunk=chunk)
    for peer, chunk in received:
        program.recv(peer, chunk=chunk, slot=int(folds))
    if folds:
        for _, chunk in received:
            program.reduce(0, [1, 0], chunk=chunk)


def _paths(width: int) -> list[_Order]:
    """Returns as many Hamiltonian paths as GPUs, an even number; each link is in one of them.

    Source: Williams, Experimental designs balanced for the estimation of residual effects of
    treatments, 1949: the path 0, 1, w - 1, 2, w - 2 and so on, and its rotations.
    """
    first = [0, *(one for low in range(1, width // 2 + 1) for one in (low, width - low))][:width]
    return [tuple((gpu + by) % width for gpu in first) for by in range(width)]


@functools.cache
def cycles(width: int) -> list[_Order]:
    """Returns Hamiltonian cycles that use each link of fully connected GPUs equally often."""
    if width <= _MOST_PERMUTED:
        return [(0, *rest) for rest in itertools.permutations(range(1, width))]
    return _decomposed(width)


def _decomposed(width: int) -> list[_Order]:
    """Returns cycles that use each link once, the first that a search finds."""
    unused = {(a, b) for a in range(width) for b in range(width) if a != b}
    found: list[_Order] = []

    def extend(path: list[int]) -> bool:
        if len(path) == width:
            if (path[-1], 0) not in unused:
                return False
            unused.discard((path[-1], 0))
            found.append(tuple(path))
            if len(found) == width - 1 or extend([0]):
                return True
            found.pop()
            unused.add((path[-1], 0))
            return False
        for gpu in range(1, width):
            link = (path[-1], gpu)
            if link in unused and gpu not in path:
                unused.discard(link)
                if extend([*path, gpu]):
                    return True
                unused.add(link)
        return False

    extend([0])
    return found
