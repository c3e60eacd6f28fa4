"""Fits the coefficients of a training step to measured steps.

A step is a sum of terms, each with a coefficient whose logarithm is a sum of parameters. Parameters
have Gaussian priors; effects of NPUs, benchmarks and submitters are parameters with mean 0, so that
groups with few measurements stay close to the others. docs/models/measured-steps.md has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from predictors.posterior import Prior, posterior, variance
from predictors.step_terms import terms

from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from predictors.step_rows import TrainingStep

    Array = NDArray[np.float64]

__all__ = ["NOISE", "PRIORS", "FittedSteps", "Prior", "fit", "parameters_of"]

NOISE: Final = 0.025
"""Standard deviation of the logarithm of a measured step that no term explains."""
_PER_DOUBLING: Final = 0.06
"""Standard deviation of what the terms miss, per doubling of a rank's tokens per micro-batch."""


PRIORS: Final = {
    "gemm_bf16": Prior(1 / 0.6, 0.4),
    "gemm_fp8": Prior(1 / 0.5, 0.4),
    "gemm_fp4": Prior(1 / 0.35, 0.5),
    "bf16": Prior(1 / 0.5, 0.3),
    "memory_bf16": Prior(1.0, 0.4),
    "memory_fp8": Prior(1.0, 0.4),
    "memory_fp4": Prior(1.2, 0.4),
    "cast_bf16": Prior(2.0, 0.7),
    "cast_fp8": Prior(4.0, 0.7),
    "cast_fp4": Prior(6.0, 0.7),
    "accumulate": Prior(6.0, 0.5),
    "kernels": Prior(0.5e-3, 0.7),
    "context": Prior(10e-6, 0.7),
    "tensor": Prior(0.7, 0.5),
    "data": Prior(0.4, 0.7),
    "ring": Prior(5e-6, 0.8),
    "skew": Prior(2e-3, 0.8),
    "step": Prior(20e-3, 0.7),
}
"""Coefficients: reciprocal efficiencies, bytes per weight, exposed shares, or seconds per count."""
_BY_PRECISION: Final = frozenset({"gemm", "memory", "cast"})
_COMPUTE: Final = frozenset({"gemm", "bf16"})
_EFFECTS: Final = {
    "npu": 0.15,
    "npu, precision": 0.1,
    "benchmark": 0.2,
    "benchmark, precision": 0.1,
    "benchmark, npu": 0.05,
    "submitter": 0.04,
    "family": 0.06,
    "kernels: benchmark": 0.4,
    "kernels: npu": 0.2,
}
"""Standard deviations of effects on compute, and of effects on the time of kernels."""


def parameters_of(step: TrainingStep, term: str) -> list[str]:
    """Returns the parameters whose sum is the logarithm of a term's coefficient."""
    one = step.configuration
    # H100 and H200 have the same SMs.
    npu = "hopper" if one.npu in {"h100", "h200"} else one.npu
    if term == "optimizer":
        return []
    found = [f"{term}_{one.precision}" if term in _BY_PRECISION else term]
    if term in _COMPUTE:
        found += [
            f"npu: {npu}",
            f"npu, precision: {npu}, {one.precision}",
            f"benchmark: {one.benchmark}",
            f"benchmark, precision: {one.benchmark}, {one.precision}",
            f"benchmark, npu: {one.benchmark}, {npu}",
            f"submitter: {step.submitter}",
            f"family: {', '.join(step.family)}",
        ]
    if term == "kernels":
        found += [f"kernels: benchmark: {one.benchmark}", f"kernels: npu: {npu}"]
    return found


def _prior(name: str) -> tuple[float, float]:
    """Returns mean and standard deviation of a parameter."""
    if name in PRIORS:
        return math.log(PRIORS[name].value), PRIORS[name].sd
    return 0.0, _EFFECTS[name.rpartition(": ")[0]]


class _Design(NamedTuple):
    """Terms of steps (steps x terms), and which parameters each has (x parameters)."""

    terms: Array
    uses: Array

    def log_times(self, values: Array) -> tuple[Array, Array]:
        """Returns the logarithms of times in seconds, and their derivatives."""
        parts = self.terms * np.exp(self.uses @ values)
        total = parts.sum(axis=1)
        slopes = np.einsum("st,stp->sp", parts / total[:, None], self.uses)
        return np.log(total), slopes


def _design(steps: Sequence[TrainingStep], names: Sequence[str]) -> _Design:
    index = {name: at for at, name in enumerate(names)}
    found = [terms(step) for step in steps]
    kinds = list(found[0])
    uses = np.zeros((len(steps), len(kinds), len(names)))
    for row, step in enumerate(steps):
        for column, kind in enumerate(kinds):
            uses[row, column, [index[name] for name in parameters_of(step, kind)]] = 1.0
    return _Design(np.array([[one[kind] for kind in kinds] for one in found]), uses)


def _names(steps: Iterable[TrainingStep]) -> list[str]:
    found = {name for step in steps for term in terms(step) for name in parameters_of(step, term)}
    return sorted(found)


@dataclass(frozen=True)
class FittedSteps:
    """A fitted model.

    Attributes:
        names: The parameters.
        values: Their values: logarithms.
        covariance: Their covariance (Laplace approximation).
        steps: The measured steps, one per configuration.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    steps: tuple[TrainingStep, ...]

    def predict(self, steps: Sequence[TrainingStep]) -> tuple[Array, Array]:
        """Predicts steps.

        Returns:
            The logarithm of the time of each step in seconds, and its standard deviation.
        """
        if not steps:
            return np.zeros(0), np.zeros(0)
        new = [name for name in _names(steps) if name not in self.names]
        priors = [_prior(name) for name in new]
        values = np.concatenate([self.values, [mean for mean, _ in priors]])
        logs, slopes = _design(steps, [*self.names, *new]).log_times(values)
        spread = variance(slopes, self.covariance, np.array([sd for _, sd in priors]))
        extra = np.array([_PER_DOUBLING * self._doublings(step) for step in steps])
        return logs, np.sqrt(spread + NOISE**2 + extra**2)

    def parts(self, step: TrainingStep) -> dict[str, float]:
        """Returns the seconds of each term of a step of known groups."""
        known = dict(zip(self.names, self.values, strict=True))
        return {
            term: amount * math.exp(sum(known[name] for name in parameters_of(step, term)))
            for term, amount in terms(step).items()
        }

    def _doublings(self, step: TrainingStep) -> float:
        """Doublings from a rank's tokens to the closest measured ones of the benchmark."""
        name = step.configuration.benchmark
        others = [one for one in self.steps if one.configuration.benchmark == name]
        ratios = (abs(math.log2(_tokens(step) / _tokens(one))) for one in others)
        return min(ratios, default=2.0)


def _tokens(step: TrainingStep) -> float:
    one = step.configuration
    return step.micro_batch * step.sequence / (one.context * one.tensor)


def fit(steps: Sequence[TrainingStep]) -> FittedSteps:
    """Fits the coefficients to measured steps.

    The errors of logarithms are robust: beyond :data:`NOISE` they count linearly. Repetitions of a
    step count once, as their geometric mean.

    Raises:
        CalibrationError: There are no measured steps.
    """
    if not steps:
        raise CalibrationError("no measured training steps: at least one is necessary")
    single, logs = _merged(steps)
    names = _names(single)
    means, sds = np.array([_prior(name) for name in names]).T
    design = _design(single, names)

    found = posterior(design.log_times, logs, (means, sds), NOISE)
    return FittedSteps(tuple(names), found.values, found.covariance, tuple(single))


def _merged(steps: Sequence[TrainingStep]) -> tuple[list[TrainingStep], Array]:
    """Returns each configuration once, with the mean logarithm of its times."""
    logs: dict[tuple[object, ...], list[float]] = {}
    first: dict[tuple[object, ...], TrainingStep] = {}
    for step in steps:
        key = _key(step)
        first.setdefault(key, step)
        if step.measured_s is None:
            message = f"the step of {step.submitter}/{step.system} has no measured time"
            raise CalibrationError(message)
        logs.setdefault(key, []).append(math.log(step.measured_s))
    order = sorted(first)
    return [first[key] for key in order], np.array([np.mean(sorted(logs[key])) for key in order])


def _key(step: TrainingStep) -> tuple[str, str, str, int, int, int, int]:
    name = step.configuration.benchmark
    size = (step.systems, step.global_batch, step.sequence, step.accumulation)
    return (step.submitter, step.system, name, *size)
