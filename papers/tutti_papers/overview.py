"""The overview of all papers, on the terminal and as a page: what agrees, what holds, and why."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti_papers import papers
from tutti_papers.claims import CERTAINTIES, METHODS, TOLERANCE, tallies, tally_text
from tutti_papers.summary import Comparison, distinct, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti_papers import Claim, Conclusion, Paper, Reading

PICTURES = {
    "ace": "figure_11.svg",
    "aries": "figure_10_ring_4x4.svg",
    "recursive-multiplying": "figure_9.svg",
    "smart": "figure_7a.svg",
}
"""The drawing of each paper on the page."""
_WIDTH, _QUANTITY = 100, 54
"""Columns of a line of the page, and of a quantity in it."""
_PERCENT = f"{100 * TOLERANCE:g} %"


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A paper and the stored comparisons of its exhibits.

    Attributes:
        paper: The paper.
        comparisons: Its stored comparisons, in order; an exhibit without one is missing.
    """

    paper: Paper
    comparisons: Sequence[Comparison]

    @property
    def claims(self) -> list[tuple[str, Claim]]:
        """The computed claims with their exhibits, without repetitions."""
        return distinct(self.comparisons)

    @property
    def conclusions(self) -> list[Conclusion]:
        """The conclusions of all exhibits, without repetitions."""
        every = (one for comparison in self.comparisons for one in comparison.conclusions)
        return list({one.statement: one for one in every}.values())

    @property
    def readings(self) -> list[Reading]:
        """The joint readings of the paper."""
        return [one for comparison in self.comparisons for one in comparison.readings]

    @property
    def verdict(self) -> str:
        """The numbers of values that agree and of conclusions that hold."""
        counts = tally_text(claim for _, claim in self.claims) or "no published values"
        return f"{counts} within {_PERCENT} or inside their range; {self.held} conclusions hold"

    @property
    def held(self) -> str:
        """The number of conclusions that hold, of all."""
        return f"{sum(one.holds for one in self.conclusions)} of {len(self.conclusions)}"

    @property
    def versions(self) -> list[str]:
        """The versions of tutti that computed the comparisons."""
        return sorted({one.version for one in self.comparisons})

    def exhibits(self) -> list[tuple[str, str, str]]:
        """Returns label, title and counts of each exhibit."""
        by_label = {one.exhibit: one for one in self.comparisons}
        return [
            (label, exhibit.title, _counts(by_label.get(label)))
            for label, exhibit in self.paper.exhibits()
        ]


def _counts(found: Comparison | None) -> str:
    """Returns the counts of an exhibit: values that agree, conclusions that hold."""
    if found is None:
        return "not stored"
    parts = []
    if counts := tally_text(found.claims):
        parts.append(counts.replace("published ", ""))
    if found.conclusions:
        held = sum(one.holds for one in found.conclusions)
        parts.append(f"{held} of {len(found.conclusions)} conclusions")
    return ", ".join(parts) or "no published values"


def overview() -> list[Overview]:
    """Returns all papers with their stored comparisons."""
    every = stored()
    return [
        Overview(paper=paper, comparisons=[one for one in every if one.paper == name])
        for name, paper in papers().items()
    ]


_HEAD = f"""<!-- Written by `python scripts/generate_reference.py`; do not edit. -->
# Papers

tutti reproduces four papers. `tutti paper` prints this comparison; `tutti paper NAME` runs every
exhibit of a paper and draws its figures; `make papers` runs all and stores the comparison.

A published number agrees if the computed value is within {_PERCENT} of it, a published range if the
computed value is inside. Published values in drawings are black, or have the colour of their curve
and a black edge. *Certainty* states how a published value is known:

"""
_COUNTED = """
Values that a simulation or a model predicts are counted apart from the paper's formulas, which
tutti evaluates or counts in its schedules, and from inputs of the models. A repeated value counts
once: rows in parentheses repeat the published value of another row.

"""


def papers_page() -> str:
    """Returns the page of all papers, in Markdown."""
    certainties = "".join(f"- {name}: {meaning}\n" for name, meaning in CERTAINTIES.items())
    found = [one for one in overview() if one.comparisons]
    head = [
        f"| paper | {' | '.join(METHODS)} | conclusions that hold |",
        f"|---|{'---|' * len(METHODS)}---|",
    ]
    for one in found:
        name = one.paper.name
        counts = tallies(claim for _, claim in one.claims)
        cells = ["{} of {}".format(*counts[each]) if each in counts else "" for each in METHODS]
        head.append(f"| [{name}]({name}.md) | {' | '.join(cells)} | {one.held} |")
    sections = [_section(one) for one in found]
    table = "\n".join(head) + "\n\n"
    return _HEAD + certainties + _COUNTED + table + "\n".join(sections)


def _section(one: Overview) -> str:
    name = one.paper.name
    parts = [
        textwrap.fill(
            f"{one.paper.citation}. Computed by tutti {', '.join(one.versions)}.", _WIDTH
        ),
        f"![{name}](figures/{name}.svg)",
        *map(_reading, one.readings),
        *map(_conclusion, one.conclusions),
    ]
    titles = {label: exhibit.title for label, exhibit in one.paper.exhibits()}
    by_exhibit: dict[str, list[Claim]] = {}
    for label, claim in one.claims:
        by_exhibit.setdefault(label, []).append(claim)
    for label, claims in by_exhibit.items():
        rows = [line for claim in claims for line in _rows(claim)]
        head = ["| quantity | published | tutti | agrees |", "|---|---|---|---|"]
        title = f"**{label.capitalize()}**: {_text(titles.get(label, ''))}"
        parts.append("\n".join([title, "", *head, *rows]))
    return f"## {name}\n\n" + "\n\n".join(parts) + "\n"


def _reading(one: Reading) -> str:
    """Returns a joint reading with its count, as an item of a list."""
    text = f"Reading {one.name}: {one.met} of {one.values} simulated values: {one.meaning}"
    return textwrap.fill(f"- {_text(text)}.", _WIDTH, subsequent_indent="  ")


def _conclusion(one: Conclusion) -> str:
    """Returns a conclusion with its evidence, as an item of a list."""
    holds = "Holds" if one.holds else "Does not hold"
    text = _text(f"{one.statement}. {holds}: {one.why}")
    return textwrap.fill(f"- {text[0].upper()}{text[1:]}.", _WIDTH, subsequent_indent="  ")


def _rows(claim: Claim) -> list[str]:
    """Returns the row of a value; a long quantity continues in rows without values."""
    first, *others = textwrap.wrap(_text(claim.quantity), _QUANTITY)
    agrees = "yes" if claim.verdict == "agrees" else "no"
    agrees = f"({agrees})" if claim.variant else agrees
    known = claim.certainty if claim.method == "simulated" else f"{claim.certainty}, {claim.method}"
    values = f"{claim.shown} ({known}) | {claim.computed:.4g} | {agrees}"
    return [f"| {first} | {values} |", *(f"| {other} | | | |" for other in others)]


def _text(text: str) -> str:
    """Returns text without characters that Markdown interprets."""
    for character in "|_*":
        text = text.replace(character, f"\\{character}")
    return text
