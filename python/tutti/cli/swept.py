"""The table of a sweep: the fastest schedule at each point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from rich.table import Table

from tutti.base.units import Size
from tutti.collectives.frames import SWEPT
from tutti.view.breakable import Breakable
from tutti.view.quantity import format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Sequence


def swept_table(frame: pl.DataFrame, keys: Sequence[str], top: int) -> Table:
    """Returns the fastest schedule at each point, rank count and size, in sweep order.

    Repetitions are represented by their lower median, which is a simulated time.
    """
    swept = [f"{SWEPT}{key}" for key in keys]
    at = [*swept, "ranks", "size_bytes"]
    median = pl.col("time_ps").quantile(0.5, "lower").cast(pl.Int64)
    fastest = (
        frame.group_by(*at, "schedule", maintain_order=True)
        .agg(median)
        .sort("time_ps", maintain_order=True)
        .group_by(at, maintain_order=True)
        .first()
    )
    order = frame.select(at).unique(maintain_order=True)
    rows = order.join(fastest, on=at, nulls_equal=True, maintain_order="left")
    shown = [key for key in keys if key not in {"ranks", "sizes", "algorithms"}]
    table = Table(box=None, pad_edge=False, title_justify="left", caption_justify="left")
    for key in shown:
        table.add_column(_short(key, shown), overflow="fold")
    for name in ("ranks", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fastest")
    table.add_column("time", justify="right", no_wrap=True)
    for row in rows.head(top).iter_rows(named=True):
        values = ["" if (v := row[f"{SWEPT}{key}"]) is None else str(v) for key in shown]
        size = str(Size(bytes=row["size_bytes"]))
        schedule, time = Breakable(row["schedule"]), format_time(row["time_ps"])
        table.add_row(*map(Breakable, values), f"{row['ranks']:,}", size, schedule, time)
    if rows.height > top:
        table.caption = f"{rows.height - top:,} more rows in results.parquet"
    return table


def steps_table(frame: pl.DataFrame, keys: Sequence[str], top: int) -> Table:
    """Returns the time of each training step and configuration, in sweep order."""
    table = Table(box=None, pad_edge=False, caption_justify="left")
    for key in keys:
        table.add_column(_short(key, keys), overflow="fold")
    table.add_column("configuration", overflow="fold")
    for name in ("time", "exposed", "of bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in frame.head(top).iter_rows(named=True):
        values = ["" if (v := row[f"{SWEPT}{key}"]) is None else str(v) for key in keys]
        times = (format_time(row[name]) for name in ("total_ps", "exposed_ps"))
        share = format_share(row["of_bound"])
        table.add_row(*map(Breakable, values), row["configuration"], *times, share)
    if frame.height > top:
        table.caption = f"{frame.height - top:,} more rows in results.parquet"
    return table


def _short(key: str, keys: Sequence[str]) -> str:
    """Returns the last part of a key path if no other key ends in it, else the path."""
    last = key.rsplit(".", 1)[-1]
    return last if sum(other.rsplit(".", 1)[-1] == last for other in keys) == 1 else key
