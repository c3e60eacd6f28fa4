"""Calibration: fits parameters of network models to measurements of a machine.

Points come from benchmark files (:mod:`tutti.interop.benchmarks`) or from a live run of the probe.
The function :func:`fit` finds the parameters of a model with 95 % confidence intervals, and states
which of them the data do not determine. :mod:`tutti.calibrate.files` writes them as a platform
file.

Examples:
    >>> from tutti.calibrate import Observation, fit, MODELS
    >>> sizes = (8, 64, 512, 4096, 32768)
    >>> points = [Observation("one_way", 1.5 + 0.001 * size, size) for size in sizes]
    >>> found = fit(MODELS["postal"], points)
    >>> {name: round(one.value, 6) for name, one in found.parameters.items()}
    {'alpha': 1.5, 'beta': 0.001}
    >>> fit(MODELS["loggp"], points).undetermined["o"].split(";")[0]
    'the data only determine 2 o + L'
"""

from __future__ import annotations

from tutti.calibrate.fit import Fit, Parameter, fit
from tutti.calibrate.models import FOLDS, MODELS, FittedModel, model_named, platform_of
from tutti.calibrate.points import (
    Observation,
    Observations,
    emulated,
    of_benchmarks,
    of_probes,
    of_results,
)
from tutti.calibrate.protocols import ProtocolsFit, fit_protocols

__all__ = [
    "FOLDS",
    "MODELS",
    "Fit",
    "FittedModel",
    "Observation",
    "Observations",
    "Parameter",
    "ProtocolsFit",
    "emulated",
    "fit",
    "fit_protocols",
    "model_named",
    "of_benchmarks",
    "of_probes",
    "of_results",
    "platform_of",
]
