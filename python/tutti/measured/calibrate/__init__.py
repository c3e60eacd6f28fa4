"""Calibration: fits parameters of network models to measurements of a machine.

Points come from files (:mod:`tutti.formats.measurements`) or from a live run of the probe. The
function :func:`fit` finds the parameters of a model with 95 % confidence intervals, and states
which of them the data do not determine. :mod:`tutti.measured.calibrate.files` writes them as a
platform file.

Examples:
    >>> from tutti.measured.calibrate import Observation, fit, MODELS
    >>> sizes = (8, 64, 512, 4096, 32768)
    >>> points = [Observation("one_way", 1.5 + 0.001 * size, size) for size in sizes]
    >>> found = fit(MODELS["postal"], points)
    >>> {name: round(one.value, 6) for name, one in found.parameters.items()}
    {'alpha': 1.5, 'beta': 0.001}
    >>> fit(MODELS["loggp"], points).undetermined["o"].split(";")[0]
    'the data only determine 2 o + L'
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
