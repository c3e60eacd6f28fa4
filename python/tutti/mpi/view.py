"""Draws measured times as notched box plots, as Figs 8, 9 and 13 of Ruefenacht et al. 2017.

Boxes span the quartiles, notches are the 95 % CI of the median, whiskers reach the last value
within 1.5 interquartile ranges, and dots are outliers. Dashed lines are predictions of the model.
The title states whether distance was emulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.view.plot import plot_boxes
from tutti.view.quantity import format_size, time_unit

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["plot_blocks", "plot_multicasts"]

_MOST_BOXES = 12
"""Boxes per position of the axis; of more schedules, the fastest are drawn."""
_EMULATED = "distance is emulated"


def plot_blocks(path: str | Path, blocks: pl.DataFrame) -> Path:
    """Draws measured blocks (`tutti.mpi.bench.BLOCKS`): over sizes, or over ranks at one size.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        blocks: Blocks of one collective.

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
        predicted = [part["model_ps"][0] if part.height else None for part in parts]
        lines[name] = [None if value is None else value / factor for value in predicted]
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
    """Returns short names of the schedules; `own` is the collective of the MPI library itself."""
    method, full = pl.col("implementation"), pl.col("schedule")
    short = full.str.replace(r"^recursive_multiplying:", "")
    return (
        pl.when(method == "own").then(pl.lit("own"))
        .when(method == "call").then(pl.lit("call:") + short)
        .otherwise(short)
    )  # fmt: skip


def _fewest(named: pl.DataFrame) -> list[str]:
    """Returns the names to draw: all, or the `_MOST_BOXES` fastest."""
    names = named["name"].unique(maintain_order=True).to_list()
    if len(names) <= _MOST_BOXES:
        return names
    order = named.group_by("name", maintain_order=True).agg(pl.col("time_ps").median())
    fastest = set(order.sort("time_ps", maintain_order=True)["name"][:_MOST_BOXES])
    return [name for name in names if name in fastest]


def plot_multicasts(path: str | Path, multicasts: pl.DataFrame) -> Path:
    """Draws measured multicasts (`tutti.mpi.bench_multicast.MULTICASTS`): Fig. 8.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        multicasts: Multicasts with blocking and with non-blocking sends.

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
        x="peers", y=f"time to last receive ({unit})",
        title=_title(multicasts, "multicast of 8 bytes"),
    )  # fmt: skip


def _title(frame: pl.DataFrame, what: str) -> str:
    if not frame["emulated"].any():
        return what
    return f"{what}\n{_EMULATED}: {frame['model'][0]}"
