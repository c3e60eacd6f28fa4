"""Calibration of the coefficients of a step to measured steps of one kind of GPU.

Each coefficient of :mod:`tutti.training.plan.efficiency` has a factor, the same for all models,
precisions and plans of the log. The logarithms of the factors have Gaussian priors around 0, and a
common factor of all terms of passes has one, too. The posterior is approximated at its maximum
(Gauss-Newton, Laplace). A coefficient without amounts in the log has no factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from tutti.training.plan.efficiency import HOST_TERMS, MATRIX, NAMES, SHARES
from tutti.training.plan.estimate import amounts, busy, combined, stacked
from tutti.workloads.errors import WorkloadError
from tutti.workloads.kernels import TERMS
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.estimate import StepAmounts
    from tutti.training.plan.space import Plan
    from tutti.workloads.model import Model

    Array = NDArray[np.float64]

__all__ = ["DETERMINED", "Calibration", "Factor", "MeasuredStep", "Observed", "calibrate", "slopes"]

Observed = Literal["step", "kernels"]
"""What is measured: the step, or the time in which a GPU runs kernels that do not communicate."""

_PASSES: Final = 0.1
"""Standard deviation of the logarithm of the factor of all terms of passes. Assumed, as are those
of :data:`_SPREADS`; cross-validated models and systems differ by 1.07 (median) to 1.22."""
_SPREADS: Final[Mapping[str, float]] = {
    "products": 0.1,
    "attention": 0.15,
    "classifier": 0.15,
    "memory": 0.15,
    "grouped": 0.2,
    "weights": 0.2,
    "copies": 0.25,
    "kernels": 0.25,
    "routing": 0.4,
    "tensor": 0.3,
    "expert": 0.3,
    "context": 0.4,
    "data": 0.4,
    "cast": 0.5,
    "step": 0.5,
    "skew": 0.5,
}
"""Standard deviations of the logarithms of factors."""
_NOISE: Final = 0.03
"""Standard deviation of the logarithm of a measured time that no coefficient explains."""
DETERMINED: Final = 0.1
"""Share of the prior variance below which a factor is not determined."""
_QUANTILE: Final = 1.645
_STEP: Final = 1e-6
_ITERATIONS: Final = 50


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A measured time of a plan.

    Attributes:
        source: The file and the row.
        model: The model.
        cluster: The GPUs.
        plan: The parallelisation.
        seconds: The measured time.
        observed: What was measured.
    """

    source: str
    model: Model
    cluster: Cluster
    plan: Plan
    seconds: float
    observed: Observed = "step"

    @cached_property
    def amounts(self) -> StepAmounts:
        """The amounts of the step."""
        return amounts(Pieces(self.model), self.plan, self.cluster)

    @property
    def coefficients(self) -> Array:
        """The coefficients before the calibration."""
        return self.cluster.coefficients(self.model)

    def predicted(self, factors: Mapping[str, float] | None = None) -> float:
        """Returns the seconds of the model, with factors on the coefficients."""
        given = factors or {}
        scale = np.array([given.get(name, 1.0) for name in NAMES])
        return float(_seconds(self, self.amounts, self.coefficients * scale))


@dataclass(frozen=True, kw_only=True)
class Factor:
    """The factor of a coefficient.

    Attributes:
        name: The coefficient.
        was: Its value for the first measured step, before the calibration.
        factor: The factor.
        low: The lower end of the 90 % interval of the factor.
        high: The upper end.
        determined: The share of the prior variance that the measurements removed.
    """

    name: str
    was: float
    factor: float
    low: float
    high: float
    determined: float

    def shown(self, factor: float) -> float:
        """Returns the coefficient with a factor, in :attr:`unit`; products have efficiencies."""
        value = self.was * factor
        if self.name in MATRIX:
            return 1 / value
        return value * 1e6 if self.name in HOST_TERMS else value

    @property
    def unit(self) -> str:
        """The unit of :meth:`shown`."""
        if self.name in MATRIX:
            return "of peak"
        if self.name in SHARES:
            return "exposed"
        if self.name in HOST_TERMS:
            return "us/pass"
        if self.name == "cast":
            return "B/weight"
        return "s" if self.name in ("step", "skew") else "of bytes"


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Calibrated coefficients of a GPU.

    Attributes:
        steps: The measured steps; equal plans are one, with the geometric mean of their times.
        factors: The factors of the coefficients that have amounts in these steps.
    """

    steps: tuple[MeasuredStep, ...]
    factors: tuple[Factor, ...]

    @property
    def values(self) -> dict[str, float]:
        """The factors by coefficient."""
        return {one.name: one.factor for one in self.factors}

    @property
    def gpu(self) -> str:
        """The GPU."""
        return self.steps[0].cluster.npu.name

    @property
    def undetermined(self) -> list[str]:
        """The coefficients of which the measurements say nothing."""
        return [one.name for one in self.factors if one.determined < DETERMINED]

    @property
    def absent(self) -> list[str]:
        """The coefficients without amounts in the steps."""
        present = {one.name for one in self.factors}
        return [name for name in NAMES if name not in present and name != "optimizer"]


def calibrate(steps: Sequence[MeasuredStep]) -> Calibration:
    """Fits the factors of the coefficients to measured steps.

    Raises:
        WorkloadError: There are no steps, or their GPUs differ.
    """
    if not steps:
        message = "no measured steps: expected at least one"
        raise WorkloadError(message, kind="calibration")
    gpus = sorted({one.cluster.npu.name for one in steps})
    if len(gpus) > 1:
        message = f"measured steps of {' and '.join(gpus)}: expected one GPU"
        hint = "calibrate each GPU with the steps measured on it"
        raise WorkloadError(message, kind="calibration", hint=hint)
    single = _merged(steps)
    return Calibration(steps=tuple(single), factors=tuple(_fitted(single)))


def _merged(steps: Sequence[MeasuredStep]) -> list[MeasuredStep]:
    """Returns each plan once, as repetitions do not reduce what the model misses."""
    groups: dict[tuple[object, ...], list[MeasuredStep]] = {}
    for one in steps:
        cluster = one.cluster
        setting = (cluster.setting(one.model), cluster.gpus, cluster.gradients, cluster.efficiency)
        key = (one.model.name, setting, cluster.platform.name, one.plan, one.observed)
        groups.setdefault(key, []).append(one)
    return [_mean(group) for group in groups.values()]


def _mean(group: Sequence[MeasuredStep]) -> MeasuredStep:
    first = group[0]
    if len(group) == 1:
        return first
    seconds = math.exp(sum(math.log(one.seconds) for one in group) / len(group))
    return MeasuredStep(
        source=f"{first.source} and {len(group) - 1} more",
        model=first.model,
        cluster=first.cluster,
        plan=first.plan,
        seconds=seconds,
        observed=first.observed,
    )


class _Prior(NamedTuple):
    """Which factors each parameter changes (parameters x coefficients), and its deviation."""

    uses: Array
    spreads: Array


def _fitted(steps: Sequence[MeasuredStep]) -> list[Factor]:
    names = _present(steps)
    prior = _prior(names)
    values, covariance = _posterior(steps, prior)
    found = []
    for name in names:
        use = prior.uses[:, NAMES.index(name)]
        mean = float(use @ values)
        deviation = math.sqrt(float(use @ covariance @ use))
        before = math.sqrt(float(use @ (use * prior.spreads**2)))
        found.append(
            Factor(
                name=name,
                was=float(steps[0].coefficients[NAMES.index(name)]),
                factor=math.exp(mean),
                low=math.exp(mean - _QUANTILE * deviation),
                high=math.exp(mean + _QUANTILE * deviation),
                determined=max(0.0, 1 - (deviation / before) ** 2),
            )
        )
    return found


def _present(steps: Sequence[MeasuredStep]) -> list[str]:
    """Returns the coefficients that change the time of a step."""
    changes = np.zeros(len(NAMES))
    for one in steps:
        changes += np.abs(slopes(_timed(one), one.coefficients)[1])
    return [name for name, change in zip(NAMES, changes, strict=True)
            if change > _STEP and name != "optimizer"]  # fmt: skip


def _prior(names: Sequence[str]) -> _Prior:
    """Returns a parameter per coefficient, and the common one of passes."""
    of_passes = [name for name in names if name in TERMS]
    uses = np.zeros((len(names) + 1, len(NAMES)))
    for at, name in enumerate(names):
        uses[at, NAMES.index(name)] = 1.0
    uses[-1, [NAMES.index(name) for name in of_passes]] = 1.0
    return _Prior(uses, np.array([*(_SPREADS[name] for name in names), _PASSES]))


def _posterior(steps: Sequence[MeasuredStep], prior: _Prior) -> tuple[Array, Array]:
    """Returns the most probable parameters, and their covariance."""
    values = np.zeros(len(prior.spreads))
    weight = np.diag(1 / prior.spreads**2)
    for _ in range(_ITERATIONS):
        rows = [slopes(_timed(one), one.coefficients * np.exp(values @ prior.uses))
                for one in steps]  # fmt: skip
        errors = np.array([math.log(one.seconds) - log for one, (log, _) in
                           zip(steps, rows, strict=True)])  # fmt: skip
        design = np.stack([by_name for _, by_name in rows]) @ prior.uses.T
        precision = design.T @ design / _NOISE**2 + weight
        change = np.linalg.solve(precision, design.T @ errors / _NOISE**2 - weight @ values)
        values = values + change
        if float(np.abs(change).max()) < _STEP:
            break
    covariance: Array = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return values, covariance


def _timed(one: MeasuredStep) -> Callable[[Array], Array]:
    """Returns the seconds of a measured step by rows of coefficients."""
    return lambda coefficients: _seconds(one, stacked([one.amounts] * len(coefficients)),
                                         coefficients)  # fmt: skip


def _seconds(one: MeasuredStep, step: StepAmounts, coefficients: Array) -> Array:
    if one.observed == "kernels":
        return busy(step, coefficients)
    return combined(step, coefficients).step


def slopes(timed: Callable[[Array], Array], coefficients: Array) -> tuple[float, Array]:
    """Returns the logarithm of a time, and its derivatives by those of the coefficients.

    Args:
        timed: Returns times by rows of coefficients.
        coefficients: The coefficients of :data:`NAMES`.
    """
    changed = np.tile(coefficients, (len(NAMES) + 1, 1))
    changed[np.arange(1, len(NAMES) + 1), np.arange(len(NAMES))] *= math.exp(_STEP)
    logs = np.log(timed(changed))
    return float(logs[0]), (logs[1:] - logs[0]) / _STEP
