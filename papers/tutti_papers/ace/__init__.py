"""Rashidi et al. 2021: ACE, a collective engine at the links of an NPU."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.ace import endpoints, exploration, silicon, steps, tables
from tutti_papers.ace.published import CITATION

PAPER = Paper(
    name="ace",
    citation=CITATION,
    figures={**endpoints.FIGURES, **exploration.FIGURES, **steps.FIGURES},
    tables={**silicon.TABLES, **tables.TABLES},
    compared_in="tables `readings` and `score` of figure 11",
)
