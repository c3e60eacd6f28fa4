"""Tuning: selects a schedule for each collective, ranks and size, and writes rules for MPIs.

Times come from a model, from measurements over MPI, or from measurements of the model's best
(:mod:`tutti.measured.tune.measure`). Decisions are taken for each library among the algorithms that
it has (:mod:`tutti.measured.tune.decisions`), and written in its format. They are checked by
running with them and counting messages (:mod:`tutti.measured.tune.prove`).
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
