"""Krishna and Peh 2014: broadcasts and reductions over a mesh in a cycle per dimension."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.smart import full_system, readings, sensitivity, synthetic, tables
from tutti_papers.smart.published import CITATION

PAPER = Paper(
    name="smart",
    citation=CITATION,
    figures={**synthetic.FIGURES, **full_system.FIGURES},
    tables={**tables.TABLES, **sensitivity.TABLES, **readings.TABLES},
    compared_in="tables 2, 3 and 4",
)
