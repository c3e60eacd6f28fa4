"""Yin et al. 2023: ARIES, all-reduce on chiplets whose networks have segmentable bypass links."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.aries import area, energy, mappings, performance, tables, throughput
from tutti_papers.aries.published import CITATION

PAPER = Paper(
    name="aries",
    citation=CITATION,
    figures={
        **area.FIGURES,
        **mappings.FIGURES,
        **throughput.FIGURES,
        **performance.FIGURES,
        **energy.FIGURES,
    },
    tables=tables.TABLES,
)
