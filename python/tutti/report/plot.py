"""Figures for papers and the command line, as SVG, PNG or PDF, drawn with matplotlib.

The same input gives the same bytes: no dates in the files and fixed ids in SVG.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.errors import ReportError

from . import comparison as reading
from .palette import KINDS, kind_colour, styles
from .quantity import format_size, rate_unit, size_ticks, time_unit
from .timeline import Picture, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .comparison import Case, Measured

FORMATS = (".svg", ".png", ".pdf")

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "tutti",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E3E7EB",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def plot_comparison(
    path: str | Path,
    frame: pl.DataFrame,
    kind: str = "time",
    ranks: int | None = None,
    by: str = "algorithm",
) -> Path:
    """Draws a comparison.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        frame: the frame of `tutti.compare`, of one collective, datatype, model and platform.
        kind: "time" or "busbw" against size, "ranks" (time against ranks at the smallest size), or
            "map" (who wins over ranks and sizes).
        ranks: for the curves against size, the rank count; by default the largest.
        by: a line per "algorithm" (its fastest schedule) or per "schedule".

    Returns:
        The path written.

    Raises:
        ReportError: when the frame does not hold what is to be drawn.
    """
    drawings: dict[str, Callable[[Axes, Case, int | None, str], None]] = {
        "time": lambda axes, case, at, by: _curves(axes, case, "time", at, by),
        "busbw": lambda axes, case, at, by: _curves(axes, case, "busbw", at, by),
        "ranks": lambda axes, case, _, by: _over_ranks(axes, case, by),
        "map": lambda axes, case, _at, _by: _map(axes, case),
    }
    if kind not in drawings:
        raise ReportError(
            f"no such kind of plot: {kind!r}; there are {', '.join(drawings)}", kind="choice"
        )
    if by not in ("algorithm", "schedule"):
        raise ReportError(f"lines are by algorithm or schedule, not by {by!r}", kind="choice")
    case = reading.only_case(frame)
    with figure_at(path, (6.4, 4.0)) as figure:
        drawings[kind](figure.add_subplot(), case, ranks, by)
    return Path(path)


def draw_timeline(
    path: str | Path,
    timeline: pl.DataFrame,
    messages: pl.DataFrame | None = None,
    title: str | None = None,
) -> Path:
    """Draws a run as Figs 18-23 of Ruefenacht et al. 2017 do: ranks down, time across, arrows.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        timeline: the timeline frame of a run, times in picoseconds.
        messages: the message frame of the same run; without it there are no arrows.
        title: written above.

    Returns:
        The path written.

    Raises:
        ReportError: when a frame lacks columns or is empty.
    """
    drawn = picture(timeline, messages)
    height = 1.3 + 0.34 * len(drawn.ranks)
    with figure_at(path, (8.0, height)) as figure:
        axes = figure.add_subplot()
        _timeline(axes, drawn)
        heading = [title] if title else []
        if heading or drawn.notes:
            axes.set_title("  ".join([*heading, *drawn.notes]), loc="left")
    return Path(path)


def plot_curves(
    path: str | Path,
    lines: Mapping[str, tuple[Iterable[float], Iterable[float]]],
    x: str,
    y: str,
    points: Mapping[str, tuple[Iterable[float], Iterable[float]]] | None = None,
    *,
    doubling: bool = False,
) -> Path:
    """Draws curves of a formula or of measurements.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        lines: by name, the values of x and of y.
        x: what the horizontal axis is, with its unit.
        y: what the vertical axis is, with its unit.
        points: drawn as dots instead of lines.
        doubling: whether a step along x doubles it, as sizes do.

    Returns:
        The path written.
    """
    dots = points or {}
    colours = styles([*lines, *dots])
    with figure_at(path, (6.4, 4.0)) as figure:
        axes = figure.add_subplot()
        for name, (xs, ys) in lines.items():
            axes.plot(list(xs), list(ys), label=name, color=colours[name].colour, linewidth=1.4)
        for name, (xs, ys) in dots.items():
            axes.plot(list(xs), list(ys), ".", label=name, color=colours[name].colour)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_ylim(bottom=0)
        if doubling:
            axes.set_xscale("log", base=2)
        axes.grid(visible=True)
        figure.legend(loc="outside right upper")
    return Path(path)


@contextmanager
def figure_at(path: str | Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure that is written to `path` when its drawing is done."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise ReportError(
            f"cannot draw to {str(path)!r}: expected an ending in {', '.join(FORMATS)}",
            kind="choice",
        )
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[ending]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size)
        yield figure
        figure.savefig(path, metadata=metadata, dpi=160)


def _grouped(points: list[Measured], by: str) -> dict[str, list[Measured]]:
    groups: dict[str, list[Measured]] = {}
    for one in sorted(points, key=lambda m: (m.algorithm, m.schedule, m.ranks, m.size_bytes)):
        groups.setdefault(one.algorithm if by == "algorithm" else one.schedule, []).append(one)
    return groups


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(str(count) for count in ranks)


def _curves(axes: Axes, case: Case, quantity: str, ranks: int | None, by: str) -> None:
    at = ranks if ranks is not None else case.ranks[-1]
    every = case.best().values() if by == "algorithm" else case.measured
    points = [one for one in every if one.ranks == at and one.size_bytes > 0]
    if not points:
        raise ReportError(
            f"nothing was compared at {at} ranks: expected one of {_listed(case.ranks)}",
            kind="frame",
        )
    values = {id(one): one.time_ps if quantity == "time" else one.busbw for one in points}
    middle = sorted(values.values())[len(points) // 2]
    factor, unit = time_unit(middle) if quantity == "time" else rate_unit(middle)
    groups, quartiles = _grouped(points, by), _quartiles(factor) if quantity == "time" else None
    _lines(axes, groups, lambda m: m.size_bytes, lambda m: values[id(m)] / factor, quartiles)
    ticks = size_ticks([one.size_bytes for one in points])
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [format_size(tick) for tick in ticks])
    axes.set_xlabel("size")
    axes.set_ylabel(f"{quantity} ({unit})")
    axes.set_title(f"{case.collective} on {case.platform}, {at:,} ranks ({case.model})", loc="left")


def _over_ranks(axes: Axes, case: Case, by: str) -> None:
    size = case.sizes[0]
    every = case.best().values() if by == "algorithm" else case.measured
    points = [one for one in every if one.size_bytes == size]
    factor, unit = time_unit(sorted(one.time_ps for one in points)[len(points) // 2])
    groups, quartiles = _grouped(points, by), _quartiles(factor)
    _lines(axes, groups, lambda m: m.ranks, lambda m: m.time_ps / factor, quartiles)
    axes.set_xscale("log", base=2)
    axes.set_xticks(case.ranks, [str(count) for count in case.ranks])
    axes.set_xlabel("ranks")
    axes.set_ylabel(f"time ({unit})")
    heading = f"{case.collective} on {case.platform}, {format_size(size)} ({case.model})"
    axes.set_title(heading, loc="left")


def _quartiles(factor: float) -> Callable[[Measured], tuple[float, float]]:
    return lambda m: (m.lower_quartile_ps / factor, m.upper_quartile_ps / factor)


def _lines(
    axes: Axes,
    groups: dict[str, list[Measured]],
    x: Callable[[Measured], float],
    y: Callable[[Measured], float],
    quartiles: Callable[[Measured], tuple[float, float]] | None = None,
) -> None:
    """A line for each group; where there are repetitions, a band between their quartiles."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    chosen = styles(groups)
    for name, line in groups.items():
        style = chosen[name]
        if quartiles is not None and any(one.repetitions > 1 for one in line):
            ends = [quartiles(one) for one in line]
            low, high = ([pair[side] for pair in ends] for side in (0, 1))
            axes.fill_between([x(one) for one in line], low, high, color=style.colour, alpha=0.18)
        axes.plot(
            [x(one) for one in line],
            [y(one) for one in line],
            label=name,
            color=style.colour,
            linestyle=style.dash_matplotlib,
            marker=style.marker_matplotlib,
            markersize=4.5,
            linewidth=1.4,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)
    axes.figure.legend(loc="outside lower center", ncols=min(len(groups), 3))


def _map(axes: Axes, case: Case) -> None:
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
    every = size_ticks(range(1, len(case.sizes) + 1))
    columns = [index - 1 for index in every]
    axes.set_xlim(-0.5, len(case.sizes) - 0.5)
    axes.set_ylim(-0.5, len(case.ranks) - 0.5)
    axes.set_xticks(columns, [format_size(case.sizes[column]) for column in columns])
    axes.set_yticks(range(len(case.ranks)), [f"{count:,}" for count in case.ranks])
    axes.set_xlabel("size")
    axes.set_ylabel("ranks")
    axes.tick_params(length=0)
    axes.set_title(
        f"fastest {case.collective} on {case.platform}; how much longer the runner-up takes",
        loc="left",
    )
    handles = [Patch(color=chosen[name].colour, label=name) for name in sorted(winners)]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=3)


def _ink(colour: str) -> str:
    """Black or white, whichever is read better on `colour`."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "#FFFFFF"


def _timeline(axes: Axes, drawn: Picture) -> None:
    from matplotlib.patches import Patch

    factor, unit = time_unit(drawn.end_ps)
    seen = [kind for kind in KINDS if any(bar.kind == kind for bar in drawn.bars)]
    for kind in seen:
        for rank in drawn.ranks:
            spans = [
                (bar.start_ps / factor, bar.duration_ps / factor)
                for bar in drawn.bars
                if bar.rank == rank and bar.kind == kind and bar.duration_ps > 0
            ]
            _row(axes, rank, spans, kind_colour(kind))
    for arrow in drawn.arrows:
        axes.annotate(
            "",
            xy=(arrow.arrival_ps / factor, arrow.destination),
            xytext=(arrow.sent_ps / factor, arrow.source),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.12,head_length=0.28",
                "color": "#3A424C",
                "lw": 0.5,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
    axes.set_xlim(0, drawn.end_ps / factor * 1.02 or 1)
    axes.set_ylim(drawn.ranks[-1] + 0.6, drawn.ranks[0] - 0.6)
    axes.set_yticks(list(drawn.ranks) if len(drawn.ranks) <= 40 else list(drawn.ranks)[::8])
    axes.grid(visible=True, axis="x")
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("rank")
    handles: list[Any] = [Patch(color=kind_colour(kind), label=kind) for kind in seen]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=len(seen))


def _row(axes: Axes, rank: int, spans: list[tuple[float, float]], colour: str) -> None:
    if spans:
        axes.broken_barh(spans, (rank - 0.31, 0.62), facecolors=colour, edgecolor="white", lw=0.3)
