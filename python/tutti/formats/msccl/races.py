"""Finds conflicting accesses of thread blocks that no dependency orders.

A conflict is two accesses to a chunk of which one is a write. The result of a program with
unordered conflicts depends on timing. Each event has a vector clock: how many events of each thread
block precede it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.formats.msccl.order import Temporary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.formats.msccl.order import Cell, Node
    from tutti.formats.msccl.program import Program

_MOST_CLOCKS = 1 << 26
_FEW_CLOCKS = 1 << 14
"""Clocks that lists hold: an import of NumPy takes longer than the check."""


def races(program: Program, order: list[Node]) -> list[tuple[int, int, Cell]] | None:
    """Returns pairs of events with an unordered conflict, with the chunks; at most ten.

    Args:
        program: The program.
        order: Its actions, in any order that the dependencies permit.

    Returns:
        The pairs, or None if the program is too large to check.
    """
    blocks: dict[tuple[int, int], int] = {}
    chains = [blocks.setdefault((event.rank, event.block), len(blocks)) for event in program.events]
    if len(chains) * len(blocks) > _MOST_CLOCKS:
        return None
    clocks = _clocks(program, order, chains, len(blocks))
    return _conflicts(program, order, chains, clocks)


def _zeros(events: int, blocks: int) -> tuple[Any, Callable[[Any, Any], Any]]:
    """Returns clocks of 0, and the function that returns the maximum of two clocks."""
    if events * blocks <= _FEW_CLOCKS:
        return [[0] * blocks for _ in range(events)], lambda a, b: list(map(max, a, b))
    import numpy as np

    return np.zeros((events, blocks), dtype=np.uint32), np.maximum


def _clocks(program: Program, order: list[Node], chains: list[int], blocks: int) -> Any:  # noqa: ANN401 - lists or an array
    """Returns the clock of each event: the events of each thread block up to it."""
    events = program.events
    clocks, maximum = _zeros(len(events), blocks)
    before: list[list[int]] = [[*event.after, *event.after_all] for event in events]
    previous: dict[int, int] = {}
    for index, chain in enumerate(chains):
        if chain in previous:
            before[index].append(previous[chain])
        previous[chain] = index
    left = [0] * len(events)
    for node in order:
        left[node.event] += node.rank == events[node.event].rank
        if node.kind == "send":
            receiver = node.next[-1].event
            if receiver != node.event:
                before[receiver].append(node.event)
    for node in order:
        index = node.event
        left[index] -= node.rank == events[index].rank
        if left[index] == 0:
            left[index] = -1
            for other in before[index]:
                clocks[index] = maximum(clocks[index], clocks[other])
            clocks[index][chains[index]] = events[index].number + 1
    return clocks


def _conflicts(
    program: Program,
    order: list[Node],
    chains: list[int],
    clocks: Any,  # noqa: ANN401 - as above
) -> list[tuple[int, int, Cell]]:
    found: dict[tuple[int, int], Cell] = {}
    writes: dict[tuple[int, int, int], int] = {}
    reads: dict[tuple[int, int, int], list[int]] = {}
    numbers = [event.number for event in program.events]

    def check(first: int, second: int, cell: Cell) -> None:
        if first != second and clocks[second][chains[first]] <= numbers[first]:
            found.setdefault((first, second), cell)

    for node in order:
        if len(found) >= 10:
            break
        for source in node.sources:
            for place in _places(node.rank, source):
                if place in writes:
                    check(writes[place], node.event, source)
                readers = reads.setdefault(place, [])
                if not readers or readers[-1] != node.event:
                    readers.append(node.event)
        if node.into is not None:
            for place in _places(node.rank, node.into):
                if place in writes:
                    check(writes[place], node.event, node.into)
                for reader in reads.pop(place, ()):
                    check(reader, node.event, node.into)
                writes[place] = node.event
    return [(*pair, cell) for pair, cell in found.items()]


def _places(rank: int, cell: Cell) -> list[tuple[int, int, int]]:
    slot, start, count = cell
    if isinstance(slot, Temporary):
        return []
    return [(rank, slot, at) for at in range(start, start + count)]
