"""Predicts collectives of real machines, calibrated on measurements of a few nodes.

The structural model (:mod:`tutti.predict.curve`) derives a time from the stages of the algorithm
and the time of a message. The discrepancy (:mod:`tutti.predict.discrepancy`) is what measurements
of the machine, the algorithm and similar machines add to it. docs/models/measured-machines.md has
the equations.
"""

from __future__ import annotations

from tutti.predict.catalogue import execution, is_default, known_algorithms
from tutti.predict.discrepancy import Scales
from tutti.predict.model import CalibratedModel, Hardware, calibrate

__all__ = [
    "CalibratedModel",
    "Hardware",
    "Scales",
    "calibrate",
    "execution",
    "is_default",
    "known_algorithms",
]
