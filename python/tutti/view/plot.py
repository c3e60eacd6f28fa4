"""Matplotlib drawings for papers and the command line, as SVG, PNG or PDF.

Files are reproducible byte by byte: they have no dates, and SVG has fixed ids.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tutti.view.errors import ReportError

from .palette import styles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .palette import Style

FORMATS = (".svg", ".png", ".pdf")
BELOW: Literal["outside lower center"] = "outside lower center"
ASIDE: Literal["outside right upper"] = "outside right upper"
"""The position of a legend."""

_INCH = 72.0
"""Points."""

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
def figure_at(path: str | Path, size: tuple[float, float], *, font: float = 9) -> Iterator[Figure]:
    """Yields a figure, and writes it to `path` at the end of the context.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        size: Width and height in inches.
        font: The font size in points.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise ReportError(
            f"cannot draw to {str(path)!r}: expected a suffix in {', '.join(FORMATS)}",
            kind="choice",
        )
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[ending]
    with mpl.rc_context({**_STYLE, "font.size": font}):
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
    """Yields axes with labels, grid and legend, and writes them at the end of the context.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        x: The label of the horizontal axis, with its unit.
        y: The label of the vertical axis, with its unit.
        title: The title.

        width: The width in inches. The height is 4.
        grid: The axis of the grid lines.
        legend: The position of the legend.
        columns: The maximum number of columns of the legend.
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
    """Returns the options of matplotlib for a line of this style."""
    return {
        "color": style.colour,
        "linestyle": style.dash_matplotlib,
        "marker": style.marker_matplotlib,
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def legend_columns(labels: Iterable[str], width: float, font: float = 9) -> int:
    """Returns how many columns of these labels fit a width in inches."""
    longest = max(map(len, labels), default=1)
    # A character has about half the height of the font; the key of a column takes six.
    return max(1, int(width * _INCH / (0.53 * font * (longest + 6))))


def legend_below(figure: Figure, font: float = 9) -> None:
    """Draws one legend of all axes below them, without duplicates, in columns that fit."""
    shown: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    columns = legend_columns(shown, figure.get_figwidth(), font)
    figure.legend(shown.values(), shown, loc="outside lower left", ncols=min(columns, len(shown)),
                  handlelength=1.8, columnspacing=1.2, labelspacing=0.3)  # fmt: skip


def plain_numbers(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Labels logarithmic axes with plain numbers, without minor ticks."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    if y:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if x:
        axes.xaxis.set_minor_locator(NullLocator())


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
    """Draws box plots: one box per series at each position of the axis.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        places: The labels of the positions.
        series: The values at each position, by name. An empty list draws no box.
        x: The label of the horizontal axis.

        y: The label of the vertical axis, with its unit.
        lines: The prediction of the model at each position, by name. Drawn dashed.
        title: The title.
        logarithmic: Whether the vertical axis is logarithmic.

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
