"""Cross-validation: predictions of measurements that the model has not seen.

Folds resemble the questions of users. `nodes` folds predict a machine at one node count from its
smaller ones and from other machines; `far` and `farther` folds from at most a quarter and a
sixteenth of the nodes, on all machines. `collective` folds predict a collective that no machine has
measured, `machine` folds a machine without any measurement, `ranks` folds a machine with several
ranks per node from its measurements with fewer. In each kind, a row is predicted at most once.

What is new about a row, and its machine, decide the width of its interval, whatever the fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.child_processes import no_interrupts
from tutti.measured.errors import CalibrationError
from tutti.measured.predict.curve import DEVIATIONS_90
from tutti.measured.predict.model import calibrate
from tutti.measured.predict.score import score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.measured.predict.discrepancy import Scales
    from tutti.measured.predict.hardware import Hardware

KINDS: Final = ("nodes", "far", "farther", "collective", "machine", "ranks")
"""The kinds of folds."""

_FACTORS: Final = {"nodes": 1, "far": 4, "farther": 16}
"""Least ratio of the nodes to predict and those to fit."""

NOVELTIES: Final = ("near", "far", "farther", "ranks", "collective", "machine")
"""What is new about a row, from the least to the most: more nodes than measured on its machine (up
to twice, eight times, or beyond), the ranks per node, the collective, or the machine."""

_HORIZONS: Final = (2.0, 8.0)
_FEWEST: Final = 30
"""Rows of a novelty that suffice for the width of its intervals."""
_BEYOND: Final = ("far", "farther", "machine")
"""Novelties whose intervals are never narrower than the model's: folds reach 50 times the nodes,
jobs 128 times, and no two measured machines have the same library."""

MODELS: Final = {
    "carry-over": "carried_us",
    "structural": "structural_us",
    "full": "predicted_us",
}
"""The candidate models from the simplest to the most complex, and the column of their times."""

_SAME: Final = ("system", "collective", "library_algorithm", "size_bytes")
_CELL: Final = ("system", "collective", "nodes", "size_bytes")
"""What rows with dependent errors have in common."""
_INSIDE: Final = 0.9
_COVERED: Final = 0.9
_ERRORS: Final = 2.0
"""Standard errors by which a more complex model must improve."""


@dataclass(frozen=True)
class Fold:
    """Rows to predict, and the rows to predict them from.

    Attributes:
        kind: One of :data:`KINDS`.
        name: What is predicted, such as `leonardo, 200 nodes`.
        train: The rows to fit.
        test: The rows to predict; `index` numbers them in the complete frame.
    """

    kind: str
    name: str
    train: pl.DataFrame
    test: pl.DataFrame


def folds(rows: pl.DataFrame, *, kinds: Sequence[str] = KINDS) -> list[Fold]:
    """Returns the folds of measurements.

    Args:
        rows: Measurements, with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
        kinds: The kinds of folds.

    Returns:
        Per machine, a fold for each node count above its smallest; per collective, a fold if
        another collective is measured; per machine, a fold if another machine is measured.
    """
    if "index" not in rows.columns:
        rows = rows.with_row_index("index")
    found = []
    for kind, factor in _FACTORS.items():
        if kind in kinds:
            found += _nodes(rows, kind, factor)
    for kind, column in (("collective", "collective"), ("machine", "system")):
        values = rows[column].drop_nulls().unique().sort().to_list()
        if kind in kinds and len(values) > 1:
            found += [_without(rows, kind, column, value) for value in values]
    return found + (_ranks(rows) if "ranks" in kinds else [])


def _nodes(rows: pl.DataFrame, kind: str, factor: int) -> list[Fold]:
    """Folds of each node count.

    With a factor, other machines have no larger measurements either, but for their smallest count.
    """
    found = []
    nodes = pl.col("nodes")
    small = nodes <= pl.max_horizontal(nodes.min().over("system"), pl.lit(0))
    for system in rows["system"].drop_nulls().unique().sort():
        here = pl.col("system").eq_missing(system)
        counts = rows.filter(here)["nodes"].drop_nulls().unique().sort()
        for count in counts[1:]:
            given = nodes < count if factor == 1 else nodes * factor <= count
            others = ~here if factor == 1 else ~here & (given | small)
            train, test = rows.filter(others | (here & given)), rows.filter(here, nodes == count)
            if train.filter(here).height:
                found.append(Fold(kind, f"{system}, {count:,} nodes", train, test))
    return found


def _ranks(rows: pl.DataFrame) -> list[Fold]:
    """Folds of machines that were measured with several ranks per node."""
    found = []
    for system in rows["system"].drop_nulls().unique().sort():
        here = pl.col("system").eq_missing(system)
        more = here & (pl.col("ranks_per_node") > rows.filter(here)["ranks_per_node"].min())
        test = rows.filter(more)
        if test.height:
            train = rows.filter(~more.fill_null(value=False))
            found.append(Fold("ranks", f"{system}, ranks per node", train, test))
    return found


def novelty(train: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Returns what is new about each row, of :data:`NOVELTIES`.

    Args:
        train: The measurements of the model.
        rows: Measurements or questions.
    """
    system, density = pl.col("system"), pl.col("ranks_per_node").fill_null(1)
    largest = train.group_by("system").agg(pl.col("nodes").max().alias("_largest"))
    pairs = train.select("system", "collective").unique().with_columns(_pair=True)
    # Up to twice the ranks per node that were measured, they share a node in the same manner.
    densest = train.group_by("system").agg(density.max().alias("_densest"))
    joined = rows.select("system", "collective", "nodes", "ranks_per_node")
    for table, on in (
        (largest, ["system"]),
        (densest, ["system"]),
        (pairs, ["system", "collective"]),
    ):
        joined = joined.join(table, on=on, how="left", nulls_equal=True, maintain_order="left")
    ratio = pl.col("nodes") / pl.col("_largest")
    return joined.select(
        pl.when(~system.is_in(train["system"].unique().implode(), nulls_equal=True))
        .then(pl.lit("machine"))
        .when(pl.col("_pair").is_null())
        .then(pl.lit("collective"))
        .when(density > 2 * pl.col("_densest"))
        .then(pl.lit("ranks"))
        .when(ratio > _HORIZONS[1])
        .then(pl.lit("farther"))
        .when(ratio > _HORIZONS[0])
        .then(pl.lit("far"))
        .otherwise(pl.lit("near"))
        .alias("novelty")
    )["novelty"]


def _without(rows: pl.DataFrame, kind: str, column: str, value: str) -> Fold:
    here = pl.col(column).eq_missing(value)
    return Fold(kind, value, rows.filter(~here), rows.filter(here))


def carried_over(train: pl.DataFrame, test: pl.DataFrame) -> pl.DataFrame:
    """Predicts the time of an algorithm as its time at the largest smaller node count given.

    Args:
        train: Measurements.
        test: Rows to predict, with `index`.

    Returns:
        `index` and `carried_us` of the rows whose machine has measured the algorithm at that size
        on fewer nodes; the median where several rows qualify.
    """
    known = train.select(*_SAME, pl.col("nodes").alias("given"), "time_us")
    pairs = test.select("index", *_SAME, "nodes").join(known, on=_SAME)
    pairs = pairs.filter(pl.col("given") < pl.col("nodes"))
    largest = pairs.filter(pl.col("given") == pl.col("given").max().over("index"))
    return largest.group_by("index").agg(pl.col("time_us").median().alias("carried_us"))


def cross_validate(
    rows: pl.DataFrame,
    *,
    hardware: Mapping[str, Hardware] | None = None,
    scales: Scales | None = None,
    kinds: Sequence[str] = KINDS,
    workers: int = 1,
) -> pl.DataFrame:
    """Predicts every row from the others, fold by fold.

    Args:
        rows: Measurements, with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
        hardware: What is known of each system beforehand.
        scales: Standard deviations of the discrepancy.
        kinds: The kinds of folds.
        workers: Processes. The result does not depend on it.

    Returns:
        A row per fold and predicted measurement: `kind`, `fold`, its `novelty`, `index` in `rows`,
        `system`, and the measured `time_us`; columns of :meth:`CalibratedModel.predict`; and
        `carried_us`, null where the algorithm has no time to carry over.

    Raises:
        CalibrationError: There is no fold, or its rows to fit are unusable.
    """
    every = folds(rows, kinds=kinds)
    if not every:
        raise CalibrationError(
            "the measurements have one node count, one collective and one machine",
            kind="undetermined",
            hint="cross-validation needs a second one",
        )
    arguments = [(fold, dict(hardware or {}), scales) for fold in every]
    if workers <= 1:
        return pl.concat([_predicted(*one) for one in arguments])
    # Forked processes could inherit locks of the threads of Polars.
    with no_interrupts():
        pool = get_context("spawn").Pool(workers)
    with pool:  # Its exit terminates the processes.
        return pl.concat(pool.starmap(_predicted, arguments, chunksize=1))


def _predicted(fold: Fold, hardware: dict[str, Hardware], scales: Scales | None) -> pl.DataFrame:
    """Predicts the rows of a fold with all candidate models."""
    model = calibrate(fold.train, hardware=hardware, scales=scales)
    found = model.predict(fold.test)
    numbers = fold.test["index"].gather(found["index"])
    new = novelty(fold.train, fold.test).gather(found["index"])
    found = found.with_columns(numbers.alias("index"), new).join(
        fold.test.select("index", "system", "time_us"), on="index"
    )
    found = found.join(carried_over(fold.train, fold.test), on="index", how="left")
    return found.filter(pl.col("time_us") > 0).select(
        pl.lit(fold.kind).alias("kind"),
        pl.lit(fold.name).alias("fold"),
        "novelty",
        pl.col("index").cast(pl.UInt32),
        "system",
        "time_us",
        "predicted_us",
        "spread",
        "choice_us",
        "structural_us",
        "term",
        "carried_us",
    )


def interval_scale(predictions: pl.DataFrame, *, model: str = "full") -> float:
    """Returns the factor on standard deviations with which 90 % of the times are inside.

    Args:
        predictions: Rows of :func:`cross_validate`.
        model: One of :data:`MODELS`.

    Returns:
        The 90 % quantile of |log(predicted / measured)| / spread / 1.645; 1 without any row.
    """
    errors = (_log_error(model).abs() / _spread(model)).alias("errors")
    found = predictions.select(errors)["errors"].drop_nulls().quantile(_INSIDE, "linear")
    return 1.0 if found is None else float(found) / DEVIATIONS_90


def _log_error(model: str) -> pl.Expr:
    return (pl.col(MODELS[model]) / pl.col("time_us")).log()


def _spread(model: str) -> pl.Expr:
    """The standard deviation; the simple models claim the same for every row."""
    return pl.col("spread") if model == "full" else pl.lit(1.0)


def interval_scales(
    predictions: pl.DataFrame, *, system: str | None = None, model: str = "full"
) -> dict[str, float]:
    """Returns the factor on standard deviations for each novelty on a machine.

    The factor of a machine is that of its rows, at least that of all machines. A machine with few
    rows of a novelty takes the latter, a novelty with few rows the factor of all novelties. More
    nodes never narrow the interval.

    Args:
        predictions: Rows of :func:`cross_validate`.
        system: The machine; None for any other.
        model: One of :data:`MODELS`.
    """
    scales: dict[str, float] = {}
    every = interval_scale(predictions, model=model)
    least = 1.0 if model == "full" else 0.0
    for name in NOVELTIES:
        some = predictions.filter(pl.col("novelty") == name)
        scale = interval_scale(some, model=model) if some.height >= _FEWEST else every
        here = some.filter(pl.col("system") == pl.lit(system, pl.String))
        if here.height >= _FEWEST:
            scale = max(scale, interval_scale(here, model=model))
        scales[name] = max(scale, least) if name in _BEYOND else scale
    scales["far"] = max(scales["near"], scales["far"])
    scales["farther"] = max(scales["far"], scales["farther"])
    return scales


def model_predictions(predictions: pl.DataFrame, model: str) -> pl.DataFrame:
    """Returns the predictions of a candidate model, with 90 % intervals.

    The intervals of a fold are scaled by rows that it does not predict. A measured time does not
    scale the interval that it is compared with.

    Args:
        predictions: Rows of :func:`cross_validate`.
        model: One of :data:`MODELS`.

    Returns:
        `kind`, `fold`, `index`, `predicted_us`, `low_us`, `high_us` and, of the full model,
        `choice_us` of the rows that the model predicts.
    """
    column = MODELS[model]
    choice = ["choice_us"] if model == "full" else []
    rows = []
    for _, fold in predictions.group_by("kind", "fold", maintain_order=True):
        others = predictions.filter(~pl.col("index").is_in(fold["index"].implode()))
        for (system,), group in fold.group_by("system", maintain_order=True):
            scales = interval_scales(others, system=system, model=model)
            scale = pl.col("novelty").replace_strict(scales, return_dtype=pl.Float64)
            half = (DEVIATIONS_90 * scale * _spread(model)).exp()
            rows.append(
                group.select(
                    "kind",
                    "fold",
                    "index",
                    pl.col(column).alias("predicted_us"),
                    (pl.col(column) / half).alias("low_us"),
                    (pl.col(column) * half).alias("high_us"),
                    *choice,
                )
            )
    return pl.concat(rows).drop_nulls("predicted_us")


def compared(rows: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """Scores each candidate model on each fold, and selects the one that the data warrant.

    A more complex model is warranted if it lowers the mean absolute logarithmic error of the rows
    that both predict by more than two standard errors. Rows of the same machine, collective, node
    count and size are one observation. A model that predicts less than 90 % is not selected.

    Args:
        rows: The measurements that were cross-validated.
        predictions: Rows of :func:`cross_validate`.

    Returns:
        A row per fold and model: `kind`, `fold`, `model`,
        :data:`tutti.measured.predict.score.SCORES`, and `warranted`. The fold `all` of a kind has
        all its rows.
    """
    rows = rows if "index" in rows.columns else rows.with_row_index("index")
    tests = {(fold.kind, fold.name): fold.test for fold in folds(rows)}
    guesses = {model: model_predictions(predictions, model) for model in MODELS}
    found = []
    for kind in predictions["kind"].unique(maintain_order=True):
        of_kind = predictions.filter(pl.col("kind") == kind)
        names = of_kind["fold"].unique(maintain_order=True).to_list()
        if len(names) > 1:
            tests[kind, "all"] = pl.concat([tests[kind, name] for name in names])
        for name in [*names, *(["all"] if len(names) > 1 else [])]:
            fold = pl.lit(value=True) if name == "all" else pl.col("fold") == name
            of_fold = {
                model: some.filter(pl.col("kind") == kind, fold) for model, some in guesses.items()
            }
            found.append(_of_fold(kind, name, tests[kind, name], of_kind.filter(fold), of_fold))
    return pl.concat(found)


def _of_fold(
    kind: str,
    name: str,
    test: pl.DataFrame,
    predictions: pl.DataFrame,
    guesses: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """Scores the predictions of each model on one fold."""
    chosen = _warranted(predictions.join(test.select("index", *_CELL[1:]), on="index"))
    tables = []
    for model, guessed in guesses.items():
        figures = score(test, guessed.drop("kind", "fold")).tail(1).drop("system")
        tables.append(
            figures.select(
                pl.lit(kind).alias("kind"),
                pl.lit(name).alias("fold"),
                pl.lit(model).alias("model"),
                pl.all(),
                pl.lit(value=model == chosen).alias("warranted"),
            )
        )
    return pl.concat(tables)


def _warranted(predictions: pl.DataFrame) -> str:
    """Returns the simplest model that no more complex one improves on significantly."""
    most = _COVERED * predictions.height
    names = [name for name, column in MODELS.items() if predictions[column].count() >= most]
    chosen = names[0]
    for name in names[1:]:
        gain = (_log_error(chosen).abs() - _log_error(name).abs()).alias("gain")
        cells = predictions.with_columns(gain).drop_nulls("gain").group_by(_CELL)
        gains = cells.agg(pl.col("gain").mean())["gain"]
        mean, deviation = gains.mean(), gains.std()
        if not isinstance(mean, float) or not isinstance(deviation, float):
            continue
        if mean > _ERRORS * deviation / math.sqrt(len(gains)):
            chosen = name
    return chosen
