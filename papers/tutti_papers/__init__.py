"""Reproductions of published papers: each module or package defines the experiments of one paper.

A module of this package is a paper if it has a `PAPER`. Each exhibit (a figure or a table) is a
function that calls the public API and returns an `ExhibitResult`, whose `Claim`s compare computed
values with published ones.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import did_you_mean
from tutti_papers.claims import Claim, Conclusion, Reading, verdict_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl


__all__ = [
    "Claim",
    "Conclusion",
    "Exhibit",
    "ExhibitResult",
    "Paper",
    "Reading",
    "find_paper",
    "papers",
]


@dataclass(frozen=True, kw_only=True)
class ExhibitResult:
    """The result of an exhibit.

    Attributes:
        frame: Computed values, a row each.
        published: The published values, each with the computed one.
        conclusions: The paper's conclusions about this exhibit.
        readings: Joint readings of the paper: the default and the best one.
        source: The place of the published values in the paper, and how they were read.

        figures: The files of drawings.
        notes: Remarks on the agreement.
        tables: Further tables by name.
    """

    frame: pl.DataFrame
    published: Sequence[Claim] = ()
    conclusions: Sequence[Conclusion] = ()
    readings: Sequence[Reading] = ()
    source: str
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The counts of agreeing values, and the conclusions that hold or do not hold."""
        return verdict_line(self.published, self.conclusions)


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or a table of a paper.

    Attributes:
        title: The title.
        make: Computes the result, and draws into the given folder.
    """

    title: str
    make: Callable[[Path], ExhibitResult]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its reproducible exhibits.

    Attributes:
        name: The name on the command line, such as `recursive-multiplying`.
        citation: Authors, title, journal, year.
        figures: Figures by number.
        tables: Tables by number.
        readings: Named joint readings of what the text leaves open, with their meanings.
        read_as: Returns the paper under a reading, given by its name or by answers.
        compared_in: The tables that compare its readings, without `read_as`.
        with_blocks: Returns the paper with a number of blocks that are measured on real ranks.
    """

    name: str
    citation: str
    figures: Mapping[int, Exhibit] = field(default_factory=dict)
    tables: Mapping[int, Exhibit] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)
    read_as: Callable[[str], Paper] | None = None
    compared_in: str = ""
    with_blocks: Callable[[int], Paper] | None = None

    def exhibits(self) -> list[tuple[str, Exhibit]]:
        """Returns the exhibits with their labels, such as `figure 5`, figures first."""
        figures = [(f"figure {number}", one) for number, one in sorted(self.figures.items())]
        return figures + [(f"table {number}", one) for number, one in sorted(self.tables.items())]


def papers() -> dict[str, Paper]:
    """Returns all papers by name."""
    found: dict[str, Paper] = {}
    for module in pkgutil.iter_modules(__path__):
        paper = getattr(importlib.import_module(f"{__name__}.{module.name}"), "PAPER", None)
        if isinstance(paper, Paper):
            found[paper.name] = paper
    return found


def find_paper(name: str) -> Paper:
    """Returns a paper by name.

    Raises:
        ConfigError: The paper is unknown.
    """
    known = papers()
    if name in known:
        return known[name]
    problem = f"unknown paper `{name}`: expected one of {', '.join(known)}"
    hint = did_you_mean(name, known) or "`tutti paper` lists the papers and their exhibits"
    raise ConfigError(problem, kind="invalid", hint=hint)
