"""The interval of a plan's time on a GPU without measured steps.

The same step is timed with the efficiencies of each measured GPU. The spread of these times is that
of an unmeasured GPU around the mean, as far as measured GPUs show it; a Student distribution
accounts for their small number. GPUs of other vendors have other kernels, so a wider spread is
assumed for them. The error of steps whose model and system are left out of the fit adds to it.
docs/models/measured-steps.md compares the intervals with measured steps.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tutti.platforms.npus import npu
from tutti.training.plan.efficiency import UNSEEN_TAIL, coefficients, is_measured, measured_gpus
from tutti.training.plan.estimate import amounts, combined, stacked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.space import Plan
    from tutti.workloads.pieces import Pieces

__all__ = ["Spread", "spread_of"]

_QUANTILE: Final = 0.95
"""The quantile of the upper end of a 90 % interval."""
OTHER_VENDOR: Final = 1.645 * 0.25
"""Half of the 90 % interval of the logarithm of the time on a GPU of another vendor than those of
the measured GPUs. Assumed: 0.25 is the deviation of efficiencies of matrix products that the fit
assumes before any measurement (validation/predictors/recipe_fit.py)."""


class Spread(NamedTuple):
    """By what the time of a step may differ on a GPU without measured steps.

    Attributes:
        factor: The factor on the time at the upper end of the 90 % interval, and its reciprocal at
            the lower end.
        by_gpu: The time with the efficiencies of each measured GPU, over that with the mean.
        foreign: Whether no measured GPU is of the vendor.
    """

    factor: float
    by_gpu: Mapping[str, float]
    foreign: bool

    def interval(self, value: float) -> tuple[float, float]:
        """Returns the ends of the 90 % interval of a time, or of a rate."""
        return value / self.factor, value * self.factor


def spread_of(pieces: Pieces, plan: Plan, cluster: Cluster) -> Spread | None:
    """Returns the interval of a plan; None if the GPU has measured steps or a calibration.

    Args:
        pieces: The model.
        plan: The plan.
        cluster: The GPUs.
    """
    if cluster.calibrated is not None or is_measured(cluster.npu.name):
        return None
    from scipy.special import stdtrit

    setting, gpus = cluster.setting(pieces.model), measured_gpus()
    rows = [coefficients(replace(setting, npu=gpu), cluster.efficiency) for gpu in gpus]
    rows.append(cluster.coefficients(pieces.model))
    *times, mean = combined(
        stacked([amounts(pieces, plan, cluster)] * len(rows)), np.array(rows)
    ).step
    ratios = np.array(times) / mean
    # The mean of an unmeasured GPU is known (factors of 1), the spread is not.
    of_gpus = float(stdtrit(len(gpus), _QUANTILE)) * math.sqrt(float((np.log(ratios) ** 2).mean()))
    is_foreign = cluster.npu.vendor not in {npu(gpu).vendor for gpu in gpus}
    if is_foreign:
        of_gpus = max(of_gpus, OTHER_VENDOR)
    factor = math.exp(math.hypot(of_gpus, math.log1p(UNSEEN_TAIL)))
    return Spread(factor, dict(zip(gpus, ratios.tolist(), strict=True)), is_foreign)
