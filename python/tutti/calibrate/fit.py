"""Robust fits of a model's parameters, with what the data can and cannot tell of them.

The error that is made small is the logarithm of predicted over measured time, so a time of 1 us
counts as much as one of 1 ms; outliers, such as averages that a preempted rank has spoiled, lose
their weight (Huber's function with a scale from the median). `scipy.optimize.least_squares` solves
it, with parameters bounded to 0 and above.

Uncertainty is that of resampling the points (bootstrap, 1000 times, linear around the fit), drawn
from a generator with a fixed seed: the same points give the same bits.
Whether a parameter can be told at all is read from the singular values of the Jacobian by relative
changes of parameters: directions in which predictions hardly change are combinations of parameters
that the data leave open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tutti.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tutti.calibrate.models import FittedModel
    from tutti.calibrate.points import Observation

    Floats = NDArray[np.float64]

__all__ = ["Fit", "Parameter", "fit"]

_RESAMPLED = 1000
_SEED = 20170911
_ROUNDS = 10
"""Solves of a fit: the scale of Huber's function depends on the errors that the last one left."""
_SETTLED = 1e-3
"""Relative change of that scale below which it has converged."""
_STEPS = 30
"""Evaluations of a solve."""
_INSIDE = 1e-3
"""Share of its expected size at which a parameter starts at least: solves start off the bound."""
_ZERO = 1e-4
"""Share of its expected size below which a parameter is 0: the solver only approaches the bound."""
_HUBER = 1.345
_FLAT = 1e-4
"""Singular values below this share of the largest belong to directions that cannot be told."""
_TAKES_PART = 0.2
"""Share of a parameter in such a direction from which on it cannot be told."""
_VAGUE = 0.5
"""Intervals whose halves are wider than this share of the value are told of."""
_BENT = 0.15
"""Noise of a usable measurement is a few per cent, and schedules of one class often lie 10 to 20 %
apart: a model that is further off for half of the points cannot choose among them."""
_FEWEST_LENGTHS = 3
"""Bursts of so many lengths show a bend, if there is one."""
_MOST_FREE = 32
_AS_GOOD = 1.02
"""Counts whose errors add up to at most this much more fit as well."""
_EXACT = 1e-4
"""Errors up to this are none: measurements have more noise, and the solver stops before."""
_RANGE = 8
"""Sizes tell a cost per byte from the ratio of the largest to the smallest on."""
_STARTS = (1.0, 10.0, 0.1)
_LEAST_US = 1e-6


@dataclass(frozen=True)
class Parameter:
    """A parameter as it was fitted.

    Attributes:
        name: under the field's name.
        value: in us, us/B, or a count.
        low: lower end of the 95 % interval.
        high: its upper end.
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """A model fitted to points.

    Attributes:
        model: the model.
        statistic: what of the samples it was fitted to: `mean`, `median`, `minimum`.
        parameters: what came out, by name; those that cannot be told are among them, and mean
            nothing by themselves.
        untold: parameters that the data leave open, each with the reason.
        vague: parameters that are only roughly told: their intervals are wide.
        absent: costs per byte that sizes tell nothing of, and are taken for 0, with the reason.
        condition: the condition number of the problem, in relative changes of parameters.
        points: what it was fitted to.
        predicted_us: what it says of them.
    """

    model: FittedModel
    statistic: str
    parameters: Mapping[str, Parameter]
    untold: Mapping[str, str]
    vague: Sequence[str]
    absent: Mapping[str, str]
    condition: float
    points: Sequence[Observation]
    predicted_us: Floats = field(repr=False)

    @property
    def told(self) -> bool:
        """Whether the data tell all parameters."""
        return not self.untold

    @property
    def theta(self) -> dict[str, float]:
        """The values by name."""
        return {name: one.value for name, one in self.parameters.items()}

    @property
    def residuals(self) -> Floats:
        """Predicted over measured, less 1: 0.1 is 10 % too long."""
        measured = np.array([point.time_us for point in self.points])
        return np.asarray(self.predicted_us / measured - 1)

    @property
    def median_residual(self) -> float:
        """Half of the points are closer than this share."""
        return float(np.median(np.abs(self.residuals)))

    @property
    def bent(self) -> bool:
        """Whether the model bends away from the data, beyond what noise explains."""
        return self.median_residual > _BENT

    @property
    def worst_sizes(self) -> list[tuple[int, float]]:
        """Sizes in bytes and how far off the model is there in the median, the worst first."""
        off, sizes = np.abs(self.residuals), np.array([point.size for point in self.points])
        found = [(int(size), float(np.median(off[sizes == size]))) for size in np.unique(sizes)]
        return sorted(found, key=lambda one: -one[1])

    @property
    def untold_together(self) -> list[tuple[list[str], str]]:
        """Parameters that cannot be told for one reason, together, and the reason."""
        return [
            ([name for name, why in self.untold.items() if why == reason], reason)
            for reason in dict.fromkeys(self.untold.values())
        ]


def fit(model: FittedModel, points: Sequence[Observation], *, statistic: str = "mean") -> Fit:
    """Fits a model to the points that it says something of.

    Raises:
        CalibrationError: there are no such points.
    """
    mine = [p for p in points if model.covers(p, points)]
    if not mine:
        wanted = ", ".join(sorted(model.kinds))
        message = f"{model.name} says nothing of what was measured: expected one of {wanted}"
        raise CalibrationError(message, kind="no_points", fields={"model": model.name})
    if not model.counts:
        return _fitted(model, mine, {}, statistic)
    lengths = {p.messages for p in mine if p.messages > 1}
    if len(lengths) < _FEWEST_LENGTHS:
        one = _fitted(model, mine, {"f": 1.0}, statistic)
        reason = f"it takes bursts of {_FEWEST_LENGTHS} lengths; {model.advice['f']}"
        return replace(one, untold={**one.untold, "g": reason, "f": reason})
    return _chosen([_fitted(model, mine, {"f": float(f)}, statistic)
                    for f in range(1, min(_MOST_FREE, max(lengths)) + 1)])  # fmt: skip


def _chosen(tries: list[Fit]) -> Fit:
    """The fit with the count that suits best; a count that changes nothing is left open."""
    costs = [float(np.abs(np.log1p(one.residuals)).sum()) for one in tries]
    best = tries[int(np.argmin(costs))]
    close = [one.theta["f"] for one, cost in zip(tries, costs, strict=True)
             if cost <= _AS_GOOD * min(costs) + _EXACT * len(one.points)]  # fmt: skip
    low, high = min(close), max(close)
    value, untold = best.theta["f"], dict(best.untold)
    if high == len(tries):
        # Where the longest bursts do not tell the count, none has met the gap.
        untold["g"] = "no burst shows a gap beyond o; longer ones may"
        untold["f"] = f"any count from {low:.0f} on fits as well; longer bursts may tell"
    parameters = {**best.parameters, "f": Parameter("f", value, low, high)}
    return replace(best, parameters=parameters, untold=untold)


# --- one fit --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    """What is to be made small: logarithms of predicted over measured times."""

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
        """By absolute changes, a column for each parameter; central, as models have kinks."""
        columns = []
        for step in np.diag(np.maximum(x, self.scale()) * 1e-3):
            up, down = x + step, np.maximum(0.0, x - step)
            columns.append((self.errors(up) - self.errors(down)) / (up - down).max())
        return np.stack(columns, axis=1)

    def scale(self) -> Floats:
        """How large parameters can be expected to be: for steps, and where one is zero."""
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
    untold, condition = _open(problem, x, jacobian, weights)
    low, high = _intervals(problem.errors(x), jacobian, weights, x)
    parameters = {
        name: Parameter(name, float(x[at]), float(low[at]), float(high[at]))
        for at, name in enumerate(problem.names)
    }
    vague = [
        name
        for name, one in parameters.items()
        if name not in untold and (one.high - one.low) / 2 > _VAGUE * one.value
    ]
    parameters |= {name: Parameter(name, value, value, value) for name, value in fixed.items()}
    return Fit(
        model, statistic, parameters, untold, vague, absent, condition, points,
        problem.predicted(x),
    )  # fmt: skip


def _absent(model: FittedModel, points: Sequence[Observation]) -> dict[str, str]:
    """Costs per byte that a model can do without, where sizes tell nothing of them."""
    reason = _no_sizes(points)
    return dict.fromkeys(model.optional, reason) if reason else {}


def _no_sizes(points: Sequence[Observation]) -> str:
    """Why sizes do not tell the cost of a byte, if so: nearly equal ones do not."""
    sizes = [max(1, point.size) for point in points]
    least, most = min(sizes), max(sizes)
    if most >= _RANGE * least:
        return ""
    return f"all are of {least} B" if least == most else f"they are from {least} to {most} B"


def _minimised(problem: _Problem) -> tuple[Floats, Floats]:
    """The best of several starts, in which the first parameter stands out differently.

    Without overheads times are sums of parameters, or the largest of such sums: one start will do.
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
    """Solves from one start, anew for each scale of the errors that the last solve left."""
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
    """The standard deviation that the median of the errors stands for."""
    return max(1.4826 * float(np.median(np.abs(errors))), 1e-3)


def _weights(errors: Floats) -> Floats:
    """Huber's: 1 for errors within the usual, less for outliers."""
    usual = _HUBER * _spread(errors)
    return np.asarray(np.minimum(1.0, usual / np.maximum(np.abs(errors), 1e-12)))


# --- what can be told -----------------------------------------------------------------------------


def _open(
    problem: _Problem, x: Floats, jacobian: Floats, weights: Floats
) -> tuple[dict[str, str], float]:
    """Parameters that the data leave open, with the reason, and the condition number."""
    # Where only a sum is known, the solver may leave one part near zero: that part is open as well.
    by_share = jacobian * np.maximum(x, problem.scale()) * np.sqrt(weights)[:, None]
    _, values, directions = np.linalg.svd(by_share, full_matrices=len(x) > len(problem.points))
    values = np.concatenate([values, np.zeros(len(x) - len(values))])
    condition = float(values[0] / values[-1]) if values[-1] > 0 else math.inf
    untold: dict[str, str] = {}
    for value, direction in zip(values, directions, strict=True):
        if value > _FLAT * values[0]:
            continue
        names = [n for n, share in zip(problem.names, direction, strict=True)
                 if abs(share) > _TAKES_PART]  # fmt: skip
        for name in names:
            others = " and ".join(other for other in names if other != name)
            reason = f"only a combination of it and {others} can be told" if others else (
                "what was measured does not depend on it"
            )  # fmt: skip
            untold[name] = f"{reason}; {problem.model.advice[name]}"
    _one_size(problem, untold)
    _no_overhead(problem, untold)
    return {name: untold[name] for name in problem.names if name in untold}, condition


def _one_size(problem: _Problem, untold: dict[str, str]) -> None:
    """A cost per byte needs sizes, whatever the algebra says."""
    reason = _no_sizes(problem.points)
    for name in problem.model.per_byte:
        if reason and name in problem.names:
            untold[name] = f"{reason}; {problem.model.advice[name]}"


def _no_overhead(problem: _Problem, untold: dict[str, str]) -> None:
    """Bursts bound the overhead from above, if it is not the gap that spaces them: no more."""
    told = any(point.kind == "issue" or point.pause_us > 0 for point in problem.points)
    if problem.model.overhead and not told:
        reason = "only 2 o + L can be told"
        for name in ("o", "L"):
            untold[name] = f"{reason}; {problem.model.advice[name]}"


def _intervals(
    errors: Floats, jacobian: Floats, weights: Floats, x: Floats
) -> tuple[Floats, Floats]:
    """95 % of what resampled points would have given, to first order."""
    root = np.sqrt(weights)
    scaled, target = jacobian * root[:, None], -errors * root
    chosen = np.random.default_rng(_SEED).integers(0, len(errors), (_RESAMPLED, len(errors)))
    moved = np.linalg.pinv(scaled[chosen], rcond=1e-9) @ target[chosen][..., None]
    low, high = np.percentile(x + moved[..., 0], [2.5, 97.5], axis=0)
    # The linear answer may wander off the one that was found where parameters stop at zero.
    return np.maximum(0.0, np.minimum(low, x)), np.maximum(high, x)
