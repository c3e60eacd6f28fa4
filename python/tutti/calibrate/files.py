"""What a calibration leaves behind: a platform file, and every point beside what models say."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tutti import __version__
from tutti.calibrate.models import text_of
from tutti.errors import CalibrationError
from tutti.units import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.calibrate.fit import Fit, Parameter

__all__ = ["RESIDUALS", "Provenance", "platform_text", "residual_frame", "written"]

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
"""The columns of points beside what models say; ``residual`` is predicted over measured, less 1."""

_MS = 1000.0
_PREFERRED = ("pipelining_postal", "postal", "loggp", "logfp")


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of a platform come from.

    Attributes:
        name: of the platform.
        measured: what was measured, such as files or a live run, in a few words.
        when: date and time of the calibration, in ISO 8601.
        machine: the machine in a line.
        emulated: the models that kept ranks apart; empty where a network was measured.
    """

    name: str
    measured: str
    when: str
    machine: str
    emulated: tuple[str, ...] = ()

    @classmethod
    def now(
        cls, name: str, measured: str, machine: str, *, emulated: tuple[str, ...] = ()
    ) -> Provenance:
        """With the time of now."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return cls(name, measured, now, machine, emulated)

    @property
    def distance(self) -> str:
        """That distance was emulated, and how; empty where it was not."""
        said = " and ".join(self.emulated)
        return f"distance was emulated by {said}: no network was measured" if said else ""


def platform_text(fits: Sequence[Fit], provenance: Provenance, *, folds: Fit | None = None) -> str:
    """The text of a platform file with every model whose parameters are told.

    Raises:
        CalibrationError: the data leave every model open.
    """
    told = [one for one in fits if one.told]
    if not told:
        raise _nothing_told(fits)
    kinds = [_key(one) for one in told]
    default = next((kind for kind in _PREFERRED if kind in kinds), kinds[0])
    head: dict[str, object] = {
        "name": provenance.name,
        "summary": f"calibrated {provenance.when[:10]} on {provenance.machine}",
        "source": f"tutti calibrate {__version__}, {provenance.when}: {provenance.measured}",
        "default_model": default,
    }
    if provenance.distance:
        for key in ("summary", "source"):
            head[key] = f"{head[key]}; {provenance.distance}"
    models = {_key(one): _model(one, provenance) for one in told}
    tables: dict[str, object] = {**head, "models": models}
    if folds is not None and folds.told:
        tables["compute"] = {name: _sourced(folds, one) for name, one in folds.parameters.items()}
    return _document(_comments(fits, provenance), tables)


def _nothing_told(fits: Sequence[Fit]) -> CalibrationError:
    lines = [
        f"{one.model.name}: {name}: {reason}" for one in fits for name, reason in one.untold.items()
    ]
    message = "\n".join(["what was measured tells no model whole", *lines])
    return CalibrationError(message, kind="untold")


def _key(fitted: Fit) -> str:
    suffix = "_minimum" if fitted.statistic == "minimum" else ""
    return fitted.model.name + suffix


def _model(fitted: Fit, provenance: Provenance) -> dict[str, object]:
    count = len(fitted.points)
    summary = (
        f"fitted to the {fitted.statistic} of {count} points; half of them are within "
        f"{fitted.median_residual:.1%}"
    )
    if fitted.absent:
        summary += f"; no {' and no '.join(fitted.absent)}, of which sizes told nothing"
    summary += f"; {provenance.distance}" if provenance.distance else ""
    sourced = {name: _sourced(fitted, one) for name, one in fitted.parameters.items()}
    return {"kind": fitted.model.name, "summary": summary, **sourced}


def _sourced(fitted: Fit, parameter: Parameter) -> dict[str, object]:
    low, high = (
        written(fitted, parameter, parameter.low),
        written(fitted, parameter, parameter.high),
    )
    source = f"fitted, 95 % of resampled fits from {low} to {high}"
    if parameter.name in fitted.vague:
        source += "; only roughly told"
    value = text_of(fitted.model, fitted.theta)[parameter.name]
    return {"value": _short(value), "source": source}


def _short(value: str | int) -> str | int:
    """A time in the unit that suits it; counts and times per byte as they are."""
    return str(Time.parse(value)) if isinstance(value, str) and value.endswith(" ps") else value


def written(fitted: Fit, parameter: Parameter, value: float) -> str:
    """A value of a parameter with its unit, for people."""
    if parameter.name in fitted.model.counts:
        return f"{value:.0f}"
    if parameter.name in fitted.model.per_byte:
        return f"{value * 1e3:.3g} ns/B"
    return f"{value / 1e3:.3g} ms" if value >= _MS else f"{value:.3g} us"


def _comments(fits: Sequence[Fit], provenance: Provenance) -> list[str]:
    lines = [
        f"Written by `tutti calibrate` on {provenance.when}.",
        f"Measured: {provenance.measured}.",
        f"Machine: {provenance.machine}.",
        *([f"D{provenance.distance[1:]}."] if provenance.distance else []),
        "Residuals are predicted over measured time, less 1:",
    ]
    for one in fits:
        worst = one.residuals[int(np.argmax(np.abs(one.residuals)))]
        left = "" if one.told else f"; LEFT OUT, not told: {', '.join(one.untold)}"
        lines.append(
            f"  {_key(one)}: {len(one.points)} points, half within {one.median_residual:.1%}, "
            f"worst {worst:+.0%}{left}"
        )
    return lines


def _document(comments: Iterable[str], tables: Mapping[str, Any]) -> str:
    """A TOML file with comments at its top; numbers that carry their source stand on one line."""
    import tomlkit

    def item(value: object) -> Any:  # noqa: ANN401 - tomlkit's own
        if not isinstance(value, dict):
            return tomlkit.item(value)
        table = tomlkit.inline_table() if "source" in value else tomlkit.table()
        for key, one in value.items():
            table.add(key, item(one))
        return table

    document = tomlkit.document()
    for line in comments:
        # A comment ends with its line; names of files may have more.
        document.add(tomlkit.comment("".join(c if c.isprintable() else "?" for c in line)))
    document.add(tomlkit.nl())
    for key, value in tables.items():
        document.add(key, item(value))
    return tomlkit.dumps(document)


def residual_frame(fits: Sequence[Fit]) -> pl.DataFrame:
    """Every point beside what each model says of it, with the columns of :data:`RESIDUALS`."""
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
