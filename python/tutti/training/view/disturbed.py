"""What a training step with disturbances shows."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tutti.training.slowdowns import summary
from tutti.view.quantity import format_share, format_time
from tutti.view.tables import Column, ReportTable
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


def _slower(prefix: str, row: Mapping[str, Any]) -> str:
    return "" if row["disturbance"] == "none" else format_share(row[f"{prefix}slowdown"])


def _columns(prefix: str) -> tuple[Column[Mapping[str, Any]], ...]:
    return (
        Column("disturbance", itemgetter("disturbance")),
        Column("median", itemgetter(f"{prefix}median_ps"), format_time),
        Column("5 %", itemgetter(f"{prefix}low_ps"), format_time),
        Column("95 %", itemgetter(f"{prefix}high_ps"), format_time),
        Column("slower", partial(_slower, prefix), kind="number"),
    )


COLUMNS = _columns("")
"""The quantities of a disturbance, as of :func:`tutti.training.slowdowns.summary`."""
PLANNED = _columns("planned_")
"""Those of the step of a plan: its times as a plan."""
_PLANNED = (
    "times of the plan, like `as a plan` of `tutti train run`: collectives expose the shares of "
    "measured runs, and casts, the optimizer and a constant are added; disturbances add what they "
    "add to the simulation (total_ps of disturbances.parquet)"
)


def disturbed_view(rows: pl.DataFrame, title: str = "") -> View:
    """Returns what a training step with disturbances shows.

    Args:
        rows: The simulations, as of :func:`tutti.training.slowdowns.effects`.
        title: The title of the experiment.
    """
    times = summary(rows)
    is_planned = "planned_ps" in rows.columns
    columns, caption = (PLANNED, _PLANNED) if is_planned else (COLUMNS, "")
    return View(
        headline=Fact("", title),
        tables=[ReportTable(columns, times.to_dicts(), gap=2, caption=caption)],
        data=[
            Data("disturbances", lambda: times),
            Data("", lambda: rows, ["disturbances.parquet"]),
        ],
    )
