"""The models that can be fitted: the prediction of each for a point, in microseconds.

Each is the model of the same name in docs/models. Predictions of bursts and round trips follow from
the spacing of sends and receives; the engine simulates collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.measured.calibrate.points import Observation
    from tutti.platforms.machine import Platform


@dataclass(frozen=True)
class FittedModel:
    """A model to fit.

    Attributes:
        name: the kind of the core's model.
        times: parameters that are times, in us.
        per_byte: parameters that are times per byte, in us/B.
        kinds: kinds of points that it predicts.
        predict: from parameters and a point to a time in us.
        advice: what to measure, by undetermined parameter.
        counts: parameters that are integer counts, which are enumerated.
        overhead: whether it distinguishes overhead from latency, which needs suitable points.
        optional: costs per byte that files may omit.
    """

    name: str
    times: tuple[str, ...]
    per_byte: tuple[str, ...]
    kinds: frozenset[str]
    predict: Callable[[Mapping[str, float], Observation], float]
    advice: Mapping[str, str]
    counts: tuple[str, ...] = ()
    overhead: bool = False
    optional: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The fitted parameters in order, without counts."""
        return self.times + self.per_byte

    def predicted(self, theta: Mapping[str, float], point: Observation) -> float:
        """Predicts the time of a point, in us."""
        return self.predictions(theta, [point])[0]

    def predictions(self, theta: Mapping[str, float], points: Sequence[Observation]) -> list[float]:
        """Predicts the time of each point, in us."""
        runs = iter(_simulated(self.name, theta, [p for p in points if p.schedule is not None]))
        return [self.predict(theta, p) if p.schedule is None else next(runs) for p in points]

    def covers(self, point: Observation, points: Sequence[Observation]) -> bool:
        """Whether it predicts a point."""
        if point.kind not in self.kinds:
            return False
        # A model without bytes is for small messages, up to the size of the bursts.
        return bool(self.per_byte) or point.size <= small_size(points)


def small_size(points: Sequence[Observation]) -> int:
    """Returns the limit of small messages: the size of the shortest bursts, or of all points."""
    bursts = [p.size for p in points if p.kind in {"burst", "multicast", "issue"}]
    return max(8, min(bursts or [p.size for p in points], default=8))


# --- predictions ----------------------------------------------------------------------------------


def _fold(theta: Mapping[str, float], point: Observation) -> float:
    return theta["reduce_overhead"] + point.size * theta["gamma"]


def _postal(theta: Mapping[str, float], point: Observation) -> float:
    alpha, each = theta["alpha"], theta["alpha"] + point.size * theta.get("beta", 0.0)
    if point.kind == "one_way":
        return each
    if point.kind == "multicast":
        return point.messages * each
    back = alpha if point.kind == "burst" else each
    return _spaced(point, each) + each + back


def _pipelining_postal(theta: Mapping[str, float], point: Observation) -> float:
    occupied = theta["alpha_r"] + point.size * theta.get("beta", 0.0)
    if point.kind in {"one_way", "multicast"}:
        return theta["alpha_p"] + point.messages * occupied
    back = theta["alpha_r"] if point.kind == "burst" else occupied
    return _spaced(point, occupied) + occupied + theta["alpha_p"] + back + theta["alpha_p"]


def _spaced(point: Observation, each: float) -> float:
    """When the last message of a burst starts, if each occupies the sender for `each`."""
    return (point.messages - 1) * (each + point.pause_us)


def _loggp(theta: Mapping[str, float], point: Observation) -> float:
    o, latency = theta["o"], theta["L"]
    length = max(0, point.size - 1) * theta["G"]
    if point.kind == "issue":
        return o
    spacing = max(o + point.pause_us, theta["g"] + length)
    last = (point.messages - 1) * spacing + 2 * o + latency + length
    if point.kind in {"one_way", "multicast"}:
        return last
    return last + 2 * o + latency + (0 if point.kind == "burst" else length)


def _logfp(theta: Mapping[str, float], point: Observation) -> float:
    o, latency, free = theta["o"], theta["L"], theta["f"]
    if point.kind == "issue":
        return o
    within = min(point.messages, free) - 1
    beyond = max(0, point.messages - free)
    pause = point.pause_us
    last = within * (o + pause) + beyond * max(o + pause, theta["g"]) + 2 * o + latency
    return last if point.kind in {"one_way", "multicast"} else last + 2 * o + latency


_LEAST_US = 1e-6
_POSTAL_KINDS = frozenset({"one_way", "burst", "round_trip", "multicast", "collective"})
_ALL_KINDS = _POSTAL_KINDS | {"issue"}
_SIZES = "messages of several sizes, over a range of at least 8 to 1"
_OVERLAP = "messages that overlap: osu_bw, or a live run"
_LENGTHS = "use a live run, which has bursts of several lengths; osu_bw has one, its window (-W)"
_OVERHEAD = "use a live run, which measures how long a send occupies its sender; ping-pongs cannot"

MODELS: dict[str, FittedModel] = {
    model.name: model
    for model in (
        FittedModel(
            "postal",
            times=("alpha",),
            per_byte=("beta",),
            # Messages are sequential: bursts contradict the model, so they cannot fit it.
            kinds=frozenset({"one_way", "collective"}),
            predict=_postal,
            advice={"alpha": "short messages: osu_latency", "beta": _SIZES},
            optional=("beta",),
        ),
        FittedModel(
            "pipelining_postal",
            times=("alpha_p", "alpha_r"),
            per_byte=("beta",),
            kinds=_POSTAL_KINDS - {"round_trip"},
            predict=_pipelining_postal,
            advice={"alpha_p": _OVERLAP, "alpha_r": _OVERLAP, "beta": _SIZES},
            optional=("beta",),
        ),
        FittedModel(
            "loggp",
            times=("L", "o", "g"),
            per_byte=("G",),
            kinds=_ALL_KINDS,
            predict=_loggp,
            advice={"L": _OVERHEAD, "o": _OVERHEAD, "g": _OVERLAP, "G": _SIZES},
            overhead=True,
        ),
        FittedModel(
            "logfp",
            times=("L", "o", "g"),
            per_byte=(),
            kinds=_ALL_KINDS - {"collective"},
            predict=_logfp,
            advice={"L": _OVERHEAD, "o": _OVERHEAD, "g": _LENGTHS, "f": _LENGTHS},
            counts=("f",),
            overhead=True,
        ),
    )
}
"""By name, in the order of a platform file."""

FOLDS = FittedModel(
    "folds",
    times=("reduce_overhead",),
    per_byte=("gamma",),
    kinds=frozenset({"fold"}),
    predict=_fold,
    advice={"reduce_overhead": "a live run", "gamma": "a live run"},
)
"""The cost of a fold on a rank: not a network model, but fitted by the same method."""


def model_named(name: str) -> FittedModel:
    """Returns the model of that name.

    Raises:
        CalibrationError: It does not exist, or cannot be fitted.
    """
    if name not in MODELS:
        known = ", ".join(MODELS)
        raise CalibrationError(
            f"unknown model `{name}`: expected one of {known}",
            kind="unknown_model",
            fields={"name": name, "known": known},
        )
    return MODELS[name]


# --- conversion to the core -----------------------------------------------------------------------


def text_of(model: FittedModel, theta: Mapping[str, float]) -> dict[str, str | int]:
    """Returns the parameters for files: integer picoseconds, and times per byte to 10^-6 ps."""
    times = {name: f"{max(0, round(theta[name] * 1e6))} ps" for name in model.times}
    rates = {
        name: f"{max(0.0, theta[name]) * 1e3:.9f} ns/B" for name in model.per_byte if name in theta
    }
    counts = {name: int(theta[name]) for name in model.counts}
    return {**times, **rates, **counts}


def platform_of(name: str, theta: Mapping[str, float], *, called: str = "calibrated") -> Platform:
    """Returns a platform with the model of that name and these parameters (us and us/B).

    Raises:
        CalibrationError: The parameters are out of range.
    """
    from tutti.platforms import machine as models

    kinds = {kind.model_fields["kind"].default: kind for kind in models.MODELS}
    try:
        fitted = kinds[name].model_validate(text_of(MODELS[name], theta))
    except (ValueError, OverflowError):  # such as more than 16 s for a byte, or NaN
        values = ", ".join(f"{key} = {value:g}" for key, value in theta.items())
        message = f"the measurements fit {name} only with values out of range: {values}"
        raise CalibrationError(message, kind="out_of_range") from None
    return models.Platform(name=called, model=fitted)


def _simulated(name: str, theta: Mapping[str, float], points: Sequence[Observation]) -> list[float]:
    """Simulates collectives on the engine, in us; folds have no cost."""
    if not points:
        return []
    # The core rejects messages of zero time, which a step of a fit may request.
    some = {**theta, MODELS[name].times[0]: max(_LEAST_US, theta[MODELS[name].times[0]])}
    model = platform_of(name, some).model
    found = []
    for point in points:
        assert point.schedule is not None  # noqa: S101 - a collective
        case = _core.Case(
            point.schedule.repeated(point.in_a_row).core,
            _core.Platform(model.core),
            size=point.size,
            element=1,
        )
        found.append(_core.simulate(case).completion_ps / 1e6 / point.in_a_row)
    return found
