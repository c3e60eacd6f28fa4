"""Validates models against measured collectives, as Figs. 12, 14 and 15 of Ruefenacht et al. 2017.

The collectives are those of `tutti mpi bench`, and were not fitted. Minima of the blocks are
compared with the model of minima, medians with that of medians, as in the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.measured.calibrate.points import of_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.measured.calibrate.fit import Fit

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
"""The columns of collectives with a model's prediction; ``residual`` is predicted over measured,
minus 1. Folds have no cost."""


def against(results: pl.DataFrame, fits: Mapping[str, Fit], *, source: str) -> pl.DataFrame:
    """Predicts the times of measured collectives.

    Args:
        results: results.parquet of `tutti mpi bench`.
        fits: a fit for each statistic, `minimum` and `median`.
        source: name of the results in messages.

    Returns:
        A row for each collective, size, schedule and statistic, with the columns of
        :data:`AGAINST`.

    Raises:
        ConfigError: The frame has other columns.
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
    """Compares the schedule that the model would choose with the fastest measured one.

    Returns:
        A row for each statistic, collective, ranks and size with several measured schedules:
        ``chosen``, ``fastest`` and the slowdown ``loss`` (0.1 is 10 %).
    """
    case = ["statistic", "collective", "ranks", "size_bytes"]
    chosen = pl.col("predicted_us").arg_min()
    fastest = pl.col("measured_us").arg_min()
    return (
        frame.group_by(case, maintain_order=True)
        .agg(
            pl.len().alias("schedules"),
            pl.col("schedule").get(chosen).alias("chosen"),
            pl.col("schedule").get(fastest).alias("fastest"),
            (pl.col("measured_us").get(chosen) / pl.col("measured_us").min() - 1).alias("loss"),
        )
        .filter(pl.col("schedules") > 1)
    )
