"""Bars: parts of a whole on top of one another, or things compared side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .palette import styles
from .plot import figure_at

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    with figure_at(path, (max(6.4, 0.4 * len(bars)), 4.0)) as figure:
        axes = figure.add_subplot()
        below = [0.0] * len(bars)
        for part in parts:
            heights = [bar[part] for bar in bars.values()]
            axes.bar(range(len(bars)), heights, 0.8, below, label=part, color=colours[part].colour)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        axes.set_xticks(range(len(bars)), list(bars), rotation=90)
        axes.set_ylabel(y)
        axes.grid(visible=True, axis="y")
        figure.legend(loc="outside right upper")
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
    with figure_at(path, (max(6.4, 0.22 * len(cases) * len(groups)), 4.0)) as figure:
        axes = figure.add_subplot()
        for place, (name, bars) in enumerate(groups.items()):
            at = [case - 0.4 + wide * (place + 0.5) for case in range(len(cases))]
            heights = [bars[case] for case in cases]
            axes.bar(at, heights, wide, label=name, color=colours[name].colour)
        axes.set_xticks(range(len(cases)), cases, rotation=30, ha="right")
        axes.set_ylabel(y)
        axes.grid(visible=True, axis="y")
        figure.legend(loc="outside lower center", ncols=2)
    return Path(path)
