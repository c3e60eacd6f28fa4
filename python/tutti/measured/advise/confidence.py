"""Probabilities that an algorithm is nearly the fastest, from the uncertainty of predictions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol, cast

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEAR: Final = 0.05
"""A choice is right if it takes at most this share longer than the fastest algorithm."""
_DRAWS: Final = 4096
_90_PERCENT: Final = 1.6448536269514722


class Predictor(Protocol):
    """A calibrated model, such as :class:`tutti.measured.predict.model.CalibratedModel`."""

    @property
    def used(self) -> int:
        """The number of measurements that were used."""

    def predict(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Predicts the times of rows."""


class _Joint(Protocol):
    def covariance(self, frame: pl.DataFrame) -> Floats: ...


def covariance(model: Predictor, frame: pl.DataFrame, predicted: pl.DataFrame) -> Floats:
    """Returns the covariance of the logarithms of predicted times.

    A model without a joint distribution has independent errors. That understates the confidence,
    because errors which all algorithms share do not change their order.

    Args:
        model: the calibrated model.
        frame: the questions.
        predicted: what the model predicts for them.

    Returns:
        A square matrix, with a row for each row of `predicted`.
    """
    if hasattr(model, "covariance"):
        joint = np.asarray(cast("_Joint", model).covariance(frame), dtype=np.float64)
        if joint.shape == (len(predicted), len(predicted)):
            return joint
    width = predicted.select((pl.col("high_us") / pl.col("low_us")).log()).to_series().to_numpy()
    return np.diag((width / (2 * _90_PERCENT)) ** 2)


def near_fastest(predicted_us: Floats, joint: Floats, share: float = NEAR) -> Floats:
    """Returns the probability of each algorithm to be within a share of the fastest.

    Args:
        predicted_us: median predicted time of each algorithm, in us.
        joint: covariance of the logarithms of the times, which are jointly normal.
        share: how much longer than the fastest is acceptable; 0.05 is 5 %.

    Returns:
        Probabilities by algorithm, from 4,096 draws with a constant seed.

    Examples:
        >>> near_fastest(np.array([10.0, 20.0]), np.diag([1e-4, 1e-4])).tolist()
        [1.0, 0.0]
    """
    values, vectors = np.linalg.eigh((joint + joint.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(0).standard_normal((_DRAWS, len(predicted_us)))
    times = np.log(predicted_us) + normal @ root.T
    fastest = times.min(axis=1, keepdims=True)
    return np.asarray((times <= fastest + math.log1p(share)).mean(axis=0))
