"""Drawings for papers and the command line, as SVG, PNG or PDF, drawn with matplotlib.

The same input gives the same bytes: no dates in the files and fixed ids in SVG.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tutti.errors import ReportError

from .palette import styles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .palette import Style

FORMATS = (".svg", ".png", ".pdf")
BELOW: Literal["outside lower center"] = "outside lower center"
ASIDE: Literal["outside right upper"] = "outside right upper"
"""Where a legend is."""

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


@contextmanager
def axes_at(
    path: str | Path,
    *,
    x: str = "",
    y: str = "",
    title: str = "",
    width: float = 6.4,
    grid: Literal["both", "y", ""] = "both",
    legend: Literal["outside lower center", "outside right upper"] = BELOW,
    columns: int = 3,
) -> Iterator[Axes]:
    """Axes with labels, grid and legend, written to `path` when their drawing is done.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        x: what the horizontal axis is, with its unit.
        y: what the vertical axis is, with its unit.
        title: written above.
        width: in inches; the height is 4.
        grid: of which axis.
        legend: where it is.
        columns: of the legend, at most.
    """
    with figure_at(path, (width, 4.0)) as figure:
        axes = figure.add_subplot()
        yield axes
        if x:
            axes.set_xlabel(x)
        if y:
            axes.set_ylabel(y)
        if title:
            axes.set_title(title, loc="left")
        if grid:
            axes.grid(visible=True, axis=grid)
        if not figure.legends:
            count = len(axes.get_legend_handles_labels()[0])
            figure.legend(loc=legend, ncols=min(count, columns) if legend == BELOW else 1)


def line_look(style: Style) -> dict[str, Any]:
    """How matplotlib draws a line of this style."""
    return {
        "color": style.colour,
        "linestyle": style.dash_matplotlib,
        "marker": style.marker_matplotlib,
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def plain_numbers(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Writes logarithmic axes without powers of ten and without minor ticks."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    if y:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if x:
        axes.xaxis.set_minor_locator(NullLocator())


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
    with axes_at(path, x=x, y=y, legend=ASIDE) as axes:
        for name, (xs, ys) in lines.items():
            axes.plot(list(xs), list(ys), label=name, color=colours[name].colour, linewidth=1.4)
        for name, (xs, ys) in dots.items():
            axes.plot(list(xs), list(ys), ".", label=name, color=colours[name].colour)
        axes.set_ylim(bottom=0)
        if doubling:
            axes.set_xscale("log", base=2)
    return Path(path)


def plot_stacked_bars(path: str | Path, bars: Mapping[str, Mapping[str, float]], y: str) -> Path:
    """Draws a bar for each case, its parts on top of one another.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        bars: by the name of the case, what its parts are; all have the same parts.
        y: what the vertical axis is, with its unit.

    Returns:
        The path written.
    """
    parts = list(next(iter(bars.values())))
    colours = styles(parts)
    with axes_at(path, y=y, width=max(6.4, 0.4 * len(bars)), grid="y", legend=ASIDE) as axes:
        below = [0.0] * len(bars)
        for part in parts:
            heights = [bar[part] for bar in bars.values()]
            axes.bar(range(len(bars)), heights, 0.8, below, label=part, color=colours[part].colour)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        axes.set_xticks(range(len(bars)), list(bars), rotation=90)
    return Path(path)


def plot_grouped_bars(path: str | Path, groups: Mapping[str, Mapping[str, float]], y: str) -> Path:
    """Draws a group of bars for each case, one for each thing that is compared.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        groups: by what is compared, a value for each case; all have the same cases.
        y: what the vertical axis is, with its unit.

    Returns:
        The path written.
    """
    cases = list(next(iter(groups.values())))
    colours = styles(groups)
    wide = 0.8 / len(groups)
    inches = max(6.4, 0.22 * len(cases) * len(groups))
    with axes_at(path, y=y, width=inches, grid="y", columns=2) as axes:
        for place, (name, bars) in enumerate(groups.items()):
            at = [case - 0.4 + wide * (place + 0.5) for case in range(len(cases))]
            heights = [bars[case] for case in cases]
            axes.bar(at, heights, wide, label=name, color=colours[name].colour)
        axes.set_xticks(range(len(cases)), cases, rotation=30, ha="right")
    return Path(path)


def plot_boxes(
    path: str | Path,
    places: Sequence[str],
    series: Mapping[str, Sequence[Sequence[float]]],
    *,
    x: str,
    y: str,
    lines: Mapping[str, Sequence[float | None]] | None = None,
    title: str = "",
    logarithmic: bool = False,
) -> Path:
    """Draws boxes: at each place on the axis one for each series.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        places: the labels below the axis.
        series: by name, the values at each place; none draws no box.
        x: what the horizontal axis is.
        y: what the vertical axis is, with its unit.
        lines: by the name of a series, the model's value at each place; drawn dashed.
        title: written above.
        logarithmic: whether the vertical axis is logarithmic.

    Returns:
        The path written.
    """
    colours = styles(list(series))
    width = 0.8 / max(len(series), 1)
    inches = min(max(6.4, 0.3 * len(places) * len(series)), 10.0)
    with axes_at(path, x=x, y=y, title=title, width=inches, grid="y") as axes:
        for number, (name, values) in enumerate(series.items()):
            offset = (number - (len(series) - 1) / 2) * width
            _boxes(axes, values, offset, 0.85 * width, colours[name].colour)
            axes.plot([], [], color=colours[name].colour, label=name, linewidth=4)
            _model(axes, (lines or {}).get(name, ()), offset, colours[name].colour)
        axes.set_xticks(range(len(places)), list(places))
        axes.set_ylim(bottom=None if logarithmic else 0)
        axes.set_yscale("log" if logarithmic else "linear")
    return Path(path)


def _model(axes: Axes, values: Sequence[float | None], offset: float, colour: str) -> None:
    there = [(place + offset, value) for place, value in enumerate(values) if value is not None]
    if there:
        axes.plot(*zip(*there, strict=True), "_--", color=colour, linewidth=0.8, markersize=10,
                  markeredgewidth=1.2)  # fmt: skip


def _boxes(
    axes: Axes, values: Sequence[Sequence[float]], offset: float, width: float, colour: str
) -> None:
    there = [(place + offset, list(one)) for place, one in enumerate(values) if len(one)]
    if not there:
        return
    thin: dict[str, Any] = {"color": colour, "linewidth": 0.8}
    axes.boxplot(
        [one for _, one in there],
        positions=[at for at, _ in there],
        widths=width,
        notch=all(len(one) > 8 for _, one in there),
        manage_ticks=False,
        boxprops=thin,
        whiskerprops=thin,
        capprops=thin,
        medianprops=thin | {"linewidth": 1.4},
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": colour},
    )
