"""What the structural model misses, as a Gaussian process over the measurements.

The residual of a row is the sum of components, each shared by rows that have something in common:
the job, the machine at similar node counts, the algorithm at similar sizes, the family of the
algorithm on other machines. A prediction takes over a residual as far as the rows resemble each
other, and its variance states what remains unknown. Rows whose residual the others contradict lose
weight.

Source: Kennedy and O'Hagan, "Bayesian calibration of computer models", J. R. Statist. Soc. B 63
(2001).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tutti.measured.predict.features import Features

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """Standard deviation of each component, as logarithms of times; 0.1 is 10 %.

    Attributes:
        job: a job, by its placement and the load of other jobs.
        latency: latency of a machine at a node count.
        bandwidth: bandwidth of a machine at a node count.
        algorithm: an algorithm on a machine, at any size.
        algorithm_size: an algorithm on a machine, at a size.
        family: an algorithm with any parameters, at a size.
        shared: an algorithm on all machines.
        collective: a collective on a machine, at a size.
        message: messages of a size on a machine.
        placement: ranks per node, and memory of host or GPU.
        noise: a measurement.
    """

    job: float = 0.08
    latency: float = 0.7
    bandwidth: float = 0.13
    algorithm: float = 0.2
    algorithm_size: float = 0.22
    family: float = 0.16
    shared: float = 0.13
    collective: float = 0.2
    message: float = 0.15
    placement: float = 0.4
    noise: float = 0.04


_SIZE, _WIDE_SIZE, _MESSAGE = 2.5, 9.0, 2.0
"""Length scales in natural logarithms of bytes."""
_RANKS, _SLOW_RANKS, _SLOWEST_RANKS = 5.0, 18.0, 12.0
"""Length scales in binary logarithms of ranks."""
_OTHER_MACHINE, _SAME_MACHINE, _SAME_LIBRARY = 0.3, 0.3, 0.4
"""Parts of the correlation of an algorithm between machines."""
_OTHER_PARITY = 0.9
"""Correlation of an algorithm on a power of two of ranks, and on other numbers."""
_OTHER_STACK = 0.4
"""Correlation of latency and bandwidth between machines with the same library."""
_OUTLIER = 2.5
_REWEIGHTINGS = 3
_BLOCK = 512
_IN_CACHE = 32
"""Rows of a covariance that are computed together: their terms stay in a core's cache."""
_LABELS = (
    "system",
    "environment",
    "stack",
    "library",
    "job",
    "placement",
    "collective",
    "algorithm",
    "family",
    "parity",
)


@dataclass(frozen=True)
class _Rows:
    """What the covariance depends on.

    Attributes:
        log_ranks, log_nodes, log_size, log_message: as in :class:`Features`.
        latency_share: share of latency in the time of each row.
        labels: of :data:`_LABELS`; texts, or numbers, which are compared twenty times as fast.
    """

    log_ranks: Floats
    log_nodes: Floats
    log_size: Floats
    log_message: Floats
    latency_share: Floats
    labels: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, rows: Features, latency_share: Floats) -> _Rows:
        labels = {name: rows.labels[name] for name in _LABELS}
        logs = (rows.log_ranks, rows.log_nodes, rows.log_size, rows.log_message)
        return cls(*logs, latency_share, labels)

    def __len__(self) -> int:
        return len(self.log_size)

    def take(self, some: slice) -> _Rows:
        return _Rows(
            self.log_ranks[some],
            self.log_nodes[some],
            self.log_size[some],
            self.log_message[some],
            self.latency_share[some],
            {name: values[some] for name, values in self.labels.items()},
        )


def _numbered(a: _Rows, b: _Rows) -> tuple[_Rows, _Rows]:
    """Replaces labels by numbers."""
    numbers = {
        name: np.unique(np.concatenate([a.labels[name], b.labels[name]]), return_inverse=True)[1]
        for name in _LABELS
    }
    first = {name: values[: len(a)] for name, values in numbers.items()}
    return replace(a, labels=first), replace(
        b, labels={name: values[len(a) :] for name, values in numbers.items()}
    )


def _smooth(a: Floats, b: Floats, length: float) -> Floats:
    return np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)


def _rough(a: Floats, b: Floats, length: float) -> Floats:
    return np.exp(-np.abs(a[:, None] - b[None, :]) / length)


def _covariance(a: _Rows, b: _Rows, scales: Scales) -> Floats:
    """Covariance of the residuals of two sets of rows."""
    a, b = _numbered(a, b)
    covariance = np.empty((len(a), len(b)))
    for start in range(0, len(a), _IN_CACHE):
        some = slice(start, start + _IN_CACHE)
        covariance[some] = _of_pairs(a.take(some), b, scales)
    return covariance


class _Near(NamedTuple):
    """How similar pairs of rows are in size, over wide and short distances, and in ranks."""

    any_size: Floats
    size: Floats
    ranks: Floats


def _of_pairs(x: _Rows, y: _Rows, scales: Scales) -> Floats:
    near = _Near(
        _smooth(x.log_size, y.log_size, _WIDE_SIZE),
        _smooth(x.log_size, y.log_size, _SIZE),
        _rough(x.log_ranks, y.log_ranks, _SLOW_RANKS),
    )
    return _of_machines(x, y, near, scales) + _of_algorithms(x, y, near, scales)


def _same(x: _Rows, y: _Rows, label: str) -> Floats:
    return np.asarray(x.labels[label][:, None] == y.labels[label][None, :], dtype=np.float64)


def _of_machines(x: _Rows, y: _Rows, near: _Near, scales: Scales) -> Floats:
    """What rows of a machine share, whatever the algorithm."""
    machine, system = _same(x, y, "environment"), _same(x, y, "system")
    like = _OTHER_STACK * _same(x, y, "stack") + (1 - _OTHER_STACK) * machine
    nodes = _rough(x.log_nodes, y.log_nodes, _RANKS)
    latency = np.outer(x.latency_share, y.latency_share)
    bandwidth = np.outer(1 - x.latency_share, 1 - y.latency_share)
    total = like * nodes * (scales.latency**2 * latency + scales.bandwidth**2 * bandwidth)
    shared = scales.job**2 * _same(x, y, "job") + scales.placement**2 * _same(x, y, "placement")
    total += system * near.any_size * shared
    total += scales.collective**2 * machine * _same(x, y, "collective") * near.size * near.ranks
    message = _smooth(x.log_message, y.log_message, _MESSAGE)
    total += scales.message**2 * machine * message * nodes
    return total


def _of_algorithms(x: _Rows, y: _Rows, near: _Near, scales: Scales) -> Floats:
    """What rows of an algorithm share, on a machine and on all machines."""
    system, collective = _same(x, y, "system"), _same(x, y, "collective")
    family = _same(x, y, "family")
    on_machine = collective * system * near.ranks
    on_machine *= _OTHER_PARITY + (1 - _OTHER_PARITY) * _same(x, y, "parity")
    on_machine *= _OTHER_STACK + (1 - _OTHER_STACK) * _same(x, y, "stack")
    at_any_size = scales.algorithm**2 + scales.algorithm_size**2 * near.size
    total = on_machine * _same(x, y, "algorithm") * at_any_size
    total += scales.family**2 * on_machine * family * near.size
    across = _OTHER_MACHINE + _SAME_MACHINE * system + _SAME_LIBRARY * _same(x, y, "library")
    across *= _rough(x.log_ranks, y.log_ranks, _SLOWEST_RANKS)
    total += scales.shared**2 * collective * family * near.any_size * across
    return total


class Discrepancy:
    """The residuals of measurements, and what they mean for other rows.

    Args:
        rows: the measurements.
        latency_share: share of latency in the time of each.
        residuals: logarithm of measured over predicted time of each.
        scales: standard deviations of the components.
    """

    def __init__(
        self, rows: Features, latency_share: Floats, residuals: Floats, scales: Scales
    ) -> None:
        self._known = _Rows.of(rows, latency_share)
        self._scales = scales
        covariance = _covariance(self._known, self._known, scales)
        noise = np.full(len(rows), scales.noise**2)
        for _ in range(_REWEIGHTINGS):
            factor = cho_factor(covariance + np.diag(noise), lower=True)
            weights = cho_solve(factor, residuals)
            # The diagonal of the inverse; a third of the work of solving for the identity.
            precision = np.diag(dpotri(*factor)[0])
            deviation = np.abs(weights) / np.sqrt(precision)
            noise = scales.noise**2 * np.maximum(1.0, (deviation / _OUTLIER) ** 2)
        self._factor, self._weights = factor, weights

    def __call__(self, rows: Features, latency_share: Floats) -> tuple[Floats, Floats]:
        """Returns the expected residual of other rows, and its standard deviation.

        Args:
            rows: what to predict.
            latency_share: share of latency in the time of each.
        """
        means, deviations = [], []
        every = _Rows.of(rows, latency_share)
        for start in range(0, len(rows), _BLOCK):
            predicted = every.take(slice(start, start + _BLOCK))
            cross = _covariance(predicted, self._known, self._scales)
            means.append(cross @ self._weights)
            alone = np.diag(_covariance(predicted, predicted, self._scales))
            explained = solve_triangular(self._factor[0], cross.T, lower=True)
            variance = alone - np.square(explained).sum(axis=0) + self._scales.noise**2
            deviations.append(np.sqrt(np.maximum(variance, self._scales.noise**2)))
        return np.concatenate(means or [np.zeros(0)]), np.concatenate(deviations or [np.zeros(0)])

    def covariance(self, rows: Features, latency_share: Floats) -> Floats:
        """Returns the joint covariance of the logarithms of the times of other rows.

        Args:
            rows: what to predict.
            latency_share: share of latency in the time of each.
        """
        predicted = _Rows.of(rows, latency_share)
        cross = _covariance(predicted, self._known, self._scales)
        alone = _covariance(predicted, predicted, self._scales)
        noise = self._scales.noise**2 * np.eye(len(rows))
        return np.asarray(alone - cross @ cho_solve(self._factor, cross.T) + noise)
