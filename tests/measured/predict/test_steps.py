"""The model of training steps: closed forms, a synthetic fleet, folds, and errors of tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from predictors import steps as model
from predictors.step_fit import PRIORS, fit, parameters_of
from predictors.step_rows import TrainingStep, read_questions, read_steps, steps
from predictors.step_terms import terms
from predictors.steps import cross_validated, folds, predict, predict_steps
from predictors.submissions import Configuration, submissions

from tutti.base.errors import ConfigError
from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from pathlib import Path

HEADING = "submitter,system,benchmark,systems,global_batch,sequence,accumulation,run"
ROW = "University-of-Florida,hpg.dgxb200x8.n4,llama31_8b,4,16,8192,1,0"
LARGER = "University-of-Florida,hpg.dgxb200x8.n8,llama31_8b,8,32,8192,1,0"
PLAIN = Configuration(
    benchmark="llama31_8b", npu="h200", npus_per_node=8, npus_per_domain=8, precision="fp8"
)


def step(
    configuration: Configuration,
    systems: int,
    *,
    batch: int,
    rounds: int = 1,
    submitter: str = "a",
) -> TrainingStep:
    return TrainingStep(
        submitter=submitter,
        system=f"n{systems}",
        configuration=configuration,
        systems=systems,
        global_batch=batch,
        sequence=8192,
        accumulation=rounds,
    )


def fleet() -> list[TrainingStep]:
    """Three submitters with nodes of eight NPUs, two benchmarks, and up to 64 nodes."""
    found = []
    for submitter, npu in (("a", "h200"), ("b", "b200"), ("c", "b300")):
        small = PLAIN.model_copy(update={"npu": npu})
        large = small.model_copy(
            update={"benchmark": "llama31_405b", "tensor": 8, "pipeline": 8, "interleaved": 4}
        )
        for systems in (1, 2, 4, 8, 16):
            halves = small.model_copy(update={"context": 2 if systems > 2 else 1})
            batch = 8 * systems // halves.context
            found.append(step(halves, systems, batch=batch, submitter=submitter))
        for systems, rounds in ((8, 64), (16, 32), (64, 16)):
            batch = systems // 8 * rounds
            found.append(step(large, systems, batch=batch, rounds=rounds, submitter=submitter))
    return found


def measured(fleet: list[TrainingStep], seed: int) -> list[TrainingStep]:
    """The times of a fleet whose parameters are drawn from half their priors, with 1 % of noise."""
    rng = np.random.default_rng(seed)
    names = sorted({n for one in fleet for term in terms(one) for n in parameters_of(one, term)})
    truth = {name: rng.normal(0, 0.03) for name in names}
    for name in set(names) & set(PRIORS):
        truth[name] = math.log(PRIORS[name].value) + rng.normal(0, PRIORS[name].sd / 2)
    return [replace(one, measured_s=time(one, truth) * rng.lognormal(0, 0.01)) for one in fleet]


def time(one: TrainingStep, truth: dict[str, float]) -> float:
    return sum(
        amount * math.exp(sum(truth[name] for name in parameters_of(one, term)))
        for term, amount in terms(one).items()
    )


def frame(rows: list[TrainingStep]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "submitter": [one.submitter for one in rows],
            "system": [one.system for one in rows],
            "benchmark": [one.configuration.benchmark for one in rows],
            "systems": [one.systems for one in rows],
            "global_batch": [one.global_batch for one in rows],
            "sequence": [one.sequence for one in rows],
            "accumulation": [one.accumulation for one in rows],
            "run": [0 for _ in rows],
            "median_step_s": [one.measured_s for one in rows],
        }
    )


def test_matrix_products_at_peak_by_hand() -> None:
    found = terms(step(PLAIN, 1, batch=8))
    # Per block: 4096 x (4096 + 2 x 1024) + 4096^2 + 3 x 4096 x 14336 = 218,103,808 weights.
    assert found["gemm"] == pytest.approx(6 * 32 * 218_103_808 * 8192 / 1979e12)
    assert found["kernels"] == 32
    assert found["tensor"] == found["context"] == found["skew"] == 0


def test_gradients_travel_within_the_node_over_nvlink_and_beyond_over_all_its_nics() -> None:
    one, two = (terms(step(PLAIN, nodes, batch=8 * nodes))["data"] for nodes in (1, 2))
    # 2 bytes of gradient and 1 of FP8 weight; 450 GB/s x 0.75, and 8 x 50 GB/s x 0.85.
    size = 3 * 8_029_995_008
    assert one == pytest.approx(size * 7 / 8 / 337.5e9, rel=1e-3)
    assert two == pytest.approx(size * 15 / 16 / 337.5e9, rel=1e-3)
    four = PLAIN.model_copy(update={"tensor": 4})
    assert terms(step(four, 2, batch=4))["data"] == pytest.approx(size / 4 * 3 / 4 / 85e9, rel=1e-3)


def test_bubble_of_the_interleaved_schedule() -> None:
    deep = PLAIN.model_copy(update={"pipeline": 8, "interleaved": 4})
    one = terms(step(deep, 1, batch=16, rounds=16))
    flat = terms(step(PLAIN, 1, batch=16, rounds=2))
    assert one["gemm"] == pytest.approx(flat["gemm"] * (1 + 7 / (4 * 16)))


def test_frozen_weights_have_no_gradients() -> None:
    found = terms(step(PLAIN.model_copy(update={"benchmark": "llama2_70b_lora"}), 1, batch=8))
    assert found["accumulate"] == found["optimizer"] == 0


def test_precision_that_the_npu_lacks() -> None:
    with pytest.raises(ConfigError, match="h200 does not compute in fp4"):
        terms(step(PLAIN.model_copy(update={"precision": "fp4"}), 1, batch=8))


def test_synthetic_fleet_is_recovered_within_the_interval() -> None:
    inside, errors = [], []
    for seed in range(4):
        for fold in folds(measured(fleet(), seed)):
            logs, sds = fit(fold.train).predict(fold.test)
            off = logs - np.log([one.measured_s or math.nan for one in fold.test])
            inside += list(np.abs(off) < 1.645 * sds)
            errors += list(np.abs(off))
    assert len(errors) == 24
    assert np.mean(inside) >= 0.85
    assert np.median(errors) < 0.05


def test_fit_explains_what_it_was_given() -> None:
    rows = measured(fleet(), 1)
    found = fit(rows)
    for one in rows:
        assert sum(found.parts(one).values()) == pytest.approx(one.measured_s, rel=0.05)


def test_order_of_rows_and_number_of_repetitions_do_not_matter() -> None:
    rows = frame(measured(fleet(), 2))
    known: dict[tuple[str, str], Configuration] = {
        (one.configuration.benchmark, f"{one.submitter}/{one.system}"): one.configuration
        for one in fleet()
    }
    larger = rows.head(3).drop("median_step_s").with_row_index("question")
    expected = predict_steps(rows, larger, known)
    twice = pl.concat([rows, rows.with_columns(run=pl.lit(1, pl.Int64))])
    for other in (rows.reverse(), twice, rows.sample(fraction=1, shuffle=True, seed=0)):
        found = predict_steps(other, larger, known)
        assert found.equals(expected)


def test_folds_hold_out_the_largest_job_of_each_family_with_its_repetitions() -> None:
    rows = measured(fleet(), 0)
    found = folds([*rows, *rows])
    assert len(found) == 6
    for fold in found:
        assert {one.systems for one in fold.test} == {16 if "llama31_8b" in fold.family else 64}
        assert len(fold.test) == 2
        assert not [one for one in fold.train if one in fold.test]


def test_predicts_and_cross_validates_files(tmp_path: Path) -> None:
    train, larger = tmp_path / "train.csv", tmp_path / "questions.csv"
    train.write_text(f"{HEADING},median_step_s\n{ROW},0.19\n{LARGER},0.2\n", encoding="utf-8")
    larger.write_text(f"question,{HEADING}\n7,{LARGER}\n", encoding="utf-8")
    (found,) = predict(train, larger).iter_rows(named=True)
    assert found["question"] == 7
    assert found["low_s"] < found["predicted_step_s"] < found["high_s"]
    assert found["predicted_step_s"] == pytest.approx(0.2, rel=0.05)
    (checked,) = cross_validated(train).iter_rows(named=True)
    assert (checked["system"], checked["measured_s"]) == ("hpg.dgxb200x8.n8", pytest.approx(0.2))
    assert checked["predicted_s"] == pytest.approx(0.19, rel=0.1)


def test_one_size_has_no_fold(tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    train.write_text(f"{HEADING},median_step_s\n{ROW},0.19\n", encoding="utf-8")
    assert cross_validated(train).is_empty()


def test_no_measured_steps() -> None:
    with pytest.raises(CalibrationError, match="no measured training steps"):
        fit([])
    with pytest.raises(CalibrationError, match="no measured time"):
        fit(fleet())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace(",4,16,", ",0,16,") + ",0.2", "systems is not valid"),
        (ROW + ",slow", "median_step_s is not valid"),
        (ROW + ",-1", "median_step_s is not valid"),
    ],
)
def test_damaged_rows(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "train.csv"
    path.write_text(f"{HEADING},median_step_s\n{row}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as error:
        read_steps(path)
    assert "line 2" in str(error.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("hpg.dgxb200x8.n4", "hpg.dgxb200x8.n5"), "parallelism of .* is unknown"),
        (ROW.replace(",4,16,", ",4,17,"), "17 does not divide into micro-batches"),
        (
            "NVIDIA,tyche_ngpu512_ngc25.09_nemo,llama31_405b,9,16,8192,1,0",
            "36 NPUs cannot hold copies of 64 NPUs",
        ),
    ],
)
def test_rows_that_do_not_fit_their_configuration(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(f"question,{HEADING}\n0,{row}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as error:
        steps(read_questions(path), submissions(), source=str(path))
    assert str(path) in str(error.value)


def test_questions_with_the_same_number(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(f"question,{HEADING}\n0,{ROW}\n0,{LARGER}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="question 0 occurs more than once"):
        read_questions(path)


def test_submissions_name_their_source_and_fit_a_replica_into_the_job() -> None:
    known = submissions()
    assert len(known) == len({(name, run) for name, run in known})
    for one in known.values():
        assert one.source.endswith(".sh")
        assert one.npus_per_domain % one.npus_per_node == 0
    assert model.__all__ == ["Fold", "cross_validated", "folds", "predict", "predict_steps"]
