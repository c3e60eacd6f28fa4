"""The decision map of a comparison for notebooks: the fastest algorithm by ranks and size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.collectives.comparison import cases
from tutti.view import svg
from tutti.view.notebook import view_html
from tutti.view.palette import styles
from tutti.view.quantity import format_share, format_size, plural, span

from .comparison import comparison_view
from .comparison_charts import decision_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree import ElementTree as ET

    import polars as pl

    from tutti.collectives.comparison import Comparison, Fastest
    from tutti.view.palette import Style

_LEFT, _CELL, _ROW, _TOP = 90, 58, 30, 4
_ENTRIES = 4
"""Algorithms in a row of the legend."""


@dataclass(frozen=True)
class DecisionMap:
    """The fastest algorithm at each rank count and size of a comparison.

    A notebook shows it as a drawing, in which the number is the lead, and a table of the ranges.

    Attributes:
        comparison: The frame of `tutti.compare`, or rows of it.
        cases: The comparison, split by collective, datatype, model and platform.
    """

    comparison: pl.DataFrame
    cases: tuple[Comparison, ...]

    def __repr__(self) -> str:
        lines = [
            f"{region.ranks:,} ranks, {span(region.sizes, format_size)}: {region.schedule}"
            for case in self.cases
            for region in case.regions()
        ]
        rest = [f"and {plural(len(lines) - 8, 'other range')}"] if len(lines) > 9 else []
        shown = lines[:8] if rest else lines
        return "\n".join([*(_heading(case) for case in self.cases[:1]), *shown, *rest])

    def _repr_html_(self) -> str:
        view = comparison_view(self.comparison, None, cases=self.cases, report=False)
        drawings = (svg.written(_drawn(case)) for case in self.cases)
        return view_html(replace(view, inline=lambda: "".join(drawings)))


def decision_map(comparison: pl.DataFrame) -> DecisionMap:
    """Returns the decision map of a comparison.

    Args:
        comparison: The frame of `tutti.compare`, or rows of it.

    Raises:
        ReportError: Columns are missing, no row has a time, or several points of a sweep are mixed.
    """
    return DecisionMap(comparison, tuple(cases(comparison)))


def _heading(case: Comparison) -> str:
    return f"fastest {case.collective} on {case.platform}, model {case.model}"


def _drawn(case: Comparison) -> ET.Element:
    """Returns rank counts over sizes; the colour of a cell is the fastest algorithm."""
    decided = case.decisions()
    chosen = styles(case.algorithms)
    winners = sorted({one.winner.algorithm for one in decided.values()})
    bottom = _TOP + _ROW * len(case.ranks)
    width = max(_LEFT + _CELL * len(case.sizes) + 10, 560)
    height = bottom + 34 + 20 * -(-len(winners) // _ENTRIES)
    root = svg.drawing(width, height, f"Decision map: {_heading(case)}")
    for row, ranks in enumerate(reversed(case.ranks)):
        y = _TOP + _ROW * row
        svg.text(root, (_LEFT - 8, y + 19), f"{ranks:,} ranks", "end")
        for column, size in enumerate(case.sizes):
            if (one := decided.get((ranks, size))) is not None:
                _cell(root, one, chosen, (_LEFT + _CELL * column, y))
    for column, size in enumerate(case.sizes):
        x = _LEFT + _CELL * (column + 0.5)
        svg.text(root, (x, bottom + 16), format_size(size), "middle")
    for first in range(0, len(winners), _ENTRIES):
        entries = [(name, chosen[name].colour) for name in winners[first : first + _ENTRIES]]
        svg.legend(root, entries, (4, bottom + 28 + 20 * (first // _ENTRIES)))
    return root


def _cell(
    root: ET.Element, one: Fastest, chosen: Mapping[str, Style], at: tuple[float, float]
) -> None:
    x, y = at
    svg.shape(root, "rect", "\n".join(decision_lines(one)), x=x, y=y, width=_CELL - 2,
              height=_ROW - 2, rx=3, fill=chosen[one.winner.algorithm].colour)  # fmt: skip
    lead = "" if one.margin is None else format_share(one.margin).replace("under ", "<")
    label = svg.text(root, (x + _CELL / 2 - 1, y + 19), lead, "middle")
    label.attrib |= {"fill": "#FFF", "stroke": "#222", "stroke-width": "2.5",
                     "paint-order": "stroke", "pointer-events": "none"}  # fmt: skip
