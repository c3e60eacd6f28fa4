"""Calibration: parameters of network models from what was measured on a machine.

Points come from files of benchmarks (:mod:`tutti.interop.benchmarks`) or from a live run of the
probe; :func:`fit` finds the parameters of a model, with an interval of 95 %, and says which of them
the data leave open. :mod:`tutti.calibrate.files` writes them as a platform file.

>>> from tutti.calibrate import Observation, fit, MODELS
>>> sizes = (8, 64, 512, 4096, 32768)
>>> points = [Observation("one_way", 1.5 + 0.001 * size, size) for size in sizes]
>>> found = fit(MODELS["postal"], points)
>>> {name: round(one.value, 6) for name, one in found.parameters.items()}
{'alpha': 1.5, 'beta': 0.001}
>>> fit(MODELS["loggp"], points).untold["o"].split(";")[0]
'only 2 o + L can be told'
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

__all__ = [
    "FOLDS",
    "MODELS",
    "Fit",
    "FittedModel",
    "Observation",
    "Observations",
    "Parameter",
    "emulated",
    "fit",
    "model_named",
    "of_benchmarks",
    "of_probes",
    "of_results",
    "platform_of",
]
