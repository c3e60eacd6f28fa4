"""The lines of a drawn topology: a line per cable, a colour per kind of link, a width per rate."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.view.palette import GREY, styles

if TYPE_CHECKING:
    from tutti.topologies import Link, Topology

    from .layout import Layout, Position

_WIDTHS = (0.7, 3.0)
_MOST_KINDS = 8
"""Kinds of link with a colour; the others share grey."""


@dataclass(frozen=True, slots=True)
class Line:
    """A cable, or a unidirectional link, which is an arrow; bent lines would cover others."""

    ends: tuple[Position, Position]
    colour: str
    width: float
    is_arrow: bool
    is_bent: bool


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a topology, and label and colour of each kind of link."""

    lines: list[Line]
    legend: list[tuple[str, str]]


def lines(topology: Topology, placed: Layout) -> Lines:
    """Returns the lines of a topology and their legend."""
    kinds = Counter(_kind(link) for link in topology.links)
    known = [kind for kind, _ in kinds.most_common(_MOST_KINDS)]
    palette = styles([str(number) for number in range(len(known))])
    colours = {kind: palette[str(number)].colour for number, kind in enumerate(known)}
    widths = _widths(topology)
    both = {(link.source, link.target, _kind(link)) for link in topology.links}
    found: list[Line] = []
    legend: dict[str, str] = {}
    for link in topology.links:
        kind = _kind(link)
        cable = (link.target, link.source, kind) in both
        if cable and link.source > link.target:
            continue
        colour = colours.get(kind, GREY)
        group = kind if kind in colours else "other"
        legend.setdefault(f"{group} ({_count(group, kinds, colours)} links)", colour)
        ends = (placed.at[link.source], placed.at[link.target])
        found.append(
            Line(
                ends if not cable or ends[0] < ends[1] else ends[::-1],
                colour,
                widths[str(link.rate)],
                is_arrow=not cable,
                is_bent=(link.source, link.target) in placed.bent,
            )
        )
    return Lines(found, list(legend.items()))


def _kind(link: Link) -> str:
    length = "" if link.length is None else f", {link.length}"
    return f"{link.rate}, {link.latency}{length}"


def _count(group: str, kinds: Counter[str], colours: dict[str, str]) -> int:
    if group in kinds:
        return kinds[group]
    return sum(count for kind, count in kinds.items() if kind not in colours)


def _widths(topology: Topology) -> dict[str, float]:
    """Returns line widths by the logarithm of the rate."""
    rates = {str(link.rate): link.rate.core.bytes_per_second for link in topology.links}
    if not rates:
        return {}
    low, high = math.log(min(rates.values())), math.log(max(rates.values()))
    thin, thick = _WIDTHS
    share = {text: (math.log(rate) - low) / (high - low or 1.0) for text, rate in rates.items()}
    return {text: thin + (thick - thin) * part for text, part in share.items()}
