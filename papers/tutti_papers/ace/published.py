"""Published values, and their confidence.

The available copy of the paper has lost its digits. Each value states its source:

- V: verified in a public source (the abstract, ASTRA-sim's public code)
- S: stated in words by the paper
- D: derived from other values
- B: widely quoted, not checked against the paper
- R: recalled, unverified; the numbers of figures and tables too
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti_papers.claims import Claim

if TYPE_CHECKING:
    from tutti_papers.claims import Certainty

CITATION = (
    "S. Rashidi, M. Denton, S. Sridharan, S. Srinivasan, A. Suresh, J. Nie, T. Krishna, Enabling "
    "Compute-Communication Overlap in Distributed Deep Learning Training Platforms, ISCA 2021"
)

SURE = "V verified, S stated in words, D derived, B widely quoted, R recalled and unverified"


@dataclass(frozen=True)
class Published:
    """A value of the paper.

    Attributes:
        quantity: The quantity, with its unit.
        value: The value.
        sure: The confidence: V, S, D, B or R.
    """

    quantity: str
    value: float
    sure: str


SPEEDUPS = {
    "resnet50_libra": (Published("ResNet-50", 1.41, "V"), Published("ResNet-50, most", 1.51, "V")),
    "gnmt": (Published("GNMT", 1.12, "V"), Published("GNMT, most", 1.17, "V")),
    "dlrm_libra": (Published("DLRM", 1.13, "V"), Published("DLRM, most", 1.19, "V")),
}
"""Speedup of an iteration over the best baseline by workload: mean over sizes, and maximum."""

UTILISATION = (
    Published("network utilisation, ACE over baselines, mean", 1.44, "V"),
    Published("network utilisation, ACE over baselines, most", 2.67, "V"),
)
MEMORY = Published(
    "memory bandwidth for the send rate of ACE with 128 GB/s, baseline over ACE", 3.5, "V"
)
"""The abstract: less memory bandwidth "to drive the same network BW"."""
BACKGROUND = {"comp_opt": Published("comp_opt", 1.05, "R"), "ace": Published("ace", 1.2, "R")}
"""Speedup of an iteration with tables in the background over the default loop."""
ACTIVE = {
    "resnet50_libra": Published("ResNet-50", 96.4, "R"),
    "gnmt": Published("GNMT", 91.3, "R"),
    "dlrm_libra": Published("DLRM", 88.3, "R"),
}
"""Per cent of the backward pass in which ACE processes a chunk."""
AREA = Published("area, mm2", 5.34, "R")
POWER = Published("power, W", 4.26, "R")


CERTAINTY: dict[str, Certainty] = {
    "V": "text",
    "S": "words",
    "D": "derived",
    "B": "quoted",
    "R": "recalled",
}
"""The certainty of each confidence."""


def compared(rows: list[tuple[Published, float]], of: str = "{}") -> tuple[Claim, ...]:
    """Returns published values with tutti's values; `of` formats quantities."""
    return tuple(
        Claim(
            quantity=of.format(published.quantity),
            published=published.value,
            computed=ours,
            certainty=CERTAINTY[published.sure],
        )
        for published, ours in rows
    )
