"""Predicts the throughput of training recipes from those of other models and systems.

The model is the closed form of `tutti train plan` (:mod:`tutti.training.plan.estimate`); the fit of
its coefficients is in :mod:`predictors.recipe_fit`. docs/models/measured-steps.md describes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from predictors.recipe_fit import PRIORS, fit
from predictors.recipe_rows import published, read_recipes

from tutti.measured.predict.curve import DEVIATIONS_90

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from predictors.recipe_fit import FittedRecipes
    from predictors.recipe_rows import Recipe

__all__ = ["carried_over", "cross_validated", "predict", "tables"]

_DIGITS: Final = 4


@dataclass(frozen=True)
class _Fold:
    group: tuple[str, str]
    train: tuple[Recipe, ...]
    test: tuple[Recipe, ...]


def folds(recipes: list[Recipe]) -> list[_Fold]:
    """Returns a fold for each model and system: its recipes are predicted from all others."""
    found = []
    for group in sorted({one.group for one in recipes}):
        test = tuple(one for one in recipes if one.group == group)
        found.append(_Fold(group, tuple(one for one in recipes if one.group != group), test))
    return found


def predict(train: Path, questions: Path) -> pl.DataFrame:
    """Predicts the throughput of questions, in tokens per second and GPU.

    Args:
        train: A CSV file of measured recipes (:func:`predictors.recipe_rows.read_recipes`).
        questions: A CSV file of recipes with the column `question`.

    Returns:
        A row per question: `question`, `predicted_tokens_per_s_per_gpu`, and the 90 % interval from
        `low_tokens_per_s_per_gpu` to `high_tokens_per_s_per_gpu`.

    Raises:
        ConfigError: A file cannot be read, or a row is damaged.
        CalibrationError: There are no measured recipes.
    """
    measured, _ = read_recipes(train)
    requested, rows = read_recipes(questions)
    found = _predicted(fit([*measured, *published()]), requested)
    unit = "tokens_per_s_per_gpu"
    return pl.DataFrame(
        {"question": rows["question"], **{f"{name}_{unit}": found[name] for name in found}}
    )


def cross_validated(train: Path) -> pl.DataFrame:
    """Predicts the recipes of each model and system from all others.

    Returns:
        The columns of the table, `measured`, `predicted`, `low` and `high`, in tokens per second
        and GPU.
    """
    recipes, _ = read_recipes(train)
    parts, everything = [], fit([*recipes, *published()])
    for fold in folds(recipes):
        found = _predicted(fit([*fold.train, *published()], everything), fold.test)
        parts.append(pl.DataFrame([one.row for one in fold.test]).with_columns(
            pl.Series("measured", [one.tokens_per_s for one in fold.test]),
            *(pl.Series(name, values) for name, values in found.items()),
        ))  # fmt: skip
    return pl.concat(parts)


def carried_over(train: Path) -> pl.DataFrame:
    """Predicts with the mean model FLOPs utilisation of the model on other systems.

    Returns:
        `measured` and `predicted` tokens per second and GPU of the recipes whose model was measured
        on another system.
    """
    recipes, _ = read_recipes(train)
    rows = []
    for one in recipes:
        others = [o for o in recipes if o.group[0] == one.group[0] and o.group[1] != one.group[1]]
        alike = [o for o in others if o.row["precision"] == one.row["precision"]] or others
        if alike:
            usage = [o.tokens_per_s / o.cluster.peak for o in alike]  # type: ignore[operator]
            rows.append((one.tokens_per_s, float(np.mean(usage)) * one.cluster.peak))
    return pl.DataFrame(rows, schema=["measured", "predicted"], orient="row")


def _predicted(model: FittedRecipes, recipes: tuple[Recipe, ...] | list[Recipe]) -> dict[str, Any]:
    logs, sds = model.predict(recipes)
    tokens: NDArray[np.float64] = np.array([one.tokens for one in recipes])
    return {
        "predicted": tokens / np.exp(logs),
        "low": tokens / np.exp(logs + DEVIATIONS_90 * sds),
        "high": tokens / np.exp(logs - DEVIATIONS_90 * sds),
    }


def tables(train: Path) -> str:
    """Returns `python/tutti/training/plan/efficiencies.toml`, fitted to all measured recipes.

    Factors of releases are left out, so that predictions are those of a mean release.
    """
    recipes, _ = read_recipes(train)
    model = fit([*recipes, *published()])
    values = dict(zip(model.names, np.exp(model.values), strict=True))
    values |= {name: prior.value for name, prior in PRIORS.items() if name not in values}
    newest = max(one.row["container"] for one in recipes)
    lines = [_HEAD.format(release=newest, rows=len(recipes)), "[coefficients]"]
    lines += [f"{name} = {values[name]:.{_DIGITS}g}" for name in PRIORS]
    lines += ["", "[factors]"]
    for name in sorted(set(values) - set(PRIORS)):
        is_kept = name.startswith(("matrix: gpu: ", "model: ")) or (
            "release" not in name and abs(np.log(values[name])) > _LEAST
        )
        if is_kept:
            lines.append(f'"{name}" = {values[name]:.{_DIGITS}g}')
    return "\n".join(lines) + "\n"


_LEAST: Final = 5e-3
_HEAD: Final = """\
# Coefficients of training steps, fitted by `make gpu` to {rows} published recipes of
# Megatron-Bridge (Apache 2.0) up to release {release}, and to three runs of Llama 3 405B
# (Grattafiori et al. 2024, table 4). docs/models/measured-steps.md has the model.
#
# Coefficients: reciprocal efficiencies of products and attention, multiples of memory traffic,
# seconds per pass over a layer, exposed shares of collectives, bytes per weight, seconds per step.
# A factor multiplies the coefficients of its kind for a GPU, a precision or a model. Factors of
# releases are left out: the values are those of a mean release.
"""
