"""What the paper says, and how it was read.

The text could be read, the figures not: curves are known as far as the text gives numbers of them.
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
"""How sure a published value is: a number of the text; what follows from several numbers of it; a
number that "about", "similar" or a range without its ends stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A published value beside ours.

    Attributes:
        row: The experiment, as A1, B1 to B8, C1 to C4, D1 to D5, E.
        quantity: What it is, with its unit.
        published: What the paper says.
        ours: What was found here; not a number where it was not run.
        confidence: `stated`, `derived` or `vague`.
        at_least: Whether the paper says only that it is at least that.
    """

    row: str
    quantity: str
    published: float
    ours: float
    confidence: str = STATED
    at_least: bool = False

    def shown(self) -> dict[str, Any]:
        """As a row of a frame."""
        return {
            "row": self.row,
            "quantity": self.quantity,
            "published": f"{'>= ' if self.at_least else ''}{self.published:g}",
            "ours": round(self.ours, 3),
            "ratio": round(self.ours / self.published, 3),
            "confidence": self.confidence,
        }


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as a frame."""
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
