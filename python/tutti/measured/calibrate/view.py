"""Drawings of a calibration: measured times and the predictions of models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tutti.view.palette import styles
from tutti.view.plot import figure_at, line_look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl
    from matplotlib.axes import Axes

    from tutti.measured.calibrate.fit import Fit
    from tutti.measured.calibrate.points import Observation

_AT_ONCE = frozenset({"burst", "multicast"})
_INK = "#333333"


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
    statistics = list(dict.fromkeys(one.statistic for one in fits))
    with figure_at(path, (8.0, 2.8 * len(statistics))) as drawn:
        every = drawn.subplots(len(statistics), 2, squeeze=False)
        for (left, right), statistic in zip(every, statistics, strict=True):
            of_it = [one for one in fits if one.statistic == statistic]
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
    looks = styles(one.model.name for one in fits)
    dots: dict[Observation, None] = {}
    for one in fits:
        smallest = min((p.size for p in one.points if p.kind in _AT_ONCE), default=0)
        predicted = sorted(
            (x_of(point), time)
            for point, time in zip(one.points, one.predicted_us, strict=True)
            if is_shown(point, smallest)
        )
        dots |= {point: None for point in one.points if is_shown(point, smallest)}
        if predicted:
            look = looks[one.model.name]
            axes.plot(*zip(*predicted, strict=True), color=look.colour, ls=look.dash_matplotlib,
                      label=one.model.name)  # fmt: skip
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
    looks = styles(str(count) for count in ranks)
    for count in ranks:
        look, some = looks[str(count)], part.filter(ranks=count)
        axes.plot(some["measured_us"], some["predicted_us"], ls="", ms=4, label=str(count),
                  color=look.colour, marker=look.marker_matplotlib)  # fmt: skip
    ends = [float(part["measured_us"].min()), float(part["measured_us"].max())]  # type: ignore[arg-type]
    axes.plot(ends, ends, color=_INK, lw=0.8)
    axes.set(
        xscale="log", yscale="log", xlabel=f"measured, {statistic} (us)", ylabel="predicted (us)"
    )
    axes.legend(title="ranks", fontsize=7, title_fontsize=7)
