"""Plotly charts of a page, declared by axes and series.

Figures and traces are dictionaries of plotly.js: plotly's own classes take 0.2 s to load and to
validate the charts of a page. Tests validate them.

Text, grid and background take their colours from the theme of the page. A load chart is one
declaration for pages (plotly) and papers (matplotlib).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .page import Chart
from .palette import GREY
from .plot import figure_at, legend_below
from .quantity import half_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from tutti.networks.flit import Estimate

    from .palette import Style

Trace = dict[str, Any]
"""A trace of plotly.js; `type` is its kind."""
Figure = dict[str, Any]
"""A figure of plotly.js: `data` has its traces, `layout` its axes and further options."""

_LEGEND = {
    "orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left",
}  # fmt: skip
_LAYOUT: dict[str, Any] = {
    "margin": {"l": 64, "r": 16, "t": 12, "b": 56},
    "legend": _LEGEND,
    "hovermode": "closest",
    "hoverlabel": {"align": "left"},
    "dragmode": "zoom",
    "font": {"family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"},
}
_LONG = 28
"""Characters of a vertical label that take two lines."""
TEXT = "%{customdata}<extra></extra>"
"""The tooltip template for points with text as `customdata`."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: title, unit and scale.

    Attributes:
        title: The quantity.
        unit: The unit of the values.
        zero: Whether the axis starts at 0.
        share: Whether values are fractions, shown as per cent.
        category: Whether values are names.
        ticks: Tick values and texts.
        more: Options of plotly.
    """

    title: str = ""
    unit: str = ""
    zero: bool = False
    share: bool = False
    category: bool = False
    ticks: tuple[Sequence[float], Sequence[str]] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def wrapped(self) -> str:
        """Title and unit, on two lines if they are long."""
        return self.label if len(self.label) < _LONG else f"{self.title}<br>({self.unit})"

    @property
    def plotly(self) -> dict[str, Any]:
        """The axis as options of plotly."""
        values, texts = self.ticks or (None, None)
        found = {
            "title": {"text": self.label} if self.label else None,
            "rangemode": "tozero" if self.zero else None,
            "tickformat": ".0%" if self.share else None,
            "type": "category" if self.category else None,
            "tickvals": values,
            "ticktext": texts,
        }
        return {name: value for name, value in found.items() if value is not None} | self.more


HIDDEN = Axis(more={"visible": False})
NAMES = Axis(more={"automargin": True})
"""The vertical axis of horizontal bars."""


def chart(traces: Iterable[Trace], x: Axis, y: Axis, height: int, **layout: object) -> Figure:
    """Returns a figure of traces, as wide as the page; `layout` has further options of plotly."""
    vertical = y.plotly | ({"title": {"text": y.wrapped}} if y.unit else {})
    axes = {"height": height, "xaxis": x.plotly, "yaxis": vertical}
    return {"data": list(traces), "layout": _merged(_merged(_LAYOUT, axes), layout)}


def _merged(options: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options with further ones, table by table; None removes an option."""
    found = dict(options)
    for name, value in more.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = _merged(found[name], value)
        else:
            found[name] = value
    return found


def errors(above: Iterable[float], below: Iterable[float] | None = None) -> dict[str, Any]:
    """Returns error bars, symmetric unless `below` is set."""
    bars: dict[str, Any] = {"type": "data", "array": list(above), "thickness": 1.2, "width": 3}
    return bars if below is None else bars | {"arrayminus": list(below)}


def line(x: Sequence[Any], y: Sequence[Any], colour: str, hover: str = "", **more: object) -> Trace:
    """Returns a line; `hover` is the tooltip template, `more` has further options of plotly."""
    shown: Trace = {"type": "scatter", "x": list(x), "y": list(y), "mode": "lines"}
    shown |= {"hovertemplate": hover} if hover else {"hoverinfo": "skip"}
    return _merged(shown | {"line": {"color": colour, "width": 1.4}}, more)


def marks(x: Sequence[Any], y: Sequence[Any], marker: dict[str, Any], **more: object) -> Trace:
    """Returns markers without a line; `more` has further options of plotly."""
    return {
        "type": "scatter",
        "x": list(x),
        "y": list(y),
        "mode": "markers",
        "marker": marker,
    } | more


def legend_entry(name: str, colour: str) -> Trace:
    """Returns an empty trace that lists a colour in the legend."""
    return marks([None], [None], {"symbol": "square", "size": 12, "color": colour}, name=name)


def heat(x: Sequence[Any], y: Sequence[Any], z: Sequence[Sequence[Any]], **more: object) -> Trace:
    """Returns a heat map of the rows `z`; `more` has further options of plotly."""
    return {"type": "heatmap", "x": list(x), "y": list(y), "z": z} | more


def bars(
    names: Sequence[Any],
    values: Sequence[Any],
    colour: str,
    hover: str = TEXT,
    *,
    across: bool = False,
    **more: object,
) -> Trace:
    """Returns bars of one colour, horizontal if `across`; `more` has options of plotly."""
    x, y = (values, names) if across else (names, values)
    shown: Trace = {"type": "bar", "x": list(x), "y": list(y), "hovertemplate": hover}
    shown |= {"marker": {"color": colour}} | ({"orientation": "h"} if across else {})
    return _merged(shown, more)


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantity over load, with 95 % confidence intervals.

    Attributes:
        name: The name in the legend.
        points: Load and estimate.
        style: Colour and marker.
        unit: The unit of the estimates in the tooltip.
        ends: The load of a vertical mark.
        mark: The text of the mark.
        saturated: Loads at which the network is saturated; those without a point end the curve.
    """

    name: str
    points: Sequence[tuple[float, Estimate]]
    style: Style
    unit: str = ""
    ends: float | None = None
    mark: str = ""
    saturated: frozenset[float] = frozenset()

    @property
    def saturates(self) -> float | None:
        """The first saturated load after the last point."""
        last = max((load for load, _ in self.points), default=0.0)
        return min((load for load in self.saturated if load > last), default=None)

    def columns(self) -> tuple[list[float], list[float], list[float]]:
        """Returns loads, means and half-widths."""
        loads = [load for load, _ in self.points]
        means = [one.mean for _, one in self.points]
        return loads, means, [half_width(one) for _, one in self.points]


@dataclass(frozen=True, slots=True)
class LoadChart:
    """Curves over load with a reference line.

    Attributes:
        curves: Curves over the same loads.
        x: The load axis.
        y: The axis of the quantity.
        reference: Name and points of a grey reference line.
        limit: The load of a grey dashed mark.

        top: The upper end of the vertical axis in drawings for papers.
        most: The largest load.
    """

    curves: Sequence[Curve]
    x: Axis
    y: Axis
    reference: tuple[str, list[float], list[float]] | None = None
    limit: float | None = None
    top: float | None = None
    most: float = 1.0

    def figure(self, height: int = 420) -> Figure:
        """Returns the chart for a page."""
        traces = []
        if self.reference is not None:
            name, xs, ys = self.reference
            traces.append(line(xs, ys, GREY, name=name, line={"width": 1.2, "dash": "dash"}))
        for one in self.curves:
            loads, means, widths = one.columns()
            hover = f"load %{{x:.4g}}: %{{y:.4g}} {one.unit}".strip()
            traces.append(
                line(loads, means, one.style.colour, f"{hover}<extra>{one.name}</extra>",
                     name=one.name, mode="lines+markers", error_y=errors(widths),
                     marker={"size": 7, "color": one.style.colour, "symbol": one.style.marker})
            )  # fmt: skip
        shapes, notes = [], []
        for one in self.curves:
            if one.ends is not None:
                shapes.append(_vertical(one.ends, one.style.colour, 1.4, "dot"))
                notes.append(_note(one.ends, one.mark))
        if self.limit is not None:
            shapes.append(_vertical(self.limit, GREY, 1.2, "dash"))
        drawn = {"shapes": shapes or None, "annotations": notes or None}
        return chart(traces, self.x, self.y, height, **drawn)

    def captioned(self, look: str, height: int = 420) -> Chart:
        """Returns the chart for a page with its caption."""
        axes = f"Horizontal: {self.x.label}. Vertical: {self.y.label}."
        return Chart(self.figure(height), axes, look)

    def draw(self, axes: Axes) -> None:
        """Draws the chart for a paper: curves from wide to narrow, confidence intervals as bands.

        Intervals wider than `_WIDEST` of the mean, which occur near saturation, are not drawn.
        Saturated points are hollow. A curve that ends at saturation continues to the upper end of
        the axis.
        """
        means = [mean for one in self.curves for mean in one.columns()[1]]
        means += self.reference[2] if self.reference else []
        top = self.top or 1.1 * max(means, default=1.0) or 1.0
        for place, one in enumerate(self.curves):
            width = 2.4 - 1.4 * place / max(len(self.curves) - 1, 1)
            _draw_curve(axes, one, width, top)
        if self.reference is not None:
            name, xs, ys = self.reference
            axes.plot(xs, ys, "--", color=GREY, linewidth=1.0, label=name, zorder=0)
        if self.limit is not None:
            axes.axvline(self.limit, color=GREY, linestyle="--", linewidth=1.0, zorder=0)
        axes.set(xlabel=self.x.label, ylabel=self.y.label)
        axes.set_xlim(0, 1.03 * self.most)
        axes.set_ylim(0, top)
        axes.grid(visible=True)


def _vertical(x: float, colour: str, width: float, dash: str) -> dict[str, Any]:
    """Returns a vertical line over the height of a figure, as a shape of plotly."""
    return {
        "type": "line", "xref": "x", "yref": "y domain", "x0": x, "x1": x, "y0": 0, "y1": 1,
        "line": {"color": colour, "width": width, "dash": dash},
    }  # fmt: skip


def _note(x: float, text: str) -> dict[str, Any]:
    """Returns a text left of the upper end of a vertical line."""
    return {
        "text": text, "showarrow": False, "x": x, "xanchor": "right", "xref": "x",
        "y": 1, "yanchor": "top", "yref": "y domain",
    }  # fmt: skip


_WIDEST = 0.25
"""The largest half-width of a drawn interval, as a fraction of the mean."""


def _draw_curve(axes: Axes, curve: Curve, width: float, top: float) -> None:
    loads, means, widths = curve.columns()
    colour = curve.style.colour
    low, high = ([mean + sign * half for mean, half in zip(means, widths, strict=True)]
                 for sign in (-1, 1))  # fmt: skip
    shown = [half <= _WIDEST * mean for mean, half in zip(means, widths, strict=True)]
    axes.fill_between(loads, low, high, shown, color=colour, alpha=0.2, linewidth=0, zorder=1)
    axes.plot(loads, means, label=curve.name, color=colour, linewidth=width,
              marker=curve.style.marker_matplotlib, markersize=1.5 + 1.5 * width)  # fmt: skip
    hollow = [(x, y) for x, y in zip(loads, means, strict=True) if x in curve.saturated]
    if hollow:
        axes.plot(*zip(*hollow, strict=True), linestyle="none", color=colour,
                  marker=curve.style.marker_matplotlib, markersize=1.5 + 1.5 * width,
                  markerfacecolor="white")  # fmt: skip
    if curve.saturates is not None and loads:
        axes.plot([loads[-1], curve.saturates], [means[-1], top], ":", color=colour,
                  linewidth=max(1.0, 0.7 * width))  # fmt: skip
        axes.plot(curve.saturates, 0.985 * top, color=colour, marker="^", markersize=4,
                  markerfacecolor="white", linestyle="none", zorder=4)  # fmt: skip
    if curve.ends is not None:
        axes.axvline(curve.ends, color=colour, linestyle=":", linewidth=1.2)


def draw_loads(path: str | Path, several: Sequence[LoadChart]) -> Path:
    """Draws load charts side by side.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        several: Charts of the same curves.

    Returns:
        The path written.
    """
    with figure_at(path, (4.2 * len(several), 3.8)) as figure:
        for axes, one in zip(figure.subplots(1, len(several), squeeze=False)[0], several,
                             strict=True):  # fmt: skip
            one.draw(axes)
        legend_below(figure)
    return Path(path)
