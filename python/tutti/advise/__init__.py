"""Advice: which algorithm a larger job should use, from measurements of a few nodes.

Measurements are classified (:mod:`tutti.advise.scope`), the model is calibrated on those of known
algorithms (:mod:`tutti.predict.model`), and the candidates are predicted at the rank counts of
larger jobs. Each decision has the probability that it is right (:mod:`tutti.advise.confidence`).
Decisions are written as rules of MPI libraries (:mod:`tutti.advise.rules`).
"""

from __future__ import annotations

from tutti.advise.advice import (
    FARTHEST,
    FEWEST_RANK_COUNTS,
    Advice,
    Extrapolation,
    Request,
    Usage,
    advise,
)
from tutti.advise.confidence import near_fastest
from tutti.advise.decide import PREDICTIONS, Decision, Range, decision_frame
from tutti.advise.next import UNDECIDED, NextMeasurement
from tutti.advise.rules import WrittenRules, write_rules
from tutti.advise.scope import Scope, choose_scope, classified, library_family

__all__ = [
    "FARTHEST",
    "FEWEST_RANK_COUNTS",
    "PREDICTIONS",
    "UNDECIDED",
    "Advice",
    "Decision",
    "Extrapolation",
    "NextMeasurement",
    "Range",
    "Request",
    "Scope",
    "Usage",
    "WrittenRules",
    "advise",
    "choose_scope",
    "classified",
    "decision_frame",
    "library_family",
    "near_fastest",
    "write_rules",
]
