"""What calibrations show: parameters, errors, comparisons, and drawings of predictions."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tutti.measured.calibrate.against import choices
from tutti.measured.calibrate.files import median_error, residual_frame, written
from tutti.view.palette import styles
from tutti.view.plot import figure_at, line_look
from tutti.view.quantity import (
    count,
    exact_size,
    format_share,
    format_size,
    format_time,
    number,
)
from tutti.view.tables import Column, ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from tutti.measured.calibrate.fit import Fit, Parameter
    from tutti.measured.calibrate.points import Observation
    from tutti.measured.predict import CalibratedModel

_AT_ONCE = frozenset({"burst", "multicast"})
_INK = "#333333"


_WORST = 3
"""Number of sizes listed where a model deviates from the data."""
_PER_BYTE = "per byte"
_RELATIVE = ("relative", "growth")
_UNITS = ((1.0, "us"), (1e3, "ms"), (1e6, "s"))
_COMPARED = (
    "factor: median of predicted / measured or its inverse, the larger one; 90 %: its 90 % "
    "quantile; winner: share of choices with the measured fastest algorithm; inside: share of "
    "times inside the 90 % interval; carry-over: time on fewer nodes; structural: sum of the "
    "stages; full: and a Gaussian process for the rest; *: the simplest model that no more complex "
    "one improves on"
)
_CURVE = (
    "the prior: the assumed value of a parameter that the data do not determine; relative: to the "
    "first message; growth: relative increase"
)


class Fitted(NamedTuple):
    """A parameter of a fit."""

    fit: Fit
    parameter: Parameter

    @property
    def is_determined(self) -> bool:
        """Whether the data determine it."""
        return self.parameter.name not in self.fit.undetermined

    def text(self, value: float) -> str:
        """Formats a value of the parameter with its unit."""
        return written(self.fit, self.parameter, value)


def _value(row: Fitted) -> str:
    return row.text(row.parameter.value) if row.is_determined else "?"


def _interval(row: Fitted) -> str:
    low, high = row.parameter.low, row.parameter.high
    if not row.is_determined or low is None or high is None:
        return "not determined"
    return f"{row.text(low)} to {row.text(high)}"


def _unit(row: Fitted) -> str:
    if row.parameter.name in row.fit.model.counts:
        return ""
    return "us/B" if row.parameter.name in row.fit.model.per_byte else "us"


def _us(us: float) -> str:
    return format_time(us * 1e6)


PARAMETERS: tuple[Column[Fitted], ...] = (
    Column("model", lambda row: row.fit.model.name, key="model"),
    Column("statistic", lambda row: row.fit.statistic, key="statistic"),
    Column("parameter", lambda row: row.parameter.name, key="parameter"),
    Column("value", _value, kind="number", scope="run"),
    Column("95 % CI", _interval, scope="run"),
    Column("unit", _unit, key="unit", scope="file"),
    Column("value", lambda row: row.parameter.value, number, key="value", scope="file",
           when=lambda row: row.is_determined),
    Column("low", lambda row: row.parameter.low, number, key="low", scope="file",
           when=lambda row: row.is_determined),
    Column("high", lambda row: row.parameter.high, number, key="high", scope="file",
           when=lambda row: row.is_determined),
    Column("points", lambda row: len(row.fit.points), count, key="points", scope="file"),
    Column("median error", lambda row: row.fit.median_residual, format_share, key="median_error",
           scope="file"),
)  # fmt: skip
"""The quantities of a parameter; times in us, times per byte in us/B."""

LIBRARY: tuple[Column[Mapping[str, Any]], ...] = (
    Column("collective", itemgetter("operation"), key="operation", scope="file"),
    Column("ranks", itemgetter("ranks"), count, key="ranks", scope="file"),
    Column("size", itemgetter("size_bytes"), format_size, key="size_bytes"),
    Column("library", itemgetter("library_us"), _us, key="library_us"),
    Column("fastest schedule", itemgetter("schedule"), kind="wrap", key="schedule"),
    Column("predicted", itemgetter("predicted_us"), _us, key="predicted_us"),
    Column("ratio", lambda row: row["library_us"] / row["predicted_us"], "{:.2f}".format),
)
"""The quantities of a library's collective, and of the fastest schedule of the model."""

COMPARED: tuple[Column[Mapping[str, Any]], ...] = (
    Column("predicted from fewer nodes", itemgetter("fold")),
    Column("model", lambda row: row["model"] + (" *" if row["warranted"] else "")),
    Column("factor", itemgetter("factor"), "{:.2f}".format),
    Column("90 %", itemgetter("factor_p90"), "{:.2f}".format),
    Column("winner", itemgetter("winner"), "{:.0%}".format),
    Column("inside", itemgetter("inside"), "{:.0%}".format),
)
"""The quantities of a candidate model, where larger jobs are predicted from smaller ones."""

CURVE: tuple[Column[Mapping[str, Any]], ...] = (
    Column("parameter", itemgetter("parameter")),
    Column("value", lambda row: _quantity(row, "value"), kind="number"),
    Column("90 % interval", lambda row: f"{_quantity(row, 'low')} to {_quantity(row, 'high')}"
           if row["determined"] else "not determined: the prior"),
)  # fmt: skip
"""The quantities of a parameter of a joint model."""


def _quantity(row: Mapping[str, Any], end: str) -> str:
    """Formats a value of a parameter of a joint model."""
    name, value = row["parameter"], row[end]
    if any(word in name for word in _RELATIVE):
        return f"{value:.2f}"
    if _PER_BYTE in name:
        return f"{1e3 * value:.3g} ns/B"
    scale, unit = max((pair for pair in _UNITS if value >= pair[0]), default=_UNITS[0])
    return f"{value / scale:.3g} {unit}"


def fits_view(fits: Sequence[Fit], between: Sequence[Fit] = ()) -> View:
    """Returns what fitted models of one machine show: parameters, errors, what is missing.

    Args:
        fits: The fits; within a node if there are others.
        between: The fits between nodes.
    """
    places = {"": fits} if not between else {"within a node": fits, "between nodes": between}
    rows = {
        place: [Fitted(one, parameter) for one in mine for parameter in one.parameters.values()]
        for place, mine in places.items()
    }
    every = [*fits, *between]
    return View(
        tables=[ReportTable(of_scope(PARAMETERS, "run"), mine, heading=place and f"{place}:")
                for place, mine in rows.items()],
        facts=[Fact(_name(fitted, place), median_error(fitted))
               for place, mine in places.items() for fitted in mine],
        data=[
            Data("parameters", lambda: _parameters(rows)),
            Data("", lambda: residual_frame(every), ["calibration.parquet", "calibration.csv"]),
        ],
        drawings={
            _drawing(place): lambda path, mine=mine: draw_fits(path, mine)  # type: ignore[misc] # mypy infers no lambda with a default
            for place, mine in places.items()
        },
        log=[text for place, mine in places.items()
             for fitted in mine for text in _log(fitted, place)],
    )  # fmt: skip


def _parameters(rows: Mapping[str, Sequence[Fitted]]) -> pl.DataFrame:
    """Returns the parameters, with their place if there are several."""
    frames = [
        frame_of(PARAMETERS, mine).with_columns(*[pl.lit(place).alias("place")] * bool(place))
        for place, mine in rows.items()
    ]
    return pl.concat(frames)


def _drawing(place: str) -> str:
    return "fit_between.svg" if place.startswith("between") else "fit.svg"


def _name(fitted: Fit, place: str = "") -> str:
    return f"{place}{': ' * bool(place)}{fitted.model.name} ({fitted.statistic})"


def _log(fitted: Fit, place: str = "") -> Iterator[str]:
    """Yields where a model deviates from the data, and what they do not determine."""
    name = _name(fitted, place)
    if fitted.bent:
        sizes = fitted.worst_sizes
        where = ", ".join(
            f"{format_share(share)} at {exact_size(size)}" for size, share in sizes[:_WORST]
        )
        hint = "; fit a narrower range of sizes with -b and -e" if len(sizes) > 1 else ""
        yield (
            f"{name}: the model deviates from the data: {median_error(fitted)}; largest "
            f"median errors: {where}{hint}"
        )
    for names, reason in fitted.undetermined_groups:
        yield f"{name}: {' and '.join(names)} not determined: {reason}"
    for parameter, reason in fitted.absent.items():
        yield f"{name}: {parameter} assumed 0: {reason}"
    if fitted.determined and not fitted.has_intervals:
        yield (
            f"{name}: no confidence interval: {len(fitted.points)} points for "
            f"{len(fitted.parameters)} parameters; measure more sizes"
        )
    if fitted.vague:
        yield (
            f"{name}: {' and '.join(fitted.vague)}: wide confidence interval; use a "
            "quieter machine, more samples or fewer sizes (-b, -e)"
        )


def library_view(rows: pl.DataFrame) -> View:
    """Returns what a frame of :func:`tutti.measured.calibrate.library.compare_library` shows."""
    tables = []
    for (operation, ranks), some in rows.group_by("operation", "ranks", maintain_order=True):
        heading = f"{operation} on {ranks} ranks: library, fastest schedule of the model, ratio"
        tables.append(ReportTable(of_scope(LIBRARY, "run"), some.to_dicts(), heading=heading))
    return View(
        tables=tables,
        data=[Data("library", lambda: frame_of(LIBRARY, rows.to_dicts()), ["library.csv"])],
    )


def against_view(frame: pl.DataFrame) -> View:
    """Returns what a frame of :func:`tutti.measured.calibrate.against.against` shows."""
    selected, facts = choices(frame), []
    for (statistic,), some in frame.group_by("statistic", maintain_order=True):
        of_it = selected.filter(statistic=statistic)
        error = f"median absolute error {_share(some['residual'].abs().median())}"
        text = f"{some['model'][0]}: {error}"
        if not of_it.is_empty():
            largest, median = _share(of_it["loss"].max()), _share(of_it["loss"].median())
            text += (
                f"; slowdown of the schedules that it selects: maximum {largest}, median {median}"
            )
        facts.append(Fact(f"against {len(some)} {statistic}s of collectives", text))
    return View(
        facts=facts,
        data=[
            Data("against", lambda: frame, ["against.parquet"]),
            Data("choices", lambda: selected),
        ],
        drawings={"against.svg": lambda path: draw_against(path, frame)},
    )


def _share(value: object) -> str:
    return f"{float(str(value)):.1%}"


def joint_view(model: CalibratedModel, rows: pl.DataFrame, figures: pl.DataFrame | None) -> View:
    """Returns what one model of all collectives of a machine shows.

    Args:
        model: The model.
        rows: The measurements.
        figures: Its cross-validation, as of :func:`tutti.measured.predict.folds.compared`; None
            without one.
    """
    used = f"{model.used:,} of {rows.height:,} measured collectives used"
    parameters = pl.concat(
        pl.DataFrame(fitted.table()).select(pl.lit(name).alias("environment"), pl.all())
        for name, fitted in model.curves.items()
    )
    predicted = rows.with_row_index("index").join(model.predict(rows), on="index").drop("index")
    of_folds = [] if figures is None else [Data("folds", lambda: figures, ["folds.csv"])]
    missing = "one node count: no cross-validation, and intervals are those of the model alone"
    tables = [
        ReportTable(CURVE, fitted.table(), heading=name) for name, fitted in model.curves.items()
    ]
    tables[-1] = replace(tables[-1], caption=_CURVE)
    if figures is not None:
        tables.insert(0, ReportTable(COMPARED, figures.to_dicts(), caption=_COMPARED))
    return View(
        headline=Fact("measurements", used, "rows", rows.height),
        tables=tables,
        facts=[Fact("", "", "rows_used", model.used)],
        data=[
            *of_folds,
            Data("parameters", lambda: parameters, ["parameters.csv"]),
            Data("", lambda: predicted, ["collectives.csv"]),
        ],
        log=[missing] if figures is None else [],
    )


def draw_fits(path: str | Path, fits: Sequence[Fit]) -> Path:
    """Draws times against sizes and against messages of a burst, with a line for each model.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        fits: Fits of one machine; each statistic has a row of drawings.

    Returns:
        The path written.

    Raises:
        ReportError: The suffix is not a known format.
    """
    statistics = list(dict.fromkeys(fitted.statistic for fitted in fits))
    with figure_at(path, (8.0, 2.8 * len(statistics))) as drawn:
        every = drawn.subplots(len(statistics), 2, squeeze=False)
        for (left, right), statistic in zip(every, statistics, strict=True):
            of_it = [fitted for fitted in fits if fitted.statistic == statistic]
            _against(left, of_it, _is_single_message, lambda point: point.size)
            if left.lines:
                left.set(xscale="log", yscale="log")
            left.set(xlabel="message size (B)", ylabel=f"one-way time, {statistic} (us)")
            _against(right, of_it, _is_burst, lambda point: point.messages)
            right.set(xlabel="messages per burst", ylabel=f"burst time, {statistic} (us)")
            for axes in (left, right):
                if axes.lines:
                    axes.legend(fontsize=7)
    return Path(path)


def _is_single_message(point: Observation, _smallest: int) -> bool:
    return point.kind == "one_way" and point.size > 0


def _is_burst(point: Observation, smallest: int) -> bool:
    return point.kind in _AT_ONCE and point.size == smallest


def _against(
    axes: Axes,
    fits: Sequence[Fit],
    is_shown: Callable[[Observation, int], bool],
    x_of: Callable[[Observation], int],
) -> None:
    """Draws measured times as dots, and the predictions of each model as a line."""
    axes.grid(visible=True)
    looks = styles(fitted.model.name for fitted in fits)
    dots: dict[Observation, None] = {}
    for fitted in fits:
        smallest = min((p.size for p in fitted.points if p.kind in _AT_ONCE), default=0)
        predicted = sorted(
            (x_of(point), time)
            for point, time in zip(fitted.points, fitted.predicted_us, strict=True)
            if is_shown(point, smallest)
        )
        dots |= {point: None for point in fitted.points if is_shown(point, smallest)}
        if predicted:
            look = looks[fitted.model.name]
            axes.plot(*zip(*predicted, strict=True), color=look.colour, ls=look.dash_matplotlib,
                      label=fitted.model.name)  # fmt: skip
    if dots:
        axes.plot([x_of(p) for p in dots], [p.time_us for p in dots], "o", color=_INK, ms=3,
                  label="measured")  # fmt: skip


def draw_against(path: str | Path, frame: pl.DataFrame) -> Path:
    """Draws the residual of the fastest schedule against ranks, and predictions over measurements.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        frame: The frame of :func:`tutti.measured.calibrate.against.against`.

    Returns:
        The path written.

    Raises:
        ReportError: The suffix is not a known format.
    """
    parts = frame.partition_by("statistic", maintain_order=True)
    looks = styles(part["statistic"][0] for part in parts)
    with figure_at(path, (3.4 * (1 + len(parts)), 3.2)) as drawn:
        residuals, *scatters = drawn.subplots(1, 1 + len(parts), squeeze=False)[0]
        for axes, part in zip(scatters, parts, strict=True):
            statistic = part["statistic"][0]
            best = part.sort("measured_us").group_by("ranks", maintain_order=True).first()
            best = best.sort("ranks")
            look = line_look(looks[statistic])
            residuals.plot(best["ranks"], 100 * best["residual"], label=statistic, **look)
            _scatter(axes, part, statistic)
        residuals.set(xlabel="ranks", ylabel="residual of the fastest schedule (%)")
        residuals.axhline(0, color=_INK, lw=0.8)
        residuals.legend(fontsize=7)
    return Path(path)


def _scatter(axes: Axes, part: pl.DataFrame, statistic: str) -> None:
    """Draws predictions over measurements of one statistic, a colour per rank count."""
    ranks = part["ranks"].unique().sort().to_list()
    looks = styles(map(str, ranks))
    for number_of in ranks:
        look, some = looks[str(number_of)], part.filter(ranks=number_of)
        axes.plot(some["measured_us"], some["predicted_us"], ls="", ms=4, label=str(number_of),
                  color=look.colour, marker=look.marker_matplotlib)  # fmt: skip
    ends = [float(part["measured_us"].min()), float(part["measured_us"].max())]  # type: ignore[arg-type]
    axes.plot(ends, ends, color=_INK, lw=0.8)
    axes.set(
        xscale="log", yscale="log", xlabel=f"measured, {statistic} (us)", ylabel="predicted (us)"
    )
    axes.legend(title="ranks", fontsize=7, title_fontsize=7)
