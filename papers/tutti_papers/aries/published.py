"""Published values, and how they were read.

Only the text was legible, not the figures: values per application and per size are unknown. Each
compared value is from the text of the stated section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti_papers.claims import Claim

if TYPE_CHECKING:
    from tutti_papers.claims import Certainty, Method

CITATION = (
    "L. Yin, A. Ghazizadeh, A. Louri, H. Zheng, ARIES: Accelerating Distributed Training in "
    "Chiplet-based Systems via Flexible Interconnects, ICCAD 2023"
)

NETWORKS = ("mesh", "torus", "flattened_butterfly", "adapt_noc")
"""The baselines of ARIES."""

SPEEDUPS: dict[tuple[str, int], tuple[float, float, float, float]] = {
    ("ring", 4): (2.10, 2.10, 1.52, 1.48),
    ("ring", 8): (2.09, 2.09, 1.46, 1.42),
    ("double_binary_tree", 4): (1.35, 1.35, 1.65, 1.17),
    ("double_binary_tree", 8): (2.80, 2.43, 3.92, 1.67),
    ("multi_tree", 4): (2.55, 1.44, 1.03, 1.25),
    ("multi_tree", 8): (2.21, 1.28, 1.08, 1.23),
}
"""Speedup of ARIES over each of `NETWORKS`, by algorithm and side (section V-B)."""

UP_TO = {("double_binary_tree", 8)}
"""Speedups of these cases are maxima over the applications: "its speedup increases up to 2.80x,
2.43x, 3.92x and 1.67x" (section V-B); 3.92 is also the maximum of the abstract."""

ENERGY_SAVED: dict[int, tuple[float, float, float, float]] = {
    4: (30.5, 28.9, 21.2, 17.5),
    8: (38.8, 33.8, 29.2, 20.7),
}
"""Per cent of the network energy, mean over applications and algorithms (section V-C)."""

TRANSFORMER_COMMUNICATION = {"ring": 33.7, "double_binary_tree": 51.9, "multi_tree": 19.5}
"""Reduction of communication time in per cent, mean over networks (section V-B)."""

AREA_OF_NETWORK = 8.3
"""mm2 of all routers, 8x8 (section V-D)."""
AREA_MORE = 0.3
"""Additional mm2 of ARIES (section V-D)."""


def compared(
    rows: list[tuple[str, float, float]],
    certainty: Certainty = "text",
    method: Method = "simulated",
) -> tuple[Claim, ...]:
    """Returns published values with tutti's values.

    Args:
        rows: quantity, published, ours.
        certainty: How the published values are known.
        method: How tutti's values are computed.
    """
    known = {"certainty": certainty, "method": method}
    return tuple(
        Claim(quantity=quantity, published=published, computed=ours, **known)  # type: ignore[arg-type]
        for quantity, published, ours in rows
    )
