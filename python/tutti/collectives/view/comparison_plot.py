"""Drawings of a comparison for papers: curves over sizes or ranks, and the decision map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.collectives import comparison as reading
from tutti.view.errors import ReportError
from tutti.view.palette import styles
from tutti.view.plot import BELOW, axes_at, line_look, plain_numbers
from tutti.view.quantity import format_size, rate_unit, size_ticks, time_unit

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from matplotlib.axes import Axes

    from tutti.collectives.comparison import Comparison, Measurement

_KINDS = ("time", "busbw", "ranks", "map")


def plot_comparison(
    path: str | Path,
    frame: pl.DataFrame,
    kind: str = "time",
    ranks: int | None = None,
    by: str = "algorithm",
) -> Path:
    """Draws a comparison.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        frame: The frame of `tutti.compare`, of one collective, datatype, model and platform.

        kind: The drawing. "time" or "busbw" is against size, "ranks" is time against ranks at the
            smallest size, and "map" is the fastest algorithm over ranks and sizes.
        ranks: The rank count of curves against size. By default the largest.
        by: One line per "algorithm" (its fastest schedule) or per "schedule".

    Returns:
        The path written.

    Raises:
        ReportError: The frame lacks the data of the drawing.
    """
    if kind not in _KINDS:
        raise ReportError(
            f"unknown kind of plot {kind!r}: expected one of {', '.join(_KINDS)}", kind="choice"
        )
    if by not in ("algorithm", "schedule"):
        raise ReportError(
            f"invalid grouping of lines {by!r}: expected algorithm or schedule", kind="choice"
        )
    case = reading.only_case(frame)
    if kind == "map":
        return _map(path, case)
    over = "ranks" if kind == "ranks" else "size"
    points, where = _points(case, over, ranks, by)
    title = f"{case.collective} on {case.platform}, {where} ({case.model})"
    return _curves(path, points, "busbw" if kind == "busbw" else "time", over, by, title)


def _points(
    case: Comparison, over: str, ranks: int | None, by: str
) -> tuple[list[Measurement], str]:
    """Returns the points to draw, and their size or rank count as text.

    Raises:
        ReportError: The frame has no rows at this rank count.
    """
    every = list(case.best().values()) if by == "algorithm" else list(case.measured)
    if over == "ranks":
        size = case.sizes[0]
        return [one for one in every if one.size_bytes == size], format_size(size)
    at = ranks if ranks is not None else case.ranks[-1]
    points = [one for one in every if one.ranks == at and one.size_bytes > 0]
    if not points:
        known = ", ".join(str(count) for count in case.ranks)
        problem = f"the comparison has no rows at {at} ranks: expected one of {known}"
        raise ReportError(problem, kind="frame")
    return points, f"{at:,} ranks"


def _curves(  # noqa: PLR0917 - one caller
    path: str | Path, points: list[Measurement], quantity: str, over: str, by: str, title: str
) -> Path:
    """Draws a line per group, with a band between the quartiles of repetitions."""
    timed = quantity == "time"
    y: Callable[[Measurement], float] = lambda m: m.time_ps if timed else m.busbw  # noqa: E731
    x: Callable[[Measurement], int] = lambda m: m.ranks if over == "ranks" else m.size_bytes  # noqa: E731
    middle = sorted(map(y, points))[len(points) // 2]
    factor, unit = time_unit(middle) if timed else rate_unit(middle)
    groups: dict[str, list[Measurement]] = {}
    for one in sorted(points, key=lambda m: (m.algorithm, m.schedule, m.ranks, m.size_bytes)):
        groups.setdefault(getattr(one, by), []).append(one)
    chosen = styles(groups)
    with axes_at(path, x=over, y=f"{quantity} ({unit})", title=title) as axes:
        for name, line in groups.items():
            xs = [x(one) for one in line]
            if timed and any(one.repetitions > 1 for one in line):
                low = [one.lower_quartile_ps / factor for one in line]
                high = [one.upper_quartile_ps / factor for one in line]
                axes.fill_between(xs, low, high, color=chosen[name].colour, alpha=0.18)
            axes.plot(xs, [y(one) / factor for one in line], label=name, **line_look(chosen[name]))
        ticks = size_ticks(map(x, points)) if over == "size" else sorted(set(map(x, points)))
        axes.set_yscale("log")
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [format_size(t) if over == "size" else str(t) for t in ticks])
        plain_numbers(axes)
    return Path(path)


def _map(path: str | Path, case: Comparison) -> Path:
    title = f"fastest {case.collective} on {case.platform}; lead over the runner-up"
    with axes_at(path, x="size", y="ranks", title=title, grid="") as axes:
        _cells(axes, case)
        columns = [index - 1 for index in size_ticks(range(1, len(case.sizes) + 1))]
        axes.set_xlim(-0.5, len(case.sizes) - 0.5)
        axes.set_ylim(-0.5, len(case.ranks) - 0.5)
        axes.set_xticks(columns, [format_size(case.sizes[column]) for column in columns])
        axes.set_yticks(range(len(case.ranks)), [f"{count:,}" for count in case.ranks])
        axes.tick_params(length=0)
    return Path(path)


def _cells(axes: Axes, case: Comparison) -> None:
    from matplotlib.patches import Patch, Rectangle

    chosen = styles(case.algorithms)
    winners = set()
    for (ranks, size), decision in case.decisions().items():
        row, column = case.ranks.index(ranks), case.sizes.index(size)
        colour = chosen[decision.winner.algorithm].colour
        winners.add(decision.winner.algorithm)
        axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=colour, lw=0))
        if decision.margin is not None and len(case.sizes) <= 16:
            text = f"{decision.margin * 100:.0f}%"
            axes.text(column, row, text, ha="center", va="center", color=_ink(colour), fontsize=7)
    handles: list[Any] = [Patch(color=chosen[name].colour, label=name) for name in sorted(winners)]
    axes.figure.legend(handles=handles, loc=BELOW, ncols=3)


def _ink(colour: str) -> str:
    """Returns black or white, whichever has the higher contrast on `colour`."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "#FFFFFF"
