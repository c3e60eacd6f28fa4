"""Robust fits of a model's parameters, and which parameters the data determine.

The fit minimises the logarithm of predicted over measured time, so that a time of 1 us has the same
weight as one of 1 ms. Outliers, such as averages over a preempted rank, lose weight (Huber's
function with a scale from the median). `scipy.optimize.least_squares` solves it, with parameters
bounded to 0 and above.

Uncertainty is estimated by resampling the points (bootstrap, 1000 times, linearised at the fit),
with a fixed seed: the same points give the same bits. The singular values of the Jacobian, with
respect to relative changes of parameters, show whether a parameter is determined: directions in
which predictions hardly change are combinations that the data do not determine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tutti.measured.calibrate.models import FittedModel
    from tutti.measured.calibrate.points import Observation

    Floats = NDArray[np.float64]

_RESAMPLED = 1000
_SEED = 20170911
_ROUNDS = 10
"""Solves of a fit: the scale of Huber's function depends on the errors of the previous solve."""
_SETTLED = 1e-3
"""Relative change of that scale below which it has converged."""
_STEPS = 30
"""Evaluations of a solve."""
_INSIDE = 1e-3
"""Minimum start value of a parameter, relative to its expected size: solves start off the bound."""
_ZERO = 1e-4
"""Share of its expected size below which a parameter is 0: the solver only approaches the bound."""
_HUBER = 1.345
_FLAT = 1e-4
"""Singular values below this share of the largest belong to directions that are not determined."""
_TAKES_PART = 0.2
"""Share of a parameter in such a direction from which on it is not determined."""
_VAGUE = 0.5
"""Intervals with a half-width above this share of the value are reported."""
_BENT = 0.15
"""Noise of a usable measurement is a few per cent, and schedules of one class often differ by 10 to
20 %: a model with larger errors for half of the points cannot choose among them."""
_FEWEST_LENGTHS = 3
"""Number of burst lengths that show a bend, if there is one."""
_MOST_FREE = 32
_AS_GOOD = 1.02
"""Counts with a total error up to this factor above the minimum fit as well."""
_EXACT = 1e-4
"""Errors up to this are zero: measurements have more noise, and the solver stops earlier."""
_RANGE = 8
"""Minimum ratio of the largest to the smallest size that determines a cost per byte."""
_STARTS = (1.0, 10.0, 0.1)
_LEAST_US = 1e-6


@dataclass(frozen=True)
class Parameter:
    """A fitted parameter.

    Attributes:
        name: the field's name.
        value: in us, us/B, or a count.
        low: lower end of the 95 % interval; None if there are no more points than parameters.
        high: its upper end, likewise.
    """

    name: str
    value: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half of the interval; None without one."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class Fit:
    """A model fitted to points.

    Attributes:
        model: the model.
        statistic: the fitted statistic of the samples: `mean`, `median`, `minimum`.
        parameters: fitted values by name, including undetermined ones, which are meaningless.
        undetermined: parameters that the data do not determine, each with the reason.
        vague: parameters with wide confidence intervals.
        absent: costs per byte that the sizes do not determine, assumed 0, with the reason.
        condition: condition number of the problem, in relative changes of parameters.
        points: the fitted points.
        predicted_us: the predicted times of the points.
    """

    model: FittedModel
    statistic: str
    parameters: Mapping[str, Parameter]
    undetermined: Mapping[str, str]
    vague: Sequence[str]
    absent: Mapping[str, str]
    condition: float
    points: Sequence[Observation]
    predicted_us: Floats = field(repr=False)

    @property
    def determined(self) -> bool:
        """Whether the data determine all parameters."""
        return not self.undetermined

    @property
    def has_intervals(self) -> bool:
        """Whether there are more points than parameters."""
        return all(one.low is not None for one in self.parameters.values())

    @property
    def theta(self) -> dict[str, float]:
        """The values by name."""
        return {name: one.value for name, one in self.parameters.items()}

    @property
    def residuals(self) -> Floats:
        """Predicted over measured, minus 1: 0.1 is 10 % too long."""
        measured = np.array([point.time_us for point in self.points])
        return np.asarray(self.predicted_us / measured - 1)

    @property
    def median_residual(self) -> float:
        """Median of the absolute residuals."""
        return float(np.median(np.abs(self.residuals)))

    @property
    def bent(self) -> bool:
        """Whether the model deviates from the data, beyond what noise explains."""
        return self.median_residual > _BENT

    @property
    def worst_sizes(self) -> list[tuple[int, float]]:
        """Sizes in bytes with the median absolute residual, the worst first."""
        off, sizes = np.abs(self.residuals), np.array([point.size for point in self.points])
        found = [(int(size), float(np.median(off[sizes == size]))) for size in np.unique(sizes)]
        return sorted(found, key=lambda one: -one[1])

    @property
    def undetermined_groups(self) -> list[tuple[list[str], str]]:
        """Undetermined parameters, grouped by reason."""
        return [
            ([name for name, why in self.undetermined.items() if why == reason], reason)
            for reason in dict.fromkeys(self.undetermined.values())
        ]


def fit(model: FittedModel, points: Sequence[Observation], *, statistic: str = "mean") -> Fit:
    """Fits a model to the points that it predicts.

    Raises:
        CalibrationError: There are no such points.
    """
    mine = [p for p in points if model.covers(p, points)]
    if not mine:
        expected = ", ".join(sorted(model.kinds))
        message = f"{model.name} predicts none of the measured points: expected one of {expected}"
        raise CalibrationError(message, kind="no_points", fields={"model": model.name})
    if not model.counts:
        return _fitted(model, mine, {}, statistic)
    lengths = {p.messages for p in mine if p.messages > 1}
    if len(lengths) < _FEWEST_LENGTHS:
        one = _fitted(model, mine, {"f": 1.0}, statistic)
        reason = f"needs bursts of {_FEWEST_LENGTHS} lengths; {model.advice['f']}"
        return replace(one, undetermined={**one.undetermined, "g": reason, "f": reason})
    return _chosen([_fitted(model, mine, {"f": float(f)}, statistic)
                    for f in range(1, min(_MOST_FREE, max(lengths)) + 1)])  # fmt: skip


def _chosen(tries: list[Fit]) -> Fit:
    """Returns the fit with the best count; a count without effect is not determined."""
    costs = [float(np.abs(np.log1p(one.residuals)).sum()) for one in tries]
    best = tries[int(np.argmin(costs))]
    close = [one.theta["f"] for one, cost in zip(tries, costs, strict=True)
             if cost <= _AS_GOOD * min(costs) + _EXACT * len(one.points)]  # fmt: skip
    low, high = min(close), max(close)
    value, undetermined = best.theta["f"], dict(best.undetermined)
    if high == len(tries):
        # If the longest bursts do not determine the count, none has reached the gap.
        undetermined["g"] = "no burst shows a gap beyond o; longer ones may"
        undetermined["f"] = f"any count from {low:.0f} on fits as well; use longer bursts"
    parameters = {**best.parameters, "f": Parameter("f", value, low, high)}
    return replace(best, parameters=parameters, undetermined=undetermined)


# --- one fit --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    """The errors to minimise: logarithms of predicted over measured times."""

    model: FittedModel
    points: Sequence[Observation]
    fixed: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.model.parameters if name not in self.fixed)

    def predicted(self, x: Floats) -> Floats:
        theta = {**self.fixed, **dict(zip(self.names, map(float, x), strict=True))}
        times = self.model.predictions(theta, self.points)
        return np.asarray(np.maximum(np.array(times, dtype=np.float64), _LEAST_US))

    def errors(self, x: Floats) -> Floats:
        measured = np.array([point.time_us for point in self.points])
        return np.asarray(np.log(self.predicted(x) / measured))

    def jacobian(self, x: Floats) -> Floats:
        """Central differences, as models have kinks; a column for each parameter."""
        columns = []
        for step in np.diag(np.maximum(x, self.scale()) * 1e-3):
            up, down = x + step, np.maximum(0.0, x - step)
            columns.append((self.errors(up) - self.errors(down)) / (up - down).max())
        return np.stack(columns, axis=1)

    def scale(self) -> Floats:
        """Expected size of the parameters: for steps, and where one is zero."""
        shortest = min(point.time_us / max(1, point.messages) for point in self.points)
        slowest = max(point.time_us / max(1, point.messages * point.size) for point in self.points)
        fastest = min(point.time_us / max(1, point.messages * point.size) for point in self.points)
        per_byte = min(slowest, 4 * fastest)
        times = sum(name in self.model.times for name in self.names)
        return np.array([shortest / max(2, times)] * times + [per_byte] * (len(self.names) - times))


def _fitted(
    model: FittedModel, points: Sequence[Observation], fixed: Mapping[str, float], statistic: str
) -> Fit:
    absent = _absent(model, points)
    problem = _Problem(model, points, {**fixed, **dict.fromkeys(absent, 0.0)})
    x, weights = _minimised(problem)
    jacobian = problem.jacobian(x)
    undetermined, condition = _undetermined(problem, x, jacobian, weights)
    parameters = {name: Parameter(name, float(x[at]), None, None)
                  for at, name in enumerate(problem.names)}  # fmt: skip
    if _distinct(points) > len(problem.names):
        low, high = _intervals(problem.errors(x), jacobian, weights, x)
        parameters = {
            name: replace(one, low=float(low[at]), high=float(high[at]))
            for at, (name, one) in enumerate(parameters.items())
        }
    vague = [
        name
        for name, one in parameters.items()
        if name not in undetermined and one.half_width is not None
        and one.half_width > _VAGUE * one.value
    ]  # fmt: skip
    parameters |= {name: Parameter(name, value, value, value) for name, value in fixed.items()}
    return Fit(
        model, statistic, parameters, undetermined, vague, absent, condition, points,
        problem.predicted(x),
    )  # fmt: skip


def _distinct(points: Sequence[Observation]) -> int:
    """Returns the number of points without repetitions, which show no noise."""
    cases = {(one.described, one.size, one.pause_us, one.in_a_row, one.time_us) for one in points}
    return len(cases)


def _absent(model: FittedModel, points: Sequence[Observation]) -> dict[str, str]:
    """Returns optional costs per byte that the sizes do not determine."""
    reason = _no_sizes(points)
    return dict.fromkeys(model.optional, reason) if reason else {}


def _no_sizes(points: Sequence[Observation]) -> str:
    """Returns why the sizes do not determine the cost of a byte, or an empty string."""
    sizes = [max(1, point.size) for point in points]
    least, most = min(sizes), max(sizes)
    if most >= _RANGE * least:
        return ""
    return f"all are of {least} B" if least == most else f"they are from {least} to {most} B"


def _minimised(problem: _Problem) -> tuple[Floats, Floats]:
    """Returns the best of several starts, with different weights of the first parameter.

    Without overheads, times are sums of parameters or their maximum: one start is enough.
    """
    found = []
    for factor in _STARTS if problem.model.overhead else _STARTS[:1]:
        start = problem.scale()
        start[0] *= factor
        x = _descended(problem, start)
        found.append((float(np.abs(problem.errors(x)).sum()), x))
    _, x = min(found, key=lambda one: one[0])
    return x, _weights(problem.errors(x))


def _descended(problem: _Problem, x: Floats) -> Floats:
    """Solves from one start, again for each scale of the errors of the previous solve."""
    from scipy.optimize import least_squares

    scale, spread = problem.scale(), math.inf
    for _ in range(_ROUNDS):
        before, spread = spread, _spread(problem.errors(x))
        if abs(spread - before) <= _SETTLED * spread:
            break
        x = least_squares(
            problem.errors,
            np.maximum(x, _INSIDE * scale),
            problem.jacobian,
            bounds=(0, np.inf),
            x_scale=scale,
            loss="huber",
            f_scale=_HUBER * spread,
            ftol=_SETTLED**2,
            xtol=_SETTLED**2,
            max_nfev=_STEPS,
        ).x
    return np.where(x > _ZERO * scale, x, 0.0)


def _spread(errors: Floats) -> float:
    """The standard deviation that the median of the errors implies."""
    return max(1.4826 * float(np.median(np.abs(errors))), 1e-3)


def _weights(errors: Floats) -> Floats:
    """Huber's weights: 1 for typical errors, less for outliers."""
    usual = _HUBER * _spread(errors)
    return np.asarray(np.minimum(1.0, usual / np.maximum(np.abs(errors), 1e-12)))


# --- determined parameters ------------------------------------------------------------------------


def _undetermined(
    problem: _Problem, x: Floats, jacobian: Floats, weights: Floats
) -> tuple[dict[str, str], float]:
    """Returns parameters that the data do not determine, with the reason; and the condition."""
    # If only a sum is known, the solver may leave one part near zero: it is undetermined as well.
    by_share = jacobian * np.maximum(x, problem.scale()) * np.sqrt(weights)[:, None]
    _, values, directions = np.linalg.svd(by_share, full_matrices=len(x) > len(problem.points))
    values = np.concatenate([values, np.zeros(len(x) - len(values))])
    condition = float(values[0] / values[-1]) if values[-1] > 0 else math.inf
    undetermined: dict[str, str] = {}
    for value, direction in zip(values, directions, strict=True):
        if value > _FLAT * values[0]:
            continue
        names = [n for n, share in zip(problem.names, direction, strict=True)
                 if abs(share) > _TAKES_PART]  # fmt: skip
        for name in names:
            others = " and ".join(other for other in names if other != name)
            reason = f"the data only determine a combination of it and {others}" if others else (
                "the measured times do not depend on it"
            )  # fmt: skip
            undetermined[name] = f"{reason}; {problem.model.advice[name]}"
    _one_size(problem, undetermined)
    _no_overhead(problem, undetermined)
    return {name: undetermined[name] for name in problem.names if name in undetermined}, condition


def _one_size(problem: _Problem, undetermined: dict[str, str]) -> None:
    """A cost per byte needs several sizes, whatever the singular values."""
    reason = _no_sizes(problem.points)
    for name in problem.model.per_byte:
        if reason and name in problem.names:
            undetermined[name] = f"{reason}; {problem.model.advice[name]}"


def _no_overhead(problem: _Problem, undetermined: dict[str, str]) -> None:
    """Bursts only bound the overhead from above, if the gap does not space them."""
    known = any(point.kind == "issue" or point.pause_us > 0 for point in problem.points)
    if problem.model.overhead and not known:
        reason = "the data only determine 2 o + L"
        for name in ("o", "L"):
            undetermined[name] = f"{reason}; {problem.model.advice[name]}"


def _intervals(
    errors: Floats, jacobian: Floats, weights: Floats, x: Floats
) -> tuple[Floats, Floats]:
    """Returns the 95 % interval of fits to resampled points, to first order."""
    root = np.sqrt(weights)
    scaled, target = jacobian * root[:, None], -errors * root
    chosen = np.random.default_rng(_SEED).integers(0, len(errors), (_RESAMPLED, len(errors)))
    moved = np.linalg.pinv(scaled[chosen], rcond=1e-9) @ target[chosen][..., None]
    low, high = np.percentile(x + moved[..., 0], [2.5, 97.5], axis=0)
    # The linearised solution may leave the fitted value out where parameters are bounded at zero.
    return np.maximum(0.0, np.minimum(low, x)), np.maximum(high, x)
