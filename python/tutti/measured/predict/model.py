"""A machine's model, calibrated on measurements of collectives, and its predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tutti.measured.errors import CalibrationError
from tutti.measured.predict.curve import DEVIATIONS_90, Curve, CurveFit, fit_curve
from tutti.measured.predict.discrepancy import Discrepancy, Scales
from tutti.measured.predict.features import Features, features
from tutti.measured.predict.hardware import Hardware, least_us

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FEWEST = 10
"""Rows of an environment that suffice for a separate fit."""
_LEAST_US = 0.1
"""Shorter times are the resolution of a clock, not a collective."""
_OTHER_SYSTEM = 8
_OTHER_LIBRARY = 4
_OTHER_INTERFACE = 3
_WEIGHTS = (_OTHER_SYSTEM, _OTHER_LIBRARY, _OTHER_INTERFACE, 1, 1.1)
_DENSITY = {"one": 0, "several": 0.9, "many": 2}
"""How different two environments are if they differ in machine, library, interface, ranks per node,
memory."""
CAUTION = 1.5
"""Standard deviations above the median at which algorithms are compared: a time that one of them
exceeds in 7 of 100 cases. A risky algorithm must promise more than a well-known one."""
_HORIZON = 0.15
"""Standard deviation that a doubling of the nodes beyond the measured ones adds to the logarithms
of all times of a machine: a random walk."""
_LIKE = 0.5
"""Share of the standard deviations of priors, if another machine was measured with the same
library, interface, ranks per node and memory. Assumed."""
_UNKNOWN = 0.3
"""Standard deviation of the logarithm of a time, if the discrepancy is not modelled."""
_SORTED_BY = ("system", "collective", "library_algorithm", "ranks", "size_bytes", "job", "time_us")


@dataclass(frozen=True)
class CalibratedModel:
    """A model of one or several machines.

    Attributes:
        curves: the structural model of each environment (machine, library, interface, ranks per
            node, memory).
        discrepancy: what the structural model misses; None for a structural model alone.
        interval_scale: factor on standard deviations, from cross-validation.
        used: the number of measurements that were used.
        hardware: what was known of each machine beforehand.
        largest: binary logarithm of the most nodes measured on each machine.
    """

    curves: Mapping[str, CurveFit]
    discrepancy: Discrepancy | None = field(repr=False)
    used: int
    interval_scale: float = 1.0
    hardware: Mapping[str, Hardware] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)

    def predict(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Predicts the times of rows.

        Args:
            frame: rows with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`; times
                may be absent.

        Returns:
            A row per row that can be predicted: its `index` in the frame, `predicted_us`, the 90 %
            interval `low_us` to `high_us`, and the standard deviation `spread` of the logarithm.
            Algorithms are to be compared by `choice_us`, the upper quantile of :data:`CAUTION`.
            `structural_us` is the prediction of the structural model alone, and `term` its largest
            part.
        """
        rows = features(frame)
        curves = self._all(rows)
        structural, share = _apply(rows, {one: fit.theta for one, fit in curves.items()})
        mean, deviation = structural, np.full(len(rows), _UNKNOWN)
        if self.discrepancy is not None:
            residual, deviation = self.discrepancy(rows, share)
            mean = structural + residual
        deviation = np.sqrt(deviation**2 + _of_parameters(rows, curves))
        spread = np.sqrt(deviation**2 + _HORIZON**2 * self._doublings(rows))
        half = DEVIATIONS_90 * self.interval_scale * spread
        least = self._least(rows)
        logs = {
            "predicted_us": mean,
            "low_us": mean - half,
            "high_us": mean + half,
            "choice_us": mean + CAUTION * deviation,
            "structural_us": structural,
        }
        times = {name: np.maximum(np.exp(value), least) for name, value in logs.items()}
        terms = _largest_terms(rows, curves)
        columns = {"index": rows.index, **times, "spread": spread, "term": terms}
        return pl.DataFrame(columns).with_columns(pl.col("index").cast(pl.UInt32))

    def covariance(self, frame: pl.DataFrame) -> Floats:
        """Returns the joint covariance of the logarithms of the predicted times.

        Args:
            frame: rows as for :meth:`predict`.

        Returns:
            A matrix with a row and a column per row that can be predicted, in their order.
        """
        rows = features(frame)
        if self.discrepancy is None:
            return _UNKNOWN**2 * np.eye(len(rows))
        share = _apply(rows, {one: fit.theta for one, fit in self._all(rows).items()})[1]
        return self.interval_scale**2 * self.discrepancy.covariance(rows, share)

    def _doublings(self, rows: Features) -> Floats:
        """Doublings of the nodes beyond the measured ones; none on a machine without any."""
        known = [self.largest.get(name, math.inf) for name in rows.labels["system"]]
        return np.asarray(np.maximum(rows.log_nodes - np.array(known), 0.0))

    def _least(self, rows: Features) -> Floats:
        """The time in which the interfaces of a node carry what a node must at least receive."""
        known = [self.hardware.get(name) for name in rows.labels["system"]]
        rates = np.array([one.node_bytes_per_us if one else np.inf for one in known])
        nodes, sizes = np.exp2(rows.log_nodes), np.exp(rows.log_size)
        return least_us(rows.labels["collective"], nodes, sizes, rates)

    def _all(self, rows: Features) -> dict[str, CurveFit]:
        """The curves of the rows' environments: fitted, or of the most similar environment."""
        found = dict(self.curves)
        libraries = dict(zip(rows.labels["environment"], rows.labels["library"], strict=True))
        for environment in sorted(libraries):
            if environment not in found:
                start = _start(environment, self.curves, self.hardware)
                share = _prior_share(environment, self.curves)
                found[environment] = CurveFit.unfitted(start, share)
        return found


def usable(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the measured collectives that can be fitted, in a canonical order."""
    timed = pl.col("time_us").is_finite() & (pl.col("time_us") > _LEAST_US)
    kept = frame.filter(timed, pl.col("ranks") > 1, pl.col("library_algorithm").is_not_null())
    return kept.sort(*_SORTED_BY, nulls_last=True, maintain_order=True)


def calibrate(
    frame: pl.DataFrame,
    *,
    hardware: Mapping[str, Hardware] | None = None,
    scales: Scales | None = None,
    with_discrepancy: bool = True,
    interval_scale: float = 1.0,
) -> CalibratedModel:
    """Fits a model to measured collectives.

    Args:
        frame: rows with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`. Their order
            does not matter.
        hardware: what is known of each system beforehand.
        scales: standard deviations of the discrepancy.
        with_discrepancy: whether to model what the structural model misses.
        interval_scale: factor on standard deviations.

    Raises:
        CalibrationError: No row can be used.
    """
    frame = usable(frame)
    rows = features(frame)
    if len(rows) == 0:
        raise CalibrationError(
            "no measured collective can be used: expected rows with a known algorithm, at least 2 "
            "ranks and a time"
        )
    times = frame["time_us"].to_numpy()[rows.index]
    hardware = dict(hardware or {})
    curves = _curves(rows, times, hardware)
    discrepancy = None
    if with_discrepancy:
        structural, share = _apply(rows, {one: fit.theta for one, fit in curves.items()})
        residuals = np.log(times) - structural
        discrepancy = Discrepancy(rows, share, residuals, scales or Scales())
    return CalibratedModel(curves, discrepancy, len(rows), interval_scale, hardware, _largest(rows))


def _largest(rows: Features) -> dict[str, float]:
    names = np.unique(rows.labels["system"])
    return {str(one): float(rows.log_nodes[rows.where("system", one)].max()) for one in names}


def _curves(rows: Features, times: Floats, hardware: Mapping[str, Hardware]) -> dict[str, CurveFit]:
    """Fits each environment; those with more measurements first, as priors of similar ones."""
    names, counts = np.unique(rows.labels["environment"], return_counts=True)
    order = sorted(
        zip(names.tolist(), counts.tolist(), strict=True), key=lambda one: (-one[1], one[0])
    )
    curves: dict[str, CurveFit] = {}
    for name, count in order:
        start = _start(name, curves, hardware)
        chosen = rows.where("environment", name)
        if count >= _FEWEST:
            curves[name] = fit_curve(rows.take(chosen), times[chosen], start)
        else:
            curves[name] = CurveFit.unfitted(start, _prior_share(name, curves))
    return curves


def _prior_share(environment: str, curves: Mapping[str, CurveFit]) -> float:
    """How uncertain the prior of an environment is: less, if another machine has its like.

    No two measured machines have the same library, so cross-validation cannot determine it.
    """
    _, *stack = _parts(environment)
    return _LIKE if any(_parts(other)[1:] == stack for other in curves) else 1.0


def _start(
    environment: str, curves: Mapping[str, CurveFit], hardware: Mapping[str, Hardware]
) -> Floats:
    """The prior of an environment.

    That is the fit of another environment of the system; or that of a system with the same library,
    scaled by what is known of both; or what is known of the system alone.
    """
    system, *_ = _parts(environment)
    ranked = sorted((_difference(environment, other), other) for other in curves)
    difference, nearest = ranked[0] if ranked else (math.inf, "")
    known = hardware.get(system)
    if difference < _OTHER_INTERFACE or (known is None and nearest):
        return np.array(curves[nearest].theta)
    if difference < _OTHER_SYSTEM + _OTHER_LIBRARY and known is not None:
        other = hardware.get(_parts(nearest)[0], known)
        return np.array(curves[nearest].theta) + known.prior() - other.prior()
    return (known or Hardware()).prior("/".join(_parts(environment)[1:]))


def _parts(environment: str) -> list[str]:
    """The machine, which may contain a slash, and the other labels of an environment."""
    return environment.rsplit("/", len(_WEIGHTS) - 1)


def _difference(one: str, other: str) -> float:
    """How different two environments are: the system counts most, the memory least."""
    total = 0.0
    for a, b, weight in zip(_parts(one), _parts(other), _WEIGHTS, strict=True):
        steps = abs(_DENSITY[a] - _DENSITY[b]) if a in _DENSITY and b in _DENSITY else a != b
        total += weight * steps
    return total


def _apply(rows: Features, thetas: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Logarithms of the structural model's times, and the shares of latency."""
    means, shares = np.zeros(len(rows)), np.zeros(len(rows))
    for name in sorted(set(rows.labels["environment"].tolist())):
        chosen = rows.where("environment", name)
        curve = Curve(rows.take(chosen))
        means[chosen] = np.log(curve(thetas[name]))
        shares[chosen] = curve.latency_share(thetas[name])
    return means, shares


def _of_parameters(rows: Features, curves: Mapping[str, CurveFit]) -> Floats:
    """Variances of the logarithms of times, by what is not known of the parameters."""
    variances = np.zeros(len(rows))
    for name in sorted(set(rows.labels["environment"].tolist())):
        chosen = rows.where("environment", name)
        derivative = Curve(rows.take(chosen)).jacobian(curves[name].theta)[1]
        covariance = curves[name].covariance
        variances[chosen] = np.einsum("ij,jk,ik->i", derivative, covariance, derivative)
    return variances


def _largest_terms(rows: Features, curves: Mapping[str, CurveFit]) -> list[str]:
    """The name of the largest part of each time, of :meth:`Curve.terms`."""
    names = np.full(len(rows), "messages", dtype="U16")
    for name in sorted(set(rows.labels["environment"].tolist())):
        chosen = rows.where("environment", name)
        terms = Curve(rows.take(chosen)).terms(curves[name].theta)
        parts = np.array([np.broadcast_to(one, len(chosen)) for one in terms.values()])
        names[chosen] = np.array(list(terms))[parts.argmax(axis=0)]
    return [str(one) for one in names]
