"""What the all-reduces of a training step by several algorithms show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tutti.view.quantity import format_share, format_time
from tutti.view.tables import Column, ReportTable, frame_of
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.training.overlap import Overlapped


class Row(NamedTuple):
    """An algorithm and its iteration."""

    algorithm: str
    run: Overlapped


QUANTITIES: tuple[Column[Row], ...] = (
    Column("algorithm", lambda row: row.algorithm, key="algorithm", kind="wrap"),
    Column("iteration", lambda row: row.run.iteration.ps, format_time, key="iteration_ps"),
    Column("compute", lambda row: row.run.compute.ps, format_time, key="compute_ps"),
    Column("all-reduces", lambda row: row.run.communication.ps, format_time,
           key="communication_ps"),
    Column("exposed", lambda row: row.run.exposed.ps, format_time, key="exposed_ps"),
    Column("share", lambda row: row.run.exposed.ps / row.run.iteration.ps, format_share,
           key="exposed_share", when=lambda row: row.run.iteration.ps > 0),
)  # fmt: skip
"""The quantities of an algorithm; times of an iteration."""


def overlap_view(
    runs: Mapping[str, Overlapped], settings: Mapping[str, str | int], how: str = ""
) -> View:
    """Returns what the all-reduces of a step by several algorithms show.

    Args:
        runs: The iterations by algorithm.
        settings: The settings to record: `model`, `ranks` and `batch`.
        how: How the batch is divided, for the headline.
    """
    rows = [Row(*item) for item in runs.items()]
    size = sum(layer.layer.gradients.bytes for layer in rows[0].run.layers)
    chiplets = f"{settings['model']} on {settings['ranks']} chiplets{how}"
    return View(
        headline=Fact("", f"{chiplets}: {size / 1e6:,.1f} MB of gradients"),
        facts=json_facts(**settings, gradient_bytes=size),
        tables=[
            ReportTable(
                QUANTITIES,
                rows,
                gap=2,
                caption="exposed: iteration time minus compute time; share: exposed / iteration",
            )
        ],
        data=[
            Data("results", lambda: frame_of(QUANTITIES, rows)),
            Data("", lambda: _layers(runs), ["layers.parquet"]),
        ],
    )


def _layers(runs: Mapping[str, Overlapped]) -> pl.DataFrame:
    return pl.concat(
        run.frame.select(pl.lit(name).alias("algorithm"), pl.all()) for name, run in runs.items()
    )
