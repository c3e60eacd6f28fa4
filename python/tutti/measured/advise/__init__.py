"""Advice: which algorithm a larger job should use, from measurements of a few nodes.

Measurements are classified (:mod:`tutti.measured.advise.scope`), the model is calibrated on those
of known algorithms (:mod:`tutti.measured.predict.model`), and the candidates are predicted at the
rank counts of larger jobs. Each decision has the probability that it is right
(:mod:`tutti.measured.advise.confidence`). Decisions are written as rules of MPI libraries
(:mod:`tutti.measured.advise.rules`).
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
