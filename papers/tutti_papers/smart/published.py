"""Published values, and how they were read.

Only the text was legible, not the figures: values of curves are those that the text states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti_papers import claims
from tutti_papers.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti_papers.claims import Certainty

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
        variant: Whether another row has the same published value; it does not count twice.
    """

    row: str
    quantity: str
    published: float
    ours: float
    confidence: str = STATED
    at_least: bool = False
    variant: bool = False

    def claim(self) -> Claim:
        """Returns the published value with tutti's value."""
        return Claim(
            quantity=f"{self.row} {self.quantity}",
            published=(self.published, math.inf) if self.at_least else self.published,
            computed=self.ours,
            certainty=CERTAINTY[self.confidence],
            variant=self.variant,
        )


CERTAINTY: dict[str, Certainty] = {STATED: "text", DERIVED: "derived", VAGUE: "words"}
"""The certainty of each confidence."""


def score(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns how many distinct published values agree, and how many there are.

    Rows that repeat the published value of another row do not count.
    """
    return claims.counted(claims_of(rows))


def claims_of(rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Returns the published values of rows with tutti's values."""
    return tuple(row.claim() for row in rows)


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Returns rows as a frame."""
    return claims.frame_of(claims_of(rows))
