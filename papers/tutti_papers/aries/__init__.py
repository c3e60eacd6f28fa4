"""Yin et al. 2023: ARIES, all-reduce on chiplets whose networks have segmentable bypass links."""

from __future__ import annotations

from tutti_papers import Paper
from tutti_papers.aries import area, energy, mappings, performance, tables, throughput
from tutti_papers.aries.published import CITATION
from tutti_papers.aries.reading import DEFAULT_READING, NAMED, JointReading, reading_of


def paper_of(reading: JointReading) -> Paper:
    """Returns the paper under a joint reading of what the text leaves open."""
    return Paper(
        name="aries",
        citation=CITATION,
        figures={
            **area.figures(reading),
            **mappings.FIGURES,
            **throughput.figures(reading),
            **performance.figures(reading),
            **energy.figures(reading),
        },
        tables=tables.TABLES,
        readings={name: meaning for name, (_, meaning) in NAMED.items()},
        read_as=lambda text: paper_of(reading_of(text)),
    )


PAPER = paper_of(DEFAULT_READING)
