"""Predicts collectives of real machines, calibrated on measurements of a few nodes.

The structural model (:mod:`tutti.measured.predict.curve`) derives a time from the stages of the
algorithm and the time of a message. The discrepancy (:mod:`tutti.measured.predict.discrepancy`) is
what measurements of the machine, the algorithm and similar machines add to it.
docs/models/measured-machines.md has the equations.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
