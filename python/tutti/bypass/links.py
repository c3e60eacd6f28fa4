"""From hops to live links: which are mesh links, which pieces, and of which wire."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.bypass.space import Hop, Line, Stretch, TakenHops


def notation(taken: TakenHops) -> str:
    """The live links as `BypassMesh.configure` reads them; ports are left to it.

    Between neighbours the first link is the mesh's own, every other one a piece. Pieces take wires
    as intervals take colours: from the lowest segment on, each the lowest wire that is free.
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
    """The wire of each piece of a line; they come by their first segment."""
    ends: list[int] = []
    found = []
    for stretch, hop in pieces:
        free = [wire for wire, end in enumerate(ends) if end <= stretch.first]
        wire = free[0] if free else len(ends)
        ends[wire : wire + 1] = [stretch.end]
        found.append((hop, wire))
    return found
