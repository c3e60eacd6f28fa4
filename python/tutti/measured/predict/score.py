"""How good predicted times of collectives are, and the algorithms that they choose.

A group is what one user of a library chooses an algorithm for: the same job, collective, nodes,
ranks per node, size, library and memory. The winner of a group is its algorithm of the shortest
measured time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.measured.predict.catalogue import is_default

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = (
    "system",
    "collective",
    "nodes",
    "shape",
    "ranks_per_node",
    "size_bytes",
    "library",
    "gpu",
    "notes",
    "job",
)
"""The columns that rows of a group have in common."""

SCORES = (
    "rows",
    "covered",
    "factor",
    "factor_p90",
    "groups",
    "winner",
    "regret",
    "regret_p90",
    "default_regret",
    "inside",
)
"""The columns of :func:`score` after those of `by`."""

_NOT_CHOSEN = "non_blocking"
"""Names of non-blocking collectives, whose time is not that of the library's choice."""


def joined(rows: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """Returns measured rows with their predictions.

    Args:
        rows: Measurements, with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`;
            their column `index` numbers them, or their order if they have none.
        predictions: `index` of a row, `predicted_us`, and any other columns.

    Returns:
        Rows of named algorithms with times above 0: columns of both, null where there is no
        prediction. `predictions` columns that `rows` has too, such as `low_us`, replace them.
    """
    known = [name for name in predictions.columns if name in rows.columns and name != "index"]
    spread = pl.col("high_us").alias("measured_p90_us")
    kept = rows if "index" in rows.columns else rows.with_row_index("index")
    kept = kept.with_columns(spread).drop(known).join(predictions, on="index", how="left")
    return kept.filter(pl.col("time_us") > 0, ~_defaults(kept)).sort("index")


def score(
    rows: pl.DataFrame, predictions: pl.DataFrame, *, by: Sequence[str] = ("system",)
) -> pl.DataFrame:
    """Scores predictions.

    Args:
        rows: Measurements, as for :func:`joined`.
        predictions: `index` of a row, `predicted_us` in us, and, if intervals are claimed,
            `low_us` and `high_us`. `choice_us`, if given, decides which algorithm of a group is
            chosen, else `predicted_us`. Rows without a prediction count against coverage only.
        by: Columns of :data:`GROUP` to report separately.

    Returns:
        A row per value of `by` with a prediction, then one for all with `all` in each column of
        `by`. Nulls mark figures without any row. Columns:

        - `rows`: rows of named algorithms.
        - `covered`: the share of them with a prediction.
        - `factor`, `factor_p90`: median and 90 % quantile of the larger of predicted / measured
          and measured / predicted.
        - `groups`: groups with at least two predicted algorithms. All figures of choices, below,
          are of them.
        - `winner`: the share whose algorithm chosen by the prediction is the fastest
          measured, or within the 90 % quantile of the fastest one's repetitions.
        - `regret`, `regret_p90`: median and 90 % quantile of measured[chosen] / measured[fastest]
          - 1.
        - `default_regret`: the median of the same for the library's choice, where it was measured.
        - `inside`: the share of measured times within the interval.
    """
    named = joined(rows, predictions)
    choices = _choices(named, rows)
    keys = named.drop_nulls("predicted_us").select(by).unique().sort(by)
    tables = [_figures(named, choices, key) for key in [*keys.iter_rows(named=True), {}]]
    labels = [*keys.cast(pl.String).iter_rows(), ("all",) * len(by)]
    heads = pl.DataFrame(labels, schema=dict.fromkeys(by, pl.String), orient="row")
    return pl.concat([heads, pl.concat(tables)], how="horizontal")


def _defaults(rows: pl.DataFrame) -> pl.Series:
    """Whether a library chose the algorithm of each row."""
    names = rows["library_algorithm"]
    return pl.Series([is_default(name) for name in names], dtype=pl.Boolean)


def _choices(named: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Returns a row per group: the best time, the chosen one's, and the library's choice's."""
    fastest = pl.col("measured_p90_us").sort_by("time_us", maintain_order=True).first()
    key = "choice_us" if "choice_us" in named.columns else "predicted_us"
    chosen = pl.col("time_us").sort_by(key, maintain_order=True).first()
    groups = (
        named.drop_nulls("predicted_us")
        .group_by(GROUP, maintain_order=True)
        .agg(
            pl.len().alias("algorithms"),
            pl.col("time_us").min().alias("best"),
            fastest.alias("best_p90"),
            chosen.alias("chosen"),
        )
        .filter(pl.col("algorithms") > 1)
    )
    own = rows.filter(_defaults(rows), pl.col("time_us") > 0).filter(
        ~pl.col("library_algorithm").str.contains(_NOT_CHOSEN)
    )
    own = own.group_by(GROUP, maintain_order=True).agg(pl.col("time_us").min().alias("default"))
    right = pl.col("chosen") <= pl.max_horizontal("best", "best_p90")
    return groups.join(own, on=GROUP, how="left", nulls_equal=True).with_columns(
        (pl.col("chosen") / pl.col("best") - 1).alias("regret"),
        (pl.col("default") / pl.col("best") - 1).alias("default_regret"),
        right.alias("right"),
    )


def _figures(named: pl.DataFrame, choices: pl.DataFrame, key: dict[str, object]) -> pl.DataFrame:
    """Returns the figures of the rows with these values, as one row."""
    here = pl.all_horizontal(
        pl.lit(value=True), *(pl.col(name).eq_missing(value) for name, value in key.items())
    )
    selected, groups = named.filter(here), choices.filter(here)
    found = selected.drop_nulls("predicted_us")
    ratio = found["predicted_us"] / found["time_us"]
    factor = ratio.log().abs().exp()
    inside = None
    if "low_us" in found.columns and found.height:
        within = found["time_us"].is_between(found["low_us"], found["high_us"])
        inside = within.mean()
    figures = {
        "rows": selected.height,
        "covered": found.height / selected.height if selected.height else None,
        "factor": factor.median(),
        "factor_p90": factor.quantile(0.9, "nearest"),
        "groups": groups.height,
        "winner": groups["right"].mean(),
        "regret": groups["regret"].quantile(0.5, "linear"),
        "regret_p90": groups["regret"].quantile(0.9, "linear"),
        "default_regret": groups["default_regret"].quantile(0.5, "linear"),
        "inside": inside,
    }
    counts = {"rows", "groups"}
    return pl.DataFrame(
        figures, schema={name: pl.Int64 if name in counts else pl.Float64 for name in SCORES}
    )
