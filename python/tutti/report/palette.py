"""Colours and markers: one per algorithm and one per kind of op, the same in every drawing.

The first ten colours are distinguishable with every common colour blindness (Okabe and Ito 2008,
three of Tol, a grey). The others are Tol's; similar colours have different markers. All have a
sufficient contrast on white and on near-black.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Style:
    """Colour, marker and dash of an algorithm, in the names of plotly and matplotlib."""

    colour: str
    marker: str
    marker_matplotlib: str
    dash: str
    dash_matplotlib: str


_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#999933", "#AA4499",
    "#7F7F7F", "#44AA99", "#EE3377", "#997700", "#994455", "#6699CC", "#117733", "#CC6677",
    "#4477AA", "#228833", "#EE8866", "#AAAA00", "#882255", "#DDAA33", "#332288", "#CC3311",
    "#AA4466", "#5566AA", "#0077BB", "#009988", "#EE7733", "#EE6677", "#AA3377", "#225555",
    "#666633", "#884400", "#661100", "#448833",
)  # fmt: skip
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

KIND_COLOURS: dict[str, str] = {
    "launch": "#882255",
    "send": "#56B4E9",
    "wait": "#C3C8CF",
    "recv": "#E69F00",
    "reduce": "#009E73",
    "copy": "#44AA99",
    "compute": "#CC79A7",
    "sleep": "#999933",
    "noise": "#D55E00",
}
KINDS: tuple[str, ...] = tuple(KIND_COLOURS)
MESSAGE_COLOUR = "#7A828E"
GREY = "#7F7F7F"
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"


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


def styles_in_order(names: Iterable[str]) -> dict[str, Style]:
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


def kind_colour(kind: str) -> str:
    """Returns the colour of a kind of op; unknown kinds are grey."""
    return KIND_COLOURS.get(kind, GREY)
