"""Ruefenacht, Bull and Booth 2017 on real MPI ranks of one machine with emulated distance."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.recursive_multiplying.published import CITATION
from tutti_papers.recursive_multiplying_live import exhibits

PAPER = Paper(
    name="recursive-multiplying-live",
    citation=f"{CITATION}; measured on real ranks of this machine with emulated distance",
    figures=exhibits.FIGURES,
    tables=exhibits.TABLES,
)
