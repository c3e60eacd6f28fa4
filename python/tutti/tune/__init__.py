"""Tuning: which schedule for which collective, ranks and size, written for the library that runs.

Times come from a model, from measurements on real ranks, or from measurements of what a model finds
promising (:mod:`tutti.tune.measure`); decisions are taken for each library out of what it can
express (:mod:`tutti.tune.decisions`), and written in its own words. What was written is proved by
running with it and counting messages (:mod:`tutti.tune.prove`).
"""

from __future__ import annotations

from tutti.tune.decisions import TuningDecision, decide
from tutti.tune.files import Written, write_all
from tutti.tune.measure import Question, by_measurement, by_model, fastest
from tutti.tune.prove import Proof, proofs, unproved
from tutti.tune.targets import TARGETS

__all__ = [
    "TARGETS",
    "Proof",
    "Question",
    "TuningDecision",
    "Written",
    "by_measurement",
    "by_model",
    "decide",
    "fastest",
    "proofs",
    "unproved",
    "write_all",
]
