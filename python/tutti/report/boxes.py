"""Draws measured times as boxes with notches, as Figs 8, 9 and 13 of Ruefenacht et al. 2017.

A box reaches from quartile to quartile, its notch is the 95 % CI of the median, whiskers reach to
the last value within 1.5 interquartile ranges, dots are beyond. A dashed line is the model's value,
where there is one. The title states whether distance was emulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from .plot import plot_boxes
from .quantity import format_size, time_unit

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["plot_blocks", "plot_multicasts"]

_MOST_BOXES = 12
"""Of one place on the axis; of more schedules, the fastest are drawn."""
_EMULATED = "distance is emulated"


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
    way, full = pl.col("implementation"), pl.col("schedule")
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
