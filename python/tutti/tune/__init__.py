"""Tuning: selects a schedule for each collective, ranks and size, and writes rules for MPIs.

Times come from a model, from measurements over MPI, or from measurements of the model's best
(:mod:`tutti.tune.measure`). Decisions are taken for each library among the algorithms that it has
(:mod:`tutti.tune.decisions`), and written in its format. They are checked by running with them and
counting messages (:mod:`tutti.tune.prove`).
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
