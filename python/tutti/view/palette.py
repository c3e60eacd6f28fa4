"""Colours and markers: one per algorithm and one per kind of op, the same in every drawing.

The first `DISTINCT` colours have the hues of Okabe and Ito 2008, two of Tol, and a grey. They
differ with every common colour blindness. The others are Tol's; similar ones have different
markers. Colours have a contrast of 3:1 with white, and those of `DARK` with a dark page (WCAG 2.2,
1.4.11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_Name = TypeVar("_Name")


@dataclass(frozen=True)
class Style:
    """Colour, marker and dash of an algorithm, in the names of plotly and matplotlib."""

    colour: str
    marker: str
    marker_matplotlib: str
    dash: str
    dash_matplotlib: str


_COLOURS = (
    "#136CC2", "#C65400", "#00988F", "#E67100", "#E862B2", "#399CDA", "#779F5F", "#A53D97",
    "#716D60", "#41A292", "#EE3377", "#997700", "#994455", "#6496C8", "#117733", "#CC6677",
    "#4477AA", "#228833", "#D67A5B", "#989800", "#882255", "#B78C28", "#332288", "#CC3311",
    "#AA4466", "#5566AA", "#0077BB", "#009988", "#E67331", "#EE6677", "#AA3377", "#225555",
    "#666633", "#884400", "#661100", "#448833",
)  # fmt: skip
_ON_DARK = (
    "#0371C5", "#C55600", "#25A072", "#E7AD27", "#CF7CAF", "#56B4E9", "#A8991C", "#A4409F",
    "#73706C", "#44AA99", "#EE3377", "#997700", "#9C4E5D", "#6699CC", "#117733", "#CC6677",
    "#4477AA", "#228833", "#EE8866", "#AAAA00", "#94516D", "#DDAA33", "#67619A", "#CC3311",
    "#AA4466", "#5566AA", "#0077BB", "#009988", "#EE7733", "#EE6677", "#AB3A79", "#516D6D",
    "#69693A", "#915B3F", "#825D5B", "#448833",
)  # fmt: skip
UTILISATION = (
    "#FFE998", "#FEDD7E", "#FEC864", "#FEB04B", "#FD9941", "#FD7B37", "#FC542C", "#EF3323",
    "#DD161D", "#C60624", "#A60026", "#800026",
)  # fmt: skip
"""The colours of utilisation, from idle to busy; the busiest has the highest contrast."""
_UTILISATION_ON_DARK = (
    "#62146C", "#7D1E6C", "#972764", "#B13359", "#CA4149", "#DD5537", "#EE6C23", "#F68911",
    "#FAA813", "#F8C733", "#F9E467", "#FCFFA4",
)  # fmt: skip
DISTINCT = 9
"""The number of first colours that differ with every common colour blindness."""
_MARKERS_PLOTLY = (
    "circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "pentagon",
    "hexagon", "star",
)  # fmt: skip
_MARKERS = tuple(zip(_MARKERS_PLOTLY, "osD^vPXph*", strict=True))
_DASHES = (("solid", "-"), ("dash", "--"), ("dot", ":"))

# Algorithms with a fixed style, which all reports share.
_KNOWN = (
    "recursive_multiplying", "ring", "recursive_doubling", "recursive_halving_doubling",
    "binomial", "direct", "knomial", "hierarchical", "elimination", "hierarchical_leader",
    "pairwise", "dissemination", "scatter_all_gather", "double_binary_tree", "bruck",
    "scatter_destination", "blue_connect", "multi_ring", "swing", "reduce_scatter_gather",
    "multi_tree", "forest", "hierarchical_local", "mirrored_ring", "concentrated_multi_tree",
    "in_network", "neighbor_exchange", "sparbit", "binary_tree", "chain", "split_binary_tree",
    "kary_tree", "bine", "pat", "k_ring", "recursive_exchange",
)  # fmt: skip

BLUE, RED, GREEN, ORANGE, PINK, SKY, OLIVE, PURPLE, GREY = _COLOURS[:DISTINCT]
FAINT = "#C3C8CF"
"""The colour of waiting and idle time, below 3:1 with white so that work is more visible."""
KIND_COLOURS: dict[str, str] = {
    "launch": PURPLE,
    "latency": PURPLE,
    "send": SKY,
    "wait": FAINT,
    "recv": ORANGE,
    "reduce": GREEN,
    "copy": BLUE,
    "compute": PINK,
    "sleep": OLIVE,
    "noise": RED,
}
KINDS: tuple[str, ...] = tuple(KIND_COLOURS)
MESSAGE_COLOUR = "#5B626D"
VERTEX_COLOUR = "#DDE2E8"
"""The fill of the vertices of a topology, with an outline in `OUTLINE_COLOUR`."""
OUTLINE_COLOUR = "#3A424D"
DARK: dict[str, str] = {
    **dict(zip(_COLOURS + UTILISATION, _ON_DARK + _UTILISATION_ON_DARK, strict=True)),
    FAINT: "#3A424C",
    MESSAGE_COLOUR: "#9AA4AF",
    VERTEX_COLOUR: "#2A2F36",
    OUTLINE_COLOUR: "#AEB6C0",
}
"""The colour on a dark page, by colour on a light page."""


def _style(index: int) -> Style:
    lap = index // len(_COLOURS)
    colour = _COLOURS[index % len(_COLOURS)]
    marker, marker_matplotlib = _MARKERS[(index + lap) % len(_MARKERS)]
    dash, dash_matplotlib = _DASHES[lap % len(_DASHES)]
    return Style(colour, marker, marker_matplotlib, dash, dash_matplotlib)


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Returns a style per name: fixed for known algorithms, else the next free one by name."""
    ordered = sorted(set(names))
    chosen = {name: _KNOWN.index(name) for name in ordered if name in _KNOWN}
    taken = set(chosen.values())
    free = (index for index in range(10**6) if index not in taken)
    # Other names first use the styles of absent known algorithms, then further laps.
    for name in ordered:
        if name not in chosen:
            chosen[name] = next(free)
    return {name: _style(chosen[name]) for name in ordered}


def styles_in_order(names: Iterable[_Name]) -> dict[_Name, Style]:
    """Returns a style per name by position: a fixed list has the same styles in every drawing."""
    return {name: _style(index) for index, name in enumerate(names)}


def styles_with(known: Mapping[str, Style], names: Iterable[str]) -> dict[str, Style]:
    """Returns a style per name: that of `known`, else the next one that `known` does not use.

    Without `known` it returns `styles(names)`.
    """
    if not known:
        return styles(names)
    used = set(known.values())
    free = (style for style in map(_style, range(10**6)) if style not in used)
    return {name: known[name] if name in known else next(free) for name in dict.fromkeys(names)}


def others(count: int) -> tuple[str, ...]:
    """Returns colours after the `DISTINCT` first ones."""
    return _COLOURS[DISTINCT : DISTINCT + count]


def kind_colour(kind: str) -> str:
    """Returns the colour of a kind of op; unknown kinds are grey."""
    return KIND_COLOURS.get(kind, GREY)
