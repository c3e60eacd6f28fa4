"""What a training step with disturbances shows."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tutti.training.slowdowns import summary
from tutti.view.quantity import format_share, format_time
from tutti.view.tables import Column, ReportTable
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


def _slower(row: Mapping[str, Any]) -> str:
    return "" if row["disturbance"] == "none" else format_share(row["slowdown"])


COLUMNS: tuple[Column[Mapping[str, Any]], ...] = (
    Column("disturbance", itemgetter("disturbance")),
    Column("median", itemgetter("median_ps"), format_time),
    Column("5 %", itemgetter("low_ps"), format_time),
    Column("95 %", itemgetter("high_ps"), format_time),
    Column("slower", _slower, kind="number"),
)
"""The quantities of a disturbance, as of :func:`tutti.training.slowdowns.summary`."""


def disturbed_view(rows: pl.DataFrame, title: str = "") -> View:
    """Returns what a training step with disturbances shows.

    Args:
        rows: The simulations, as of :func:`tutti.training.slowdowns.effects`.
        title: The title of the experiment.
    """
    times = summary(rows)
    return View(
        headline=Fact("", title),
        tables=[ReportTable(COLUMNS, times.to_dicts(), gap=2)],
        data=[
            Data("disturbances", lambda: times),
            Data("", lambda: rows, ["disturbances.parquet"]),
        ],
    )
