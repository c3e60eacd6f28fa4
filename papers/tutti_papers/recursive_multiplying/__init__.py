"""Ruefenacht, Bull and Booth 2017: recursive multiplying, all_reduce by message pipelining."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.recursive_multiplying import (
    measured,
    multicasts,
    schedules,
    simulated,
    sizes,
)
from tutti_papers.recursive_multiplying.published import CITATION

PAPER = Paper(
    name="recursive-multiplying",
    citation=CITATION,
    figures={
        **simulated.FIGURES,
        **multicasts.FIGURES,
        **measured.FIGURES,
        **schedules.FIGURES,
        **sizes.FIGURES,
    },
    tables={**multicasts.TABLES, **measured.TABLES},
    compared_in="table `laws` of table 2, tables `readings` of figures 10, 11 and 20",
)
