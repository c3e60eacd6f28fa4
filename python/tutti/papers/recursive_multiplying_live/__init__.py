"""Ruefenacht, Bull and Booth 2017 on real ranks of this machine, whose distance is emulated."""

from __future__ import annotations

from tutti.papers import Paper
from tutti.papers.recursive_multiplying.published import CITATION
from tutti.papers.recursive_multiplying_live import exhibits

PAPER = Paper(
    name="recursive-multiplying-live",
    citation=f"{CITATION}; measured on real ranks of this machine, whose distance is emulated",
    figures=exhibits.FIGURES,
    tables=exhibits.TABLES,
)
