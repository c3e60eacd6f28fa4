"""The files of a calibration: a platform file, and every point with the models' predictions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tutti import __version__
from tutti.base.files.writer import document
from tutti.base.units import Time
from tutti.measured.calibrate.models import text_of
from tutti.measured.errors import CalibrationError
from tutti.platforms.files.presets import load_platform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.measured.calibrate.fit import Fit, Parameter

RESIDUALS: dict[str, type[pl.DataType]] = {
    "model": pl.String,
    "statistic": pl.String,
    "kind": pl.String,
    "schedule": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "messages": pl.Int64,
    "pause_us": pl.Float64,
    "measured_us": pl.Float64,
    "predicted_us": pl.Float64,
    "residual": pl.Float64,
    "origin": pl.String,
}
"""The columns of points with predictions; ``residual`` is predicted over measured, minus 1."""

MOST_ERROR = 9999.0
"""Largest error of a model in a file; it is of no use long before."""
NOT_STATED = "not stated"
"""The machine of files that do not state it."""
_MS = 1000.0
PREFERRED = ("pipelining_postal", "postal", "loggp", "logfp")


@dataclass(frozen=True)
class Provenance:
    """The origin of the numbers of a platform.

    Attributes:
        name: of the platform.
        measured: measured files or live run, in a few words.
        when: date and time of the calibration, in ISO 8601.
        machine: the machine in a line.
        emulated: models that emulated distance; empty if a network was measured.
        hosts: number of hosts measured; None if unknown.
        cores: cores of a host; None if unknown.
    """

    name: str
    measured: str
    when: str
    machine: str
    emulated: tuple[str, ...] = ()
    hosts: int | None = None
    cores: int | None = None

    @property
    def summary(self) -> str:
        """Date and machine of the calibration, in a line."""
        where = "" if self.machine == NOT_STATED else f" on {self.machine}"
        return f"calibrated {self.when[:10]}{where}"

    @classmethod
    def now(
        cls,
        name: str,
        measured: str,
        machine: str,
        *,
        emulated: tuple[str, ...] = (),
        hosts: int | None = None,
        cores: int | None = None,
    ) -> Provenance:
        """Returns the provenance with the current time."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return cls(name, measured, now, machine, emulated, hosts, cores)

    @property
    def distance(self) -> str:
        """Describes the emulated distance; empty without any."""
        models = " and ".join(self.emulated)
        return f"distance was emulated by {models}: no network was measured" if models else ""


def platform_text(fits: Sequence[Fit], provenance: Provenance, *, folds: Fit | None = None) -> str:
    """Returns the text of a platform file with every model that the data determine.

    Raises:
        CalibrationError: The data determine no model.
    """
    usable = [one for one in fits if one.determined]
    if not usable:
        raise _none_determined(fits)
    kinds = [_key(one) for one in usable]
    default = next((kind for kind in PREFERRED if kind in kinds), kinds[0])
    tables = head(provenance, default) | {"models": {_key(one): model_table(one, provenance)
                                                     for one in usable}}  # fmt: skip
    of_default = next(one for one in usable if _key(one) == default)
    tables |= compute_table(folds) | calibration_table(of_default.median_residual, provenance)
    return document(comments(fits, provenance), tables)


def head(provenance: Provenance, default: str) -> dict[str, object]:
    """Returns the keys at the top of a platform file, with the name of its default model."""
    keys: dict[str, object] = {
        "name": provenance.name,
        "summary": provenance.summary,
        "source": f"tutti calibrate {__version__}, {provenance.when}: {provenance.measured}",
        "default_model": default,
    }
    if provenance.distance:
        for key in ("summary", "source"):
            keys[key] = f"{keys[key]}; {provenance.distance}"
    return keys


def compute_table(folds: Fit | None) -> dict[str, object]:
    """Returns the table of the costs of a fold, if the data determine them."""
    if folds is None or not folds.determined:
        return {}
    costs = {name: sourced(folds, parameter) for name, parameter in folds.parameters.items()}
    return {"compute": costs}


def calibration_table(error: float, provenance: Provenance) -> dict[str, object]:
    """Returns the table of a model's median error, as a fraction, and of what was measured."""
    table: dict[str, object] = {"error": f"{100 * min(error, MOST_ERROR):.1f} %"}
    counts = {"hosts": provenance.hosts, "cores": provenance.cores}
    known = {name: count for name, count in counts.items() if count is not None}
    return {"calibration": table | known}


def _none_determined(fits: Sequence[Fit]) -> CalibrationError:
    lines = [
        f"{one.model.name}: {name}: {reason}"
        for one in fits
        for name, reason in one.undetermined.items()
    ]
    message = "\n".join(["the data determine no model completely", *lines])
    return CalibrationError(message, kind="undetermined")


def _key(fitted: Fit) -> str:
    suffix = "_minimum" if fitted.statistic == "minimum" else ""
    return fitted.model.name + suffix


def model_table(fitted: Fit, provenance: Provenance) -> dict[str, object]:
    """Returns the table of a fitted model."""
    summary = f"fitted to the {fitted.statistic}; {median_error(fitted)}"
    if fitted.absent:
        summary += f"; no {' and no '.join(fitted.absent)}, which the sizes do not determine"
    summary += f"; {provenance.distance}" if provenance.distance else ""
    parameters = {name: sourced(fitted, one) for name, one in fitted.parameters.items()}
    return {"kind": fitted.model.name, "summary": summary, **parameters}


def median_error(fitted: Fit) -> str:
    """Returns the median of the absolute relative errors of a fit, with the number of points."""
    count, percent = len(fitted.points), 100 * fitted.median_residual
    points = "1 point" if count == 1 else f"{count} points"
    return f"median absolute relative error {percent:.1f} % over {points}"


def sourced(fitted: Fit, parameter: Parameter) -> dict[str, object]:
    """Returns a parameter with its interval."""
    if parameter.low is None or parameter.high is None:
        source = "fitted; as many points as parameters determine no interval"
    else:
        low, high = (written(fitted, parameter, value) for value in (parameter.low, parameter.high))
        source = f"fitted, 95 % of resampled fits from {low} to {high}"
    if parameter.name in fitted.vague:
        source += "; wide confidence interval"
    value = text_of(fitted.model, fitted.theta)[parameter.name]
    return {"value": _short(value), "source": source}


def _short(value: str | int) -> str | int:
    """Formats a time in a suitable unit; counts and times per byte are unchanged."""
    return str(Time.parse(value)) if isinstance(value, str) and value.endswith(" ps") else value


def written(fitted: Fit, parameter: Parameter, value: float) -> str:
    """Formats a value of a parameter with its unit."""
    if parameter.name in fitted.model.counts:
        return f"{value:.0f}"
    if parameter.name in fitted.model.per_byte:
        return f"{value * 1e3:.3g} ns/B"
    return f"{value / 1e3:.3g} ms" if value >= _MS else f"{value:.3g} us"


def comments(
    fits: Sequence[Fit], provenance: Provenance, *, labels: Sequence[str] = ()
) -> list[str]:
    """Returns the comments at the top of a platform file: origin, and residuals of each fit.

    Args:
        fits: The fits.
        provenance: Their origin.
        labels: Their names; by default their keys in the file.
    """
    lines = [
        f"Written by `tutti calibrate` on {provenance.when}.",
        f"Measured: {provenance.measured}.",
        f"Machine: {provenance.machine}.",
        *([f"D{provenance.distance[1:]}."] if provenance.distance else []),
        "Residuals are predicted over measured time, minus 1:",
    ]
    for one, label in zip(fits, labels or map(_key, fits), strict=True):
        worst = one.residuals[int(np.argmax(np.abs(one.residuals)))]
        left = "" if one.determined else f"; OMITTED, not determined: {', '.join(one.undetermined)}"
        lines.append(f"  {label}: {median_error(one)}, worst {worst:+.0%}{left}")
    return lines


def residual_frame(fits: Sequence[Fit]) -> pl.DataFrame:
    """Returns every point with each model's prediction, with the columns of :data:`RESIDUALS`."""
    rows = [
        {
            "model": one.model.name,
            "statistic": one.statistic,
            "kind": point.kind,
            "schedule": point.schedule.name if point.schedule else None,
            "ranks": point.schedule.ranks if point.schedule else 2,
            "size_bytes": point.size,
            "messages": point.messages,
            "pause_us": point.pause_us,
            "measured_us": point.time_us,
            "predicted_us": predicted,
            "residual": predicted / point.time_us - 1,
            "origin": point.origin,
        }
        for one in fits
        for point, predicted in zip(one.points, map(float, one.predicted_us), strict=True)
    ]
    return pl.DataFrame(rows, schema=RESIDUALS, orient="row")


def raise_error(path: Path, error: float) -> str:
    """Stores the error of collectives outside the fit, if it is larger than that of the fit.

    Args:
        path: The file of a platform.
        error: A fraction.

    Returns:
        The new error; empty if the old one stays.
    """
    import tomlkit

    fitted = load_platform(path).calibration
    if fitted is None or error <= fitted.share:
        return ""
    text = f"{100 * min(error, MOST_ERROR):.1f} %"
    document = tomlkit.parse(path.read_text("utf-8"))
    document["calibration"]["error"] = text
    path.write_text(tomlkit.dumps(document), "utf-8")
    return text
