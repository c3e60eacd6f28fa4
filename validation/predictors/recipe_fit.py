"""Fits the coefficients of :mod:`tutti.training.plan.efficiency` to measured steps of recipes.

The logarithm of a coefficient is a sum of parameters with Gaussian priors. Factors of GPUs, models
and releases have mean 0, so that groups with few measurements stay near the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from predictors.posterior import Prior, posterior, variance

from tutti.measured.errors import CalibrationError
from tutti.training.plan.efficiency import NAMES, parameters_of
from tutti.training.plan.estimate import combined, stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from predictors.recipe_rows import Recipe

    from tutti.training.plan.estimate import StepAmounts

    Array = NDArray[np.float64]

__all__ = ["FittedRecipes", "Prior", "fit"]

NOISE: Final = 0.06
"""Standard deviation of the logarithm of a measured step that no term explains: recipes differ in
more than the table states. Cross-validation is worse with 0.02 and 0.04."""
_SPREAD: Final = 0.75
"""Factor on deviations of predictions, with which about 90 % of cross-validated steps are inside
the 90 % interval: errors of half of the rows are far below :data:`NOISE`."""


PRIORS: Final = {
    "products_bf16": Prior(1 / 0.75, 0.2),
    "products_fp8": Prior(1 / 0.7, 0.25),
    "products_mxfp8": Prior(1 / 0.65, 0.25),
    "products_nvfp4": Prior(1 / 0.5, 0.3),
    "grouped_bf16": Prior(1 / 0.6, 0.3),
    "grouped_fp8": Prior(1 / 0.5, 0.3),
    "grouped_mxfp8": Prior(1 / 0.5, 0.3),
    "grouped_nvfp4": Prior(1 / 0.4, 0.4),
    "attention": Prior(1 / 0.5, 0.3),
    "classifier": Prior(1 / 0.7, 0.2),
    "memory": Prior(1.3, 0.4),
    "copies_alltoall": Prior(4.0, 0.5),
    "copies_flex": Prior(2.5, 0.5),
    "copies_fused": Prior(1.5, 0.5),
    "copies_dropping": Prior(2.5, 0.5),
    "weights": Prior(1.5, 0.5),
    "kernels_eager": Prior(50e-6, 0.3),
    "kernels_partial": Prior(40e-6, 0.3),
    "kernels_full": Prior(5e-6, 0.5),
    "routing_alltoall": Prior(1e-3, 0.8),
    "routing_flex": Prior(300e-6, 0.8),
    "routing_fused": Prior(30e-6, 0.8),
    "routing_dropping": Prior(300e-6, 0.8),
    "tensor": Prior(0.5, 0.5),
    "context": Prior(0.3, 0.7),
    "expert": Prior(1.0, 0.4),
    "expert_overlapped": Prior(0.4, 0.6),
    "data": Prior(0.3, 0.4),
    "cast_bf16": Prior(2.0, 0.7),
    "cast_fp8": Prior(4.0, 0.7),
    "cast_mxfp8": Prior(6.0, 0.7),
    "cast_nvfp4": Prior(6.0, 0.7),
    "step": Prior(20e-3, 0.7),
    "skew": Prior(5e-3, 0.8),
}
"""Coefficients: reciprocal efficiencies, multiples of traffic, seconds per pass, exposed shares,
bytes per weight, and seconds."""

_FACTORS: Final = {
    "matrix: gpu": 0.25,
    "matrix: gpu, precision": 0.12,
    "memory: gpu": 0.08,
    "memory: precision": 0.2,
    "memory: dispatcher, gpu": 0.15,
    "host: gpu": 0.3,
    "routing: graph": 0.4,
    "family": 0.1,
    "family, gpu": 0.06,
    "model": 0.3,
    "model, gpu": 0.08,
    "release": 0.03,
    "family, release": 0.05,
    "model, release": 0.05,
}
"""Standard deviations of the logarithms of factors."""


def _prior(name: str) -> tuple[float, float]:
    if name in PRIORS:
        return math.log(PRIORS[name].value), PRIORS[name].sd
    return 0.0, _FACTORS[name.rpartition(": ")[0]]


class _Design(NamedTuple):
    """The steps of recipes, and the parameters of each coefficient."""

    steps: StepAmounts
    uses: Array

    def logs(self, values: Array) -> tuple[Array, Array]:
        """Returns the logarithms of seconds, and their derivatives by the parameters."""
        logs = self.uses @ values
        base = np.log(combined(self.steps, np.exp(logs)).step)
        slopes = np.empty_like(logs)
        for at in range(len(NAMES)):
            changed = logs.copy()
            changed[:, at] += _STEP
            slopes[:, at] = (np.log(combined(self.steps, np.exp(changed)).step) - base) / _STEP
        return base, np.einsum("rn,rnp->rp", slopes, self.uses)


_STEP: Final = 1e-6


def _design(recipes: Sequence[Recipe], names: Sequence[str]) -> _Design:
    index = {name: at for at, name in enumerate(names)}
    uses = np.zeros((len(recipes), len(NAMES), len(names)))
    for row, recipe in enumerate(recipes):
        for column, name in enumerate(NAMES):
            if name != "optimizer":
                used = [index[one] for one in parameters_of(name, recipe.setting)]
                uses[row, column, used] = 1.0
    return _Design(stacked([recipe.amounts for recipe in recipes]), uses)


def _names(recipes: Sequence[Recipe]) -> list[str]:
    settings = {recipe.setting for recipe in recipes}
    found = {
        parameter
        for setting in settings
        for name in NAMES
        if name != "optimizer"
        for parameter in parameters_of(name, setting)
    }
    return sorted(found)


@dataclass(frozen=True)
class FittedRecipes:
    """A fitted model: parameters, the logarithms of their values, and their covariance."""

    names: tuple[str, ...]
    values: Array
    covariance: Array

    def predict(self, recipes: Sequence[Recipe]) -> tuple[Array, Array]:
        """Returns the logarithm of the step of each recipe in seconds, and its deviation."""
        if not recipes:
            return np.zeros(0), np.zeros(0)
        new = [name for name in _names(recipes) if name not in self.names]
        priors = [_prior(name) for name in new]
        values = np.concatenate([self.values, [mean for mean, _ in priors]])
        logs, slopes = _design(recipes, [*self.names, *new]).logs(values)
        spread = variance(slopes, self.covariance, np.array([sd for _, sd in priors]))
        return logs, _SPREAD * np.sqrt(spread + NOISE**2)


def fit(recipes: Sequence[Recipe], start: FittedRecipes | None = None) -> FittedRecipes:
    """Fits the parameters to measured steps; errors beyond :data:`NOISE` count linearly.

    Args:
        recipes: The measured recipes.
        start: A fit to start from, which saves iterations.

    Raises:
        CalibrationError: There are no measured steps.
    """
    if not recipes:
        raise CalibrationError("no measured recipes: at least one is necessary")
    logs = np.array([math.log(one.tokens / (one.tokens_per_s or math.nan)) for one in recipes])
    names = _names(recipes)
    means, sds = np.array([_prior(name) for name in names]).T
    design = _design(recipes, names)

    known = dict(zip(start.names, start.values, strict=True)) if start else {}
    first = np.array([known.get(name, mean) for name, mean in zip(names, means, strict=True)])
    found = posterior(design.logs, logs, (means, sds), NOISE, first=first, tolerance=1e-6, most=40)
    return FittedRecipes(tuple(names), found.values, found.covariance)
