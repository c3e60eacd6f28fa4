"""Conversion of hops to live links: mesh links, or pieces of bypass wires."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.bypass.space import Hop, Line, Stretch, TakenHops


def notation(taken: TakenHops) -> str:
    """Returns the notation for `BypassMesh.configure`, without ports.

    Between neighbours the first link is the mesh link, every other one a piece. Pieces are assigned
    to wires by interval colouring: in order of their first segment, each the lowest free wire.
    """
    mesh: list[str] = []
    pieces: dict[Line, list[tuple[Stretch, Hop]]] = defaultdict(list)
    for hop, count in sorted(taken.hops.items()):
        stretch = taken.space.hops[hop]
        first = 1 if stretch.span == 1 else 0
        mesh += [f"{hop[0]}>{hop[1]}"] * first
        pieces[stretch.line] += [(stretch, hop)] * (count - first)
    found = []
    for on_line in pieces.values():
        found += _wired(sorted(on_line))
    several = taken.space.wires > 1
    ends = [f"{a}=>{b}{f'@{wire}' if several else ''}" for (a, b), wire in sorted(found)]
    return ",".join([*mesh, *ends])


def _wired(pieces: list[tuple[Stretch, Hop]]) -> list[tuple[Hop, int]]:
    """Assigns wires to the pieces of a line, which are sorted by first segment."""
    ends: list[int] = []
    found = []
    for stretch, hop in pieces:
        free = [wire for wire, end in enumerate(ends) if end <= stretch.first]
        wire = free[0] if free else len(ends)
        ends[wire : wire + 1] = [stretch.end]
        found.append((hop, wire))
    return found
