"""Models against measured collectives: Figs. 12, 14 and 15 of Ruefenacht et al. 2017, here.

The collectives are those of `tutti mpi bench`, and took no part in the fit. The minimum of the
blocks is held against the model of minima, the median against that of medians, as the paper does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tutti.calibrate.points import of_results
from tutti.report.palette import styles
from tutti.report.plot import figure_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.calibrate.fit import Fit

__all__ = ["AGAINST", "against", "choices", "draw_against"]

AGAINST: dict[str, type[pl.DataType]] = {
    "model": pl.String,
    "statistic": pl.String,
    "collective": pl.String,
    "schedule": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "measured_us": pl.Float64,
    "predicted_us": pl.Float64,
    "residual": pl.Float64,
}
"""The columns of collectives beside what a model says; ``residual`` is predicted over measured,
less 1. Folds cost what the model says of them: nothing."""


def against(results: pl.DataFrame, fits: Mapping[str, Fit], *, source: str) -> pl.DataFrame:
    """What models say of collectives that were measured.

    Args:
        results: results.parquet of `tutti mpi bench`.
        fits: a fit for each statistic, `minimum` and `median`.
        source: what messages call the results.

    Returns:
        A row for each collective, size, schedule and statistic, with the columns of
        :data:`AGAINST`.

    Raises:
        ConfigError: results of something else.
    """
    rows = []
    for statistic, one in fits.items():
        for point in of_results(results, statistic, source=source):
            if point.schedule is None:
                continue
            predicted = one.model.predicted(one.theta, point)
            rows.append(
                {
                    "model": one.model.name,
                    "statistic": statistic,
                    "collective": point.schedule.collective,
                    "schedule": point.schedule.name,
                    "ranks": point.schedule.ranks,
                    "size_bytes": point.size,
                    "measured_us": point.time_us,
                    "predicted_us": predicted,
                    "residual": predicted / point.time_us - 1,
                }
            )
    return pl.DataFrame(rows, schema=AGAINST, orient="row")


def choices(frame: pl.DataFrame) -> pl.DataFrame:
    """How good the model's choice is: what its schedule took, over the fastest that was measured.

    Returns:
        A row for each statistic, collective, ranks and size of which several schedules were
        measured: ``chosen`` and ``fastest``, and ``loss`` (0 where they are equally fast).
    """
    asked = ["statistic", "collective", "ranks", "size_bytes"]
    chosen = pl.col("predicted_us").arg_min()
    fastest = pl.col("measured_us").arg_min()
    return (
        frame.group_by(asked, maintain_order=True)
        .agg(
            pl.len().alias("schedules"),
            pl.col("schedule").get(chosen).alias("chosen"),
            pl.col("schedule").get(fastest).alias("fastest"),
            (pl.col("measured_us").get(chosen) / pl.col("measured_us").min() - 1).alias("loss"),
        )
        .filter(pl.col("schedules") > 1)
    )


def draw_against(path: str | Path, frame: pl.DataFrame) -> Path:
    """Draws the residual of the fastest schedule against ranks, and predictions over measurements.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        frame: of :func:`against`.

    Returns:
        The path written.

    Raises:
        ReportError: the suffix is of no known format.
    """
    statistics = frame["statistic"].unique(maintain_order=True).to_list()
    with figure_at(path, (3.4 * (1 + len(statistics)), 3.2)) as drawn:
        axes = drawn.subplots(1, 1 + len(statistics), squeeze=False)[0]
        for statistic, look in styles(statistics).items():
            mine = frame.filter(pl.col("statistic") == statistic)
            best = mine.sort("measured_us").group_by("ranks", maintain_order=True).first()
            best = best.sort("ranks")
            axes[0].plot(best["ranks"], 100 * best["residual"], color=look.colour,
                         marker=look.marker_matplotlib, label=statistic)  # fmt: skip
        axes[0].set(xlabel="ranks", ylabel="fastest schedule: model over measured (%)")
        axes[0].axhline(0, color="#333333", lw=0.8)
        axes[0].legend(fontsize=7)
        for place, statistic in zip(axes[1:], statistics, strict=True):
            mine = frame.filter(pl.col("statistic") == statistic)
            looks = styles(str(ranks) for ranks in mine["ranks"].unique())
            for ranks in sorted(looks, key=int):
                look, some = looks[ranks], mine.filter(pl.col("ranks") == int(ranks))
                place.plot(some["measured_us"], some["predicted_us"], ls="", ms=4, label=ranks,
                           color=look.colour, marker=look.marker_matplotlib)  # fmt: skip
            ends = np.array([mine["measured_us"].min(), mine["measured_us"].max()], dtype=float)
            place.plot(ends, ends, color="#333333", lw=0.8)
            place.set(xscale="log", yscale="log", xlabel=f"measured, {statistic} (us)")
            place.set_ylabel("model (us)")
            place.legend(title="ranks", fontsize=7, title_fontsize=7)
    return Path(path)
