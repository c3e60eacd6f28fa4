"""What a calibration of the coefficients of a step shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tutti.training.plan.calibration import DETERMINED
from tutti.training.plan.efficiency import MATRIX
from tutti.view.quantity import format_share, plural
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.plan.calibration import Calibration, Factor, MeasuredStep

_FAR = 1.9
"""A measured time over the model's that no published run reaches (worst: 1.86)."""
_NEAR = 0.05
"""The logarithm of a factor below which a coefficient is near its fitted value."""
_FEW = 8
"""Coefficients that a sentence names."""


class _Timed(NamedTuple):
    """A measured step, and the model before and after the calibration."""

    step: MeasuredStep
    before: float
    after: float


def _number(value: float) -> str:
    return f"{value:.3g}"


def _interval(one: Factor) -> str:
    low, high = sorted((one.shown(one.low), one.shown(one.high)))
    return f"{_number(low)} to {_number(high)}"


_FACTORS: tuple[Column[Factor], ...] = (
    Column("coefficient", lambda one: one.name, key="coefficient"),
    Column("was", lambda one: one.shown(1.0), _number, key="was"),
    Column("is", lambda one: one.shown(one.factor), _number, key="is"),
    Column("90 % interval", _interval, kind="number"),
    Column("unit", lambda one: one.unit, key="unit"),
    Column("determined", lambda one: one.determined, format_share, key="determined"),
    Column("factor", lambda one: one.factor, key="factor", terminal=False),
    Column("low", lambda one: one.low, key="low_factor", terminal=False),
    Column("high", lambda one: one.high, key="high_factor", terminal=False),
)

_STEPS: tuple[Column[_Timed], ...] = (
    Column("measured step", lambda row: row.step.source, key="source"),
    Column("of", lambda row: row.step.observed, key="observed"),
    Column("measured", lambda row: row.step.seconds, lambda s: f"{s:.4g} s", key="measured_s"),
    Column("before", lambda row: row.before, lambda s: f"{s:.4g} s", key="before_s"),
    Column("after", lambda row: row.after, lambda s: f"{s:.4g} s", key="after_s"),
)

_CAPTION = (
    "was, is: before and after, as fractions of the peak, multiples of the bytes of activations or "
    "weights, times of the host, or shares of communication; determined: share of the prior "
    "variance that the measurements removed"
)


def _far(rows: Sequence[_Timed]) -> Iterator[str]:
    """Yields a sentence per step whose time no efficiency explains."""
    for row in rows:
        ratio = row.step.seconds / row.before
        if not 1 / _FAR < ratio < _FAR:
            yield (
                f"{row.step.source} takes {ratio:.2g} times the model's time, more than any "
                "published run: check its unit, its plan and its batch before you use the file"
            )


def calibration_view(found: Calibration) -> View:
    """Returns what a calibration shows."""
    rows = [_Timed(one, one.predicted(), one.predicted(found.values)) for one in found.steps]
    models = ", ".join(dict.fromkeys(one.model.name for one in found.steps))
    count = plural(len(rows), "measured step")
    texts = [*_far(rows), *unknown(found)]
    return View(
        headline=Fact("", f"{found.gpu}: {count} of {models}"),
        facts=json_facts(gpu=found.gpu, steps=len(rows), explanations=texts),
        tables=[ReportTable(_FACTORS, found.factors, caption=_CAPTION), ReportTable(_STEPS, rows)],
        data=[
            Data("factors", lambda: records_of(_FACTORS, found.factors)),
            Data("steps", lambda: records_of(_STEPS, rows)),
        ],
        below=texts,
    )


def unknown(found: Calibration) -> Iterator[str]:
    """Yields sentences on what the measurements do not determine."""
    steps, factors = len(found.steps), len(found.factors)
    if steps < factors:
        yield (
            f"{plural(steps, 'measured time')} {'determines' if steps == 1 else 'determine'} at "
            f"most {plural(steps, 'combination')} of {factors} coefficients: the rest follows from "
            "their prior deviations"
        )
    if steps == 1:
        products = ", ".join(one.name for one in factors_of(found, MATRIX))
        yield (
            f"one measured time does not separate slower kernels ({products}) from exposed "
            "communication: measure plans that differ in micro-batch, tensor and data parallelism, "
            "or add a profile (kineto)"
        )
    for are_near, what in (
        (True, "These stay near the fitted values"),
        (False, "These changed with the others: measure plans that separate them"),
    ):
        names = [name for name in found.undetermined
                 if (abs(math.log(found.values[name])) < _NEAR) is are_near]  # fmt: skip
        if names:
            yield (
                f"not determined (less than {100 * DETERMINED:.0f} % of the variance): "
                f"{_few(names)}. {what}"
            )
    if names := found.absent:
        yield f"without effect on these steps, and unchanged: {_few(names)}"


def factors_of(found: Calibration, names: frozenset[str]) -> list[Factor]:
    """Returns the factors of some coefficients."""
    return [one for one in found.factors if one.name in names]


def _few(names: list[str]) -> str:
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")
