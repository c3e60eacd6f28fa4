"""Published values, and how they were read.

Only the text was legible, not the figures: values of curves are those that the text states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

CITATION = (
    "T. Krishna, L.-S. Peh, Single-Cycle Collective Communication Over A Shared Network Fabric, "
    "NOCS 2014"
)

STATED, DERIVED, VAGUE = "stated", "derived", "vague"
"""The confidence of a published value: a number of the text, derived from several numbers, or a
qualitative statement such as "about", "similar" or an open range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A published value and tutti's value.

    Attributes:
        row: The experiment, A1, B1 to B8, C1 to C4, D1 to D5 or E.
        quantity: The quantity, with its unit.
        published: The published value.
        ours: tutti's value; NaN if it was not run.
        confidence: `stated`, `derived` or `vague`.
        at_least: Whether the published value is a lower bound.
    """

    row: str
    quantity: str
    published: float
    ours: float
    confidence: str = STATED
    at_least: bool = False

    def shown(self) -> dict[str, Any]:
        """Returns a row of a frame."""
        return {
            "row": self.row,
            "quantity": self.quantity,
            "published": f"{'>= ' if self.at_least else ''}{self.published:g}",
            "ours": round(self.ours, 3),
            "ratio": round(self.ours / self.published, 3),
            "confidence": self.confidence,
        }


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Returns rows as a frame."""
    return pl.DataFrame(
        [row.shown() for row in rows],
        schema={
            "row": pl.String,
            "quantity": pl.String,
            "published": pl.String,
            "ours": pl.Float64,
            "ratio": pl.Float64,
            "confidence": pl.String,
        },
    )
