"""Models against measured collectives: Figs. 12, 14 and 15 of Ruefenacht et al. 2017, here.

The collectives are those of `tutti mpi bench`, and took no part in the fit. The minimum of the
blocks is held against the model of minima, the median against that of medians, as the paper does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.calibrate.points import of_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.calibrate.fit import Fit

__all__ = ["AGAINST", "against", "choices"]

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
