"""Fits logarithms of measured times: parameters with Gaussian priors, and robust errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Posterior", "Prior", "posterior", "variance"]


class Prior(NamedTuple):
    """A lognormal prior.

    Attributes:
        value: The median.
        sd: The standard deviation of the logarithm.
    """

    value: float
    sd: float


class Posterior(NamedTuple):
    """The most probable values of the parameters, and their covariance (Laplace approximation)."""

    values: Array
    covariance: Array


def posterior(
    predict: Callable[[Array], tuple[Array, Array]],
    logs: Array,
    priors: tuple[Array, Array],
    noise: float,
    *,
    first: Array | None = None,
    tolerance: float = 1e-8,
    most: int | None = None,
) -> Posterior:
    """Fits parameters; errors beyond `noise` count linearly.

    Args:
        predict: Returns the logarithms of times, and their derivatives (times x parameters).
        logs: The logarithms of measured times.
        priors: The means and the standard deviations of the parameters.
        noise: The standard deviation of a logarithm that no parameter explains.
        first: The values to start from; by default the means.
        tolerance: The relative change of the misfit and of the values at which it ends.
        most: The largest number of evaluations; by default that of scipy.
    """
    means, sds = priors

    def residuals(values: Array) -> Array:
        errors = (predict(values)[0] - logs) / noise
        return np.concatenate([_robust(errors)[0], (values - means) / sds])

    def slopes(values: Array) -> Array:
        found, derivatives = predict(values)
        weights = _robust((found - logs) / noise)[1] / noise
        return np.concatenate([weights[:, None] * derivatives, np.diag(1 / sds)])

    start = means if first is None else first
    found = least_squares(
        residuals, start, jac=slopes, x_scale=sds, ftol=tolerance, xtol=tolerance, max_nfev=most
    )
    return Posterior(found.x, np.linalg.inv(found.jac.T @ found.jac))


def variance(slopes: Array, covariance: Array, new: Array) -> Array:
    """Returns the variance of predictions.

    Args:
        slopes: Derivatives (predictions x parameters): the fitted parameters, then new ones.
        covariance: The covariance of the fitted parameters.
        new: The standard deviations of the new parameters, which no measurement determines.
    """
    known, unknown = np.split(slopes, [len(covariance)], axis=1)
    found = np.einsum("sp,pq,sq->s", known, covariance, known)
    return np.asarray(found + unknown**2 @ new**2)


def _robust(errors: Array) -> tuple[Array, Array]:
    """Returns residuals whose half square is the pseudo-Huber loss, and their derivatives."""
    root = np.sqrt(1 + errors**2)
    # sign(e) sqrt(2 (root - 1)), in a form that is smooth at 0.
    scale = np.sqrt(2 / (root + 1))
    return errors * scale, 1 / (root * scale)
