"""Published values and conclusions of papers, compared with computed ones.

A value agrees if it is within `TOLERANCE` of a published number, or inside a published range.
Values that a simulation or a model predicts are counted apart from formulas and inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TOLERANCE = 0.15
"""The relative deviation up to which a computed value agrees with a published number."""

Certainty = Literal["text", "figure", "derived", "words", "quoted", "recalled"]
CERTAINTIES: dict[str, str] = {
    "text": "a number in the paper's text or tables",
    "figure": "read from a figure",
    "derived": "computed from several published numbers",
    "words": "a qualitative statement such as 'about' or 'similar'",
    "quoted": "widely quoted, not checked against the paper",
    "recalled": "from memory, unverified",
}
"""The meaning of each certainty of a published value, most certain first."""

Method = Literal["simulated", "formula", "input"]
METHODS: dict[Method, str] = {
    "simulated": "predicted by a simulation or a model",
    "formula": "a formula or a count of the paper, evaluated",
    "input": "an input of the models, returned unchanged or summed",
}
"""How a value is computed."""
_PLURAL: dict[Method, str] = {"simulated": "simulated values", "formula": "formulas",
                              "input": "inputs"}  # fmt: skip

Verdict = Literal["agrees", "differs", "not computed"]
_DIGITS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A published value and the computed one.

    Attributes:
        quantity: The quantity, with its conditions and its unit.
        published: The number, or the bounds of a range; an infinite bound is open.
        computed: The computed value; NaN if it was not computed.
        certainty: How the published value is known, a key of `CERTAINTIES`.
        source: The place in the paper, if known.
        method: How the value is computed, a key of `METHODS`.
        variant: Whether another claim has the same published value; variants are not counted.
    """

    quantity: str
    published: float | tuple[float, float]
    computed: float
    certainty: Certainty = "text"
    source: str = ""
    method: Method = "simulated"
    variant: bool = False

    def __post_init__(self) -> None:
        if self.certainty not in get_args(Certainty):
            raise ValueError(f"{self.quantity}: unknown certainty {self.certainty!r}")
        if self.method not in METHODS:
            raise ValueError(f"{self.quantity}: unknown method {self.method!r}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest computed value that agree."""
        if isinstance(self.published, tuple):
            return self.published
        margin = TOLERANCE * abs(self.published)
        return self.published - margin, self.published + margin

    @property
    def verdict(self) -> Verdict:
        """Whether the computed value agrees with the published one."""
        if math.isnan(self.computed):
            return "not computed"
        low, high = self.bounds
        slack = 1e-9 * max(1.0, abs(self.computed))
        return "agrees" if low - slack <= self.computed <= high + slack else "differs"

    @property
    def ratio(self) -> float | None:
        """Computed over published; None for a range, for zero and for a value not computed."""
        if isinstance(self.published, tuple) or not self.published or math.isnan(self.computed):
            return None
        return self.computed / self.published

    @property
    def shown(self) -> str:
        """The published value as text."""
        return _shown(self.published)


def _shown(published: float | tuple[float, float]) -> str:
    if not isinstance(published, tuple):
        return f"{published:.{_DIGITS}g}"
    low, high = published
    if math.isinf(high):
        return f"at least {low:.{_DIGITS}g}"
    if math.isinf(low):
        return f"at most {high:.{_DIGITS}g}"
    return f"{low:.{_DIGITS}g} to {high:.{_DIGITS}g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """A conclusion of the paper.

    Attributes:
        statement: A short sentence without a full stop, such as "rings are faster than a mesh".
        holds: Whether the computed results support it.
        why: The computed evidence, or the reason why it does not hold.
    """

    statement: str
    holds: bool
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A joint reading of what the text leaves open, and the simulated values that it meets.

    Attributes:
        name: The name, such as `default` or `best`.
        meaning: The answers that it combines, and their support in the text.
        met: The number of distinct simulated published values within `TOLERANCE`.
        values: The number of distinct simulated published values.
    """

    name: str
    meaning: str
    met: int
    values: int


def tallies(claims: Iterable[Claim]) -> dict[Method, tuple[int, int]]:
    """Returns the numbers of agreeing and of computed values, by method, without variants.

    Every count of values is this one: of an exhibit, of a reading, of a paper.
    """
    computed = [one for one in claims if one.verdict != "not computed" and not one.variant]
    found = {}
    for method in METHODS:
        verdicts = [claim.verdict == "agrees" for claim in computed if claim.method == method]
        if verdicts:
            found[method] = sum(verdicts), len(verdicts)
    return found


def tally_text(claims: Iterable[Claim]) -> str:
    """Returns the counts as text, such as `6 of 9 simulated values, 5 of 5 formulas`.

    If all are simulated, they are `published values`.
    """
    found = tallies(claims)
    if list(found) == ["simulated"]:
        agreed, values = found["simulated"]
        return f"{agreed} of {values} published value{'s' if values > 1 else ''}"
    return ", ".join(
        f"{agreed} of {values} {_PLURAL[method]}" for method, (agreed, values) in found.items()
    )


def counted(claims: Iterable[Claim]) -> tuple[int, int]:
    """Returns the numbers of agreeing and of computed simulated values, without variants."""
    return tallies(claims).get("simulated", (0, 0))


def verdict_line(claims: Sequence[Claim], conclusions: Sequence[Conclusion] = ()) -> str:
    """Returns the counts of agreeing values and the conclusions that hold or do not hold."""
    parts = []
    if counts := tally_text(claims):
        parts.append(f"{counts} within {100 * TOLERANCE:g} %")
    for label, holds in (("Holds", True), ("Does not hold", False)):
        stated = [one.statement for one in conclusions if one.holds is holds]
        if stated:
            parts.append(f"{label}: {'; '.join(stated)}")
    return ". ".join(parts) or "no published values to compare"


def frame_of(claims: Iterable[Claim]) -> pl.DataFrame:
    """Returns a row per claim: published and computed value, ratio, certainty and verdict."""
    return pl.DataFrame(
        [
            {
                "quantity": claim.quantity,
                "published": claim.shown,
                "ours": round(claim.computed, 3),
                "ratio": None if claim.ratio is None else round(claim.ratio, 3),
                "certainty": claim.certainty,
                "method": claim.method,
                "verdict": f"{claim.verdict}, not counted" if claim.variant else claim.verdict,
                "source": claim.source,
            }
            for claim in claims
        ],
        schema={
            "quantity": pl.String,
            "published": pl.String,
            "ours": pl.Float64,
            "ratio": pl.Float64,
            "certainty": pl.String,
            "method": pl.String,
            "verdict": pl.String,
            "source": pl.String,
        },
    )


def conclusions_frame(conclusions: Iterable[Conclusion]) -> pl.DataFrame:
    """Returns a row per conclusion: statement, whether it holds, and why."""
    return pl.DataFrame(
        [
            {"conclusion": one.statement, "holds": "yes" if one.holds else "no", "why": one.why}
            for one in conclusions
        ],
        schema={"conclusion": pl.String, "holds": pl.String, "why": pl.String},
    )
