"""Fits the protocols model to collectives of known algorithms, for a platform file.

A run takes, summed over the stages of its algorithm, alpha_p(n) + m (alpha_r(n) + n beta(n)) with m
messages of n bytes, and gamma for each byte that is reduced or copied. The eager limit and the
smallest long message are those with the smallest error. All other parameters are drawn to the
structural model of :mod:`tutti.measured.predict.curve`, which knows more: see
:data:`NOT_EXPRESSED`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tutti.base.files.writer import document
from tutti.base.units import Size, Time
from tutti.measured.calibrate.files import calibration_table
from tutti.measured.predict.features import features

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from tutti.measured.calibrate.files import Provenance
    from tutti.measured.predict import CalibratedModel
    from tutti.measured.predict.curve import CurveFit
    from tutti.measured.predict.features import Features

    Floats = NDArray[np.float64]

NOT_EXPRESSED: Final = (
    "the time of a call, which is part of the latencies",
    "the growth of latency with the number of nodes: latencies are averages of those measured",
    "reductions that are slower for long vectors: gamma is that of the default model",
    "links that ranks or stages share, which are part of the times per byte",
    "the properties of one algorithm or implementation, which `tutti advise` predicts",
)
"""What the joint model knows and a platform without a topology cannot state."""

_GAMMA: Final = "gamma"
NAMES: Final = (
    "alpha_p",
    "alpha_r",
    "beta",
    "alpha_p_rendezvous",
    "alpha_r_rendezvous",
    "beta_rendezvous",
    "beta_long",
    _GAMMA,
)
_PER_BYTE: Final = frozenset(name for name in NAMES if name.startswith(("beta", _GAMMA)))
_LIMITS: Final = tuple(1 << power for power in range(10, 17))
_LONG: Final = tuple(1 << power for power in (18, 20, 22, 24))
_FEWEST: Final = 12
"""Fewest measurements of an environment for a fit of these parameters."""
_SPREAD: Final = 0.7
_NOISE: Final = 0.15
_STRICT: Final = 100.0
"""Weight of the rule that a longer message never takes less time."""
_EVALUATIONS: Final = 40
_LEAST_US: Final = 1e-6
_QUANTILE: Final = 1.645


@dataclass(frozen=True)
class JointFit:
    """The protocols model of one environment: system, library, interface, ranks per node, memory.

    Attributes:
        environment: the labels, joined by slashes.
        eager_limit: largest eager message, in bytes.
        long_from: smallest long message, in bytes.
        theta: logarithms of the parameters :data:`NAMES`, in us and us per byte.
        deviation: their standard deviations.
        errors: by measurement, the logarithm of predicted over measured time.
        nodes: smallest and largest number of nodes measured.
    """

    environment: str
    eager_limit: int
    long_from: int
    theta: Floats
    deviation: Floats
    errors: Floats
    nodes: tuple[int, int]

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters in us and us per byte; a longer message never takes less time."""
        found = dict(zip(NAMES, np.exp(self.theta).tolist(), strict=True))
        short = sum(found[one] for one in NAMES[:2]) + self.eager_limit * found["beta"]
        longer = found["alpha_r_rendezvous"] + self.eager_limit * found["beta_rendezvous"]
        found["alpha_p_rendezvous"] = max(found["alpha_p_rendezvous"], short - longer)
        found["beta_long"] = max(found["beta_long"], found["beta_rendezvous"])
        return found

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors."""
        return float(np.median(np.abs(np.expm1(self.errors))))

    @property
    def summary(self) -> str:
        """What the model was fitted to, and how far it is off."""
        _, library, interface, per_node, memory = self.environment.rsplit("/", 4)
        factors = np.exp(np.abs(self.errors))
        median, most = (float(np.quantile(factors, share)) for share in (0.5, 0.9))
        first, last = self.nodes
        nodes = f"{first:,} nodes" if first == last else f"{first:,} to {last:,} nodes"
        return (
            f"fitted to {len(factors):,} collectives on {nodes} ({library or 'unknown library'}, "
            f"{interface}, {per_node} rank{'' if per_node == 'one' else 's'} per node, {memory} "
            f"memory); off by a factor of {median:.2f} in the median, {most:.2f} at 90 %"
        )


def fit_jointly(rows: pl.DataFrame, model: CalibratedModel) -> list[JointFit]:
    """Fits the environments of the system with the most measurements.

    Args:
        rows: the measurements of the model.
        model: the joint model, to which parameters are drawn.

    Returns:
        A fit for each environment with 12 measurements or more, that with the most first.
    """
    found = features(rows)
    times = rows["time_us"].to_numpy()[found.index]
    systems, counts = np.unique(found.labels["system"], return_counts=True)
    if not len(systems):
        return []
    mine = found.where("system", systems[int(np.argmax(counts))])
    names, counts = np.unique(found.labels["environment"][mine], return_counts=True)
    order = sorted(zip(names.tolist(), counts.tolist(), strict=True), key=lambda one: -one[1])
    return [
        _fitted(name, found.take(chosen), times[chosen], model.curves[name])
        for name, count in order
        if count >= _FEWEST
        for chosen in [found.where("environment", name)]
    ]


def _fitted(environment: str, rows: Features, times_us: Floats, curve: CurveFit) -> JointFit:
    """Returns the best fit: of all eager limits, then of all sizes of long messages."""

    def at(limit: int, longer: int) -> tuple[_Problem, Any]:
        problem = _Problem(rows, np.log(times_us), limit, longer, _start(curve, limit, longer))
        from scipy.optimize import least_squares

        return problem, least_squares(problem.residuals, problem.start, max_nfev=_EVALUATIONS)

    limit = min(_LIMITS, key=lambda one: at(one, _LONG[-1])[1].cost)
    problem, found = min((at(limit, one) for one in _LONG), key=lambda one: one[1].cost)
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    nodes = np.exp2(rows.log_nodes)
    return JointFit(
        environment,
        problem.limit,
        problem.longer,
        found.x,
        np.sqrt(np.diag(covariance)),
        problem.errors(found.x),
        (round(float(nodes.min())), round(float(nodes.max()))),
    )


@dataclass(frozen=True)
class _Problem:
    rows: Features
    log_times: Floats
    limit: int
    longer: int
    start: Floats

    def errors(self, theta: Floats) -> Floats:
        """Returns logarithms of predicted over measured times."""
        (p1, r1, b1, p2, r2, b2, b3, gamma), rows = np.exp(np.clip(theta, -30, 20)), self.rows
        eager, much = rows.size <= self.limit, rows.size >= self.longer
        per_byte = np.where(eager, b1, np.where(much, b3, b2))
        each = np.where(eager, r1, r2) + rows.size * per_byte
        stages = rows.count * (np.where(eager, p1, p2) * (rows.messages > 0) + rows.messages * each)
        total = np.bincount(rows.row, stages, minlength=len(rows)) + gamma * rows.folded
        return np.asarray(np.log(np.maximum(total, _LEAST_US)) - self.log_times)

    def residuals(self, theta: Floats) -> Floats:
        errors = self.errors(theta) / _NOISE
        robust = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
        p1, r1, b1, p2, r2, b2, b3, _ = np.exp(np.clip(theta, -30, 20))
        before, after = p1 + r1 + self.limit * b1, p2 + r2 + self.limit * b2
        falls = [max(0.0, np.log(before / after)), max(0.0, np.log(b2 / b3))]
        drawn = (theta - self.start) / _SPREAD
        return np.concatenate([robust, drawn, _STRICT * np.array(falls)])


def _start(curve: CurveFit, limit: int, longer: int) -> Floats:
    """Returns the parameters that the structural model suggests, as logarithms."""
    first, middle, last, longest = (curve.time_us(one) for one in (4, limit, longer, 256 << 20))
    beta_rendezvous = max(last - middle, 0.1 * last) / longer
    alpha_rendezvous = max(middle - limit * beta_rendezvous, 0.3 * middle)
    further = min(curve.further(256), 0.9), min(curve.further(limit), 0.9)
    values = (
        (1 - further[0]) * first,
        further[0] * first,
        max(middle - first, 0.1 * first) / limit,
        (1 - further[1]) * alpha_rendezvous,
        further[1] * alpha_rendezvous,
        beta_rendezvous,
        max(longest / (256 << 20), beta_rendezvous),
        curve.reduction_us_per_byte(1 << 20),
    )
    return np.asarray(np.log(np.maximum(values, 1e-9)))


# --- platform file --------------------------------------------------------------------------------


def joint_platform_text(fits: Sequence[JointFit], provenance: Provenance) -> str:
    """Returns the text of a platform file with a protocols model for each environment.

    Args:
        fits: as :func:`fit_jointly` returns them; the first is the default model.
        provenance: the origin of the numbers.
    """
    from tutti import __version__

    distance = f"; {provenance.distance}" if provenance.distance else ""
    head = {
        "name": provenance.name,
        "summary": f"{provenance.summary}{distance}",
        "source": f"tutti calibrate --joint {__version__}, {provenance.when}: "
        f"{provenance.measured}{distance}",
        "default_model": "protocols",
    }
    models = {key: _model(one) for key, one in _keyed(fits)}
    compute = {_GAMMA: _sourced(fits[0], _GAMMA)}
    tables: dict[str, object] = {**head, "models": models, "compute": compute}
    tables |= calibration_table(fits[0].median_error, replace(provenance, hosts=fits[0].nodes[1]))
    return document(_comments(fits, provenance), tables)


def _keyed(fits: Sequence[JointFit]) -> Iterator[tuple[str, JointFit]]:
    for place, one in enumerate(fits):
        labels = one.environment.rsplit("/", 4)[1:]
        parts = [part for part in labels if part.isidentifier()]
        yield "_".join(["protocols", *(parts if place else [])]), one


def _model(fitted: JointFit) -> dict[str, object]:
    chosen = {
        "eager_limit": (fitted.eager_limit, f"the best of {_sizes(_LIMITS)}"),
        "long_from": (fitted.long_from, f"the best of {_sizes(_LONG)}"),
    }
    found: dict[str, object] = {"kind": "protocols", "summary": fitted.summary}
    for name, (size, source) in chosen.items():
        found[name] = {"value": str(Size(bytes=size)), "source": source}
    return found | {name: _sourced(fitted, name) for name in NAMES if name != _GAMMA}


def _sourced(fitted: JointFit, name: str) -> dict[str, str]:
    """Returns a parameter with its interval, and whether the data determine it."""
    value, deviation = fitted.parameters[name], float(fitted.deviation[NAMES.index(name)])
    low, high = (_written(name, value * np.exp(sign * _QUANTILE * deviation)) for sign in (-1, 1))
    source = f"fitted jointly, 90 % interval {low} to {high}"
    if deviation >= 0.5 * _SPREAD:
        source += "; not determined by the data: drawn to the structural model"
    return {"value": _written(name, value, exact=True), "source": source}


def _sizes(sizes: Sequence[int]) -> str:
    return ", ".join(str(Size(bytes=one)) for one in sizes)


def _written(name: str, value: float, *, exact: bool = False) -> str:
    if name in _PER_BYTE:
        return f"{value * 1e3:.9f} ns/B" if exact else f"{value * 1e3:.3g} ns/B"
    return str(Time(ps=round(value * 1e6))) if exact else f"{value:.3g} us"


def _comments(fits: Sequence[JointFit], provenance: Provenance) -> Iterator[str]:
    yield f"Written by `tutti calibrate --joint` on {provenance.when}."
    yield f"Measured: {provenance.measured}."
    if provenance.distance:
        yield f"D{provenance.distance[1:]}."
    for key, one in _keyed(fits):
        worst = float(one.errors[int(np.argmax(np.abs(one.errors)))])
        yield f"{key}: {one.summary}; largest residual {np.expm1(worst):+.0%}."
    yield "The platform does not state:"
    for text in NOT_EXPRESSED:
        yield f"- {text}."
