"""Figures of a calibration: what was measured, and what models say of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tutti.report.palette import styles
from tutti.report.plot import figure_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from tutti.calibrate.fit import Fit
    from tutti.calibrate.points import Point

__all__ = ["draw_fits"]

_AT_ONCE = frozenset({"burst", "multicast"})


def draw_fits(path: str | Path, fits: Sequence[Fit]) -> Path:
    """Draws times against sizes and against messages of a burst, with a line for each model.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        fits: of one machine; a row of drawings for each statistic.

    Returns:
        The path written.

    Raises:
        ReportError: the suffix is of no known format.
    """
    statistics = list(dict.fromkeys(one.statistic for one in fits))
    with figure_at(path, (8.0, 2.8 * len(statistics))) as drawn:
        every = drawn.subplots(len(statistics), 2, squeeze=False)
        for row, statistic in zip(every, statistics, strict=True):
            mine = [one for one in fits if one.statistic == statistic]
            _against(row[0], mine, _is_one_way, lambda point: point.size)
            if row[0].lines:
                row[0].set(xscale="log", yscale="log")
            row[0].set_xlabel("size of a message (B)")
            row[0].set_ylabel(f"one way, {statistic} (us)")
            _against(row[1], mine, _is_burst, lambda point: point.messages)
            row[1].set(xlabel="messages at once", ylabel=f"all of them, {statistic} (us)")
            for place in row:
                if place.lines:
                    place.legend(fontsize=7)
    return Path(path)


def _is_one_way(point: Point, _smallest: int) -> bool:
    return point.kind == "one_way" and point.size > 0


def _is_burst(point: Point, smallest: int) -> bool:
    return point.kind in _AT_ONCE and point.size == smallest


def _against(
    axes: Axes,
    fits: Sequence[Fit],
    wanted: Callable[[Point, int], bool],
    x_of: Callable[[Point], int],
) -> None:
    """Dots for what was measured, and a line for what each model says of the same points."""
    axes.grid(visible=True)
    looks = styles(one.model.name for one in fits)
    dots: dict[Point, None] = {}
    for one in fits:
        smallest = min((p.size for p in one.points if p.kind in _AT_ONCE), default=0)
        told = sorted(
            (x_of(point), predicted)
            for point, predicted in zip(one.points, one.predicted_us, strict=True)
            if wanted(point, smallest)
        )
        dots |= {point: None for point in one.points if wanted(point, smallest)}
        if told:
            look = looks[one.model.name]
            axes.plot(*zip(*told, strict=True), color=look.colour, ls=look.dash_matplotlib,
                      label=one.model.name)  # fmt: skip
    if dots:
        axes.plot([x_of(p) for p in dots], [p.time_us for p in dots], "o", color="#333333", ms=3,
                  label="measured")  # fmt: skip
