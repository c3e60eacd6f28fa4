"""Plotly charts of a page, declared by axes and series.

Text, grid and background take their colours from the theme of the page. A load chart is one
declaration for pages (plotly) and papers (matplotlib).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .palette import GREY
from .plot import figure_at
from .quantity import half_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from tutti.noc import Estimate

    from .palette import Style

_LEGEND = {
    "orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"
}  # fmt: skip
_LAYOUT = {
    "template": {"layout": {}},
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
            "title": self.label or None,
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


def chart(traces: Iterable[Any], x: Axis, y: Axis, height: int, **layout: object) -> go.Figure:
    """Returns a figure of traces, as wide as the page; `layout` has further options of plotly."""
    import plotly.graph_objects as go

    shown = go.Figure(list(traces))
    vertical = y.plotly | ({"title": y.wrapped} if y.unit else {})
    shown.update_layout(_LAYOUT, height=height, xaxis=x.plotly, yaxis=vertical)
    shown.update_layout(layout)
    return shown


def errors(above: Iterable[float], below: Iterable[float] | None = None) -> dict[str, Any]:
    """Returns error bars, symmetric unless `below` is set."""
    bars: dict[str, Any] = {"type": "data", "array": list(above), "thickness": 1.2, "width": 3}
    return bars if below is None else bars | {"arrayminus": list(below)}


def line(x: Sequence[Any], y: Sequence[Any], colour: str, hover: str = "", **more: object) -> Any:  # noqa: ANN401 - plotly has no types
    """Returns a line; `hover` is the tooltip template, `more` has further options of plotly."""
    import plotly.graph_objects as go

    shown: dict[str, Any] = {"hovertemplate": hover} if hover else {"hoverinfo": "skip"}
    shown |= {"mode": "lines", "line": {"color": colour, "width": 1.4}}
    return go.Scatter(x=list(x), y=list(y), **shown).update(more)


def bars(
    names: Sequence[Any],
    values: Sequence[Any],
    colour: str,
    hover: str = TEXT,
    *,
    across: bool = False,
    **more: object,
) -> Any:  # noqa: ANN401 - plotly has no types
    """Returns bars of one colour, horizontal if `across`; `more` has options of plotly."""
    import plotly.graph_objects as go

    x, y = (values, names) if across else (names, values)
    trace = go.Bar(x=list(x), y=list(y), marker={"color": colour}, hovertemplate=hover)
    return trace.update(orientation="h" if across else None).update(more)


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
    """

    name: str
    points: Sequence[tuple[float, Estimate]]
    style: Style
    unit: str = ""
    ends: float | None = None
    mark: str = ""

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

    def figure(self, height: int = 420) -> go.Figure:
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
        shown = chart(traces, self.x, self.y, height)
        for one in self.curves:
            if one.ends is not None:
                shown.add_vline(
                    x=one.ends, line={"color": one.style.colour, "width": 1.4, "dash": "dot"},
                    annotation={"text": one.mark, "xanchor": "right"},
                )  # fmt: skip
        if self.limit is not None:
            shown.add_vline(x=self.limit, line={"color": GREY, "width": 1.2, "dash": "dash"})
        return shown

    def draw(self, axes: Axes) -> None:
        """Draws the chart for a paper."""
        for one in self.curves:
            axes.errorbar(*one.columns(), label=one.name, color=one.style.colour,
                          marker=one.style.marker_matplotlib, markersize=4, linewidth=1.4,
                          capsize=2)  # fmt: skip
            if one.ends is not None:
                axes.axvline(one.ends, color=one.style.colour, linestyle=":", linewidth=1.2)
        if self.reference is not None:
            name, xs, ys = self.reference
            axes.plot(xs, ys, "--", color=GREY, linewidth=1.0, label=name, zorder=0)
        if self.limit is not None:
            axes.axvline(self.limit, color=GREY, linestyle="--", linewidth=1.0, zorder=0)
        axes.set(xlabel=self.x.label, ylabel=self.y.label)
        means = [mean for one in self.curves for mean in one.columns()[1]]
        means += self.reference[2] if self.reference else []
        axes.set_xlim(0, 1.03 * self.most)
        axes.set_ylim(0, self.top or 1.1 * max(means, default=1.0) or 1.0)
        axes.grid(visible=True)


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
        shown = dict(pair for axes in figure.axes for pair in
                     zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # fmt: skip
        figure.legend(shown.values(), shown, loc="outside lower center", ncols=min(len(shown), 3))
    return Path(path)
