"""Ruefenacht, Bull and Booth 2017 on real MPI ranks of one machine with emulated distance."""

from __future__ import annotations

from functools import partial

from tutti_papers import Exhibit, Paper
from tutti_papers.recursive_multiplying.published import CITATION
from tutti_papers.recursive_multiplying_live import exhibits, native


def paper_of(blocks: int | None) -> Paper:
    """Returns the paper with a number of blocks for Fig. 16, as in `runs.native`."""
    compared = Exhibit(
        title="schedules and the MPI's all_reduce on real ranks",
        make=partial(native.figure_16, blocks=blocks),
    )
    return Paper(
        name="recursive-multiplying-live",
        citation=f"{CITATION}; measured on real ranks of this machine with emulated distance",
        figures={**exhibits.FIGURES, 16: compared},
        tables=exhibits.TABLES,
        with_blocks=paper_of,
    )


PAPER = paper_of(None)
