"""Drawings of the exhibits of papers: computed curves and bars with the published values.

Drawings have the size and font of a column or a page of a paper. The line on top states how many
published values agree. Published values are black or have a black edge. Their markers state how
certain they are.
"""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tutti.view.palette import styles_with
from tutti.view.plot import figure_at, legend_below, legend_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tutti.view.charts import LoadChart
    from tutti.view.palette import Style

COLUMN, PAGE = 3.5, 7.16
"""Widths in inches of a column and of a page with two columns."""
FONT = 7.0
"""Font size in points."""
_HEIGHT = 2.1
"""Height of the axes in inches; title and legend are added."""
_LINE = 0.13
"""Height of a line of text in inches."""
_CHARACTERS = 18.5
"""Characters per inch at `FONT`."""
_MEAN = "mean"
_SATURATED = "saturated (hollow)"
"""The legend entry of hollow markers of loads that a network does not accept."""

_MARKS: dict[str, dict[str, Any]] = {
    "text": {"marker": "D"},
    "figure": {"marker": "s"},
    "derived": {"marker": "D", "markerfacecolor": "white"},
    "words": {"marker": "o", "markerfacecolor": "white"},
    "quoted": {"marker": "^", "markerfacecolor": "white"},
    "recalled": {"marker": "v", "markerfacecolor": "white"},
}
"""The marker of a published value, by certainty; it is filled if the paper has the number."""
_DASHES = {"text": "-", "figure": "-."}
"""The dash of a published line, by certainty; others are dotted."""


PublishedBar = tuple["float | tuple[float, float]", str]
"""The published value or range of a bar, and its certainty."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A published value in a drawing.

    Attributes:
        x: The position, or the bounds of a range; None: at every position.
        y: The value, or the bounds of a range; None: at every value.
        certainty: How the value is known: `text`, `figure`, `derived`, `words`, `quoted` or
            `recalled`.
        of: The curve that it belongs to, which sets its colour; black without one.
    """

    x: float | tuple[float, float] | None
    y: float | tuple[float, float] | None
    certainty: str = "text"
    of: str = ""


@contextmanager
def exhibit_figure(
    path: str | Path, verdict: str, *, width: float, height: float, labels: Iterable[str]
) -> Iterator[Figure]:
    """Yields a figure with the verdict on top, and draws the legend below at the end.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        verdict: The line on top; long ones are wrapped.
        width: The width in inches.
        height: The height of the axes in inches.
        labels: The entries of the legend.
    """
    entries = {*labels}
    lines = textwrap.wrap(verdict, int(width * _CHARACTERS))
    below = -(-len(entries) // legend_columns(entries, width, FONT))
    with figure_at(path, (width, height + _LINE * (len(lines) + below + 1)), font=FONT) as figure:
        if lines:
            figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=FONT)
        yield figure
        legend_below(figure, FONT)


def draw_anchors(axes: Axes, anchors: Sequence[Anchor], looks: Mapping[str, Style]) -> None:
    """Draws published values: points with error bars, lines for bounds, bands for ranges."""
    for anchor in anchors:
        colour = looks[anchor.of].colour if anchor.of in looks else "black"
        if anchor.x is None or anchor.y is None:
            _line_or_band(axes, anchor, colour)
        else:
            _point(axes, anchor, colour)
    for anchor in {_label(anchor): anchor for anchor in anchors}.values():
        _key(axes, anchor)


def _key(axes: Axes, anchor: Anchor) -> None:
    """Adds the legend entry of a published value, in black."""
    if anchor.x is not None and anchor.y is not None:
        axes.plot([], [], linestyle="none", color="black", markersize=4, markeredgewidth=0.6,
                  label=_label(anchor), **_MARKS[anchor.certainty])  # fmt: skip
    elif isinstance(anchor.y if anchor.x is None else anchor.x, tuple):
        axes.fill_between([], [], color="black", alpha=0.2, linewidth=0, label=_label(anchor))
    else:
        dash = _DASHES.get(anchor.certainty, ":")
        axes.plot([], [], color="black", linestyle=dash, linewidth=0.9, label=_label(anchor))


def _label(anchor: Anchor) -> str:
    """Returns the legend entry: it states certainty and shape."""
    value = anchor.y if anchor.x is None else anchor.x
    only = anchor.x is None or anchor.y is None
    shape = "" if not only else ", range" if isinstance(value, tuple) else ", line"
    return f"published ({anchor.certainty}{shape})"


def _line_or_band(axes: Axes, anchor: Anchor, colour: str) -> None:
    value = anchor.y if anchor.x is None else anchor.x
    across = anchor.x is None
    if isinstance(value, tuple):
        draw = axes.axhspan if across else axes.axvspan
        draw(*value, color=colour, alpha=0.2, linewidth=0, zorder=0)
    elif value is not None:
        line = axes.axhline if across else axes.axvline
        dash = _DASHES.get(anchor.certainty, ":")
        line(value, color=colour, linestyle=dash, linewidth=0.9, zorder=1)


def _point(axes: Axes, anchor: Anchor, colour: str) -> None:
    (x, dx), (y, dy) = _middle(anchor.x), _middle(anchor.y)
    axes.errorbar(
        [x], [y], [dy] if dy else None, [dx] if dx else None, linestyle="none", color=colour,
        markersize=4, markeredgewidth=0.6, elinewidth=0.8, capsize=2, zorder=6,
        markeredgecolor="black", **_MARKS[anchor.certainty],
    )  # fmt: skip


def _middle(value: float | tuple[float, float] | None) -> tuple[float, float]:
    """Returns the middle of a range and half its length."""
    if isinstance(value, tuple):
        return (value[0] + value[1]) / 2, (value[1] - value[0]) / 2
    return value or 0.0, 0.0


def _entries(names: Iterable[str], anchors: Iterable[Anchor]) -> list[str]:
    return [*names, *map(_label, anchors)]


def plot_curves(
    path: str | Path,
    lines: Mapping[str, tuple[Iterable[float], Iterable[float]]],
    x: str,
    y: str,
    points: Mapping[str, tuple[Iterable[float], Iterable[float]]] | None = None,
    *,
    verdict: str = "",
    anchors: Sequence[Anchor] = (),
    looks: Mapping[str, Style] | None = None,
    doubling: bool = False,
    width: float = COLUMN,
    top: float | None = None,
) -> Path:
    """Draws curves, with the published values.

    Later curves are thinner and have other dashes, so that curves that coincide are visible.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        lines: The values of x and of y, by name.
        x: The label of the horizontal axis, with its unit.

        y: The label of the vertical axis, with its unit.
        points: Further curves, drawn as dots.
        verdict: The line on top.
        anchors: The published values.
        looks: The style of each name; others get a free one.
        doubling: Whether the horizontal axis is logarithmic with base 2.
        width: The width in inches.
        top: The upper end of the vertical axis.

    Returns:
        The path written.
    """
    curves, dots = _lists(lines), _lists(points or {})
    known = styles_with(looks or {}, [*curves, *dots])
    labels = _entries([*curves, *dots], anchors)
    with exhibit_figure(path, verdict, width=width, height=_HEIGHT, labels=labels) as figure:
        axes = figure.add_subplot()
        for place, (name, (xs, ys)) in enumerate(curves.items()):
            axes.plot(xs, ys, label=name, color=known[name].colour,
                      **_thinner(place, len(curves)))  # fmt: skip
        for name, (xs, ys) in dots.items():
            axes.plot(xs, ys, known[name].marker_matplotlib, label=name,
                      color=known[name].colour, markersize=3)  # fmt: skip
        draw_anchors(axes, anchors, known)
        axes.set(xlabel=x, ylabel=_wrapped(y))
        axes.set_ylim(min(0.0, axes.get_ylim()[0]) if _negative(curves, dots) else 0.0, top)
        axes.grid(visible=True)
        if doubling:
            axes.set_xscale("log", base=2)
    return Path(path)


def _wrapped(label: str) -> str:
    """Returns a label that fits the height of the axes."""
    return "\n".join(textwrap.wrap(label, 28))


def _lists(
    lines: Mapping[str, tuple[Iterable[float], Iterable[float]]],
) -> dict[str, tuple[list[float], list[float]]]:
    return {name: (list(xs), list(ys)) for name, (xs, ys) in lines.items()}


def _negative(*groups: Mapping[str, tuple[list[float], list[float]]]) -> bool:
    return any(value < 0 for group in groups for _, ys in group.values() for value in ys)


def _thinner(place: int, count: int) -> dict[str, Any]:
    """Returns width and dash of a line: the first is the widest."""
    dashes = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1.5, 1)))
    widest = 2.4 if count > 1 else 1.4
    step = (widest - 1.0) / max(count - 1, 1)
    return {"linewidth": widest - place * step, "linestyle": dashes[place % len(dashes)]}


def plot_panels(
    path: str | Path,
    lines: Mapping[str, tuple[Iterable[float], Iterable[float]]],
    x: str,
    y: str,
    *,
    verdict: str = "",
    looks: Mapping[str, Style] | None = None,
) -> Path:
    """Draws a panel per curve, one below the other, for curves that would hide each other.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        lines: The values of x and of y, by name.
        x: The label of the horizontal axis, with its unit.

        y: The label of the vertical axes, with its unit.
        verdict: The line on top.
        looks: The style of each name; others get a free one.

    Returns:
        The path written.
    """
    known = styles_with(looks or {}, lines)
    height = 0.6 * len(lines) + 0.4
    with exhibit_figure(path, verdict, width=PAGE, height=height, labels=lines) as figure:
        panels = figure.subplots(len(lines), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (name, (xs, ys)) in zip(panels, _lists(lines).items(), strict=True):
            axes.fill_between(xs, ys, color=known[name].colour, linewidth=0, label=shown(name))
            axes.set_ylim(bottom=0)
            axes.margins(x=0)
            axes.grid(visible=True)
        panels[-1].set_xlabel(x)
        figure.supylabel(y, fontsize=FONT)
    return Path(path)


def plot_load(
    path: str | Path,
    chart: LoadChart,
    *,
    verdict: str = "",
    anchors: Sequence[Anchor] = (),
    width: float = COLUMN,
) -> Path:
    """Draws a quantity against load, with the published values.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        chart: The curves.
        verdict: The line on top.
        anchors: The published values.
        width: The width in inches.

    Returns:
        The path written.
    """
    looks = {curve.name: curve.style for curve in chart.curves}
    saturates = any(curve.saturated for curve in chart.curves)
    others = [*([chart.reference[0]] if chart.reference else []), *[_SATURATED] * saturates]
    labels = _entries([*looks, *others], anchors)
    with exhibit_figure(path, verdict, width=width, height=_HEIGHT, labels=labels) as figure:
        axes = figure.add_subplot()
        chart.draw(axes)
        if saturates:
            axes.plot([], [], linestyle="none", marker="^", color="0.4", markersize=4,
                      markerfacecolor="white", label=_SATURATED)  # fmt: skip
        draw_anchors(axes, anchors, looks)
    return Path(path)


def plot_bars(
    path: str | Path,
    groups: Mapping[str, Mapping[str, Mapping[str, float]]],
    y: str,
    *,
    verdict: str = "",
    published: Mapping[tuple[str, str], PublishedBar] | None = None,
    looks: Mapping[str, Style] | None = None,
    width: float = PAGE,
    mean: bool = True,
) -> Path:
    """Draws groups of stacked bars: a group per case, a bar per design, and the means.

    A design has one colour. Its parts are solid, hatched and dotted.

    Args:
        path: The file to write, `.svg`, `.png` or `.pdf`.
        groups: The parts of each bar, by case, design and part; all bars have the same parts.
        y: The label of the vertical axis, with its unit.

        verdict: The line on top.
        published: Value and certainty, by case and design; the case `mean` names the means.
        looks: The style of each design; others get a free one.
        width: The width in inches.
        mean: Whether a last group has the arithmetic means over the cases.

    Returns:
        The path written.
    """
    designs = list(next(iter(groups.values())))
    cases: dict[str, Mapping[str, Mapping[str, float]]] = dict(groups)
    if mean and len(groups) > 1:
        cases[_MEAN] = _means(groups)
    known = styles_with(looks or {}, designs)
    parts = list(next(iter(cases.values()))[designs[0]])
    anchors = [
        Anchor(_place(list(cases).index(case), designs.index(design), len(designs)), *value)
        for (case, design), value in (published or {}).items()
    ]
    labels = _entries([*designs, *(parts if len(parts) > 1 else [])], anchors)
    with exhibit_figure(path, verdict, width=width, height=1.8, labels=labels) as figure:
        axes = figure.add_subplot()
        for place, design in enumerate(designs):
            bars = [case[design] for case in cases.values()]
            _stacked(axes, bars, place, len(designs), known[design].colour)
            axes.fill_between([], [], color=known[design].colour, label=shown(design))
        _part_legend(axes, parts)
        draw_anchors(axes, anchors, {})
        _leave_margin(axes)
        longest = max(5, int(0.85 * width * _CHARACTERS / len(cases)))
        names = [
            "\n".join(textwrap.wrap(shown(case), longest, break_long_words=False)) for case in cases
        ]
        axes.set_xticks(range(len(cases)), names)
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel(_wrapped(y))
        axes.grid(visible=True, axis="y")
    return Path(path)


_HATCHES = ("", "//////", "......")


def _stacked(
    axes: Axes, bars: Sequence[Mapping[str, float]], place: int, count: int, colour: str
) -> None:
    at = [_place(case, place, count) for case in range(len(bars))]
    below = [0.0] * len(bars)
    for index, part in enumerate(bars[0]):
        heights = [bar[part] for bar in bars]
        fill = colour if index == 0 else "white"
        axes.bar(at, heights, 0.8 / count, below, color=fill, edgecolor=colour, linewidth=0.5,
                 hatch=_HATCHES[index])  # fmt: skip
        below = [low + height for low, height in zip(below, heights, strict=True)]


def _leave_margin(axes: Axes) -> None:
    """Leaves space above bars, also where an empty part ends a bar."""
    axes.use_sticky_edges = False
    axes.autoscale_view(scalex=False)
    axes.set_ylim(bottom=0)


def _part_legend(axes: Axes, parts: Sequence[str]) -> None:
    if len(parts) > 1:
        for index, part in enumerate(parts):
            colour = "0.5" if index == 0 else "white"
            axes.fill_between([], [], facecolor=colour, edgecolor="0.5", linewidth=0.5,
                              hatch=_HATCHES[index], label=shown(part))  # fmt: skip


def _place(case: int, design: int, count: int) -> float:
    return case - 0.4 + 0.8 / count * (design + 0.5)


def _means(groups: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    first = next(iter(groups.values()))
    return {
        design: {part: fmean(case[design][part] for case in groups.values()) for part in parts}
        for design, parts in first.items()
    }


def shown(name: str) -> str:
    """Returns a name as text: spaces instead of underscores."""
    return name.replace("_", " ")
