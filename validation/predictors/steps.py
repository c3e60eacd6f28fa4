"""Predicts training steps of large jobs from measured steps of smaller ones.

The model is in docs/models/measured-steps.md: closed forms of the parts of a step at published
peaks (:mod:`predictors.step_terms`), and coefficients with priors, which measurements calibrate
(:mod:`predictors.step_fit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from predictors.step_fit import fit
from predictors.step_rows import read_questions, read_steps, steps
from predictors.submissions import submissions

from tutti.measured.predict.curve import DEVIATIONS_90

if TYPE_CHECKING:
    from pathlib import Path

    from predictors.step_rows import TrainingStep
    from predictors.submissions import Configurations

__all__ = ["Fold", "cross_validated", "folds", "predict", "predict_steps"]

_VALIDATED: Final[dict[str, type[pl.DataType]]] = {
    "submitter": pl.String,
    "system": pl.String,
    "benchmark": pl.String,
    "systems": pl.Int64,
    "measured_s": pl.Float64,
    "predicted_s": pl.Float64,
    "low_s": pl.Float64,
    "high_s": pl.Float64,
}


@dataclass(frozen=True)
class Fold:
    """Steps to predict, and the measured steps to predict them from.

    Attributes:
        family: Submitter, NPU and benchmark.
        train: The measured steps of all other jobs.
        test: The steps of the family on the most systems, all repetitions.
    """

    family: tuple[str, str, str]
    train: tuple[TrainingStep, ...]
    test: tuple[TrainingStep, ...]


def folds(measured: list[TrainingStep]) -> list[Fold]:
    """Returns a fold for each family with several sizes: its largest is predicted.

    Like the questions of users, folds ask about larger jobs than those measured.
    """
    found = []
    for family in sorted({step.family for step in measured}):
        sizes = {step.systems for step in measured if step.family == family}
        if len(sizes) > 1:
            held = [s for s in measured if s.family == family and s.systems == max(sizes)]
            train = [step for step in measured if step not in held]
            found.append(Fold(family, tuple(train), tuple(held)))
    return found


def predict(train: Path, questions: Path) -> pl.DataFrame:
    """Predicts the training steps of a table of questions.

    Args:
        train: A CSV file of measured steps (:func:`predictors.step_rows.read_steps`).
        questions: A CSV file of steps without times, with the column `question`.

    Returns:
        The columns of :func:`predict_steps`.

    Raises:
        ConfigError: A file cannot be read, a row is damaged, or the parallelism of a submission is
            unknown.
        CalibrationError: There are no measured steps.
    """
    rows, larger = read_steps(train), read_questions(questions)
    return predict_steps(rows, larger, sources=(str(train), str(questions)))


def predict_steps(
    train_rows: pl.DataFrame,
    question_rows: pl.DataFrame,
    known: Configurations | None = None,
    *,
    sources: tuple[str, str] = ("train_rows", "question_rows"),
) -> pl.DataFrame:
    """Predicts training steps from measured ones.

    Args:
        train_rows: Columns of :data:`predictors.step_rows.COLUMNS` and `median_step_s`.
        question_rows: The former columns and `question`.
        known: The parallelism of each submission; None for those of MLPerf Training 5.1.
        sources: The files to name in errors.

    Returns:
        A row per question: `question`, `predicted_step_s` (the median), and the 90 % interval from
        `low_s` to `high_s`, in seconds.

    Raises:
        ConfigError: The parallelism of a submission is unknown, or contradicts the row.
        CalibrationError: There are no measured steps.
    """
    known = submissions() if known is None else known
    model = fit(steps(train_rows, known, source=sources[0]))
    logs, sds = model.predict(steps(question_rows, known, source=sources[1]))
    return pl.DataFrame(
        {
            "question": question_rows["question"],
            "predicted_step_s": np.exp(logs),
            "low_s": np.exp(logs - DEVIATIONS_90 * sds),
            "high_s": np.exp(logs + DEVIATIONS_90 * sds),
        }
    )


def cross_validated(train: Path) -> pl.DataFrame:
    """Predicts the largest job of each family from the other jobs (:func:`folds`).

    Args:
        train: A CSV file of measured steps.

    Returns:
        A row per held-out job: `submitter`, `system`, `benchmark`, `systems`, `measured_s` (the
        geometric mean of repetitions), `predicted_s`, and the 90 % interval from `low_s` to
        `high_s`.

    Raises:
        ConfigError: The file cannot be read, or the parallelism of a submission is unknown.
    """
    rows = steps(read_steps(train), submissions(), source=str(train))
    parts = [_fold_rows(fold) for fold in folds(rows)]
    return (
        pl.concat([pl.DataFrame(schema=_VALIDATED), *parts])
        .group_by(list(_VALIDATED)[:4], maintain_order=True)
        .agg(
            pl.col("measured_s").log().mean().exp(),
            pl.col("predicted_s", "low_s", "high_s").first(),
        )
    )


def _fold_rows(fold: Fold) -> pl.DataFrame:
    logs, sds = fit(fold.train).predict(fold.test)
    return pl.DataFrame(
        {
            "submitter": [step.submitter for step in fold.test],
            "system": [step.system for step in fold.test],
            "benchmark": [step.configuration.benchmark for step in fold.test],
            "systems": [step.systems for step in fold.test],
            "measured_s": [step.measured_s for step in fold.test],
            "predicted_s": np.exp(logs),
            "low_s": np.exp(logs - DEVIATIONS_90 * sds),
            "high_s": np.exp(logs + DEVIATIONS_90 * sds),
        }
    )
