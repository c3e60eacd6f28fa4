"""Folds of cross-validation contain what they claim, and select the model that the data warrant."""

from __future__ import annotations

import math

import polars as pl
import pytest

from synthetic_machines import cases, timed
from tutti.measured.errors import CalibrationError
from tutti.measured.predict.folds import (
    KINDS,
    MODELS,
    carried_over,
    compared,
    cross_validate,
    folds,
    interval_scale,
    interval_scales,
    model_predictions,
    novelty,
)
from tutti.measured.predict.hardware import Hardware

START = Hardware().prior()


def measured(**options: object) -> pl.DataFrame:
    """Two machines; the second has one node count."""
    one = timed(cases("one", sizes=(8, 65536)), START, noise=0.05, seed=0)
    two = timed(cases("two", nodes=(8,), sizes=(8, 65536)), START + 0.2, noise=0.05, seed=1)
    return pl.concat([one, two]).filter(**options)


def test_folds_of_nodes_train_on_fewer_nodes_and_other_machines() -> None:
    found = folds(measured(), kinds=("nodes",))
    assert [one.name for one in found] == ["one, 8 nodes", "one, 16 nodes"]
    for fold, count in zip(found, (8, 16), strict=True):
        own = fold.train.filter(system="one")
        assert fold.test["nodes"].unique().to_list() == [count]
        assert max(own["nodes"]) < count
        assert fold.train.filter(system="two").height == measured(system="two").height


@pytest.mark.parametrize(("kind", "column"), [("collective", "collective"), ("machine", "system")])
def test_folds_leave_out_a_collective_or_a_machine(kind: str, column: str) -> None:
    found = folds(measured(), kinds=(kind,))
    assert [one.name for one in found] == sorted(set(measured()[column]))
    for fold in found:
        assert set(fold.test[column]) == {fold.name}
        assert fold.name not in set(fold.train[column])
        assert fold.train.height + fold.test.height == measured().height


def test_folds_far_away_train_on_a_fraction_of_the_nodes() -> None:
    (fold,) = folds(measured(), kinds=("far",))
    assert fold.name == "one, 16 nodes"
    assert set(fold.train.filter(system="one")["nodes"]) == {4}
    assert set(fold.train.filter(system="two")["nodes"]) == {8}  # its smallest
    assert folds(measured(), kinds=("farther",)) == []


def test_folds_of_ranks_leave_out_dense_placements() -> None:
    dense = measured(system="one", nodes=8).with_columns(
        pl.lit(4, pl.Int64).alias("ranks_per_node")
    )
    (fold,) = folds(pl.concat([measured(), dense]), kinds=("ranks",))
    assert fold.test.height == dense.height
    assert set(fold.train["ranks_per_node"]) == {1}


def test_novelty_is_what_the_model_has_not_seen() -> None:
    train = measured()
    targets = cases("one", nodes=(16, 32, 64, 512), sizes=(8,), collectives=("all_reduce",))
    targets = targets.filter(library_algorithm="ring_ompi")
    assert novelty(train, targets).to_list() == ["near", "near", "far", "farther"]
    dense = targets.with_columns(pl.lit(4, pl.Int64).alias("ranks_per_node"))
    assert set(novelty(train, dense)) == {"ranks"}
    fewer = train.filter(pl.col("collective") != "all_reduce")
    assert set(novelty(fewer, targets)) == {"collective"}
    assert set(novelty(train.filter(system="two"), targets)) == {"machine"}


def errors_of(system: str, **errors: float) -> pl.DataFrame:
    """40 predictions of each novelty with the same error, in units of the model's deviation."""
    rows = [
        {"system": system, "novelty": name, "time_us": 1.0, "spread": 0.1,
         "predicted_us": math.exp(0.1 * 1.645 * error)}
        for name, error in errors.items() for _ in range(40)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_intervals_widen_with_the_distance() -> None:
    rows = errors_of("one", near=1.2, far=0.6, farther=2.4, machine=1.8)
    scales = interval_scales(rows)
    assert scales["near"] == scales["far"] == pytest.approx(1.2)
    assert scales["farther"] == pytest.approx(2.4)
    assert scales["ranks"] == interval_scale(rows)
    narrow = interval_scales(errors_of("one", near=0.5, far=0.6, collective=0.7, machine=0.8))
    assert [narrow[one] for one in ("far", "farther", "machine")] == [1.0, 1.0, 1.0]
    assert [narrow[one] for one in ("near", "collective")] == pytest.approx([0.5, 0.7])


def test_errors_of_a_machine_widen_its_intervals_and_never_narrow_them() -> None:
    good = pl.concat([errors_of("one", near=0.5) for _ in range(10)])
    rows = pl.concat([good, errors_of("two", near=2.0)])
    assert interval_scales(rows)["near"] == pytest.approx(0.5)
    assert interval_scales(rows, system="one")["near"] == pytest.approx(0.5)
    assert interval_scales(rows, system="two")["near"] == pytest.approx(2.0)
    few = pl.concat([good, errors_of("two", near=2.0).head(29)])
    assert interval_scales(few, system="two")["near"] == pytest.approx(0.5)
    bad = pl.concat([errors_of("one", near=0.5), errors_of("two", near=2.0)])
    assert interval_scales(bad, system="one")["near"] == pytest.approx(2.0)


def test_each_row_is_predicted_at_most_once_per_kind() -> None:
    for kind in KINDS:
        every = [number for one in folds(measured(), kinds=(kind,)) for number in one.test["index"]]
        assert len(every) == len(set(every))


def test_one_machine_collective_and_node_count_has_no_fold() -> None:
    frame = measured(system="two", collective="all_reduce")
    with pytest.raises(CalibrationError, match="one node count, one collective and one machine"):
        cross_validate(frame)


def test_times_carry_over_from_the_largest_smaller_node_count() -> None:
    frame = cases("one", nodes=(4, 8, 16, 32), sizes=(8,), collectives=("all_reduce",))
    frame = frame.filter(library_algorithm="ring_ompi").with_row_index("index")
    frame = frame.with_columns(pl.Series("time_us", [1.0, 2.0, 4.0, 8.0]))
    again = frame.filter(nodes=8).with_columns(pl.lit(3.0).alias("time_us"))
    found = carried_over(pl.concat([frame, again]), frame.filter(pl.col("nodes").is_in([4, 16])))
    assert found.rows() == [(2, 2.5)]
    other_size = frame.filter(nodes=16).with_columns(pl.lit(9, pl.Int64).alias("size_bytes"))
    assert carried_over(frame, other_size).is_empty()


def test_predictions_do_not_depend_on_processes_or_other_rows_of_the_fold() -> None:
    frame = measured()
    found = cross_validate(frame, kinds=("nodes",))
    assert found.equals(cross_validate(frame, kinds=("nodes",), workers=2))
    assert found["index"].to_list() == [
        index for one in folds(frame, kinds=("nodes",)) for index in one.test["index"]
    ]
    assert found["time_us"].to_list() == frame["time_us"].gather(found["index"]).to_list()


def made(errors: dict[str, list[float]], *, spread: float = 0.1) -> pl.DataFrame:
    """Predictions of the fold of 16 nodes, whose logarithms are off by these numbers in turn."""
    frame = measured().with_row_index("index").filter(system="one", nodes=16)
    columns = []
    for model, column in MODELS.items():
        values = errors[model]
        factors = [math.exp(values[row % len(values)]) for row in range(frame.height)]
        columns.append((pl.col("time_us") * pl.Series(factors)).alias(column))
    return frame.select(
        pl.lit("nodes").alias("kind"),
        pl.lit("one, 16 nodes").alias("fold"),
        pl.lit("near").alias("novelty"),
        "index",
        "system",
        "time_us",
        pl.lit(spread).alias("spread"),
        *columns,
    ).with_columns(pl.col("predicted_us").alias("choice_us"))


@pytest.mark.parametrize(
    ("errors", "warranted"),
    [
        ({"carry-over": [0.1, -0.1], "structural": [0.1, -0.1], "full": [0.1]}, "carry-over"),
        ({"carry-over": [0.4, -0.5], "structural": [0.1, -0.2], "full": [0.1, -0.2]}, "structural"),
        ({"carry-over": [0.4, -0.5], "structural": [0.4, -0.5], "full": [0.1, -0.1]}, "full"),
        (
            {"carry-over": [0.4], "structural": [0.2, -0.2], "full": [0.0, 0.5, 0.1, 0.3]},
            "structural",
        ),
    ],
)
def test_the_simplest_model_is_selected_unless_another_is_better(
    errors: dict[str, list[float]], warranted: str
) -> None:
    found = compared(measured(), made(errors))
    assert found["model"].to_list() == list(MODELS)
    assert found.filter("warranted")["model"].to_list() == [warranted]
    assert found["rows"].unique().to_list() == [18]


def test_interval_scale_makes_nine_of_ten_inside() -> None:
    errors = [0.01 * number for number in range(11)]
    frame = pl.DataFrame({"time_us": 1.0, "predicted_us": [math.exp(one) for one in errors]})
    frame = frame.with_columns(pl.lit(0.1).alias("spread"))
    assert interval_scale(frame) == pytest.approx(0.09 / 0.1 / 1.645)
    assert interval_scale(frame.clear()) == 1.0


def test_a_fold_does_not_scale_its_own_interval() -> None:
    exact = made({model: [0.0] for model in MODELS})
    off = made({model: [0.329] for model in MODELS})
    off = off.with_columns(pl.lit("one, 8 nodes").alias("fold"), pl.col("index") + 1000)
    again = off.with_columns(pl.lit("far").alias("kind"))  # the same rows in another fold
    found = model_predictions(pl.concat([exact, off, again]), "full")
    half = (found["high_us"] / found["predicted_us"]).log().round(3)
    assert half.to_list() == [0.329] * exact.height + [0.0] * 2 * off.height
