"""Measured times as boxes with notches, as in Figs 8, 9 and 13 of Ruefenacht et al. 2017.

A box reaches from quartile to quartile, its notch is a 95 % interval of the median, whiskers reach
to the last value within 1.5 interquartile ranges, dots are beyond. Beside boxes stands, as a line,
what a model says, where there is one. Where distance was emulated, the title says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from .palette import styles
from .plot import figure_at
from .quantity import format_size, time_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["plot_blocks", "plot_boxes", "plot_multicasts"]

Boxes = dict[str, list[float]]

_MOST_BOXES = 12
"""Of one place on the axis; more cannot be told apart, and only their medians are drawn."""
_EMULATED = "distance is emulated"


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
        places: what stands below the axis.
        series: by name, the values at each place; none draws no box.
        x: what the horizontal axis is.
        y: what the vertical axis is, with its unit.
        lines: by the name of a series, what a model says at each place; drawn dashed.
        title: written above.
        logarithmic: whether equal steps upwards are equal factors.

    Returns:
        The path written.
    """
    colours = styles(list(series))
    width = 0.8 / max(len(series), 1)
    with figure_at(path, (min(max(6.4, 0.3 * len(places) * len(series)), 10.0), 4.0)) as figure:
        axes = figure.add_subplot()
        for number, (name, values) in enumerate(series.items()):
            offset = (number - (len(series) - 1) / 2) * width
            _boxes(axes, values, offset, 0.85 * width, colours[name].colour)
            axes.plot([], [], color=colours[name].colour, label=name, linewidth=4)
            said = (lines or {}).get(name)
            if said is not None:
                at = [place + offset for place, value in enumerate(said) if value is not None]
                model = [value for value in said if value is not None]
                axes.plot(at, model, "_--", color=colours[name].colour, linewidth=0.8,
                          markersize=10, markeredgewidth=1.2)  # fmt: skip
        axes.set_xticks(range(len(places)), list(places))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_ylim(bottom=None if logarithmic else 0)
        axes.set_yscale("log" if logarithmic else "linear")
        axes.grid(visible=True, axis="y")
        if title:
            axes.set_title(title, loc="left")
        figure.legend(loc="outside lower center", ncols=min(len(series), 3))
    return Path(path)


def _boxes(
    axes: Axes, values: Sequence[Sequence[float]], offset: float, width: float, colour: str
) -> None:
    there = [(place + offset, list(one)) for place, one in enumerate(values) if len(one)]
    if not there:
        return
    thin: dict[str, Any] = {"color": colour, "linewidth": 0.8}
    dots: dict[str, Any] = {"marker": ".", "markersize": 2, "markeredgecolor": colour}
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
        flierprops=dots,
    )


def plot_blocks(path: str | Path, blocks: pl.DataFrame) -> Path:
    """Draws measured blocks (`tutti.mpi.bench.BLOCKS`): over sizes, or over ranks at one size.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        blocks: of one collective.

    Returns:
        The path written.
    """
    over = "size_bytes" if blocks["size_bytes"].n_unique() > 1 else "ranks"
    if over == "size_bytes":
        blocks = blocks.filter(pl.col("ranks") == pl.col("ranks").max())
    named = blocks.with_columns(name=_name())
    places = named[over].unique(maintain_order=True).to_list()
    names = _fewest(named)
    factor, unit = time_unit(float(named["time_ps"].median()))  # type: ignore[arg-type]
    series: dict[str, list[list[float]]] = {}
    lines: dict[str, list[float | None]] = {}
    for name in names:
        parts = [
            named.filter((pl.col("name") == name) & (pl.col(over) == place)) for place in places
        ]
        series[name] = [(part["time_ps"] / factor).to_list() for part in parts]
        said = [part["model_ps"][0] if part.height else None for part in parts]
        lines[name] = [None if value is None else value / factor for value in said]
    shown = [format_size(place) for place in places] if over == "size_bytes" else map(str, places)
    return plot_boxes(
        path,
        list(shown),
        series,
        x="size" if over == "size_bytes" else "ranks",
        y=f"time ({unit})",
        lines=lines,
        title=_title(blocks, str(blocks["collective"][0])),
        logarithmic=over == "size_bytes",
    )


def _name() -> pl.Expr:
    """A schedule without its algorithm where all have the same; the MPI's own is `own`."""
    way, full = pl.col("way"), pl.col("schedule")
    short = full.str.replace(r"^recursive_multiplying:", "")
    return (
        pl.when(way == "own").then(pl.lit("own"))
        .when(way == "call").then(pl.lit("call:") + short)
        .otherwise(short)
    )  # fmt: skip


def _fewest(named: pl.DataFrame) -> list[str]:
    """The names that are drawn: all, or the fastest where there are too many."""
    names = named["name"].unique(maintain_order=True).to_list()
    if len(names) <= _MOST_BOXES:
        return names
    order = named.group_by("name", maintain_order=True).agg(pl.col("time_ps").median())
    fastest = set(order.sort("time_ps", maintain_order=True)["name"][:_MOST_BOXES])
    return [name for name in names if name in fastest]


def plot_multicasts(path: str | Path, multicasts: pl.DataFrame) -> Path:
    """Draws measured multicasts (`tutti.mpi.bench_multicast.MULTICASTS`): Fig. 8.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        multicasts: of both kinds of sends.

    Returns:
        The path written.
    """
    peers = multicasts["peers"].unique().sort().to_list()
    factor, unit = time_unit(float(multicasts["received_ps"].median()))  # type: ignore[arg-type]
    series = {
        name: [
            (part["received_ps"] / factor).to_list()
            for count in peers
            for part in [
                multicasts.filter((pl.col("peers") == count) & (pl.col("blocking") == is_blocking))
            ]
        ]
        for name, is_blocking in (("non-blocking sends", False), ("blocking sends", True))
    }
    return plot_boxes(
        path, [str(count) for count in peers], series,
        x="peers", y=f"time until the last has received ({unit})",
        title=_title(multicasts, "multicast of 8 bytes"),
    )  # fmt: skip


def _title(frame: pl.DataFrame, what: str) -> str:
    if not frame["emulated"].any():
        return what
    return f"{what}\n{_EMULATED}: {frame['model'][0]}"
